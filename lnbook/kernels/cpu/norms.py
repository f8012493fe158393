"""The compiled norms for torch tensors, with the signatures of the operators.

Numba is imported, and a kernel compiled, when it's first called. That takes a few seconds the first
time; the machine code is then kept on disk.
"""

import importlib
import math
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np
import torch
from torch import Tensor

from lnbook._check_tensors import computing_dtype

__all__ = [
    "layer_norm_backward",
    "layer_norm_forward",
    "missing",
    "rms_norm_backward",
    "rms_norm_forward",
]

# A kernel sees the bits of 16-bit floats, and tells the two apart by the type of these integers.
ELEMENTS = {
    torch.float64: (np.float64(0), np.float64(1)),
    torch.float32: (np.float32(0), np.float32(1)),
    torch.bfloat16: (np.uint16(0), np.float32(1)),
    torch.float16: (np.int16(0), np.float32(1)),
}
# Below this many elements, waking a second thread takes longer than it saves.
SHARED = 2**16
# In the forward pass, larger results (in bytes) bypass the cache, because they wouldn't fit in it.
# In the backward pass, which reads twice as much, that gained nothing.
CACHE = 2**24
# Sums over rows are split into at most this many partial sums of at least this many rows, whatever
# the number of threads, so they're always added up in the same order.
PIECES = 32
PIECE_HEIGHT = 64


@cache
def missing() -> str | None:
    """Return why kernels can't be compiled on this machine, or None if they can.

    Example:
        >>> missing() is None  # Numba is installed
        True
    """
    try:
        importlib.import_module("lnbook.kernels.cpu._compile")
    except ImportError as error:
        return str(error)
    return None


def layer_norm_forward(
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None,
    bias: Tensor | None,
    eps: float,
) -> tuple[Tensor, Tensor]:
    """Return y, and the statistics of shape `(3, rows)`: mean, its rounding error, and r.

    Arguments, dtypes and the equation are those of `lnbook.functional.layer_norm`, which also
    checks them. Source: Ba, Kiros and Hinton 2016, eq. 3.

    Example:
        >>> y, statistics = layer_norm_forward(torch.tensor([[1.0, 3.0]]), (2,), None, None, 0.0)
        >>> y.tolist(), statistics.tolist()
        ([[-1.0, 1.0]], [[2.0], [0.0], [1.0]])
    """
    x, rows, width = _dense(input, normalized_shape)
    dtype = computing_dtype(x.dtype)
    weight, bias = _contiguous(weight), _contiguous(bias)
    y = torch.empty_like(x)
    statistics = torch.empty(3, rows, dtype=dtype)
    threads = _threads(x, rows)
    height, past = _pieces(x, rows, threads)
    numbers = (0, rows, width, height, past, _tools().bits(eps), x.data_ptr(), _address(weight))
    more = (_address(bias), _are_elements(x, weight, bias), y.data_ptr(), statistics.data_ptr())
    _run("layer_norm", "forward", x.dtype, numbers + more, threads)
    return y, statistics


