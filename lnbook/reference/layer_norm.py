r"""Layer normalization in NumPy and float64, written straight from its equations.

This module is the specification that the faster versions in lnbook are tested against. It trades
speed for code that's easy to compare with the equations: one line for each.

Notation, the same in every docstring: :math:`H` is the number of elements that are normalized
together, :math:`v` the biased variance, :math:`r = (v + \epsilon)^{-1/2}`,
:math:`\hat{x}` the normalized input and :math:`L` a loss.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from lnbook._check import checked_eps
from lnbook.reference._arrays import Array, fitting_shape, parameter, real, shaped

__all__ = [
    "LayerNormResult",
    "layer_norm",
    "layer_norm_backward",
    "layer_norm_forward",
    "layer_norm_jacobian",
]


class LayerNormResult(NamedTuple):
    r"""Everything that the forward pass computes, named as in the equations.

    Attributes:
        y: the output, with the shape of `x`.
        normalized: :math:`\hat{x}`, the input before weight and bias, with the shape of `x`.
        mean: :math:`\mu`, with the normalized dimensions kept as size 1 for broadcasting.
        variance: :math:`v`, biased, with the shape of `mean`.
        rstd: :math:`r = (v + \epsilon)^{-1/2}`, with the shape of `mean`.

    Example:
        >>> result = layer_norm_forward([[1.0, 3.0], [10.0, 30.0]], 2, eps=0.0)
        >>> result.mean.tolist(), result.rstd.tolist()
        ([[2.0], [20.0]], [[1.0], [0.1]])
    """

    y: Array
    normalized: Array
    mean: Array
    variance: Array
    rstd: Array


def layer_norm_forward(
    x: ArrayLike,
    normalized_shape: int | Sequence[int],
    weight: ArrayLike | None = None,
    bias: ArrayLike | None = None,
    eps: float = 1e-5,
) -> LayerNormResult:
    r"""Normalize the last dimensions of `x` and return every intermediate result.

    .. math::
        \mu = \frac{1}{H} \sum_i x_i, \qquad
        v = \frac{1}{H} \sum_i (x_i - \mu)^2, \qquad
        r = \frac{1}{\sqrt{v + \epsilon}}, \qquad
        \hat{x}_i = (x_i - \mu) \, r, \qquad
        y_i = \gamma_i \hat{x}_i + \beta_i

    Source: Ba, Kiros and Hinton 2016, eq. 3, for the mean and the biased variance; PyTorch's
    documentation of `LayerNorm` for :math:`\epsilon` inside the square root.

    Args:
        x: real array of shape `(*, *normalized_shape)`; converted to float64.
        normalized_shape: the last dimensions of `x`, normalized together; an int means a single
            dimension.
        weight: :math:`\gamma`, of shape `normalized_shape`; ones if None.
        bias: :math:`\beta`, of shape `normalized_shape`; zeros if None.
        eps: value added to the variance, finite and at least 0. With 0, a row whose elements are
            all equal can't be normalized and gives NaN.

    Returns:
        The output and the intermediate results, all in float64.

    Raises:
        TypeError: an array is not real, a size is not an integer, or `eps` is not a real number.
        ValueError: the shapes don't match, or `eps` is negative, infinite or NaN.

    Example:
        >>> result = layer_norm_forward([1.0, 3.0], 2, [2.0, 5.0], [0.0, 1.0], eps=0.0)
        >>> result.normalized
        array([-1.,  1.])
        >>> result.y
        array([-2.,  6.])
        >>> float(result.mean[0]), float(result.variance[0])
        (2.0, 1.0)
    """
    given = _checked("layer_norm_forward", x, normalized_shape, weight, bias, eps)
    x, shape, gamma, beta, eps = given
    features = tuple(range(-len(shape), 0))

    mean = x.mean(axis=features, keepdims=True)
    variance = ((x - mean) ** 2).mean(axis=features, keepdims=True)
    # Infinity and NaN are valid results here (eps=0 on a constant row), not mistakes to warn about.
    with np.errstate(divide="ignore", invalid="ignore"):
        rstd = 1.0 / np.sqrt(variance + eps)
        normalized = (x - mean) * rstd
    y = normalized * gamma + beta
    return LayerNormResult(y, normalized, mean, variance, rstd)


def layer_norm(
    x: ArrayLike,
    normalized_shape: int | Sequence[int],
    weight: ArrayLike | None = None,
    bias: ArrayLike | None = None,
    eps: float = 1e-5,
) -> Array:
    r"""Normalize the last dimensions of `x`: just the output of `layer_norm_forward`.

    .. math::
        y_i = \gamma_i \, \frac{x_i - \mu}{\sqrt{v + \epsilon}} + \beta_i

    Source: Ba, Kiros and Hinton 2016, eq. 3; PyTorch's documentation of `LayerNorm`.

    Args:
        x: real array of shape `(*, *normalized_shape)`; converted to float64.
        normalized_shape: the last dimensions of `x`; an int means a single dimension.
        weight: :math:`\gamma`, of shape `normalized_shape`; ones if None.
        bias: :math:`\beta`, of shape `normalized_shape`; zeros if None.
        eps: value added to the variance, finite and at least 0.

    Returns:
        Float64 array with the shape of `x`.

    Raises:
        TypeError: an array is not real, a size is not an integer, or `eps` is not a real number.
        ValueError: the shapes don't match, or `eps` is negative, infinite or NaN.

    Example:
        >>> layer_norm([[1.0, 3.0], [30.0, 10.0]], 2, eps=0.0)
        array([[-1.,  1.],
               [ 1., -1.]])
    """
    given = _checked("layer_norm", x, normalized_shape, weight, bias, eps)
    return layer_norm_forward(*given).y


def layer_norm_backward(
    grad_output: ArrayLike,
    x: ArrayLike,
    normalized_shape: int | Sequence[int],
    weight: ArrayLike | None = None,
    eps: float = 1e-5,
) -> tuple[Array, Array, Array]:
    r"""Return the gradients of a loss with respect to `x`, weight and bias.

    With :math:`g_i = \gamma_i \, \partial \mathcal{L} / \partial y_i` and means over the :math:`H`
    normalized elements,

    .. math::
        \frac{\partial \mathcal{L}}{\partial x_i} = r \left( g_i - \frac{1}{H} \sum_j g_j
        - \hat{x}_i \, \frac{1}{H} \sum_j g_j \hat{x}_j \right), \qquad
        \frac{\partial \mathcal{L}}{\partial \gamma_i} = \sum_n
        \frac{\partial \mathcal{L}}{\partial y_{ni}} \, \hat{x}_{ni}, \qquad
        \frac{\partial \mathcal{L}}{\partial \beta_i} = \sum_n
        \frac{\partial \mathcal{L}}{\partial y_{ni}}

    where :math:`n` runs over all leading dimensions. Source: the chain rule applied to Ba,
    Kiros and Hinton 2016, eq. 3; exact for every :math:`\epsilon > 0`, since :math:`\hat{x}` uses
    the same :math:`r`. The bias isn't an argument because no gradient depends on it.

    Args:
        grad_output: :math:`\partial \mathcal{L} / \partial y`, real, with the shape of `x`.
        x: real array of shape `(*, *normalized_shape)`; converted to float64.
        normalized_shape: the last dimensions of `x`; an int means a single dimension.
        weight: :math:`\gamma`, of shape `normalized_shape`; ones if None.
        eps: value added to the variance, finite and at least 0.

    Returns:
        `(grad_x, grad_weight, grad_bias)` in float64: the first has the shape of `x`, the others
        have shape `normalized_shape` and are summed over all leading dimensions.

    Raises:
        TypeError: an array is not real, a size is not an integer, or `eps` is not a real number.
        ValueError: the shapes don't match, or `eps` is negative, infinite or NaN.

    Example:
        >>> grads = layer_norm_backward([[4.0, 0.0], [0.0, 3.0]], [[1.0, 3.0], [3.0, 1.0]], 2)
        >>> [grad.round(3).tolist() for grad in grads[1:]]
        [[-4.0, -3.0], [4.0, 3.0]]
    """
    given = _checked("layer_norm_backward", x, normalized_shape, weight, None, eps)
    x, shape, gamma, _, eps = given
    grad_output = shaped(grad_output, "grad_output", x.shape, "layer_norm_backward")
    forward = layer_norm_forward(x, shape, eps=eps)
    xhat, rstd = forward.normalized, forward.rstd
    features = tuple(range(-len(shape), 0))
    leading = tuple(range(x.ndim - len(shape)))

    g = grad_output * gamma
    mean_g = g.mean(axis=features, keepdims=True)
    mean_g_xhat = (g * xhat).mean(axis=features, keepdims=True)
    grad_x = rstd * (g - mean_g - xhat * mean_g_xhat)
    grad_weight = (grad_output * xhat).sum(axis=leading)
    grad_bias = grad_output.sum(axis=leading)
    return grad_x, grad_weight, grad_bias


def layer_norm_jacobian(x: ArrayLike, weight: ArrayLike | None = None, eps: float = 1e-5) -> Array:
    r"""Return the Jacobian of the output with respect to a single vector `x`.

    .. math::
        J = \frac{\partial \hat{x}}{\partial x} = r \left( I - \frac{1}{H} \mathbf{1}
        \mathbf{1}^\top - \frac{1}{H} \hat{x} \hat{x}^\top \right), \qquad
        \frac{\partial y}{\partial x} = \operatorname{diag}(\gamma) \, J

    :math:`J` is symmetric; its rows sum to 0, since shifting `x` doesn't change the output. Source:
    the chain rule applied to Ba, Kiros and Hinton 2016, eq. 3.

    Args:
        x: real vector of shape `(H,)` with at least one element; converted to float64.
        weight: :math:`\gamma`, of shape `(H,)`. If None, :math:`J` itself is returned.
        eps: value added to the variance, finite and at least 0.

    Returns:
        Float64 matrix of shape `(H, H)`: entry :math:`(i, j)` is the derivative of :math:`y_i` with
        respect to :math:`x_j`.

    Raises:
        TypeError: an array is not real, or `eps` is not a real number.
        ValueError: `x` is not a vector, `weight` has the wrong shape, or `eps` is negative,
            infinite or NaN.

    Example:
        >>> layer_norm_jacobian([1.0, 3.0], eps=3.0) * 8
        array([[ 1.5, -1.5],
               [-1.5,  1.5]])
    """
    x = real(x, "x", "layer_norm_jacobian")
    if x.ndim != 1 or x.size == 0:
        raise ValueError(
            "layer_norm_jacobian: expected x to be a vector of shape (H,) with H at least 1, "
            f"but got shape {x.shape}"
        )
    x, shape, gamma, _, eps = _checked("layer_norm_jacobian", x, x.shape, weight, None, eps)
    forward = layer_norm_forward(x, shape, eps=eps)
    xhat, rstd = forward.normalized, forward.rstd
    features = x.size

    identity = np.eye(features)
    ones = np.ones((features, features))
    jacobian = rstd * (identity - ones / features - np.outer(xhat, xhat) / features)
    return gamma[:, np.newaxis] * jacobian


def _checked(
    function: str,
    x: ArrayLike,
    normalized_shape: int | Sequence[int],
    weight: ArrayLike | None,
    bias: ArrayLike | None,
    eps: float,
) -> tuple[Array, tuple[int, ...], Array, Array, float]:
    """Return the arguments as float64 arrays, with ones and zeros for those that are None."""
    x = real(x, "x", function)
    shape = fitting_shape(x, normalized_shape, function)
    gamma = parameter(weight, "weight", shape, 1.0, function)
    beta = parameter(bias, "bias", shape, 0.0, function)
    return x, shape, gamma, beta, checked_eps(eps, function)
