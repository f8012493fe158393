"""Normalization layers as torch modules, with PyTorch's argument names and state dicts."""

import numbers
from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn

from lnbook._check import checked_eps, checked_shape
from lnbook.functional import FLOATING_DTYPES, layer_norm

__all__ = ["LayerNorm"]


class LayerNorm(nn.Module):
    r"""Normalize the last dimensions of the input, then scale and shift each of its features.

    .. math::
        y_i = \gamma_i \, \frac{x_i - \mu}{\sqrt{v + \epsilon}} + \beta_i

    Source: Ba, Kiros and Hinton 2016, eq. 3; PyTorch's documentation of `LayerNorm` for
    :math:`\epsilon` inside the square root. The mean :math:`\mu` and the biased variance
    :math:`v` belong to one row alone; there are no buffers, so that training and evaluation do
    not differ. State dicts load into and from `torch.nn.LayerNorm`.

    Args:
        normalized_shape: the last dimensions of the input, normalized together; an int stands
            for one dimension. A size may be 0, as in PyTorch.
        eps: what is added to the variance: a real number, finite and at least 0.
        elementwise_affine: whether to learn `weight` (and `bias`).
        bias: whether to learn `bias`; without `elementwise_affine` there is none in any case.
        device: where the parameters are made.
        dtype: dtype of the parameters: float16, bfloat16, float32 or float64; PyTorch's default
            dtype if None.

    Attributes:
        weight: :math:`\gamma`, of shape `normalized_shape`, at first ones; or None.
        bias: :math:`\beta`, of shape `normalized_shape`, at first zeros; or None.

    Shape:
        Input and output: `(*, *normalized_shape)`, of the same dtype: that of the parameters, or
        float16 or bfloat16 with parameters in float32.

    Raises:
        TypeError: at construction, for an argument of the wrong type.
        RuntimeError: at construction, for a `normalized_shape` that is empty or has a negative
            size, or a `dtype` that is not among those above.
        ValueError: at construction, for an `eps` that is negative, infinite or NaN.

    The call raises what `lnbook.functional.layer_norm` raises. PyTorch accepts some of these
    arguments at construction and fails, or goes on, at the call: an empty shape, any `eps`, a
    complex `dtype`, and values other than bools for `elementwise_affine` and `bias`.

    Example:
        >>> layer = LayerNorm(2, eps=0.0)
        >>> layer
        LayerNorm((2,), eps=0.0, elementwise_affine=True, bias=True)
        >>> layer(torch.tensor([[1.0, 3.0], [30.0, 10.0]])).tolist()
        [[-1.0, 1.0], [1.0, -1.0]]
    """

    normalized_shape: tuple[int, ...]
    eps: float
    elementwise_affine: bool
    weight: nn.Parameter | None
    bias: nn.Parameter | None

    def __init__(
        self,
        normalized_shape: int | Iterable[int],
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
        device: torch.device | str | int | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self.normalized_shape = _checked_normalized_shape(normalized_shape)
        self.eps = checked_eps(eps, "LayerNorm")
        self.elementwise_affine = _checked_bool(elementwise_affine, "elementwise_affine")
        has_bias = _checked_bool(bias, "bias") and self.elementwise_affine
        _check_dtype(dtype)

        def parameter(exists: bool) -> nn.Parameter | None:
            if not exists:
                return None
            return nn.Parameter(torch.empty(self.normalized_shape, device=device, dtype=dtype))

        self.register_parameter("weight", parameter(self.elementwise_affine))
        self.register_parameter("bias", parameter(has_bias))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set the weight to ones and the bias to zeros, in place, where they exist."""
        if self.weight is not None:
            nn.init.ones_(self.weight)
        if self.bias is not None:
            nn.init.zeros_(self.bias)

    def forward(self, input: Tensor) -> Tensor:
        """Return the normalized `input`; see `lnbook.functional.layer_norm`."""
        return layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        """Return the arguments, as `torch.nn.LayerNorm` prints them."""
        return (
            f"{self.normalized_shape}, eps={self.eps}, "
            f"elementwise_affine={self.elementwise_affine}, bias={self.bias is not None}"
        )


def _checked_normalized_shape(normalized_shape: Any) -> tuple[int, ...]:
    if isinstance(normalized_shape, numbers.Integral):
        normalized_shape = (normalized_shape,)
    if not isinstance(normalized_shape, Iterable) or isinstance(normalized_shape, (str, bytes)):
        raise TypeError(
            "LayerNorm: expected normalized_shape to be an integer or some integers, but got "
            f"{normalized_shape!r} of type {type(normalized_shape).__name__}"
        )
    return checked_shape(normalized_shape, "LayerNorm")


def _checked_bool(value: Any, name: str) -> bool:
    if not isinstance(value, bool):
        raise TypeError(
            f"LayerNorm: expected {name} to be True or False, but got {value!r} "
            f"of type {type(value).__name__}"
        )
    return value


def _check_dtype(dtype: Any) -> None:
    if dtype is None:
        return
    if not isinstance(dtype, torch.dtype):
        raise TypeError(
            f"LayerNorm: expected dtype to be a torch.dtype, but got {dtype!r} "
            f"of type {type(dtype).__name__}"
        )
    if dtype not in FLOATING_DTYPES:
        raise RuntimeError(
            "LayerNorm: expected dtype to be float16, bfloat16, float32 or float64, "
            f"but got {dtype}"
        )
