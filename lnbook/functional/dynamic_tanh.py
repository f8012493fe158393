"""Dynamic tanh: a bounded curve instead of normalization."""

import torch
from torch import Tensor

from lnbook._check_tensors import check_floating, check_parameters, computing_dtype

__all__ = ["dynamic_tanh"]


def dynamic_tanh(
    input: Tensor,
    alpha: Tensor,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
) -> Tensor:
    r"""Squash each element independently, then scale and shift each feature.

    .. math::
        y_i = \gamma_i \tanh(\alpha x_i) + \beta_i

    There are no statistics: elements don't affect each other. Source: Zhu, Chen, He, LeCun and Liu
    2025, eq. 2. The result is computed in float32, or in float64 for a float64 input, and rounded
    once.

    Args:
        input: tensor of shape `(*, *features)`, float16, bfloat16, float32 or float64.
        alpha: :math:`\alpha`, a single number of shape `(1,)`. Like weight and bias, it has the
            dtype of `input`, or float32 for a float16 or bfloat16 input.
        weight: :math:`\gamma`, with the shape of the last dimensions of `input`; ones if None.
        bias: :math:`\beta`, with the shape of the last dimensions of `input`; zeros if None.

    Returns:
        Tensor with the shape, dtype and device of `input`.

    Raises:
        TypeError: an argument is not a tensor.
        RuntimeError: the shapes, dtypes, devices or layouts don't match; its subclass
            NotImplementedError if `input` is not floating-point.

    Example:
        >>> y = dynamic_tanh(torch.tensor([0.0, 1e9]), torch.tensor([0.5]), torch.tensor([3.0, 2]))
        >>> y.tolist()
        [0.0, 2.0]
    """
    check_floating(input, "input", "dynamic_tanh")
    check_parameters(input, (1,), "", "dynamic_tanh", alpha=alpha)
    shapes = [tuple(getattr(given, "shape", ())) for given in (weight, bias) if given is not None]
    shape = shapes[0] if shapes else ()
    if len(shape) > input.ndim or tuple(input.shape[input.ndim - len(shape) :]) != shape:
        raise RuntimeError(
            "dynamic_tanh: expected the last dimensions of input to be those of weight and bias, "
            f"{shape}, but got input of shape {tuple(input.shape)}"
        )
    check_parameters(input, shape, "", "dynamic_tanh", weight=weight, bias=bias)
    y = torch.tanh(alpha * input.to(computing_dtype(input.dtype)))
    if weight is not None:
        y = y * weight
    if bias is not None:
        y = y + bias
    return y.to(input.dtype)
