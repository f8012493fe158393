"""Fused RMS normalization with a hand-written backward pass; see `layer_norm_function`."""

from collections.abc import Sequence
from typing import Any

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
from lnbook.functional.rms_norm import checked_arguments, rms_norm, rms_norm_backward
from lnbook.kernels import operators

__all__ = ["RMSNormFunction"]


class RMSNormFunction(torch.autograd.Function):
    r"""RMS normalization with a hand-written backward pass: `RMSNormFunction.apply(...)`.

    .. math::
        y = \gamma \hat{x}, \qquad \frac{\partial \mathcal{L}}{\partial x} =
        r \left( g - \hat{x} \, \overline{g \hat{x}} \right), \qquad
        g = \gamma \frac{\partial \mathcal{L}}{\partial y}

    Source: Zhang and Sennrich 2019, eq. 4, and the chain rule; see `rms_norm` and
    `rms_norm_backward`, the plain functions, which it matches up to rounding. Arguments, shapes,
    dtypes and errors are as in `rms_norm`.

    It runs the compiled kernels that `LayerNormFunction` names, or torch operations, and saves only
    the input and one number per row for backward. Second and higher derivatives go through
    `rms_norm_backward`. Inside `torch.func` transforms, the plain function runs instead; outside
    them, dual tensors (forward-mode differentiation) are rejected. `torch.compile` doesn't look
    inside, but the modules do compile: their graphs contain the "lnbook::rms_norm" operator.

    Example:
        >>> x = torch.tensor([[3.0, 4.0]], requires_grad=True)
        >>> y = RMSNormFunction.apply(x, (2,), torch.tensor([5.0, 10.0]), 12.5)
        >>> y.tolist()
        [[3.0, 8.0]]
        >>> y.backward(torch.tensor([[1.0, 0.0]]))
        >>> x.grad
        tensor([[ 0.8200, -0.2400]])
    """

    @classmethod
    def apply(
        cls,
        input: Tensor,
        normalized_shape: Sequence[int],
        weight: Tensor | None = None,
        eps: float | None = None,
    ) -> Tensor:
        """Normalize `input`; arguments, result and errors are as in `rms_norm`."""
        shape, eps = checked_arguments("RMSNormFunction", input, normalized_shape, weight, eps)
        if is_transformed():
            return traced_rms_norm(input, shape, weight, eps)
        y: Tensor = super().apply(input, shape, weight, eps)  # type: ignore[no-untyped-call]
        return y

    @staticmethod
    def forward(
        ctx: Any, input: Tensor, shape: tuple[int, ...], weight: Tensor | None, eps: float
    ) -> Tensor:
        """Normalize the rows, and save the input and one number per row for backward."""
        ctx.shape, ctx.eps = shape, eps
        if operators.runs_on(input.device.type):
            y, statistics = operators.rms_norm_forward(input, shape, weight, eps)
            ctx.save_for_backward(input, weight, statistics)
            return y
        rows = as_rows(input, shape)
        y, rstd = _forward(rows, as_vector(weight, computing_dtype(input.dtype)), eps)
        ctx.save_for_backward(input, weight, rstd)
        return y if y.shape == input.shape else y.view(input.shape)

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor | None, ...]:
        """Return the gradients of input and weight; None for the other arguments."""
        input, weight, rstd = ctx.saved_tensors
        if torch.is_grad_enabled():  # the gradients will be differentiated in turn
            grads = rms_norm_backward(grad_output, input, ctx.shape, weight, ctx.eps)
        elif operators.runs_on(input.device.type):
            given = (grad_output, input, ctx.shape, weight, rstd, ctx.eps)
            grads = operators.rms_norm_backward(*given)
        else:
            rows, grad_rows = as_rows(input, ctx.shape), as_rows(grad_output, ctx.shape)
            vector = as_vector(weight, computing_dtype(input.dtype))
            grads = _backward(grad_rows, rows, vector, rstd)
        of_input, _, of_weight, _ = ctx.needs_input_grad
        return (
            as_like(grads[0], input) if of_input else None,
            None,
            as_like(grads[1], weight) if of_weight else None,
            None,
        )


def traced_rms_norm(
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None,
    eps: float | None,
) -> Tensor:
    """Return what a tracer gets instead of `RMSNormFunction`."""
    shape, eps = checked_arguments("RMSNormFunction", input, normalized_shape, weight, eps)
    if not takes_operators(input):
        return rms_norm(input, shape, weight, eps)
    y: Tensor = operators.rms_norm_operator(input, shape, weight, eps)[0]
    return y


register(operators.rms_norm_operator, RMSNormFunction.backward)


def _forward(rows: Tensor, weight: Tensor | None, eps: float) -> tuple[Tensor, Tensor]:
    dtype = computing_dtype(rows.dtype)
    added = rows.new_full((), eps, dtype=dtype)
    if fits_one_block(rows):
        y, rstd = _forward_block(in_dtype(rows, dtype), weight, added)
        return in_dtype(y, rows.dtype), rstd
    y, rstd = torch.empty_like(rows), rows.new_empty(len(rows), 1, dtype=dtype)
    for block in blocks(rows):
        out = y[block] if rows.dtype == dtype else None
        result, rstd[block] = _forward_block(in_dtype(rows[block], dtype), weight, added, out)
        if out is None:
            y[block] = result
    return y, rstd


def _forward_block(
    x: Tensor, weight: Tensor | None, eps: Tensor, out: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    norm = torch.linalg.vector_norm(x, dim=1, keepdim=True)
    mean_square = torch.addcmul(eps, norm, norm, value=1 / max(1, x.shape[1]))
    # Not rsqrt: an overflow should give NaN, not 0 as if the row were zero.
    rstd = mean_square.sqrt().div_(mean_square)
    return affine_(torch.mul(x, rstd, out=out), weight, None), rstd


def _backward(
    grad_rows: Tensor, rows: Tensor, weight: Tensor | None, rstd: Tensor
) -> tuple[Tensor, Tensor]:
    """Return the gradients of the rows, and of the weight in the computation dtype."""
    dtype = computing_dtype(rows.dtype)
    if fits_one_block(rows):
        dy, x = in_dtype(grad_rows, dtype), in_dtype(rows, dtype)
        grad_input, product = _backward_block(dy, x, weight, rstd)
        return grad_input, torch.mv(product.t(), rstd.view(-1))
    grad_input, memory = torch.empty_like(rows), None
    grad_weight = rows.new_zeros(rows.shape[1], dtype=dtype)
    for block in blocks(rows):
        dy, x = in_dtype(grad_rows[block], dtype), in_dtype(rows[block], dtype)
        out = grad_input[block] if rows.dtype == dtype else None
        memory = torch.empty_like(x) if memory is None else memory[: len(x)]
        result, product = _backward_block(dy, x, weight, rstd[block], out, memory)
        if out is None:
            grad_input[block] = result
        grad_weight.addmv_(product.t(), rstd[block].view(-1))
    return grad_input, grad_weight


def _backward_block(
    grad_output: Tensor,
    x: Tensor,
    weight: Tensor | None,
    rstd: Tensor,
    out: Tensor | None = None,
    product_out: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Return the gradient of x, and the product of grad_output and x."""
    product = torch.mul(grad_output, x, out=product_out)
    # Multiply the mean by r twice, since r ** 2 itself could underflow.
    grad = torch.mul(x, minus_means(product, weight).mul_(rstd).mul_(rstd), out=out)
    if weight is None:
        grad += grad_output
    else:
        torch.addcmul(grad, grad_output, weight, out=grad)
    return grad.mul_(rstd), product
