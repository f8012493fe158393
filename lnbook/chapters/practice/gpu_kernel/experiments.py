"""The experiments on GPU kernels: what a careless kernel gets wrong, and what a compiled one loads.

Kernels run in Triton's interpreter, on the CPU. Everything can be imported without Triton.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from lnbook import measurements
from lnbook.kernels.gpu._launch import is_interpreted, kernel, tl, triton

__all__ = [
    "NoTritonError",
    "bandwidths",
    "careless_scale",
    "compiled_accesses",
    "require_triton",
]

# What the record calls each implementation.
IMPLEMENTATIONS = {"PyTorch": "native", "torch.compile": "compiled", "lnbook": "Triton"}


class NoTritonError(ImportError):
    """Triton is missing, or was imported too early. Notebooks show only the message.

    Example:
        >>> NoTritonError("no Triton here")._render_traceback_()
        ['no Triton here']
    """

    def _render_traceback_(self) -> list[str]:
        return [str(self)]


def require_triton() -> None:
    """Raise unless kernels can run in Triton's interpreter.

    Raises:
        NoTritonError: Triton isn't installed, or was imported without `TRITON_INTERPRET=1`.

    Example:
        >>> try:
        ...     require_triton()
        ... except NoTritonError as error:  # tests import Triton without the variable
        ...     print(str(error).partition(" ")[0])
        This
    """
    if triton is None:
        raise NoTritonError(
            "This chapter expected Triton to be installed, but it isn't, so it can only be read "
            'here. On Linux, install it with: pip install "lnbook[gpu]"'
        )
    if not is_interpreted():
        raise NoTritonError(
            "This cell is expected to import Triton with TRITON_INTERPRET=1, but Triton has "
            "already been imported without it. Restart the notebook, and run this cell first"
        )


@kernel
def _careless(
    x: tl.tensor, y: tl.tensor, eps: tl.constexpr, width: tl.constexpr, block: tl.constexpr
) -> None:
    """LayerNorm of one row, with a mistake: the mask is forgotten after centering."""
    row = tl.program_id(0)
    columns = tl.arange(0, block)
    inside = columns < width
    values = tl.load(x + row * width + columns, mask=inside, other=0.0)
    centered = values - tl.sum(values) / width
    variance = tl.sum(centered * centered) / width
    tl.store(y + row * width + columns, centered / tl.sqrt(variance + eps), mask=inside)


def careless_scale(widths: Sequence[int], mean: float, deviation: float) -> NDArray[np.float64]:
    r"""Return how large the outputs of a careless LayerNorm kernel are, for rows of several widths.

    Args:
        widths: the widths, each at least 2.
        mean: the mean of each row.
        deviation: the standard deviation of each row.

    Returns:
        The standard deviation of the outputs, which should be 1, for each width.

    Raises:
        NoTritonError: Triton isn't installed, or was imported without `TRITON_INTERPRET=1`.

    Example:
        >>> careless_scale([], 1.0, 1.0)  # with widths, it needs Triton
        array([], dtype=float64)
    """
    if widths:
        require_triton()
    found = []
    for width in widths:
        row = np.linspace(-1.0, 1.0, width)
        x = torch.tensor(mean + deviation * (row - row.mean()) / row.std())[None]
        y = torch.empty_like(x)
        _careless[(1,)](x, y, 0.0, width, 1 << (width - 1).bit_length())
        found.append(float(y.std(correction=0)))
    return np.array(found)


# Runs in a separate process, because the main process uses Triton's interpreter. Prints how many
# loads and stores of 16 bytes each thread makes, and how many threads there are.
COMPILE = """
import json, re, sys
import torch, triton, triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from lnbook.kernels.gpu import layer_norm
from lnbook.kernels.gpu._launch import forward_options

