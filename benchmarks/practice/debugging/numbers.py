"""Compare the outputs of one model run in several ways.

`make measure NAME=practice/debugging/numbers` takes about two minutes. It needs two cores and, for
`torch.compile`, a C++ compiler.
"""

import copy
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from lnbook.chapters.practice.debugging.experiments import tolerances
from lnbook.training import initialize_
from lnbook.transformer import PreLNBlock

WIDTH, TOKENS, BATCH = 768, 2, 32
DTYPES = (torch.float32, torch.bfloat16)
SIMPLE = {"ATEN_CPU_CAPABILITY": "default", "MKL_CBWR": "COMPATIBLE", "ONEDNN_MAX_CPU_ISA": "SSE41"}


def missing() -> str | None:
    """Return what this machine lacks, or None."""
    if not (shutil.which("g++") or shutil.which("clang++")):
        return "torch.compile needs a C++ compiler"
    return None if (os.cpu_count() or 1) > 1 else "it needs two cores"


def models() -> dict[str, nn.Module]:
    """Return the models, with the same weights in every process."""
    rng = np.random.default_rng(0)
    blocks = [PreLNBlock(WIDTH, 12, 4 * WIDTH, dropout=0.0) for _ in range(4)]
    found = {
        "LayerNorm": nn.LayerNorm(WIDTH),
        "linear layer": nn.Linear(WIDTH, WIDTH),
        "4 blocks and a norm": nn.Sequential(*blocks, nn.LayerNorm(WIDTH)),
    }
    return {name: initialize_(model, rng).eval() for name, model in found.items()}


def rows() -> Tensor:
    """Return the input, of shape (BATCH, TOKENS, WIDTH)."""
    values = np.random.default_rng(1).normal(size=(BATCH, TOKENS, WIDTH))
    return torch.tensor(values, dtype=torch.float32)


@torch.no_grad()
def plain(model: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    """Return the model's output for the whole batch."""
    return model(x)


def one_by_one(model: nn.Module, x: Tensor) -> Tensor:
    """Return the outputs for batches with a single sequence, in one tensor."""
    return torch.cat([plain(model, row) for row in x.split(1)])


def compiled(model: nn.Module, x: Tensor) -> Tensor:
    """Return the output of the compiled model."""
    return plain(torch.compile(model), x)


def two_threads(model: nn.Module, x: Tensor) -> Tensor:
    """Return the output that two threads compute."""
    torch.set_num_threads(2)
    try:
        return plain(model, x)
    finally:
        torch.set_num_threads(1)


WAYS: dict[str, Callable[[nn.Module, Tensor], Tensor]] = {
    "again": plain,
    "batch size 1": one_by_one,
    "two threads": two_threads,
    "torch.compile": compiled,
}


def measure() -> list[dict[str, Any]]:
    """Return how the outputs differ from the eager model's with one thread and the whole batch."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "outputs.pt"
        command = [sys.executable, "-m", "benchmarks.practice.debugging.numbers", str(path)]
        subprocess.run(command, check=True, env={**os.environ, **SIMPLE})
        elsewhere: dict[str, Tensor] = torch.load(path)
    results = []
    x = rows()
    for name, model in models().items():
        for dtype in DTYPES:
            cast, given = copy.deepcopy(model).to(dtype), x.to(dtype)
            usual = plain(cast, given)
            found = {way: run(cast, given) for way, run in WAYS.items()}
            found["older instructions"] = elsewhere[f"{name} {dtype}"]
            exact = plain(copy.deepcopy(cast).double(), given.double())
            found["float64"] = exact
            for way, output in found.items():
                gap = (output.double() - usual.double()).abs()
                results.append(
                    {
                        "model": name,
                        "dtype": str(dtype).removeprefix("torch."),
                        "way": way,
                        "changed": float(f"{(gap > 0).double().mean():.3g}"),
                        "largest": float(f"{gap.max():.3g}"),
                        **within(name, given, gap, exact, dtype),
                    }
                )
    return results


def within(
    name: str, x: Tensor, gap: Tensor, exact: Tensor, dtype: torch.dtype
) -> dict[str, float]:
    """Return the largest difference as a fraction of the tolerance, for the norm alone."""
    if name != "LayerNorm":
        return {}
    shares = {}
    for label, steps in (("worst", None), ("likely", WIDTH**0.5)):
        atol, rtol = tolerances(x, dtype=dtype, steps=steps)
        shares[label] = float(f"{(gap / (atol + rtol * exact.abs())).max():.3g}")
    return shares


def main() -> None:
    """Save the outputs of all models to a file, so that processes can be compared."""
    torch.set_num_threads(1)
    x = rows()
    outputs = {
        f"{name} {dtype}": plain(copy.deepcopy(model).to(dtype), x.to(dtype))
        for name, model in models().items()
        for dtype in DTYPES
    }
    torch.save(outputs, sys.argv[1])


if __name__ == "__main__":
    main()
