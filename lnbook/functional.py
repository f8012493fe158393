r"""Layer normalization of torch tensors, readable and differentiable by autograd.

Notation: :math:`H` is the number of elements that are normalized together, :math:`v` the biased
variance and :math:`\hat{x}` the normalized input.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from lnbook._check import checked_eps, checked_shape

__all__ = ["layer_norm"]

HALF_DTYPES = (torch.float16, torch.bfloat16)
FLOATING_DTYPES = (*HALF_DTYPES, torch.float32, torch.float64)


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
    above 0, and NaN if it is 0. A row whose sum or variance overflows gives NaN. Derivatives of
    any order come from autograd.

    Args:
        input: tensor of shape `(*, *normalized_shape)`, float16, bfloat16, float32 or float64.
        normalized_shape: tuple or list of the last dimensions of `input`, normalized together.
            As in PyTorch's function, one dimension is written `(4,)`, not `4`.
        weight: :math:`\gamma`, of shape `normalized_shape`; ones if None. Its dtype is that of
            `input`, or float32 for a float16 or bfloat16 input.
        bias: :math:`\beta`, of shape `normalized_shape`; zeros if None. Its dtype is that of
            `weight`, under the same rule.
        eps: what is added to the variance: a real number, finite and at least 0.

    Returns:
        Contiguous tensor of the shape, dtype and device of `input`.

    Raises:
        TypeError: `input`, `weight` or `bias` is not a tensor, `normalized_shape` is not a tuple
            or list of integers, or `eps` is not a real number.
        RuntimeError: the shapes, dtypes, devices or layouts do not fit; for an `input` that is
            not floating-point its subclass NotImplementedError.
        ValueError: `eps` is negative, infinite or NaN.

    PyTorch on a CPU refuses the same calls with the same types of error, with these exceptions,
    which it accepts: what gives the ValueError, an `eps` that is a bool or a tensor, a bool
    after the first size of `normalized_shape`, and nested tensors.

    Example:
        >>> x = torch.tensor([[1.0, 3.0], [30.0, 10.0]])
        >>> layer_norm(x, (2,), eps=0.0)
        tensor([[-1.,  1.],
                [ 1., -1.]])
        >>> layer_norm(x, (2,), torch.tensor([2.0, 5.0]), torch.tensor([0.0, 1.0]), eps=0.0)
        tensor([[-2.,  6.],
                [ 2., -4.]])
    """
    shape = _checked_normalized_shape(normalized_shape)
    _check_input(input, shape)
    _check_affine(input, weight, bias, shape)
    eps = checked_eps(eps, "layer_norm")
    features = tuple(range(-len(shape), 0))

    x = input.to(torch.promote_types(input.dtype, torch.float32)).contiguous()
    centered = x - x.mean(features, keepdim=True)
    # The mean was rounded, so a little of it is left. Centering again takes it away: constant
    # rows become exactly 0, and a large mean costs no digits.
    centered = centered - centered.mean(features, keepdim=True)
    variance = centered.square().mean(features, keepdim=True)
    # Dividing by infinity gives 0: an overflow would look like a constant row.
    variance = variance.masked_fill(variance.isinf(), torch.nan)
    # Not rsqrt: its derivative holds r ** 3, which underflows in float32 from a deviation of 1e13.
    y = centered / torch.sqrt(variance + eps)
    if weight is not None:
        y = y * weight
    if bias is not None:
        y = y + bias
    return y.to(input.dtype)


def _checked_normalized_shape(normalized_shape: Any) -> tuple[int, ...]:
    if not isinstance(normalized_shape, (tuple, list)):
        hint = f"; write ({normalized_shape},)" if isinstance(normalized_shape, int) else ""
        raise TypeError(
            "layer_norm: expected normalized_shape to be a tuple or list of integers, but got "
            f"{normalized_shape!r} of type {type(normalized_shape).__name__}{hint}"
        )
    return checked_shape(normalized_shape, "layer_norm")


def _check_input(input: Any, shape: tuple[int, ...]) -> None:
    _check_is_tensor(input, "input")
    if input.dtype not in FLOATING_DTYPES:
        raise NotImplementedError(
            "layer_norm: expected input to be float16, bfloat16, float32 or float64, "
            f"but got {input.dtype}"
        )
    if tuple(input.shape[-len(shape) :]) != shape:
        raise RuntimeError(
            f"layer_norm: expected the last dimensions of input to be normalized_shape={shape}, "
            f"but got input of shape {tuple(input.shape)}"
        )


def _check_affine(input: Tensor, weight: Any, bias: Any, shape: tuple[int, ...]) -> None:
    # Half-precision inputs may keep their parameters in float32, but not one of the two.
    allowed = {input.dtype, torch.float32} if input.dtype in HALF_DTYPES else {input.dtype}
    for name, parameter in (("weight", weight), ("bias", bias)):
        if parameter is None:
            continue
        _check_is_tensor(parameter, name)
        if tuple(parameter.shape) != shape:
            raise RuntimeError(
                f"layer_norm: expected {name} to have the shape normalized_shape={shape}, "
                f"but got {name} of shape {tuple(parameter.shape)}"
            )
        if parameter.device != input.device:
            raise RuntimeError(
                f"layer_norm: expected {name} to be on the device of input, {input.device}, "
                f"but got {name} on {parameter.device}"
            )
        if parameter.dtype not in allowed:
            raise RuntimeError(
                f"layer_norm: expected {name} to be {' or '.join(sorted(map(str, allowed)))} "
                f"for an input of {input.dtype}, but got {parameter.dtype}"
            )
        allowed = {parameter.dtype}


def _check_is_tensor(value: Any, name: str) -> None:
    if not isinstance(value, Tensor):
        raise TypeError(
            f"layer_norm: expected {name} to be a tensor, but got {type(value).__name__}"
        )
    if value.layout != torch.strided:
        raise RuntimeError(
            f"layer_norm: expected {name} to be a dense tensor, but got layout {value.layout}"
        )