kernel, width = layer_norm._forward, int(sys.argv[1])
names = kernel.arg_names
constants = {"eps": 1e-5, "width": width, "computing": tl.float32, "block": width}
types = {n: "*fp32" for n in names} | {"x_stride": "i32"}
types |= {n: "constexpr" for n in constants}
index = {n: (names.index(n),) for n in names}
source = ASTSource(
    kernel,
    types,
    constexprs={index[n]: value for n, value in constants.items()},
    attrs={index[n]: [["tt.divisibility", 16]] for n in names if n not in constants},
)
options = forward_options(width, torch.float32)
made = triton.compile(source, target=GPUTarget("cuda", 90, 32), options=options)
vectors = re.findall(r"\\b(ld|st)\\.global\\.v4\\.b32", made.asm["ptx"])
threads = 32 * options["num_warps"]
print(json.dumps({"loads": vectors.count("ld"), "stores": vectors.count("st"), "threads": threads}))
"""


def compiled_accesses(width: int) -> dict[str, int]:
    """Compile lnbook's LayerNorm kernel for an H100, and count how it accesses memory.

    This doesn't need a GPU. The kernel has a weight and a bias, and uses float32.

    Args:
        width: the width of a row, a power of two of at least 1024.

    Returns:
        "loads" and "stores", the instructions of each thread that move four numbers between its
        registers and memory, and "threads", how many threads share a row.

    Raises:
        ValueError: the width is not such a power of two.
        NoTritonError: Triton isn't installed.

    Example:
        >>> compiled_accesses(768)
        Traceback (most recent call last):
        ValueError: compiled_accesses: expected a power of two of at least 1024, but got 768
    """
    if width < 1024 or width & (width - 1):
        raise ValueError(
            f"compiled_accesses: expected a power of two of at least 1024, but got {width}"
        )
    if triton is None:
        require_triton()
    done = subprocess.run(
        [sys.executable, "-c", COMPILE, str(width)],
        env={**os.environ, "TRITON_INTERPRET": "0"},
        capture_output=True,
        text=True,
        check=True,
    )
    counts: dict[str, int] = json.loads(done.stdout)
    return counts


def bandwidths(
    record: measurements.Record, norm: str, passes: str, dtype: str
) -> dict[str, dict[int, float]]:
    """Return how close each implementation comes to moving its arrays as fast as a copy would.

    Args:
        record: measured by `benchmarks.practice.gpu_kernel.norms`.
        norm: "LayerNorm" or "RMSNorm".
        passes: "forward" or "backward".
        dtype: for example "bfloat16".

    Returns:
        For each implementation that was measured, and each width, the fraction of a copy's
        bandwidth. It counts the arrays that the pass has to move: two forward, three backward.

    Example:
        >>> ways = {"native": 2.0, "compiled": 1.25, "Triton": 1.0, "copy": 0.9}
        >>> timings = [{"name": name, "milliseconds": ms} for name, ms in ways.items()]
        >>> what = {"norm": "RMSNorm", "passes": "forward", "dtype": "float32", "arrays": 2}
        >>> made = measurements.Record({}, [what | {"shape": [4, 256], "timings": timings}])
        >>> bandwidths(made, "RMSNorm", "forward", "float32")
        {'PyTorch': {256: 0.45}, 'torch.compile': {256: 0.72}, 'lnbook': {256: 0.9}}
    """
    wanted = {"norm": norm, "passes": passes, "dtype": dtype}
    found: dict[str, dict[int, float]] = {name: {} for name in IMPLEMENTATIONS}
    for measurement in record.measurements:
        if all(measurement[key] == value for key, value in wanted.items()):
            took = {timing["name"]: timing["milliseconds"] for timing in measurement["timings"]}
            copies = measurement["arrays"] / 2
            for name, measured in IMPLEMENTATIONS.items():
                if measured in took:
                    width = int(measurement["shape"][1])
                    found[name][width] = copies * took["copy"] / took[measured]
    return {name: fractions for name, fractions in found.items() if fractions}
