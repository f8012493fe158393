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

__all__ = ["rms_norm", "rms_norm_backward"]


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

    PyTorch accepts some of these: complex inputs, weights of any dtype, and any `eps`. In PyTorch,
    a row that overflows gives 0.

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
        (or of `input`, if there's none), with shape `normalized_shape`.

    Raises:
        TypeError: as in `rms_norm`.
        RuntimeError: as in `rms_norm`, or `grad_output` doesn't have the shape and device of
            `input`.
        ValueError: `eps` is negative, infinite or NaN.

    Example:
        >>> x, upstream = torch.tensor([[3.0, 4.0]]), torch.tensor([[4.0, -3.0]])
        >>> grad_input, grad_weight = rms_norm_backward(upstream, x, (2,), eps=12.5)
        >>> grad_input, grad_weight  # the square root is 5; upstream is orthogonal to x
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


def checked_arguments(
    function: str, input: Any, normalized_shape: Any, weight: Any, eps: Any
) -> tuple[tuple[int, ...], float]:
    """Return the shape and `eps` as numbers; raise the same errors as `rms_norm`."""
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
    # Not rsqrt: its derivative has r ** 3, which underflows in float32 for a square root of 1e13.
    rstd = 1 / torch.sqrt(mean_square + eps)
    return x * rstd, rstd
