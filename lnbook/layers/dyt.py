"""Dynamic tanh as a module."""

from collections.abc import Iterable

import torch
from torch import Tensor, nn

from lnbook._check import checked_bool, checked_real, checked_shape
from lnbook._check_tensors import Device, check_dtype, check_last_dimensions
from lnbook.functional import dynamic_tanh
from lnbook.layers._affine import AffineLayer

__all__ = ["DyT"]


class DyT(AffineLayer):
    r"""Squash each element with a tanh of learned width, as a replacement for normalization.

    .. math::
        y_i = \gamma_i \tanh(\alpha x_i) + \beta_i

    Source: Zhu, Chen, He, LeCun and Liu 2025, eq. 2: one :math:`\alpha` per layer, initialized to
    0.5.

    Args:
        normalized_shape: the last dimensions of the input, with a weight and bias per element; an
            int means a single dimension.
        alpha_init: initial value of :math:`\alpha`.
        elementwise_affine: whether to learn `weight` (and `bias`).
        bias: whether to learn `bias`; ignored without `elementwise_affine`.
        device: device of the parameters.
        dtype: dtype of the parameters: float16, bfloat16, float32 or float64; PyTorch's default
            dtype if None.

    Attributes:
        alpha: :math:`\alpha`, of shape `(1,)`.
        weight: :math:`\gamma`, of shape `normalized_shape`, initialized to ones, or None.
        bias: :math:`\beta`, of shape `normalized_shape`, initialized to zeros, or None.

    Shape:
        Input and output: `(*, *normalized_shape)`, of the same dtype: the parameters' dtype, or
        float16 or bfloat16 with parameters in float32.

    Raises:
        TypeError: at construction, for an argument of the wrong type; when called, for an input
            that is not a tensor.
        RuntimeError: at construction, for a `normalized_shape` that is empty or has a negative
            size, or a `dtype` not listed above; when called, for an input with the wrong shape,
            dtype or device.
        ValueError: at construction, for an `alpha_init` that is infinite or NaN.

    Example:
        >>> layer = DyT(2)
        >>> layer
        DyT((2,), alpha_init=0.5, elementwise_affine=True, bias=True)
        >>> layer(torch.tensor([[0.0, -1e9]])).tolist()
        [[0.0, -1.0]]
    """

    normalized_shape: tuple[int, ...]
    alpha_init: float
    elementwise_affine: bool
    bias: nn.Parameter | None

    def __init__(
        self,
        normalized_shape: int | Iterable[int],
        alpha_init: float = 0.5,
        elementwise_affine: bool = True,
        bias: bool = True,
        device: Device = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self.normalized_shape = checked_shape(normalized_shape, "DyT")
        self.alpha_init = checked_real(alpha_init, "alpha_init", "DyT")
        self.elementwise_affine = checked_bool(elementwise_affine, "elementwise_affine", "DyT")
        has_bias = checked_bool(bias, "bias", "DyT") and self.elementwise_affine
        check_dtype(dtype, "DyT")
        self.alpha = nn.Parameter(torch.empty(1, device=device, dtype=dtype))
        exist = {"weight": self.elementwise_affine, "bias": has_bias}
        self._make_parameters(self.normalized_shape, device, dtype, **exist)

    def reset_parameters(self) -> None:
        """Set alpha to its initial value, the weight to ones and the bias to zeros, in place."""
        nn.init.constant_(self.alpha, self.alpha_init)
        super().reset_parameters()

    def forward(self, input: Tensor) -> Tensor:
        """Return the squashed `input`; see `lnbook.functional.dynamic_tanh`."""
        check_last_dimensions(input, self.normalized_shape, "DyT")
        return dynamic_tanh(input, self.alpha, self.weight, self.bias)

    def extra_repr(self) -> str:
        """Return the arguments."""
        return (
            f"{self.normalized_shape}, alpha_init={self.alpha_init}, "
            f"elementwise_affine={self.elementwise_affine}, bias={self.bias is not None}"
        )
