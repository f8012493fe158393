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
    r"""Normalize groups of channels over all their positions, sample by sample.

    .. math::
        y_{nc} = \gamma_c \, \frac{x_{nc} - \mu_{ng}}{\sqrt{v_{ng} + \epsilon}} + \beta_c, \qquad
        g \text{ the group of channel } c

    Source: Wu and He 2018, eq. 1 to 7. The statistics are those of `layer_norm` over a whole
    group; weight and bias belong to channels. With one group the statistics are those of
    `layer_norm` over `(C, *)`, with C groups those of `instance_norm`.

    Args:
        input: tensor of shape `(N, C, *)`, float16, bfloat16, float32 or float64.
        num_groups: into how many groups of the same size the channels are cut, in order.
        weight: :math:`\gamma`, of shape `(C,)`; ones if None. Its dtype is that of `input`, or
            float32 for a float16 or bfloat16 input.
        bias: :math:`\beta`, of shape `(C,)`; zeros if None. Its dtype is that of `weight`.
        eps: what is added to the variance, finite and at least 0.

    Returns:
        Contiguous tensor of the shape, dtype and device of `input`.

    Raises:
        TypeError: `input`, `weight` or `bias` is not a tensor, `num_groups` is not an integer, or
            `eps` is not a real number.
        RuntimeError: the shapes, dtypes, devices or layouts do not fit, or the channels cannot be
            cut into `num_groups`; for an `input` that is not floating-point its subclass
            NotImplementedError.
        ValueError: a lone sample has one value in each group, `num_groups` is below 1, or `eps`
            is negative, infinite or NaN.

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
            "group_norm: expected more than one value in a group, "
            f"but got input of shape {tuple(input.shape)} and num_groups={num_groups}"
        )

    x = input.to(computing_dtype(input.dtype))
    y = layer_norm(x.reshape(samples, num_groups, size), (size,), eps=eps).view(input.shape)
    column = (1, -1, *[1] * (input.ndim - 2))  # the shape that makes a vector broadcast
    if weight is not None:
        y = y * weight.view(column)
    if bias is not None:
        y = y + bias.view(column)
    return y.to(input.dtype)
