"""What all kernels need: Triton if it's installed, checks, and launch sizes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor

from lnbook._check_tensors import check_floating, check_parameters, check_tensor, computing_dtype

try:
    import triton
    import triton.language as tl
except ImportError as error:
    triton = tl = None
    _WHY_MISSING: ImportError | None = error
else:
    _WHY_MISSING = None

__all__ = ["kernel", "tl", "triton"]

# Registers for one array of a row: 64 KiB, a quarter of what a GPU's multiprocessor has.
ROW_BYTES = 65536
# Up to this size, the backward pass also keeps the two sums in registers, beside x, dy and the
# weight.
BACKWARD_ROW_BYTES = 32768
# How many columns a loop over a row, or a kernel that only adds up parameter gradients, processes
# at a time, and by how many warps.
WIDE_BLOCK = 4096
WIDE_WARPS = 16
# How much of one array of a row each thread has in the forward pass, up to this many warps: the
# more it has, the fewer warps have to wait for each other when they add up the row.
THREAD_BYTES = 128
FORWARD_WARPS = 8
# From this block size on, the backward pass reads two rows of x and dy ahead, if they take at most
# 16 KiB each. With what Triton needs to rearrange them, that's up to 80 KiB of shared memory;
# consumer GPUs allow 99 KiB per program.
AHEAD_BLOCK = 4096
AHEAD_ROW_BYTES = 16384
# How many rows and columns a program in the second stage adds up at a time. The fewer columns,
# the more programs there are. A GPU's memory is read in chunks, and 16 float32 numbers fill two of
# them.
TILE = (128, 16)
INTERPRETED_TILE = (128, 2048)
# How many programs share the rows in Triton's interpreter, where there are no multiprocessors.
INTERPRETED_PROGRAMS = 4


class _Missing:
    """A stand-in for a kernel on a machine without Triton: it can be imported but not called."""


def kernel(function: Callable[..., Any]) -> Any:
    """Turn a function into a Triton kernel, or into one that reports that Triton is missing."""
    return _Missing() if triton is None else triton.jit(function)


def is_interpreted() -> bool:
    """Return whether Triton was imported with `TRITON_INTERPRET=1`, to run kernels on a CPU."""
    return triton is not None and not isinstance(tl.sum, triton.JITFunction)


def check_rows(x: Any, function: str, **parameters: Any) -> None:
    """Raise unless `x` is a floating-point matrix with parameters that fit its rows.

    Raises:
        TypeError: one of them is not a tensor.
        RuntimeError: a shape, dtype or device is wrong.
    """
    check_floating(x, "x", function)
    if x.ndim != 2:
        raise RuntimeError(
            f"{function}: expected x to have two dimensions, but got x of shape {tuple(x.shape)}"
        )
    check_parameters(x, (x.shape[1],), "of a row of x, ", function, **parameters)


def check_launch(x: Tensor, function: str) -> None:
    """Raise unless Triton is installed and runs on the device of `x`.

    Raises:
        ImportError: Triton isn't installed.
        RuntimeError: it doesn't run there.
    """
    if _WHY_MISSING is not None:
        raise ImportError(
            f"{function}: expected Triton to be installed, but it can't be imported: "
            f'{_WHY_MISSING}. On Linux, install it with: pip install "lnbook[gpu]"'
        ) from _WHY_MISSING
    if x.device.type != "cuda" and not (x.device.type == "cpu" and is_interpreted()):
        raise RuntimeError(
            f"{function}: expected x on a CUDA device, but got x on {x.device}. To try the kernels "
            "on a CPU, set TRITON_INTERPRET=1 before anything imports Triton"
        )


def check_saved(value: Any, name: str, x: Tensor, shape: tuple[int, ...], function: str) -> None:
    """Raise unless the saved statistics of the rows of `x` have this shape, and its device.

    Raises:
        TypeError: the value is not a tensor.
        RuntimeError: its shape, dtype or device is wrong.
    """
    dtype = computing_dtype(x.dtype)
    check_tensor(value, name, function)
    if tuple(value.shape) != shape or value.dtype != dtype or value.device != x.device:
        raise RuntimeError(
            f"{function}: expected {name} to have shape {shape} and dtype {dtype} on {x.device}, "
            f"but got {tuple(value.shape)}, {value.dtype} on {value.device}"
        )


def check_gradient(grad_output: Any, x: Tensor, function: str) -> None:
    """Raise unless `grad_output` has the shape, dtype and device of `x`.

    Raises:
        TypeError: it is not a tensor.
        RuntimeError: it differs from `x`.
    """
    check_tensor(grad_output, "grad_output", function)
    for what in ("shape", "dtype", "device"):
        given, wanted = getattr(grad_output, what), getattr(x, what)
        if given != wanted:
            raise RuntimeError(
                f"{function}: expected grad_output to have the {what} of x, {wanted}, but got "
                f"{given}"
            )


def with_dense_rows(x: Tensor) -> Tensor:
    """Return `x`, or a copy if the elements of a row aren't next to each other in memory."""
    return x if x.stride(1) == 1 or x.shape[1] <= 1 else x.contiguous()


