"""The settings under which `make reproduce` compares chapters: libraries, threads and noise."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from bookbuild.errors import require_known
from bookbuild.reproduce.noise.kernel import write_profile

THREADS = ("LNBOOK_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
SEEDS = range(5)


@dataclass(frozen=True)
class Setting:
    """How one run computes.

    Attributes:
        name: what the command line and the table call it.
        variables: environment variables that control how the libraries compute.
        threads: how many threads torch and NumPy use; None for their defaults.
        noise: the seed for the rounding noise; None for no noise.
    """

    name: str
    variables: Mapping[str, str] = field(default_factory=dict)
    threads: int | None = None
    noise: int | None = None

    @contextmanager
    def environment(self, root: Path) -> Iterator[dict[str, str]]:
        """The environment variables for this setting; also writes the files they refer to.

        Args:
            root: the folder that contains the bookbuild package.
        """
        threads = {} if self.threads is None else dict.fromkeys(THREADS, str(self.threads))
        with TemporaryDirectory() as folder:
            noise = {}
            if self.noise is not None:
                noise = write_profile(Path(folder), self.noise, root)
            yield {**self.variables, **threads, **noise}


def _libraries(
    mkl: str,
    openblas: str,
    torch: str,
    onednn: str,
    numpy: Sequence[str],
    numba: tuple[str, str],
) -> dict[str, str]:
    """The variables that make each library take the code path for a given processor.

    MKL multiplies torch's matrices, OpenBLAS multiplies NumPy's, and oneDNN convolves; torch and
    NumPy also have vectorized code, and Numba compiles lnbook's kernels for a processor and its
    features.
    """
    return {
        "MKL_CBWR": mkl,
        "OPENBLAS_CORETYPE": openblas,
        "ATEN_CPU_CAPABILITY": torch,
        "ONEDNN_MAX_CPU_ISA": onednn,
        "NPY_DISABLE_CPU_FEATURES": " ".join(numpy),
        "NUMBA_CPU_NAME": numba[0],
        "NUMBA_CPU_FEATURES": numba[1],
    }


def settings() -> dict[str, Setting]:
    """Every setting that this processor supports, keyed by name."""
    import torch
    from numpy._core import _multiarray_umath as numpy  # type: ignore[attr-defined]

    # The instruction sets that NumPy has code for, oldest first: X86_V3 is AVX2.
    groups = [one for one in numpy.__cpu_dispatch__ if numpy.__cpu_features__[one]]
    newer = [one for one in groups if one != "X86_V3"]
    widest = torch.backends.cpu.get_cpu_capability()
    sse = _libraries("COMPATIBLE", "Nehalem", "default", "SSE41", groups, ("nehalem", "+sse4.2"))
    listed = [Setting("default"), Setting("two-threads", threads=2), Setting("sse", sse, threads=1)]
    if widest in ("AVX2", "AVX512"):
        avx2 = _libraries("AVX2", "Haswell", "avx2", "AVX2", newer, ("haswell", "+avx2,+fma"))
        listed.append(Setting("avx2", avx2, threads=2))
    if widest == "AVX512":
        features = "+avx512f,+avx512dq,+avx512bw,+avx512vl"
        wide = ("skylake-avx512", features)
        avx512 = _libraries("AVX512", "SkylakeX", "avx512", "AVX512_CORE", (), wide)
        listed.append(Setting("avx512", avx512, threads=1))
    listed += [Setting(f"noise-{seed}", noise=seed) for seed in SEEDS]
    return {setting.name: setting for setting in listed}


def named(names: Sequence[str]) -> list[Setting]:
    """The settings with these names, or all settings if there are no names.

    Raises:
        BookError: if a name isn't a setting that this processor supports.
    """
    known = settings()
    require_known("setting", names, known)
    return [known[name] for name in names or known]
