r"""Fused layer normalization with a hand-written backward pass.

It runs the compiled kernels of `lnbook.kernels`. Where there are none, torch operations replace
them. Here's what makes those fast and keeps their results equal to `layer_norm`'s:

- They run block by block (see `_blocks`), in place, and write each output once.
- For the backward pass, they save the input and two or three numbers per row, and recompute
  :math:`\hat{x}`.
- In the backward pass, means over rows are matrix-vector products with the weight.
- The second centering of `layer_norm` is done only for rows that need it: those whose mean is large
  compared with their standard deviation, including constant rows.
"""

import math
from collections.abc import Sequence
from typing import Any, TypeAlias

import torch
from torch import Tensor

from lnbook._check_tensors import computing_dtype
from lnbook.functional._blocks import (
    affine_,
    as_like,
    as_rows,
    as_vector,
    blocks,
    fits_one_block,
    in_dtype,
    is_transformed,
    minus_means,
)
from lnbook.functional._traced import register, takes_operators
from lnbook.functional.layer_norm import checked_arguments, layer_norm, layer_norm_backward
from lnbook.kernels import operators

__all__ = ["BlockedLayerNormFunction", "LayerNormFunction"]

# Up to this ratio of a row's mean to its standard deviation, the rounding error of the mean is too
# small to see in the output: 8 times the rounding error of a float32 is 5e-7.
FAR = 8.0

# What the backward pass needs from each row, as columns: the mean, what rounding left of it (None
# if no row needs it), and r.
Statistics: TypeAlias = tuple[Tensor, Tensor | None, Tensor]


class LayerNormFunction(torch.autograd.Function):
    r"""Layer normalization with a hand-written backward pass: `LayerNormFunction.apply(...)`.

    .. math::
        y = \gamma \hat{x} + \beta, \qquad
        \frac{\partial \mathcal{L}}{\partial x} = r \left( g - \overline{g} - \hat{x} \,
        \overline{g \hat{x}} \right), \qquad g = \gamma \frac{\partial \mathcal{L}}{\partial y}

    Source: Ba, Kiros and Hinton 2016, eq. 3, and the chain rule; see `layer_norm` and
    `layer_norm_backward`, the plain functions, which it matches up to rounding. Arguments, shapes,
    dtypes and errors are as in `layer_norm`.

    It runs a compiled kernel: on a CPU with Numba, on an NVIDIA GPU with Triton. Without them, and
    on other devices, it uses torch operations and warns once. The first call compiles, which takes
    a few seconds; the machine code is kept on disk.

    Second and higher derivatives go through `layer_norm_backward`. Inside `torch.func` transforms,
    the plain function runs instead; outside them, dual tensors (forward-mode differentiation) are
    rejected. `torch.compile` doesn't look inside, but the modules do compile: their graphs contain
    the "lnbook::layer_norm" operator.

    Example:
        >>> x = torch.tensor([[1.0, 3.0], [30.0, 10.0]], requires_grad=True)
        >>> y = LayerNormFunction.apply(x, (2,), torch.tensor([2.0, 5.0]), None, 0.0)
        >>> y.detach().round(decimals=4).tolist()
        [[-2.0, 5.0], [2.0, -5.0]]
        >>> y.backward(torch.tensor([[1.0, 0.0], [0.0, 1.0]]))
        >>> bool((x.grad.abs() < 1e-6).all())  # two features and eps 0: y cannot change
        True
    """

    @classmethod
    def apply(
        cls,
        input: Tensor,
        normalized_shape: Sequence[int],
        weight: Tensor | None = None,
        bias: Tensor | None = None,
        eps: float = 1e-5,
    ) -> Tensor:
        """Normalize `input`; arguments, result and errors are as in `layer_norm`."""
        given = (input, normalized_shape, weight, bias, eps)
        shape, eps = checked_arguments(cls.__name__, *given)
        if is_transformed():
            return traced_layer_norm(input, shape, weight, bias, eps)
        y: Tensor = super().apply(input, shape, weight, bias, eps)  # type: ignore[no-untyped-call]
        return y

    @staticmethod
    def forward(
        ctx: Any,
        input: Tensor,
        shape: tuple[int, ...],
        weight: Tensor | None,
        bias: Tensor | None,
        eps: float,
    ) -> Tensor:
        """Normalize the rows, and save the input and the statistics for backward."""
        ctx.shape, ctx.eps = shape, eps
        if operators.runs_on(input.device.type):
            y, saved = operators.layer_norm_forward(input, shape, weight, bias, eps)
            ctx.save_for_backward(input, weight, bias, saved)
            return y
        return BlockedLayerNormFunction.forward(ctx, input, shape, weight, bias, eps)

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor | None, ...]:
        """Return the gradients of input, weight and bias; None for the other arguments."""
        input, weight, bias, *statistics = ctx.saved_tensors
        if torch.is_grad_enabled():  # the gradients will be differentiated in turn
            grads = layer_norm_backward(grad_output, input, ctx.shape, weight, ctx.eps)
        elif len(statistics) == 1:
            given = (grad_output, input, ctx.shape, weight, *statistics, ctx.eps)
            grads = operators.layer_norm_backward(*given)
        else:
            rows, grad_rows = as_rows(input, ctx.shape), as_rows(grad_output, ctx.shape)
            vector = as_vector(weight, computing_dtype(input.dtype))
            grads = _backward(grad_rows, rows, vector, tuple(statistics))
        of_input, _, of_weight, of_bias, _ = ctx.needs_input_grad
        return (
            as_like(grads[0], input) if of_input else None,
            None,
            as_like(grads[1], weight) if of_weight else None,
            as_like(grads[2], bias) if of_bias else None,
            None,
        )