def stored_dtype(dtype: torch.dtype) -> torch.dtype:
    """Return the dtype in which a kernel stores what ends up in `dtype`.

    A GPU rounds to the nearest bfloat16. Triton's interpreter truncates, so there torch rounds.
    """
    return torch.float32 if dtype == torch.bfloat16 and is_interpreted() else dtype


def triton_dtype(dtype: torch.dtype) -> Any:
    """Return Triton's name for the dtype of the statistics."""
    return tl.float64 if dtype == torch.float64 else tl.float32


def block_size(width: int, dtype: torch.dtype, row_bytes: int) -> int:
    """Return the power of two that a row of this width fits in, or 0 if it's too wide.

    Args:
        width: the number of elements in a row.
        dtype: what they are computed in.
        row_bytes: how much of a row may be in registers.

    Example:
        >>> [block_size(width, torch.float32, 65536) for width in (1, 768, 16384, 16385)]
        [1, 1024, 16384, 0]
    """
    block = 1 << max(0, width - 1).bit_length()
    return block if block * dtype.itemsize <= row_bytes else 0


def forward_options(block: int, dtype: torch.dtype) -> dict[str, int]:
    """Return how many groups of 32 threads normalize a row, and how many registers they may use.

    A multiprocessor has room for two programs with the largest block, if a thread uses at most 128
    of its 65536 registers. (For some odd widths in 16 bits, the compiler then spills a little.)

    Args:
        block: the size of a row's block.
        dtype: what the row is computed in.

    Example:
        >>> forward_options(64, torch.float32), forward_options(4096, torch.float32)
        ({'num_warps': 1}, {'num_warps': 4})
        >>> forward_options(16384, torch.float32)
        {'num_warps': 8, 'maxnreg': 128}
    """
    row_bytes = block * dtype.itemsize
    warps = {"num_warps": min(max(row_bytes // (32 * THREAD_BYTES), 1), FORWARD_WARPS)}
    largest = row_bytes == ROW_BYTES and torch.version.hip is None  # only CUDA has this option
    return warps | ({"maxnreg": 128} if largest else {})


def backward_options(block: int, dtype: torch.dtype) -> tuple[int, int]:
    """Return how many stages and warps the backward pass has for a row in registers.

    With three stages, it reads two rows ahead. (Triton does that only for rows that it can load at
    least four bytes at a time.) With up to 16 warps, each thread has at least 8 elements.

    Args:
        block: the size of a row's block.
        dtype: the dtype of `x`.

    Example:
        >>> [backward_options(block, torch.bfloat16) for block in (64, 1024, 4096, 16384)]
        [(1, 1), (1, 4), (3, 16), (1, 16)]
    """
    ahead = block >= AHEAD_BLOCK and block * dtype.itemsize <= AHEAD_ROW_BYTES
    return 3 if ahead else 1, min(max(block // 256, 1), 16)


def programs_for(x: Tensor, num_warps: int) -> int:
    """Return how many programs share the rows of the backward pass.

    There are few enough that each has several rows, which keeps the second stage small, but enough
    for every multiprocessor to have 32 warps, though large blocks may leave room for only 16 at a
    time.
    """
    if x.device.type != "cuda":
        return min(len(x), INTERPRETED_PROGRAMS)
    multiprocessors = torch.cuda.get_device_properties(x.device).multi_processor_count
    return min(-(-len(x) // 4), multiprocessors * max(2, 32 // num_warps))


@contextmanager
def on_device_of(x: Tensor) -> Iterator[None]:
    """Launch on the device of `x`, without NumPy's warnings about NaN if it's interpreted."""
    with torch.cuda.device_of(x), np.errstate(all="ignore"):
        yield
