r"""Root-mean-square normalization in NumPy and float64, written straight from its equations.

Notation: :math:`H` is the number of elements that are normalized together,
:math:`r = (\overline{x^2} + \epsilon)^{-1/2}`, :math:`\hat{x} = x r` and :math:`L` a loss.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from lnbook._check import checked_eps
from lnbook.reference._arrays import Array, affine, fitting_shape, real, same_shape, vector

__all__ = ["rms_norm", "rms_norm_backward", "rms_norm_jacobian", "rms_norm_spectrum"]


def rms_norm(
    x: ArrayLike,
    normalized_shape: int | Sequence[int],
    weight: ArrayLike | None = None,
    eps: float = 1e-5,
) -> Array:
    r"""Divide the last dimensions of `x` by their root mean square.

    .. math::
        y_i = \gamma_i \, \frac{x_i}{\sqrt{\frac{1}{H} \sum_j x_j^2 + \epsilon}}

    Source: Zhang and Sennrich 2019, eq. 4; PyTorch's documentation of `RMSNorm` for
    :math:`\epsilon`.

    Args:
        x: real array of shape `(*, *normalized_shape)`; converted to float64.
        normalized_shape: the last dimensions of `x`; an int stands for one dimension.
        weight: :math:`\gamma`, of shape `normalized_shape`; ones if None.
        eps: what is added to the mean square, finite and at least 0.

    Returns:
        Float64 array of the shape of `x`.

    Raises:
        TypeError: an array is not real, a size is no integer, or `eps` is not a real number.
        ValueError: the shapes do not fit, or `eps` is negative, infinite or NaN.

    Example:
        >>> rms_norm([3.0, 4.0, 0.0, 0.0], 4, eps=0.0)
        array([1.2, 1.6, 0. , 0. ])
    """
    x = real(x, "x")
    shape = fitting_shape(x, normalized_shape)
    normalized, _ = _normalize(x, shape, checked_eps(eps, "rms_norm"))
    return normalized * affine(weight, "weight", shape, 1.0)


def rms_norm_backward(
    grad_output: ArrayLike,
    x: ArrayLike,
    normalized_shape: int | Sequence[int],
    weight: ArrayLike | None = None,
    eps: float = 1e-5,
) -> tuple[Array, Array]:
    r"""Return the gradients of a loss with respect to input and weight.

    With :math:`g = \gamma \, \partial \mathcal{L} / \partial y` and a mean over the normalized
    dimensions,

    .. math::
        \frac{\partial \mathcal{L}}{\partial x} = r \left( g - \hat{x} \,
        \overline{g \hat{x}} \right),
        \qquad
        \frac{\partial \mathcal{L}}{\partial \gamma} = \sum \frac{\partial \mathcal{L}}{\partial y}
        \hat{x},

    where the sum runs over all leading dimensions. Source: the chain rule applied to Zhang and
    Sennrich 2019, eq. 4.

    Args:
        grad_output: :math:`\partial \mathcal{L} / \partial y`, of the shape of `x`.
        x: real array of shape `(*, *normalized_shape)`; converted to float64.
        normalized_shape: the last dimensions of `x`; an int stands for one dimension.
        weight: :math:`\gamma`, of shape `normalized_shape`; ones if None.
        eps: what is added to the mean square, finite and at least 0.

    Returns:
        The gradients of `x` and weight, in float64.

    Raises:
        TypeError: an array is not real, a size is no integer, or `eps` is not a real number.
        ValueError: the shapes do not fit, or `eps` is negative, infinite or NaN.

    Example:
        >>> grad_x, grad_weight = rms_norm_backward([4.0, -3.0], [3.0, 4.0], 2, eps=12.5)
        >>> grad_x.round(3), grad_weight.round(3)  # the root is 5; grad_output is orthogonal to x
        (array([ 0.8, -0.6]), array([ 2.4, -2.4]))
    """
    x = real(x, "x")
    grad_output = same_shape(grad_output, x, "grad_output", "rms_norm_backward")
    shape = fitting_shape(x, normalized_shape)
    xhat, rstd = _normalize(x, shape, checked_eps(eps, "rms_norm_backward"))
    features, leading = tuple(range(-len(shape), 0)), tuple(range(x.ndim - len(shape)))

    g = grad_output * affine(weight, "weight", shape, 1.0)
    grad_x = rstd * (g - xhat * (g * xhat).mean(axis=features, keepdims=True))
    return grad_x, (grad_output * xhat).sum(axis=leading)


def rms_norm_jacobian(x: ArrayLike, eps: float = 1e-5, weight: ArrayLike | None = None) -> Array:
    r"""Return the matrix of derivatives of the output with respect to one vector `x`.

    .. math::
        J = \frac{\partial \hat{x}}{\partial x} = r \left( I - \frac{1}{H} \hat{x} \hat{x}^\top
        \right), \qquad \frac{\partial y}{\partial x} = \operatorname{diag}(\gamma) \, J

    Source: the chain rule applied to Zhang and Sennrich 2019, eq. 4.

    Args:
        x: real vector of shape `(H,)` with at least one element; converted to float64.
        eps: what is added to the mean square, finite and at least 0.
        weight: :math:`\gamma`, of shape `(H,)`. If None, :math:`J` itself is returned.

    Returns:
        Float64 matrix of shape `(H, H)`; row :math:`i`, column :math:`j` holds
        :math:`\partial y_i / \partial x_j`.

    Raises:
        TypeError: an array is not real, or `eps` is not a real number.
        ValueError: `x` is not a vector, `weight` has another shape, or `eps` is negative,
            infinite or NaN.

    Example:
        >>> rms_norm_jacobian([1.0, 1.0], eps=3.0) * 16
        array([[ 7., -1.],
               [-1.,  7.]])
    """
    x = vector(x, "rms_norm_jacobian")
    xhat, rstd = _normalize(x, x.shape, checked_eps(eps, "rms_norm_jacobian"))
    jacobian = rstd * (np.eye(x.size) - np.outer(xhat, xhat) / x.size)
    return affine(weight, "weight", x.shape, 1.0)[:, np.newaxis] * jacobian


def rms_norm_spectrum(x: ArrayLike, eps: float = 1e-5) -> Array:
    r"""Return the eigenvalues of the Jacobian of :math:`\hat{x}` at one vector `x`, by formula.

    .. math::
        J \hat{x} = \epsilon \, r^3 \, \hat{x}, \qquad
        J u = r \, u \quad \text{for } u \perp \hat{x}.

    One direction is lost where :math:`\epsilon = 0`. Source: `rms_norm_jacobian`, applied to
    these vectors.

    Args:
        x: real vector of shape `(H,)` with at least one element; converted to float64.
        eps: what is added to the mean square, finite and at least 0.

    Returns:
        Float64 vector of shape `(H,)`, in ascending order; NaN where `eps` and `x` are 0, since
        there is no Jacobian.

    Raises:
        TypeError: `x` is not real, or `eps` is not a real number.
        ValueError: `x` is not a vector, or `eps` is negative, infinite or NaN.

    Example:
        >>> rms_norm_spectrum([1.0, -1.0, 1.0], eps=3.0)
        array([0.375, 0.5  , 0.5  ])
    """
    x = vector(x, "rms_norm_spectrum")
    eps = checked_eps(eps, "rms_norm_spectrum")
    _, rstd = _normalize(x, x.shape, eps)
    if not np.isfinite(rstd):
        return np.full(x.size, np.nan)
    spectrum = np.full(x.size, rstd.item())
    spectrum[0] = eps * rstd.item() ** 3
    return spectrum


def _normalize(x: Array, shape: tuple[int, ...], eps: float) -> tuple[Array, Array]:
    features = tuple(range(-len(shape), 0))
    # Infinity and NaN are answers here (eps=0 on a row of zeros), not accidents to warn of.
    with np.errstate(divide="ignore", invalid="ignore"):
        rstd = 1.0 / np.sqrt((x**2).mean(axis=features, keepdims=True) + eps)
        return x * rstd, rstd
