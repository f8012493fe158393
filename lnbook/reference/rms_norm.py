r"""Root-mean-square normalization in NumPy and float64, written straight from its equations.

Notation: :math:`H` is the number of elements that are normalized together,
:math:`r = (\overline{x^2} + \epsilon)^{-1/2}`, :math:`\hat{x} = x r` and :math:`L` a loss.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from lnbook._check import checked_eps
from lnbook.reference._arrays import Array, fitting_shape, parameter, real, shaped

__all__ = ["rms_norm", "rms_norm_backward"]


def rms_norm(
    x: ArrayLike,
    normalized_shape: int | Sequence[int],
    weight: ArrayLike | None = None,
    eps: float | None = None,
) -> Array:
    r"""Divide the last dimensions of `x` by their root mean square.

    .. math::
        y_i = \gamma_i \, \frac{x_i}{\sqrt{\frac{1}{H} \sum_j x_j^2 + \epsilon}}

    Source: Zhang and Sennrich 2019, eq. 4; PyTorch's documentation of `RMSNorm` for
    :math:`\epsilon`.

    Args:
        x: real array of shape `(*, *normalized_shape)`; converted to float64.
        normalized_shape: the last dimensions of `x`; an int means a single dimension.
        weight: :math:`\gamma`, of shape `normalized_shape`; ones if None.
        eps: value added to the mean square, finite and at least 0. If None, the distance from 1 to
            the next larger float64.

    Returns:
        Float64 array with the shape of `x`.

    Raises:
        TypeError: an array is not real, a size is not an integer, or `eps` is neither a real number
            nor None.
        ValueError: the shapes don't match, or `eps` is negative, infinite or NaN.

    Example:
        >>> rms_norm([3.0, 4.0, 0.0, 0.0], 4, eps=0.0)
        array([1.2, 1.6, 0. , 0. ])
    """
    x, shape, gamma, eps = _checked("rms_norm", x, normalized_shape, weight, eps)
    normalized, _ = _normalize(x, shape, eps)
    return normalized * gamma


def rms_norm_backward(
    grad_output: ArrayLike,
    x: ArrayLike,
    normalized_shape: int | Sequence[int],
    weight: ArrayLike | None = None,
    eps: float | None = None,
) -> tuple[Array, Array]:
    r"""Return the gradients of a loss with respect to input and weight.

    With :math:`g = \gamma \, \partial \mathcal{L} / \partial y` and the mean taken over the
    normalized dimensions,

    .. math::
        \frac{\partial \mathcal{L}}{\partial x} = r \left( g - \hat{x} \,
        \overline{g \hat{x}} \right),
        \qquad
        \frac{\partial \mathcal{L}}{\partial \gamma} = \sum \frac{\partial \mathcal{L}}{\partial y}
        \hat{x},

    where the sum runs over all leading dimensions. Source: the chain rule applied to Zhang and
    Sennrich 2019, eq. 4.

    Args:
        grad_output: :math:`\partial \mathcal{L} / \partial y`, with the shape of `x`.
        x: real array of shape `(*, *normalized_shape)`; converted to float64.
        normalized_shape: the last dimensions of `x`; an int means a single dimension.
        weight: :math:`\gamma`, of shape `normalized_shape`; ones if None.
        eps: as in `rms_norm`.

    Returns:
        The gradients of `x` and weight, in float64.

    Raises:
        TypeError: an array is not real, a size is not an integer, or `eps` is neither a real number
            nor None.
        ValueError: the shapes don't match, or `eps` is negative, infinite or NaN.

    Example:
        >>> grad_x, grad_weight = rms_norm_backward([4.0, -3.0], [3.0, 4.0], 2, eps=12.5)
        >>> # The square root is 5, and grad_output is orthogonal to x.
        >>> grad_x.round(3), grad_weight.round(3)
        (array([ 0.8, -0.6]), array([ 2.4, -2.4]))
    """
    x, shape, gamma, eps = _checked("rms_norm_backward", x, normalized_shape, weight, eps)
    grad_output = shaped(grad_output, "grad_output", x.shape, "rms_norm_backward")
    xhat, rstd = _normalize(x, shape, eps)
    features, leading = tuple(range(-len(shape), 0)), tuple(range(x.ndim - len(shape)))

    g = grad_output * gamma
    grad_x = rstd * (g - xhat * (g * xhat).mean(axis=features, keepdims=True))
    return grad_x, (grad_output * xhat).sum(axis=leading)


def _checked(
    function: str,
    x: ArrayLike,
    normalized_shape: int | Sequence[int],
    weight: ArrayLike | None,
    eps: float | None,
) -> tuple[Array, tuple[int, ...], Array, float]:
    """Return the arguments as float64 arrays, with defaults for those that are None."""
    x = real(x, "x", function)
    shape = fitting_shape(x, normalized_shape, function)
    gamma = parameter(weight, "weight", shape, 1.0, function)
    if eps is None:
        return x, shape, gamma, float(np.finfo(np.float64).eps)
    return x, shape, gamma, checked_eps(eps, function)


def _normalize(x: Array, shape: tuple[int, ...], eps: float) -> tuple[Array, Array]:
    features = tuple(range(-len(shape), 0))
    # Infinity and NaN are valid results here (eps=0 on a row of zeros), not mistakes to warn about.
    with np.errstate(divide="ignore", invalid="ignore"):
        rstd = 1.0 / np.sqrt((x**2).mean(axis=features, keepdims=True) + eps)
        return x * rstd, rstd
