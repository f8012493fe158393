"""An RMS normalization module."""

from collections.abc import Iterable

import torch
from torch import Tensor
from torch.nn.functional import rms_norm as native

from lnbook._check import (
    Implementation,
    checked_bool,
    checked_eps,
    checked_implementation,
    checked_shape,
)
from lnbook._check_tensors import Device, check_dtype
from lnbook.functional import RMSNormFunction, rms_norm
from lnbook.functional._blocks import is_transformed
from lnbook.functional.rms_norm import checked_arguments
from lnbook.functional.rms_norm_function import traced_rms_norm
from lnbook.layers._affine import AffineLayer

__all__ = ["RMSNorm"]


class RMSNorm(AffineLayer):
    r"""Divide the last dimensions of the input by their root mean square, then scale.

    .. math::
        y_i = \gamma_i \, \frac{x_i}{\sqrt{\frac{1}{H} \sum_j x_j^2 + \epsilon}}

    Source: Zhang and Sennrich 2019, eq. 4. State dicts are interchangeable with those of
    `torch.nn.RMSNorm`.

    All implementations compute the same function, up to rounding:

    - `"auto"`, the default, picks `"fused"` on a CPU, where PyTorch's version is
      composed of many operations, and `"native"` elsewhere. `torch.compile` and `torch.export` get
      the plain form, which needs only PyTorch.
    - `"native"` is PyTorch's function. In half precision on a CPU it rounds more than once.
    - `"fused"` is `lnbook.functional.RMSNormFunction`: lnbook's compiled kernel, with a
      hand-written backward pass.
    - `"plain"` is `lnbook.functional.rms_norm`, differentiated by autograd.

    Args:
        normalized_shape: the last dimensions of the input, normalized together; an int means a
            single dimension.
        eps: value added to the mean square, finite and at least 0. If None, the distance from 1 to
            the next larger number, in float32, or in float64 for a float64 input.
        elementwise_affine: whether to learn `weight`.
        device: device of the parameters.
        dtype: dtype of the parameters: float16, bfloat16, float32 or float64; PyTorch's default
            dtype if None.
        implementation: `"auto"`, `"native"`, `"fused"` or `"plain"`.

    Attributes:
        weight: :math:`\gamma`, of shape `normalized_shape`, initialized to ones, or None.

    Shape:
        Input and output: `(*, *normalized_shape)`, of the same dtype: the parameters' dtype, or
        float16 or bfloat16 with parameters in float32.

    Raises:
        TypeError: at construction, for an argument of the wrong type.
        RuntimeError: at construction, for a `normalized_shape` that is empty or has a negative
            size, or a `dtype` not listed above.
        ValueError: at construction, for an `eps` that is negative, infinite or NaN, or an unknown
            `implementation`.

    Calls also raise the errors of `lnbook.functional.rms_norm`.

    Example:
        >>> layer = RMSNorm(4, eps=0.0)
        >>> layer
        RMSNorm((4,), eps=0.0, elementwise_affine=True)
        >>> layer(torch.tensor([3.0, 4.0, 0.0, 0.0])).detach()
        tensor([1.2000, 1.6000, 0.0000, 0.0000])
    """

    normalized_shape: tuple[int, ...]
    eps: float | None
    elementwise_affine: bool
    implementation: Implementation

    def __init__(
        self,
        normalized_shape: int | Iterable[int],
        eps: float | None = None,
        elementwise_affine: bool = True,
        device: Device = None,
        dtype: torch.dtype | None = None,
        *,
        implementation: Implementation = "auto",
    ) -> None:
        super().__init__()
        self.normalized_shape = checked_shape(normalized_shape, "RMSNorm")
        self.eps = None if eps is None else checked_eps(eps, "RMSNorm")
        self.elementwise_affine = checked_bool(elementwise_affine, "elementwise_affine", "RMSNorm")
        check_dtype(dtype, "RMSNorm")
        self.implementation = checked_implementation(implementation, "RMSNorm")
        self._make_parameters(self.normalized_shape, device, dtype, weight=self.elementwise_affine)

    def forward(self, input: Tensor) -> Tensor:
        """Return the normalized `input`; see `lnbook.functional.rms_norm`."""
        implementation = self.implementation
        if implementation == "auto" and isinstance(input, Tensor):
            implementation = "fused" if input.is_cpu else "native"
            implementation = "plain" if is_transformed() else implementation
        given = (input, self.normalized_shape, self.weight, self.eps)
        if implementation == "native":
            shape, eps = checked_arguments("RMSNorm", *given)
            return native(input, list(shape), self.weight, eps)
        if implementation == "plain":
            return rms_norm(*given)
        return traced_rms_norm(*given) if is_transformed() else RMSNormFunction.apply(*given)

    def extra_repr(self) -> str:
        """Return the arguments in the format of `torch.nn.RMSNorm`."""
        auto = self.implementation == "auto"
        return (
            f"{self.normalized_shape}, eps={self.eps}, "
            f"elementwise_affine={self.elementwise_affine}"
            + ("" if auto else f", implementation={self.implementation!r}")
        )