class BlockedLayerNormFunction(LayerNormFunction):
    """`LayerNormFunction` in torch operations: its fallback where there's no kernel.

    Source, arguments, results and errors are the same as for `LayerNormFunction`.

    Example:
        >>> x = torch.tensor([[1.0, 3.0], [30.0, 10.0]])
        >>> BlockedLayerNormFunction.apply(x, (2,), eps=0.0).round(decimals=4).tolist()
        [[-1.0, 1.0], [1.0, -1.0]]
    """

    @staticmethod
    def forward(
        ctx: Any,
        input: Tensor,
        shape: tuple[int, ...],
        weight: Tensor | None,
        bias: Tensor | None,
        eps: float,
    ) -> Tensor:
        """Normalize the rows, and save the input and the statistics for backward."""
        ctx.shape, ctx.eps = shape, eps
        rows, dtype = as_rows(input, shape), computing_dtype(input.dtype)
        y, statistics = _forward(rows, as_vector(weight, dtype), as_vector(bias, dtype), eps)
        ctx.save_for_backward(input, weight, bias, *statistics)
        return y if y.shape == input.shape else y.view(input.shape)


def traced_layer_norm(
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None,
    bias: Tensor | None,
    eps: float,
) -> Tensor:
    """Return what a tracer gets instead of `LayerNormFunction`."""
    given = (input, normalized_shape, weight, bias, eps)
    shape, eps = checked_arguments("LayerNormFunction", *given)
    if not takes_operators(input):
        return layer_norm(input, shape, weight, bias, eps)
    y: Tensor = operators.layer_norm_operator(input, shape, weight, bias, eps)[0]
    return y


register(operators.layer_norm_operator, LayerNormFunction.backward)


