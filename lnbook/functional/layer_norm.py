r"""Layer normalization of torch tensors, written to be read and differentiated by autograd.

Notation: :math:`H` is the number of elements that are normalized together, :math:`v` the biased
variance, :math:`r = (v + \epsilon)^{-1/2}` and :math:`\hat{x}` the normalized input.
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

__all__ = ["layer_norm", "layer_norm_backward"]


def layer_norm(
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    r"""Normalize the last dimensions of `input`, as `torch.nn.functional.layer_norm` does.

    .. math::
        \hat{x}_i = \frac{x_i - \mu}{\sqrt{v + \epsilon}}, \qquad
        \mu = \frac{1}{H} \sum_i x_i, \qquad
        v = \frac{1}{H} \sum_i (x_i - \mu)^2, \qquad
        y_i = \gamma_i \hat{x}_i + \beta_i

    Source: Ba, Kiros and Hinton 2016, eq. 3, for the mean and the biased variance; PyTorch's
    documentation of `LayerNorm` for :math:`\epsilon` inside the square root.

    The statistics are computed in float32, or in float64 for a float64 input, and the result is
    rounded once, at the end. A row whose elements are all equal gives exactly `bias` if `eps` is
    above 0, and NaN if it is 0. A row whose sum or variance overflows gives NaN. Autograd computes
    derivatives of any order.

    Args:
        input: tensor of shape `(*, *normalized_shape)`, float16, bfloat16, float32 or float64.
        normalized_shape: tuple or list of the last dimensions of `input`, normalized together.
            As in PyTorch's function, one dimension is written `(4,)`, not `4`.
        weight: :math:`\gamma`, of shape `normalized_shape`; ones if None. Has the dtype of `input`,
            or float32 for a float16 or bfloat16 input.
        bias: :math:`\beta`, of shape `normalized_shape`; zeros if None. Its dtype follows the same
            rule and matches `weight`.
        eps: value added to the variance for numerical stability, finite and at least 0.

    Returns:
        Contiguous tensor with the shape, dtype and device of `input`.

    Raises:
        TypeError: `input`, `weight` or `bias` is not a tensor, `normalized_shape` is not a tuple
            or list of integers, or `eps` is not a real number.
        RuntimeError: the shapes, dtypes, devices or layouts don't match; its subclass
            NotImplementedError if `input` is not floating-point.
        ValueError: `eps` is negative, infinite or NaN.

    On a CPU, PyTorch rejects the same calls with the same error types, except that it accepts any
    value of `eps`, an `eps` that is a bool or a tensor, a bool after the first size of
    `normalized_shape`, and nested tensors.

    Example:
        >>> x = torch.tensor([[1.0, 3.0], [30.0, 10.0]])
        >>> layer_norm(x, (2,), eps=0.0)
        tensor([[-1.,  1.],
                [ 1., -1.]])
        >>> layer_norm(x, (2,), torch.tensor([2.0, 5.0]), torch.tensor([0.0, 1.0]), eps=0.0)
        tensor([[-2.,  6.],
                [ 2., -4.]])
    """
    shape, eps = checked_arguments("layer_norm", input, normalized_shape, weight, bias, eps)
    x = input.to(computing_dtype(input.dtype)).contiguous()
    normalized, _ = _normalize(x, shape, eps)
    y = normalized if weight is None else normalized * weight
    return (y if bias is None else y + bias).to(input.dtype)


def layer_norm_backward(
    grad_output: Tensor,
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    eps: float = 1e-5,
) -> tuple[Tensor, Tensor, Tensor]:
    r"""Return the gradients of a loss with respect to input, weight and bias, in closed form.

    With :math:`g = \gamma \, \partial \mathcal{L} / \partial y` and means taken over the normalized
    dimensions,

    .. math::
        \frac{\partial \mathcal{L}}{\partial x} = r \left( g - \overline{g} - \hat{x} \,
        \overline{g \hat{x}} \right), \qquad
        \frac{\partial \mathcal{L}}{\partial \gamma} = \sum \frac{\partial \mathcal{L}}{\partial y}
        \hat{x}, \qquad
        \frac{\partial \mathcal{L}}{\partial \beta} = \sum \frac{\partial \mathcal{L}}{\partial y},

    where the two sums run over all leading dimensions. Source: the chain rule applied to Ba,
    Kiros and Hinton 2016, eq. 3. The gradients can be differentiated again.

    Args:
        grad_output: :math:`\partial \mathcal{L} / \partial y`, with the shape of `input`.
        input: :math:`x`, of shape `(*, *normalized_shape)`, as in `layer_norm`.
        normalized_shape: tuple or list of the last dimensions of `input`.
        weight: :math:`\gamma`, of shape `normalized_shape`; ones if None.
        eps: value added to the variance for numerical stability, finite and at least 0.

    Returns:
        The gradients of the input, in its dtype, and of weight and bias, in the dtype of
        `weight` (or of `input`, if there's none); the last two have shape `normalized_shape`.

    Raises:
        TypeError: as in `layer_norm`.
        RuntimeError: as in `layer_norm`, or `grad_output` doesn't have the shape and device of
            `input`.
        ValueError: `eps` is negative, infinite or NaN.

    Example:
        >>> x = torch.tensor([[1.0, 3.0], [3.0, 1.0]])
        >>> upstream = torch.tensor([[4.0, 0.0], [0.0, 3.0]])
        >>> _, grad_weight, grad_bias = layer_norm_backward(upstream, x, (2,), eps=0.0)
        >>> grad_weight.tolist(), grad_bias.tolist()
        ([-4.0, -3.0], [4.0, 3.0])
    """
    given = (input, normalized_shape, weight, None, eps)
    shape, eps = checked_arguments("layer_norm_backward", *given)
    check_parameters(
        input, tuple(input.shape), "of input, ", "layer_norm_backward", grad_output=grad_output
    )
    features, leading = tuple(range(-len(shape), 0)), tuple(range(input.ndim - len(shape)))

    dtype = computing_dtype(input.dtype)
    grad_output = grad_output.to(dtype)
    xhat, r = _normalize(input.to(dtype), shape, eps)
    g = grad_output if weight is None else grad_output * weight
    mean_g = g.mean(features, keepdim=True)
    mean_g_xhat = (g * xhat).mean(features, keepdim=True)
    grad_input = r * (g - mean_g - xhat * mean_g_xhat)
    grad_weight = (grad_output * xhat).sum(leading) if leading else grad_output * xhat
    grad_bias = grad_output.sum(leading) if leading else grad_output
    parameter = input if weight is None else weight
    return (
        grad_input.to(input.dtype),
        grad_weight.to(parameter.dtype),
        grad_bias.to(parameter.dtype),
    )


def checked_arguments(
    function: str, input: Any, normalized_shape: Any, weight: Any, bias: Any, eps: Any
) -> tuple[tuple[int, ...], float]:
    """Return the shape and `eps` as numbers; raise the same errors as `layer_norm`."""
    shape = checked_sizes(normalized_shape, function)
    check_last_dimensions(input, shape, function)
    check_parameters(input, shape, "normalized_shape=", function, weight=weight, bias=bias)
    return shape, checked_eps(eps, function)


def _normalize(x: Tensor, shape: tuple[int, ...], eps: float) -> tuple[Tensor, Tensor]:
    """Return the normalized x and r. Means are computed as sums: their derivative is cheaper."""
    features, size = tuple(range(-len(shape), 0)), math.prod(shape)
    mean = x.sum(features, keepdim=True) / size
    centered = x - mean
    # Rounding leaves a little of the mean. Subtracting that too makes constant rows exactly 0 and
    # preserves the digits of a row with a large mean. It is 0 up to rounding, and so is its
    # derivative.
    centered -= centered.detach().sum(features, keepdim=True) / size
    variance = centered.square().sum(features, keepdim=True) / size
    # Dividing by infinity would give 0, so an overflow would look like a constant row.
    variance = variance.masked_fill(variance.isinf(), torch.nan)
    # Not rsqrt: its derivative has r ** 3, which underflows in float32 for a deviation of 1e13.
    rstd = 1 / torch.sqrt(variance + eps)
    return centered * rstd, rstd
