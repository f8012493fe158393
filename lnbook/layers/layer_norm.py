"""Layer normalization modules: over the last dimensions, and over the channels of images."""

from collections.abc import Iterable

import torch
from torch import Tensor, nn
from torch.nn.functional import layer_norm as native

from lnbook._check import (
    Implementation,
    checked_bool,
    checked_eps,
    checked_implementation,
    checked_shape,
)
from lnbook._check_tensors import Device, check_dtype, check_floating
from lnbook.functional import LayerNormFunction, layer_norm
from lnbook.functional._blocks import is_transformed
from lnbook.functional.layer_norm_function import traced_layer_norm
from lnbook.layers._affine import AffineLayer

__all__ = ["LayerNorm", "LayerNorm2d"]


class LayerNorm(AffineLayer):
    r"""Normalize the last dimensions of the input, then scale and shift each feature.

    .. math::
        y_i = \gamma_i \, \frac{x_i - \mu}{\sqrt{v + \epsilon}} + \beta_i

    Source: Ba, Kiros and Hinton 2016, eq. 3; PyTorch's documentation of `LayerNorm` for
    :math:`\epsilon` inside the square root. Each row has its own mean :math:`\mu` and biased
    variance :math:`v`; there are no buffers, so training and evaluation modes don't differ. State
    dicts are interchangeable with those of `torch.nn.LayerNorm`.

    All implementations compute the same function, up to rounding:

    - `"auto"`, the default, picks PyTorch's kernel, for every input. For large inputs on a CPU,
      `"fused"` can be faster.
    - `"native"` is PyTorch's kernel too.
    - `"fused"` is `lnbook.functional.LayerNormFunction`: lnbook's compiled kernel, with a
      hand-written backward pass.
    - `"plain"` is `lnbook.functional.layer_norm`, differentiated by autograd.

    Rounding differs in two cases. For a float32 row with mean 1e4 and standard deviation 1,
    PyTorch's kernel keeps 3 correct digits, and the others keep 6. A constant row gives exactly
    :math:`\beta` in all of them, except in PyTorch's kernel on a CPU with float16 or bfloat16,
    where the error is up to :math:`2^{-23} \, |\gamma x| / \sqrt{\epsilon}`.

    Args:
        normalized_shape: the last dimensions of the input, normalized together; an int means a
            single dimension. A size can be 0, as in PyTorch.
        eps: value added to the variance for numerical stability, finite and at least 0.
        elementwise_affine: whether to learn `weight` (and `bias`).
        bias: whether to learn `bias`; ignored without `elementwise_affine`.
        device: device of the parameters.
        dtype: dtype of the parameters: float16, bfloat16, float32 or float64; PyTorch's default
            dtype if None.
        implementation: `"auto"`, `"native"`, `"fused"` or `"plain"`.

    Attributes:
        weight: :math:`\gamma`, of shape `normalized_shape`, initialized to ones, or None.
        bias: :math:`\beta`, of shape `normalized_shape`, initialized to zeros, or None.

    Shape:
        Input and output: `(*, *normalized_shape)`, of the same dtype: the parameters' dtype, or
        float16 or bfloat16 with parameters in float32.

    Raises:
        TypeError: at construction, for an argument of the wrong type.
        RuntimeError: at construction, for a `normalized_shape` that is empty or has a negative
            size, or a `dtype` not listed above.
        ValueError: at construction, for an `eps` that is negative, infinite or NaN, or an unknown
            `implementation`.

    Calls also raise the errors of `lnbook.functional.layer_norm`. PyTorch accepts some of these
    arguments at construction, and then fails or continues when called: an empty shape, any `eps`, a
    complex `dtype`, and non-bool values of `elementwise_affine` and `bias`.

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
    implementation: Implementation
    bias: nn.Parameter | None

    def __init__(
        self,
        normalized_shape: int | Iterable[int],
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
        device: Device = None,
        dtype: torch.dtype | None = None,
        *,
        implementation: Implementation = "auto",
    ) -> None:
        super().__init__()
        name = type(self).__name__
        self.normalized_shape = checked_shape(normalized_shape, name)
        self.eps = checked_eps(eps, name)
        self.elementwise_affine = checked_bool(elementwise_affine, "elementwise_affine", name)
        has_bias = checked_bool(bias, "bias", name) and self.elementwise_affine
        check_dtype(dtype, name)
        self.implementation = checked_implementation(implementation, name)
        exist = {"weight": self.elementwise_affine, "bias": has_bias}
        self._make_parameters(self.normalized_shape, device, dtype, **exist)

    def forward(self, input: Tensor) -> Tensor:
        """Return the normalized `input`; see `lnbook.functional.layer_norm`."""
        given = (input, self.normalized_shape, self.weight, self.bias, self.eps)
        if self.implementation == "fused":
            if is_transformed():
                return traced_layer_norm(*given)
            return LayerNormFunction.apply(*given)
        if self.implementation == "plain":
            return layer_norm(*given)
        try:
            return native(*given)
        except (RuntimeError, TypeError):
            # The plain function rejects the same inputs, with a clearer message.
            layer_norm(*given)
            raise

    def extra_repr(self) -> str:
        """Return the arguments in the format of `torch.nn.LayerNorm`."""
        auto = self.implementation == "auto"
        return (
            f"{self.normalized_shape}, eps={self.eps}, "
            f"elementwise_affine={self.elementwise_affine}, bias={self.bias is not None}"
            + ("" if auto else f", implementation={self.implementation!r}")
        )


class LayerNorm2d(LayerNorm):
    r"""Normalize over the channels of an image, at each position.

    .. math::
        y_{nchw} = \gamma_c \, \frac{x_{nchw} - \mu_{nhw}}{\sqrt{v_{nhw} + \epsilon}} + \beta_c

    with the mean and biased variance over the channels. Neither `LayerNorm` over `(C, H, W)` nor
    `GroupNorm` with one group does this: they compute one mean per image. Source: Liu et al. 2022
    (ConvNeXt). State dicts are interchangeable with those of `torch.nn.LayerNorm(num_channels)`.

    Args:
        num_channels: the size :math:`C` of the second dimension.
        eps: value added to the variance for numerical stability, finite and at least 0. The default
            is ConvNeXt's.
        elementwise_affine: whether to learn `weight` (and `bias`).
        bias: whether to learn `bias`.
        device: device of the parameters.
        dtype: dtype of the parameters, as in `LayerNorm`.
        implementation: as in `LayerNorm`.

    Shape:
        Input and output: `(N, C, H, W)`. The output's memory format is `torch.channels_last`.

    Raises:
        TypeError: at construction, for an argument of the wrong type; when called, for an input
            that is not a tensor.
        RuntimeError: as in `LayerNorm`; when called, for an input of the wrong shape.
        ValueError: at construction, as in `LayerNorm`.

    Example:
        >>> image = torch.tensor([1.0, 3.0, 30.0, 10.0]).reshape(1, 2, 2, 1).transpose(1, 2)
        >>> LayerNorm2d(2, eps=0.0)(image).flatten().tolist()  # positions (1, 3) and (30, 10)
        [-1.0, 1.0, 1.0, -1.0]
    """

    def __init__(
        self,
        num_channels: int,
        eps: float = 1e-6,
        elementwise_affine: bool = True,
        bias: bool = True,
        device: Device = None,
        dtype: torch.dtype | None = None,
        *,
        implementation: Implementation = "auto",
    ) -> None:
        super().__init__(
            num_channels,
            eps,
            elementwise_affine,
            bias,
            device,
            dtype,
            implementation=implementation,
        )
        if len(self.normalized_shape) != 1:
            raise TypeError(
                f"LayerNorm2d: expected num_channels to be an integer, but got {num_channels!r}"
            )

    def forward(self, input: Tensor) -> Tensor:
        """Return the normalized `input`."""
        check_floating(input, "input", "LayerNorm2d")
        (channels,) = self.normalized_shape
        if input.ndim != 4 or input.shape[1] != channels:
            raise RuntimeError(
                f"LayerNorm2d: expected input to have the shape (N, {channels}, H, W), "
                f"but got input of shape {tuple(input.shape)}"
            )
        return super().forward(input.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)