def _forward(
    rows: Tensor, weight: Tensor | None, bias: Tensor | None, eps: float
) -> tuple[Tensor, Statistics]:
    dtype = computing_dtype(rows.dtype)
    added = rows.new_full((), eps, dtype=dtype)
    if fits_one_block(rows):
        y, statistics = _forward_block(in_dtype(rows, dtype), weight, bias, added)
        return in_dtype(y, rows.dtype), statistics

    y, found = torch.empty_like(rows), []
    for block in blocks(rows):
        out = y[block] if rows.dtype == dtype else None
        x = in_dtype(rows[block], dtype)
        result, statistics = _forward_block(x, weight, bias, added, out, recenter=False)
        if out is None:
            y[block] = result
        found.append(statistics)
    mean, norm, rstd = (torch.cat(columns) for columns in zip(*found, strict=True))
    # Constant rows have a standard deviation near 0, so `far` includes them too.
    far = (mean.abs() > norm * (FAR / math.sqrt(rows.shape[1]))).squeeze(1)
    if not far.any():
        return y, (mean, None, rstd)
    residual = torch.zeros_like(mean)
    for block in blocks(rows):
        chosen = far[block]
        x = in_dtype(rows[block][chosen], dtype)
        result, (_, left, scale) = _forward_block(x, weight, bias, added)
        y[block][chosen] = in_dtype(result, rows.dtype)
        residual[block][chosen], rstd[block][chosen] = left, scale
    return y, (mean, residual, rstd)


def _forward_block(
    x: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    eps: Tensor,
    out: Tensor | None = None,
    recenter: bool = True,
) -> tuple[Tensor, tuple[Tensor, Tensor, Tensor]]:
    """Return the output (in `out` if given) and, as columns: mean, residual or norm, and r."""
    mean = x.mean(1, keepdim=True)
    centered = torch.sub(x, mean, out=out)
    if recenter:
        residual = centered.mean(1, keepdim=True)
        centered -= residual
    norm = torch.linalg.vector_norm(centered, dim=1, keepdim=True)
    variance = torch.addcmul(eps, norm, norm, value=1 / max(1, x.shape[1]))
    # Not rsqrt: an overflow should give NaN, not 0 as if the row were constant.
    rstd = variance.sqrt().div_(variance)
    y = affine_(centered.mul_(rstd), weight, bias)
    return y, (mean, residual if recenter else norm, rstd)


def _backward(
    grad_rows: Tensor, rows: Tensor, weight: Tensor | None, statistics: Statistics
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the gradients of the rows, and of weight and bias in the computation dtype."""
    dtype = computing_dtype(rows.dtype)
    mean, residual, rstd = statistics
    if fits_one_block(rows):
        dy, x = in_dtype(grad_rows, dtype), in_dtype(rows, dtype)
        grad_input, product = _backward_block(dy, x, weight, statistics)
        return grad_input, torch.mv(product.t(), rstd.view(-1)), dy.sum(0)

    grad_input, memory = torch.empty_like(rows), None
    grad_weight = rows.new_zeros(rows.shape[1], dtype=dtype)
    grad_bias = torch.zeros_like(grad_weight)
    for block in blocks(rows):
        dy, x = in_dtype(grad_rows[block], dtype), in_dtype(rows[block], dtype)
        own = mean[block], None if residual is None else residual[block], rstd[block]
        out = grad_input[block] if rows.dtype == dtype else None
        memory = torch.empty_like(x) if memory is None else memory[: len(x)]
        result, product = _backward_block(dy, x, weight, own, out, memory)
        if out is None:
            grad_input[block] = result
        grad_weight.addmv_(product.t(), own[2].view(-1))
        grad_bias += dy.sum(0)
    return grad_input, grad_weight, grad_bias


def _backward_block(
    grad_output: Tensor,
    x: Tensor,
    weight: Tensor | None,
    statistics: Statistics,
    out: Tensor | None = None,
    product_out: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Return the gradient of x, and the product of grad_output and centered x."""
    mean, residual, rstd = statistics
    centered = torch.sub(x, mean, out=out)
    if residual is not None:
        centered -= residual
    product = torch.mul(grad_output, centered, out=product_out)
    # xhat is centered times r; the last factor r comes with its mean, as r ** 2 could underflow.
    minus_mean_g_xhat = minus_means(product, weight).mul_(rstd).mul_(rstd)
    grad = centered.mul_(minus_mean_g_xhat).add_(minus_means(grad_output, weight))
    if weight is None:
        grad += grad_output
    else:
        torch.addcmul(grad, grad_output, weight, out=grad)
    return grad.mul_(rstd), product
