r"""Batch, group and instance normalization, in NumPy and float64.

Notation: :math:`\mu` and :math:`v` are the mean and biased variance of the values that are
normalized together, :math:`n` is how many there are, :math:`r = (v + \epsilon)^{-1/2}` and
:math:`L` a loss. Inputs have shape `(N, C, *)`: samples, channels, positions.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from lnbook._check import checked_bool, checked_count, checked_eps, checked_real
from lnbook.reference._arrays import Array, parameter, real, shaped

__all__ = [
    "BatchNormResult",
    "batch_norm",
    "batch_norm_backward",
    "batch_norm_forward",
    "group_norm",
    "instance_norm",
]


class BatchNormResult(NamedTuple):
    r"""The output and statistics of a training batch.

    Attributes:
        y: the output, with the shape of `x`.
        normalized: :math:`\hat{x}`, the input before weight and bias, with the shape of `x`.
        mean: :math:`\mu`, of shape `(C,)`.
        variance: :math:`v`, biased, of shape `(C,)`.
        running_mean: the running mean after this batch, of shape `(C,)`.
        running_var: the running variance after this batch, of shape `(C,)`.

    Example:
        >>> result = batch_norm_forward([[1.0, 10.0], [3.0, 30.0]], eps=0.0)
        >>> result.mean, result.variance
        (array([ 2., 20.]), array([  1., 100.]))
    """

    y: Array
    normalized: Array
    mean: Array
    variance: Array
    running_mean: Array
    running_var: Array


def batch_norm_forward(
    x: ArrayLike,
    running_mean: ArrayLike | None = None,
    running_var: ArrayLike | None = None,
    weight: ArrayLike | None = None,
    bias: ArrayLike | None = None,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> BatchNormResult:
    r"""Normalize each channel by the batch statistics, and update the running statistics.

    .. math::
        y = \gamma \, \frac{x - \mu}{\sqrt{v + \epsilon}} + \beta, \qquad
        \text{running mean} \leftarrow (1 - m) \, \text{running mean} + m \, \mu, \qquad
        \text{running variance} \leftarrow (1 - m) \, \text{running variance}
        + m \, \tfrac{n}{n - 1} v

    Source: Ioffe and Szegedy 2015, algorithms 1 and 2; PyTorch's documentation of `BatchNorm1d`
    for the running statistics.

    Args:
        x: real array of shape `(N, C, *)`; converted to float64.
        running_mean: running mean before this batch, of shape `(C,)`; zeros if None.
        running_var: running variance before this batch, of shape `(C,)`; ones if None.
        weight: :math:`\gamma`, of shape `(C,)`; ones if None.
        bias: :math:`\beta`, of shape `(C,)`; zeros if None.
        momentum: :math:`m`, weight of the new batch in the running statistics.
        eps: value added to the variance, finite and at least 0.

    Returns:
        The output, the batch statistics and the updated running statistics, in float64. The input
        arrays aren't modified.

    Raises:
        TypeError: an array is not real, or `eps` is not a real number.
        ValueError: the shapes don't match, a channel has fewer than two values, or `eps` is
            negative, infinite or NaN.

    Example:
        >>> result = batch_norm_forward([[1.0, 10.0], [3.0, 30.0]], momentum=0.5, eps=0.0)
        >>> result.y
        array([[-1., -1.],
               [ 1.,  1.]])
        >>> result.running_mean, result.running_var
        (array([ 1., 10.]), array([  1.5, 100.5]))
    """
    x = _with_channels(x, "batch_norm_forward")
    others, shape = _others(x), (x.shape[1],)
    count = x.size // max(1, x.shape[1])
    if count < 2:
        raise ValueError(
            "batch_norm_forward: expected more than one value per channel, "
            f"but got x of shape {x.shape}"
        )
    eps = checked_eps(eps, "batch_norm_forward")
    momentum = checked_real(momentum, "momentum", "batch_norm_forward")
    before_mean = parameter(running_mean, "running_mean", shape, 0.0, "batch_norm_forward")
    before_var = parameter(running_var, "running_var", shape, 1.0, "batch_norm_forward")

    mean = x.mean(axis=others)
    variance = ((x - _column(mean, x)) ** 2).mean(axis=others)
    with np.errstate(divide="ignore", invalid="ignore"):
        normalized = (x - _column(mean, x)) / _column(np.sqrt(variance + eps), x)
    y = _scaled(normalized, weight, bias, "batch_norm_forward")
    after_mean = (1 - momentum) * before_mean + momentum * mean
    after_var = (1 - momentum) * before_var + momentum * variance * count / (count - 1)
    return BatchNormResult(y, normalized, mean, variance, after_mean, after_var)


def batch_norm(
    x: ArrayLike,
    running_mean: ArrayLike | None,
    running_var: ArrayLike | None,
    weight: ArrayLike | None = None,
    bias: ArrayLike | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Array:
    r"""Normalize each channel by the batch statistics or the running statistics.

    .. math::
        y = \gamma \, \frac{x - \text{running mean}}{\sqrt{\text{running variance} + \epsilon}}
        + \beta

    in evaluation mode; in training mode, the output of `batch_norm_forward`. Source: Ioffe and
    Szegedy 2015, algorithm 2.

    Args:
        x: real array of shape `(N, C, *)`; converted to float64.
        running_mean: of shape `(C,)`; can be None in training mode.
        running_var: of shape `(C,)`; can be None in training mode.
        weight: :math:`\gamma`, of shape `(C,)`; ones if None.
        bias: :math:`\beta`, of shape `(C,)`; zeros if None.
        training: whether to use the batch statistics.
        momentum: ignored, since the input arrays aren't modified; `batch_norm_forward` returns the
            updated running statistics.
        eps: value added to the variance, finite and at least 0.

    Returns:
        Float64 array with the shape of `x`.

    Raises:
        TypeError: an array is not real, or an argument has the wrong type.
        ValueError: the shapes don't match, or `eps` is negative, infinite or NaN.

    Example:
        >>> batch_norm([[1.0, 10.0]], [0.0, 4.0], [1.0, 9.0], eps=0.0)
        array([[1., 2.]])
        >>> batch_norm([[1.0, 10.0], [3.0, 30.0]], None, None, training=True, eps=0.0)
        array([[-1., -1.],
               [ 1.,  1.]])
    """
    if checked_bool(training, "training", "batch_norm"):
        given = (x, running_mean, running_var, weight, bias, momentum, eps)
        return batch_norm_forward(*given).y
    x = _with_channels(x, "batch_norm")
    if running_mean is None or running_var is None:
        raise ValueError(
            "batch_norm: expected running_mean and running_var to be arrays unless training, "
            f"but got {running_mean!r} and {running_var!r}"
        )
    mean = shaped(running_mean, "running_mean", x.shape[1:2], "batch_norm")
    variance = shaped(running_var, "running_var", x.shape[1:2], "batch_norm")
    std = np.sqrt(variance + checked_eps(eps, "batch_norm"))
    return _scaled((x - _column(mean, x)) / _column(std, x), weight, bias, "batch_norm")


def batch_norm_backward(
    grad_output: ArrayLike, x: ArrayLike, weight: ArrayLike | None = None, eps: float = 1e-5
) -> tuple[Array, Array, Array]:
    r"""Return the gradients of a loss with respect to input, weight and bias, in training mode.

    With :math:`g = \gamma \, \partial \mathcal{L} / \partial y` and means taken over all values of
    a channel,

    .. math::
        \frac{\partial \mathcal{L}}{\partial x} = r \left( g - \overline{g} - \hat{x} \,
        \overline{g \hat{x}} \right), \qquad
        \frac{\partial \mathcal{L}}{\partial \gamma} = \sum \frac{\partial \mathcal{L}}{\partial y}
        \hat{x}, \qquad
        \frac{\partial \mathcal{L}}{\partial \beta} = \sum \frac{\partial \mathcal{L}}{\partial y}.

    This is the layer normalization formula with means over a different set of values. Source: Ioffe
    and Szegedy 2015, section 3, simplified.

    Args:
        grad_output: :math:`\partial \mathcal{L} / \partial y`, with the shape of `x`.
        x: real array of shape `(N, C, *)`; converted to float64.
        weight: :math:`\gamma`, of shape `(C,)`; ones if None.
        eps: value added to the variance, finite and at least 0.

    Returns:
        The gradients of `x`, weight and bias, in float64.

    Raises:
        TypeError: an array is not real, or `eps` is not a real number.
        ValueError: the shapes don't match, a channel has fewer than two values, or `eps` is
            negative, infinite or NaN.

    Example:
        >>> grads = batch_norm_backward([[4.0], [0.0]], [[1.0], [3.0]], eps=0.0)
        >>> [grad.tolist() for grad in grads]
        [[[0.0], [0.0]], [-4.0], [4.0]]
    """
    x = _with_channels(x, "batch_norm_backward")
    grad_output = shaped(grad_output, "grad_output", x.shape, "batch_norm_backward")
    gamma = parameter(weight, "weight", x.shape[1:2], 1.0, "batch_norm_backward")
    eps = checked_eps(eps, "batch_norm_backward")
    forward = batch_norm_forward(x, eps=eps)
    others, xhat = _others(x), forward.normalized
    rstd = _column(1.0 / np.sqrt(forward.variance + eps), x)

    g = grad_output * _column(gamma, x)
    mean_g = g.mean(axis=others, keepdims=True)
    mean_g_xhat = (g * xhat).mean(axis=others, keepdims=True)
    grad_x = rstd * (g - mean_g - xhat * mean_g_xhat)
    return grad_x, (grad_output * xhat).sum(axis=others), grad_output.sum(axis=others)


def group_norm(
    x: ArrayLike,
    num_groups: int,
    weight: ArrayLike | None = None,
    bias: ArrayLike | None = None,
    eps: float = 1e-5,
) -> Array:
    r"""Normalize groups of channels over all positions, separately for each sample.

    .. math::
        y_{nc} = \gamma_c \, \frac{x_{nc} - \mu_{ng}}{\sqrt{v_{ng} + \epsilon}} + \beta_c, \qquad
        g \text{ the group of channel } c

    Source: Wu and He 2018, eq. 1 to 7.

    Args:
        x: real array of shape `(N, C, *)`; converted to float64.
        num_groups: number of equal groups that the channels are split into, in order.
        weight: :math:`\gamma`, of shape `(C,)`; ones if None.
        bias: :math:`\beta`, of shape `(C,)`; zeros if None.
        eps: value added to the variance, finite and at least 0.

    Returns:
        Float64 array with the shape of `x`.

    Raises:
        TypeError: an array is not real, `num_groups` is not an integer, or `eps` is not a real
            number.
        ValueError: the shapes don't match, the channels can't be split into `num_groups` groups, or
            `eps` is negative, infinite or NaN.

    Example:
        >>> group_norm([[1.0, 3.0, 10.0, 30.0]], 2, eps=0.0)
        array([[-1.,  1., -1.,  1.]])
    """
    x = _with_channels(x, "group_norm")
    num_groups = checked_count(num_groups, "num_groups", "group_norm", least=1)
    if x.shape[1] % num_groups:
        raise ValueError(
            "group_norm: expected num_groups to divide the number of channels, "
            f"but got num_groups={num_groups} and x of shape {x.shape}"
        )
    groups = x.reshape(x.shape[0], num_groups, -1)
    mean = groups.mean(axis=2, keepdims=True)
    variance = ((groups - mean) ** 2).mean(axis=2, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        normalized = (groups - mean) / np.sqrt(variance + checked_eps(eps, "group_norm"))
    return _scaled(normalized.reshape(x.shape), weight, bias, "group_norm")


def instance_norm(
    x: ArrayLike,
    weight: ArrayLike | None = None,
    bias: ArrayLike | None = None,
    eps: float = 1e-5,
) -> Array:
    r"""Normalize each channel of each sample over its positions: one group per channel.

    .. math::
        y_{nc} = \gamma_c \, \frac{x_{nc} - \mu_{nc}}{\sqrt{v_{nc} + \epsilon}} + \beta_c

    Source: Ulyanov, Vedaldi and Lempitsky 2016, eq. 4.

    Args:
        x: real array of shape `(N, C, *)`; converted to float64.
        weight: :math:`\gamma`, of shape `(C,)`; ones if None.
        bias: :math:`\beta`, of shape `(C,)`; zeros if None.
        eps: value added to the variance, finite and at least 0.

    Returns:
        Float64 array with the shape of `x`.

    Raises:
        TypeError: an array is not real, or `eps` is not a real number.
        ValueError: the shapes don't match, or `eps` is negative, infinite or NaN.

    Example:
        >>> instance_norm([[[1.0, 3.0], [10.0, 30.0]]], eps=0.0)
        array([[[-1.,  1.],
                [-1.,  1.]]])
    """
    x = _with_channels(x, "instance_norm")
    return group_norm(x, x.shape[1], weight, bias, eps)


def _with_channels(x: ArrayLike, function: str) -> Array:
    x = real(x, "x", function)
    if x.ndim < 2:
        raise ValueError(
            f"{function}: expected x to have the shape (N, C, *), but got shape {x.shape}"
        )
    return x


def _others(x: Array) -> tuple[int, ...]:
    """Return all dimensions except the channel dimension."""
    return (0, *range(2, x.ndim))


def _column(channels: Array, x: Array) -> Array:
    """Reshape a vector of channels to broadcast over `x`."""
    return channels.reshape(-1, *[1] * (x.ndim - 2))


def _scaled(
    normalized: Array, weight: ArrayLike | None, bias: ArrayLike | None, function: str
) -> Array:
    scale = parameter(weight, "weight", normalized.shape[1:2], 1.0, function)
    shift = parameter(bias, "bias", normalized.shape[1:2], 0.0, function)
    return normalized * _column(scale, normalized) + _column(shift, normalized)
