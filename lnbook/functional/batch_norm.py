r"""Batch normalization, and instance normalization as batch normalization of each sample.

Notation: :math:`n` is the number of values per channel in the batch; :math:`\mu` and :math:`v` are
their mean and biased variance.
"""

import math
from typing import Any

import torch
from torch import Tensor

from lnbook._check import checked_eps, checked_real
from lnbook._check_tensors import check_floating, check_parameters, computing_dtype

__all__ = ["batch_norm", "instance_norm"]


def batch_norm(
    input: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    r"""Normalize each channel by the batch statistics or the running statistics.

    .. math::
        y = \gamma \, \frac{x - \mu}{\sqrt{v + \epsilon}} + \beta, \qquad
        \mu = \frac{1}{n} \sum x, \qquad v = \frac{1}{n} \sum (x - \mu)^2

    with sums over the batch and all positions of a channel, if `training`. The running statistics
    are then updated in place, using the unbiased variance (:math:`n - 1` instead of :math:`n`):

    .. math::
        \text{running} \leftarrow (1 - m) \, \text{running} + m \, \text{batch}

    Otherwise, the running statistics replace :math:`\mu` and :math:`v`, and samples don't affect
    each other. Source: Ioffe and Szegedy 2015, algorithms 1 and 2, and PyTorch's documentation of
    `BatchNorm1d`.

    The statistics are computed in float32, or in float64 for a float64 input, and the result is
    rounded once. A channel whose values are all equal gives exactly `bias`. Autograd computes
    derivatives of any order.

    Args:
        input: tensor of shape `(N, C, *)`, float16, bfloat16, float32 or float64.
        running_mean: of shape `(C,)`, or None if there are no running statistics.
        running_var: of shape `(C,)`; None if and only if `running_mean` is.
        weight: :math:`\gamma`, of shape `(C,)`; ones if None.
        bias: :math:`\beta`, of shape `(C,)`; zeros if None.
        training: whether to use the batch statistics.
        momentum: :math:`m`, weight of the new batch in the running statistics.
        eps: value added to the variance, finite and at least 0; above 0 if `training`.

    Returns:
        Contiguous tensor with the shape, dtype and device of `input`. The other tensors have its
        dtype, or are all float32 for a float16 or bfloat16 input.

    Raises:
        TypeError: an argument has the wrong type.
        RuntimeError: the shapes, dtypes, devices or layouts don't match, or required running
            statistics are missing; its subclass NotImplementedError if `input` is not
            floating-point.
        ValueError: a channel has only one value in training mode, only one of the running
            statistics is given, or `eps` is out of range.

    Example:
        >>> x = torch.tensor([[1.0, 10.0], [3.0, 30.0]])
        >>> mean, var = torch.zeros(2), torch.ones(2)
        >>> batch_norm(x, mean, var, training=True, momentum=0.5).round(decimals=4)
        tensor([[-1., -1.],
                [ 1.,  1.]])
        >>> mean.tolist(), var.tolist()  # halfway to the batch: 2 and 200 with n - 1
        ([1.0, 10.0], [1.5, 100.5])
    """
    channels = _checked_channels(input, "batch_norm")
    _check_running(input, running_mean, running_var, "batch_norm", needed=not training)
    given = {"weight": weight, "bias": bias}
    running = {"running_mean": running_mean, "running_var": running_var}
    check_parameters(input, channels, "(C,)=", "batch_norm", **given, **running)
    eps, momentum = checked_eps(eps, "batch_norm"), checked_real(momentum, "momentum", "batch_norm")
    if training and eps == 0.0:
        raise ValueError("batch_norm: expected eps to be above 0 when training, but got 0")

    x = input.to(computing_dtype(input.dtype)).contiguous()
    others = (0, *range(2, x.ndim))  # all dimensions except the channels
    column = (1, -1, *[1] * (x.ndim - 2))  # broadcasts one value per channel
    if training:
        mean, centered, variance = _batch_statistics(x, others)
        count = x.numel() // max(1, x.shape[1])
        if running_mean is not None and running_var is not None and count:
            _move_(running_mean, mean, momentum)
            _move_(running_var, variance * (count / max(1, count - 1)), momentum)
    elif running_mean is not None and running_var is not None:
        centered, variance = x - running_mean.view(column), running_var.view(column).to(x.dtype)
    y = centered * (1 / torch.sqrt(variance + eps))
    if weight is not None:
        y = y * weight.view(column)
    if bias is not None:
        y = y + bias.view(column)
    return y.to(input.dtype)


def instance_norm(
    input: Tensor,
    running_mean: Tensor | None = None,
    running_var: Tensor | None = None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    r"""Normalize each channel of each sample over its positions.

    This is batch normalization with every channel of every sample treated as a separate channel: an
    input of shape `(1, N * C, *)`. Source: Ulyanov, Vedaldi and Lempitsky 2016, eq. 4.

    .. math::
        y_{nc} = \gamma_c \, \frac{x_{nc} - \mu_{nc}}{\sqrt{v_{nc} + \epsilon}} + \beta_c

    Args:
        input: tensor of shape `(N, C, *)` with at least one more dimension.
        running_mean: of shape `(C,)`, or None if there are no running statistics.
        running_var: of shape `(C,)`; None if and only if `running_mean` is.
        weight: :math:`\gamma`, of shape `(C,)`; ones if None.
        bias: :math:`\beta`, of shape `(C,)`; zeros if None.
        use_input_stats: whether to use the statistics of the input and move the running statistics
            toward their mean over the samples; otherwise the running statistics are used.
        momentum: weight of the new input in the running statistics.
        eps: value added to the variance, finite and at least 0; above 0 with `use_input_stats`.

    Returns:
        Contiguous tensor with the shape, dtype and device of `input`.

    Raises:
        TypeError: as in `batch_norm`.
        RuntimeError: as in `batch_norm`.
        ValueError: as in `batch_norm`, or a channel has only one position.

    Example:
        >>> x = torch.tensor([[[1.0, 3.0], [10.0, 30.0]], [[5.0, 5.0], [2.0, 0.0]]])
        >>> instance_norm(x).round(decimals=4).tolist()
        [[[-1.0, 1.0], [-1.0, 1.0]], [[0.0, 0.0], [1.0, -1.0]]]
    """
    channels = _checked_channels(input, "instance_norm")
    _check_running(input, running_mean, running_var, "instance_norm", needed=not use_input_stats)
    if use_input_stats and math.prod(input.shape[2:]) == 1:
        raise ValueError(
            "instance_norm: expected more than one position per channel, "
            f"but got input of shape {tuple(input.shape)}"
        )
    running = {"running_mean": running_mean, "running_var": running_var}
    given = {"weight": weight, "bias": bias}
    check_parameters(input, channels, "(C,)=", "instance_norm", **given, **running)

    samples, dtype = input.shape[0], computing_dtype(input.dtype)
    # Convert before repeating, so that the gradients of all samples are summed before being
    # rounded.
    mean, var, weight, bias = (
        None if tensor is None else tensor.to(dtype).repeat(samples)
        for tensor in (running_mean, running_var, weight, bias)
    )
    channels_of_all = input.reshape(1, samples * channels[0], *input.shape[2:])
    y = batch_norm(channels_of_all, mean, var, weight, bias, use_input_stats, momentum, eps)
    if use_input_stats and samples:
        for tensor, moved in ((running_mean, mean), (running_var, var)):
            if tensor is not None and moved is not None:
                tensor.copy_(moved.view(samples, -1).mean(0))
    return y.view(input.shape)


def _batch_statistics(x: Tensor, dims: tuple[int, ...]) -> tuple[Tensor, Tensor, Tensor]:
    """Return the mean, centered x and biased variance over `dims`, in broadcastable shapes."""
    count = math.prod([x.shape[dim] for dim in dims])
    mean = x.sum(dims, keepdim=True) / count
    centered = x - mean
    # Remove what rounding left of the mean, as in layer_norm.
    residual = centered.detach().sum(dims, keepdim=True) / count
    centered -= residual
    variance = centered.square().sum(dims, keepdim=True) / count
    variance = variance.masked_fill(variance.isinf(), torch.nan)
    return mean + residual, centered, variance


def _move_(running: Tensor, batch: Tensor, momentum: float) -> None:
    """Update the running statistics in place, without tracking gradients."""
    batch = batch.detach().view(-1)
    running.copy_((1 - momentum) * running.to(batch.dtype) + momentum * batch)


def _checked_channels(input: Any, function: str) -> tuple[int]:
    check_floating(input, "input", function)
    if input.ndim < 2:
        raise RuntimeError(
            f"{function}: expected input to have the shape (N, C, *), "
            f"but got input of shape {tuple(input.shape)}"
        )
    return (input.shape[1],)


def _check_running(
    input: Tensor, mean: Tensor | None, var: Tensor | None, function: str, needed: bool
) -> None:
    if not needed and math.prod(input.shape[:1] + input.shape[2:]) == 1:
        raise ValueError(
            f"{function}: expected more than one value per channel when training, "
            f"but got input of shape {tuple(input.shape)}"
        )
    for name, tensor in (("running_mean", mean), ("running_var", var)):
        if needed and tensor is None:
            raise RuntimeError(
                f"{function}: expected {name} to be a tensor when the statistics of the input "
                "are not used, but got None"
            )
    if (mean is None) != (var is None):
        raise ValueError(
            f"{function}: expected running_mean and running_var to both be tensors or both None, "
            f"but got {type(mean).__name__} and {type(var).__name__}"
        )
