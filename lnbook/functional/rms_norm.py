r"""Root-mean-square normalization: layer normalization without centering.

Notation: :math:`H` is the number of elements that are normalized together,
:math:`r = (\overline{x^2} + \epsilon)^{-1/2}` and :math:`\hat{x} = x r`.
"""

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from lnbook._check import checked_eps
from lnbook._check_tensors import (
    check_last_dimensions,
    check_parameters,
    checked_sizes,
    computing_dtype,
)
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

__all__ = ["RMSNormFunction", "rms_norm", "rms_norm_backward"]


def rms_norm(
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    eps: float | None = None,
) -> Tensor:
    r"""Divide the last dimensions of `input` by their root mean square.

    .. math::
        \hat{x}_i = \frac{x_i}{\sqrt{\frac{1}{H} \sum_j x_j^2 + \epsilon}}, \qquad
        y_i = \gamma_i \hat{x}_i

    Source: Zhang and Sennrich 2019, eq. 4, and PyTorch's documentation of `RMSNorm` for
    :math:`\epsilon`. The statistics are computed in float32, or in float64 for a float64 input,
    and the result is rounded once, at the end. A row whose mean square overflows gives NaN.

    Args:
        input: tensor of shape `(*, *normalized_shape)`, float16, bfloat16, float32 or float64.
        normalized_shape: tuple or list of the last dimensions of `input`, normalized together.
        weight: :math:`\gamma`, of shape `normalized_shape`; ones if None. Has the dtype of `input`,
            or float32 for a float16 or bfloat16 input.
        eps: value added to the mean square, finite and at least 0. If None, the distance from 1 to
            the next larger number, in the dtype of the statistics.

    Returns:
        Contiguous tensor with the shape, dtype and device of `input`.

    Raises:
        TypeError: `input` or `weight` is not a tensor, `normalized_shape` is not a tuple or list
            of integers, or `eps` is neither a real number nor None.
        RuntimeError: the shapes, dtypes, devices or layouts don't match; its subclass
            NotImplementedError if `input` is not floating-point.
        ValueError: `eps` is negative, infinite or NaN.

    PyTorch accepts some of these: complex inputs, weights of any dtype, and any `eps`. There, a row
    that overflows gives 0.

    Example:
        >>> rms_norm(torch.tensor([3.0, 4.0, 0.0, 0.0]), (4,), eps=0.0)
        tensor([1.2000, 1.6000, 0.0000, 0.0000])
    """
    shape, eps = checked_arguments("rms_norm", input, normalized_shape, weight, eps)
    normalized, _ = _normalize(input.to(computing_dtype(input.dtype)).contiguous(), shape, eps)
    return (normalized if weight is None else normalized * weight).to(input.dtype)


def rms_norm_backward(
    grad_output: Tensor,
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    eps: float | None = None,
) -> tuple[Tensor, Tensor]:
    r"""Return the gradients of a loss with respect to input and weight, in closed form.

    With :math:`g = \gamma \, \partial \mathcal{L} / \partial y` and means taken over the normalized
    dimensions,

    .. math::
        \frac{\partial \mathcal{L}}{\partial x} = r \left( g - \hat{x} \,
        \overline{g \hat{x}} \right),
        \qquad
        \frac{\partial \mathcal{L}}{\partial \gamma} = \sum \frac{\partial \mathcal{L}}{\partial y}
        \hat{x},

    where the sum runs over all leading dimensions. Source: the chain rule applied to Zhang and
    Sennrich 2019, eq. 4. The gradients can be differentiated again.

    Args:
        grad_output: :math:`\partial \mathcal{L} / \partial y`, with the shape of `input`.
        input: :math:`x`, of shape `(*, *normalized_shape)`, as in `rms_norm`.
        normalized_shape: tuple or list of the last dimensions of `input`.
        weight: :math:`\gamma`, of shape `normalized_shape`; ones if None.
        eps: as in `rms_norm`.

    Returns:
        The gradient of the input, in its dtype, and that of the weight, in the dtype of `weight`
        (of `input` without one), with shape `normalized_shape`.

    Raises:
        TypeError: as in `rms_norm`.
        RuntimeError: as in `rms_norm`, or `grad_output` doesn't have the shape and device of
            `input`.
        ValueError: `eps` is negative, infinite or NaN.

    Example:
        >>> x, upstream = torch.tensor([[3.0, 4.0]]), torch.tensor([[4.0, -3.0]])
        >>> grad_input, grad_weight = rms_norm_backward(upstream, x, (2,), eps=12.5)
        >>> grad_input, grad_weight  # the root is 5; upstream is orthogonal to x
        (tensor([[ 0.8000, -0.6000]]), tensor([ 2.4000, -2.4000]))
    """
    shape, eps = checked_arguments("rms_norm_backward", input, normalized_shape, weight, eps)
    check_parameters(
        input, tuple(input.shape), "of input, ", "rms_norm_backward", grad_output=grad_output
    )
    features, leading = tuple(range(-len(shape), 0)), tuple(range(input.ndim - len(shape)))

    dtype = computing_dtype(input.dtype)
    grad_output = grad_output.to(dtype)
    xhat, r = _normalize(input.to(dtype), shape, eps)
    g = grad_output if weight is None else grad_output * weight
    grad_input = r * (g - xhat * (g * xhat).mean(features, keepdim=True))
    grad_weight = grad_output * xhat
    grad_weight = grad_weight.sum(leading) if leading else grad_weight
    return grad_input.to(input.dtype), grad_weight.to((input if weight is None else weight).dtype)


