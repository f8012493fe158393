"""Group normalization: layer normalization of groups of channels."""

import math

from torch import Tensor

from lnbook._check import checked_count, checked_eps
from lnbook._check_tensors import check_floating, check_parameters, computing_dtype
from lnbook.functional.layer_norm import layer_norm

__all__ = ["group_norm"]


def group_norm(
    input: Tensor,
    num_groups: int,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    r"""Normalize groups of channels over all positions, separately for each sample.

    .. math::
        y_{nc} = \gamma_c \, \frac{x_{nc} - \mu_{ng}}{\sqrt{v_{ng} + \epsilon}} + \beta_c, \qquad
        g \text{ the group of channel } c

    Source: Wu and He 2018, eq. 1 to 7. The statistics of a group are computed as in
    `layer_norm`; weight and bias are per channel. With one group, the statistics are the same as in
    `layer_norm` over `(C, *)`; with C groups, the same as in `instance_norm`.

    Args:
        input: tensor of shape `(N, C, *)`, float16, bfloat16, float32 or float64.
        num_groups: number of equal groups that the channels are split into, in order.
        weight: :math:`\gamma`, of shape `(C,)`; ones if None. Has the dtype of `input`, or float32
            for a float16 or bfloat16 input.
        bias: :math:`\beta`, of shape `(C,)`; zeros if None. Has the dtype of `weight`.
        eps: value added to the variance, finite and at least 0.

    Returns:
        Contiguous tensor with the shape, dtype and device of `input`.

    Raises:
        TypeError: `input`, `weight` or `bias` is not a tensor, `num_groups` is not an integer, or
            `eps` is not a real number.
        RuntimeError: the shapes, dtypes, devices or layouts don't match, or the channels can't be
            split into `num_groups` groups; its subclass NotImplementedError if `input` is not
            floating-point.
        ValueError: a single sample has one value per group, `num_groups` is below 1, or `eps` is
            negative, infinite or NaN.

    PyTorch raises ZeroDivisionError for 0 groups and RuntimeError for fewer.

    Example:
        >>> import torch
        >>> x = torch.tensor([[1.0, 3.0, 10.0, 30.0]])
        >>> group_norm(x, 2, eps=0.0)
        tensor([[-1.,  1., -1.,  1.]])
    """
    check_floating(input, "input", "group_norm")
    num_groups = checked_count(num_groups, "num_groups", "group_norm", least=1)
    if input.ndim < 2 or input.shape[1] % num_groups:
        raise RuntimeError(
            "group_norm: expected input to have the shape (N, C, *) with C divisible by "
            f"num_groups={num_groups}, but got input of shape {tuple(input.shape)}"
        )
    samples, channels = input.shape[:2]
    check_parameters(input, (channels,), "(C,)=", "group_norm", weight=weight, bias=bias)
    eps = checked_eps(eps, "group_norm")
    size = math.prod(input.shape[1:]) // num_groups
    if samples * size * num_groups == num_groups:
        raise ValueError(
            "group_norm: expected more than one value per group, "
            f"but got input of shape {tuple(input.shape)} and num_groups={num_groups}"
        )

    x = input.to(computing_dtype(input.dtype))
    y = layer_norm(x.reshape(samples, num_groups, size), (size,), eps=eps).view(input.shape)
    column = (1, -1, *[1] * (input.ndim - 2))  # shape in which a vector of channels broadcasts
    if weight is not None:
        y = y * weight.view(column)
    if bias is not None:
        y = y + bias.view(column)
    return y.to(input.dtype)
