"""Process rows in blocks that fit in the processor's cache.

A formula written in torch operations reads its tensors once per operation. If a tensor is larger
than the cache, each read goes to main memory again, which takes longer than the arithmetic. So the
Functions run the whole formula on one block of rows, then on the next.
"""

import math
from collections.abc import Iterator

import torch
from torch import Tensor

# Elements per block. Measurements show that half as many need more calls, and twice as many
# overflow the cache.
BLOCK = 2**19


def as_rows(tensor: Tensor, shape: tuple[int, ...]) -> Tensor:
    """View (or copy) `tensor` as a contiguous matrix with one row per normalized group."""
    if tensor.ndim != 2 or len(shape) != 1:
        leading = tensor.shape[: tensor.ndim - len(shape)]
        tensor = tensor.reshape(math.prod(leading), math.prod(shape))
    return tensor.contiguous()


def as_vector(parameter: Tensor | None, dtype: torch.dtype) -> Tensor | None:
    """Return a weight or bias as a vector of `dtype`, or None if it is None."""
    if parameter is None:
        return None
    return in_dtype(parameter if parameter.ndim == 1 else parameter.reshape(-1), dtype)


def in_dtype(tensor: Tensor, dtype: torch.dtype) -> Tensor:
    """Return `tensor` in `dtype`; faster than `Tensor.to` if there's nothing to convert."""
    return tensor if tensor.dtype == dtype else tensor.to(dtype)


def as_like(tensor: Tensor, model: Tensor) -> Tensor:
    """Return `tensor` with the shape and dtype of `model`."""
    tensor = in_dtype(tensor, model.dtype)
    return tensor if tensor.shape == model.shape else tensor.view(model.shape)


def affine_(xhat: Tensor, weight: Tensor | None, bias: Tensor | None) -> Tensor:
    """Scale and shift the columns of `xhat` in place, if weight or bias is given."""
    if weight is not None and bias is not None:
        return torch.addcmul(bias, xhat, weight, out=xhat)
    if weight is not None:
        return xhat.mul_(weight)
    return xhat if bias is None else xhat.add_(bias)


def minus_means(rows: Tensor, weight: Tensor | None) -> Tensor:
    """Return the negative mean of each row times the weight, as a column."""
    if weight is None:
        return rows.mean(1, keepdim=True).neg_()
    nothing = rows.new_empty(1)  # never read, since beta=0
    return torch.addmv(nothing, rows, weight, beta=0, alpha=-1 / max(1, rows.shape[1])).unsqueeze(1)


def fits_one_block(rows: Tensor) -> bool:
    """Return whether a matrix fits in one block; on devices other than a CPU, all do."""
    return not rows.is_cpu or rows.numel() <= BLOCK


def blocks(rows: Tensor) -> Iterator[slice]:
    """Split the rows of a matrix into blocks, as slices in order."""
    count, size = rows.shape
    height = max(1, BLOCK // size)
    for start in range(0, count, height):
        yield slice(start, start + height)


def is_transformed() -> bool:
    """Return whether `torch.compile`, a `torch.func` transform or `torch.jit.trace` is tracing.

    If so, it needs to see every operation: no blocks, and no access to the tensors' memory.
    """
    return (
        torch.compiler.is_compiling()
        or torch._C._are_functorch_transforms_active()
        or torch._C._get_tracing_state() is not None
    )