class RMSNormFunction(torch.autograd.Function):
    r"""RMS normalization with a hand-written backward pass: `RMSNormFunction.apply(...)`.

    .. math::
        y = \gamma \hat{x}, \qquad \frac{\partial \mathcal{L}}{\partial x} =
        r \left( g - \hat{x} \, \overline{g \hat{x}} \right), \qquad
        g = \gamma \frac{\partial \mathcal{L}}{\partial y}

    Source: Zhang and Sennrich 2019, eq. 4, and the chain rule; see `rms_norm` and
    `rms_norm_backward`, the plain functions, which it matches up to rounding. Arguments, shapes,
    dtypes and errors are as in `rms_norm`.

    It is fast for the same reasons as `LayerNormFunction`: it works block by block, in place, and
    saves only the input and one number per row for backward. Second and higher derivatives go
    through `rms_norm_backward`. Inside `torch.func` transforms, the plain function runs instead;
    outside them, dual tensors (forward-mode differentiation) are rejected. `torch.compile` doesn't
    look inside, but the modules do compile.

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
            return rms_norm(input, shape, weight, eps)
        y: Tensor = super().apply(input, shape, weight, eps)  # type: ignore[no-untyped-call]
        return y

    @staticmethod
    def forward(
        ctx: Any, input: Tensor, shape: tuple[int, ...], weight: Tensor | None, eps: float
    ) -> Tensor:
        """Normalize the rows, and save the input and one number per row for backward."""
        rows = as_rows(input, shape)
        y, rstd = _forward(rows, as_vector(weight, computing_dtype(input.dtype)), eps)
        ctx.save_for_backward(input, weight, rstd)
        ctx.shape, ctx.eps = shape, eps
        return y if y.shape == input.shape else y.view(input.shape)

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor | None, ...]:
        """Return the gradients of input and weight; None for the other arguments."""
        input, weight, rstd = ctx.saved_tensors
        if torch.is_grad_enabled():  # the gradients will be differentiated in turn
            grads = rms_norm_backward(grad_output, input, ctx.shape, weight, ctx.eps)
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


def checked_arguments(
    function: str, input: Any, normalized_shape: Any, weight: Any, eps: Any
) -> tuple[tuple[int, ...], float]:
    """Return the shape and `eps` as numbers; raise the errors of `rms_norm`."""
    shape = checked_sizes(normalized_shape, function)
    check_last_dimensions(input, shape, function)
    check_parameters(input, shape, "normalized_shape=", function, weight=weight)
    if eps is None:
        return shape, torch.finfo(computing_dtype(input.dtype)).eps
    return shape, checked_eps(eps, function)


def _normalize(x: Tensor, shape: tuple[int, ...], eps: float) -> tuple[Tensor, Tensor]:
    """Return the normalized x and r. The mean is computed as a sum: its derivative is cheaper."""
    mean_square = x.square().sum(tuple(range(-len(shape), 0)), keepdim=True) / math.prod(shape)
    # Dividing by infinity would give 0, so an overflow would look like a row of zeros.
    mean_square = mean_square.masked_fill(mean_square.isinf(), torch.nan)
    # Not rsqrt: its derivative has r ** 3, which underflows in float32 for a root of 1e13.
    rstd = 1 / torch.sqrt(mean_square + eps)
    return x * rstd, rstd


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
    # The last factor r comes with the mean: r ** 2 could underflow.
    grad = torch.mul(x, minus_means(product, weight).mul_(rstd).mul_(rstd), out=out)
    if weight is None:
        grad += grad_output
    else:
        torch.addcmul(grad, grad_output, weight, out=grad)
    return grad.mul_(rstd), product