def layer_norm_backward(
    grad_output: Tensor,
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None,
    statistics: Tensor,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the gradients of input, weight and bias, the last two in the statistics' dtype.

    See `lnbook.functional.layer_norm_backward` for the arguments, their dtypes and the equation.
    Source: the chain rule applied to Ba, Kiros and Hinton 2016, eq. 3.

    Example:
        >>> x, upstream = torch.tensor([[1.0, 3.0]]), torch.tensor([[4.0, 0.0]])
        >>> _, statistics = layer_norm_forward(x, (2,), None, None, 0.0)
        >>> _, *grads = layer_norm_backward(upstream, x, (2,), None, statistics, 0.0)
        >>> [grad.tolist() for grad in grads]
        [[-4.0, 0.0], [4.0, 0.0]]
    """
    del eps  # r already includes it
    given = (grad_output, input, normalized_shape, weight, statistics)
    grad_input, (grad_weight, grad_bias) = _backward("layer_norm", *given)
    return grad_input, grad_weight, grad_bias


def rms_norm_forward(
    input: Tensor, normalized_shape: Sequence[int], weight: Tensor | None, eps: float
) -> tuple[Tensor, Tensor]:
    """Return y, and the statistics of shape `(1, rows)`: r.

    Arguments, dtypes and the equation are those of `lnbook.functional.rms_norm`, which also checks
    them. Source: Zhang and Sennrich 2019, eq. 4.

    Example:
        >>> y, _ = rms_norm_forward(torch.tensor([[3.0, 4.0, 0.0, 0.0]]), (4,), None, 0.0)
        >>> y
        tensor([[1.2000, 1.6000, 0.0000, 0.0000]])
    """
    x, rows, width = _dense(input, normalized_shape)
    weight, y = _contiguous(weight), torch.empty_like(x)
    statistics = torch.empty(1, rows, dtype=computing_dtype(x.dtype))
    threads = _threads(x, rows)
    height, past = _pieces(x, rows, threads)
    numbers = (0, rows, width, height, past, _tools().bits(eps), x.data_ptr(), _address(weight))
    more = (_are_elements(x, weight), y.data_ptr(), statistics.data_ptr())
    _run("rms_norm", "forward", x.dtype, numbers + more, threads)
    return y, statistics


def rms_norm_backward(
    grad_output: Tensor,
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None,
    statistics: Tensor,
    eps: float,
) -> tuple[Tensor, Tensor]:
    """Return the gradients of input and weight, the second in the statistics' dtype.

    See `lnbook.functional.rms_norm_backward` for the arguments, their dtypes and the equation.
    Source: the chain rule applied to Zhang and Sennrich 2019, eq. 4.

    Example:
        >>> x, upstream = torch.tensor([[3.0, 4.0]]), torch.tensor([[4.0, -3.0]])
        >>> _, statistics = rms_norm_forward(x, (2,), None, 12.5)
        >>> rms_norm_backward(upstream, x, (2,), None, statistics, 12.5)[1]
        tensor([ 2.4000, -2.4000])
    """
    del eps
    given = (grad_output, input, normalized_shape, weight, statistics)
    grad_input, (grad_weight,) = _backward("rms_norm", *given)
    return grad_input, grad_weight


def _backward(
    norm: str,
    grad_output: Tensor,
    input: Tensor,
    shape: Sequence[int],
    weight: Tensor | None,
    statistics: Tensor,
) -> tuple[Tensor, tuple[Tensor, ...]]:
    (x, rows, width), dy = _dense(input, shape), grad_output.contiguous()
    weight, statistics = _contiguous(weight), statistics.contiguous()
    grad_input = torch.empty_like(x)
    height = max(PIECE_HEIGHT, -(-rows // PIECES))
    pieces, kinds = max(1, -(-rows // height)), 2 if norm == "layer_norm" else 1
    sums = torch.empty(pieces, kinds, *shape, dtype=statistics.dtype)
    numbers = (0, rows, width, height, dy.data_ptr(), x.data_ptr(), _address(weight))
    more = (_are_elements(x, weight), statistics.data_ptr(), grad_input.data_ptr())
    if rows == 0:
        sums.zero_()
    else:
        given = (*numbers, *more, sums.data_ptr())
        _run(norm, "backward", x.dtype, given, _threads(x, rows))
    return grad_input, (sums[0] if pieces == 1 else sums.sum(0)).unbind()


def _dense(input: Tensor, shape: Sequence[int]) -> tuple[Tensor, int, int]:
    """Return a contiguous tensor, its number of rows, and their width."""
    width = shape[0] if len(shape) == 1 else math.prod(shape)
    rows = input.numel() // width if width else math.prod(input.shape[: input.ndim - len(shape)])
    return input.contiguous(), rows, width


def _contiguous(parameter: Tensor | None) -> Tensor | None:
    return None if parameter is None else parameter.contiguous()


def _address(parameter: Tensor | None) -> int:
    return 0 if parameter is None else parameter.data_ptr()


def _are_elements(x: Tensor, *parameters: Tensor | None) -> bool:
    """Return whether weight and bias have the dtype of the input, not that of the statistics."""
    return any(parameter is not None and parameter.dtype == x.dtype for parameter in parameters)


def _threads(x: Tensor, rows: int) -> int:
    return 1 if x.numel() < SHARED else min(torch.get_num_threads(), max(1, rows))


def _pieces(x: Tensor, rows: int, threads: int) -> tuple[int, bool]:
    """Return the rows per piece in the forward pass, and whether to bypass the cache."""
    height = max(1, rows if threads == 1 else -(-rows // (8 * threads)))
    return height, x.numel() * x.element_size() > CACHE


def _run(norm: str, which: str, dtype: torch.dtype, numbers: tuple[int, ...], threads: int) -> None:
    _tools().run(_job(norm, which, dtype), numbers, threads)


@cache
def _tools() -> Any:
    return importlib.import_module("lnbook.kernels.cpu._compile")


@cache
def _job(norm: str, which: str, dtype: torch.dtype) -> Callable[..., None]:
    module = importlib.import_module(f"lnbook.kernels.cpu._{norm}")
    job: Callable[..., None] = getattr(module, f"{which}_job")(*ELEMENTS[dtype])
    return job
