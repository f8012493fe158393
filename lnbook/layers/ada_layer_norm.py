"""Layer normalization whose scale and shift depend on a condition."""

from collections.abc import Iterable
from math import prod

import torch
from torch import Tensor, nn

from lnbook._check import checked_bool, checked_count, checked_eps, checked_shape
from lnbook._check_tensors import (
    Device,
    check_dtype,
    check_floating,
    check_last_dimensions,
    computing_dtype,
)
from lnbook.layers.layer_norm import LayerNorm

__all__ = ["AdaLayerNorm"]


class AdaLayerNorm(nn.Module):
    r"""Normalize the last dimensions of the input, then scale and shift them based on a condition.

    .. math::
        y = \hat{x} \odot (1 + \mathrm{scale}) + \mathrm{shift}, \qquad
        [\mathrm{shift}, \mathrm{scale}, \mathrm{gate}] = W c + b

    Source: Peebles and Xie 2023 (DiT), adaLN and adaLN-Zero. :math:`\hat{x}` is the layer
    normalization of the input without :math:`\gamma` and :math:`\beta`. One linear layer computes
    everything else from the condition :math:`c`; it starts at zero, so at first the output is
    :math:`\hat{x}` for every condition, and the gate is 0. DiT applies a SiLU to the condition
    first. Because this is the same for all layers in a model, it's left to the caller.

    With `gate=True`, a call returns the pair `(y, gate)`. The gate belongs at the end of the
    residual branch: `y, gate = norm(x, c)`, then `x + gate * branch(y)`.

    Args:
        normalized_shape: the last dimensions of the input, normalized together; an int means a
            single dimension.
        condition_size: size of the last dimension of the condition.
        eps: value added to the variance for numerical stability, finite and at least 0. The default
            is DiT's.
        gate: whether to compute a gate, too.
        zero_init: whether the linear layer starts at zero; otherwise it starts like `nn.Linear`.
        bias: whether the linear layer has a bias.
        device: device of the parameters.
        dtype: dtype of the parameters: float16, bfloat16, float32 or float64; PyTorch's default
            dtype if None.

    Attributes:
        norm: the `LayerNorm` without parameters.
        modulation: the `nn.Linear`. Its outputs are the shift, then the scale, then the gate, as
            in DiT.

    Shape:
        Input and output: `(*, *normalized_shape)`, of the same dtype: the parameters' dtype, or
        float16 or bfloat16 with parameters in float32. Condition: `(*, condition_size)`, with a
        dtype that follows the same rule. Its leading dimensions match the input's, in order, or are
        1; it can have fewer. For inputs `(N, L, D)`, that's `(N, condition_size)` for one condition
        per sequence, `(N, L, condition_size)` for one per token, and `(condition_size,)` for one in
        total. Gate: broadcastable to the input, with the input's dtype.

    Raises:
        TypeError: at construction, for an argument of the wrong type; when called, for an input or
            a condition that is not a tensor.
        RuntimeError: at construction, for a `normalized_shape` that is empty or has a negative
            size, or a `dtype` not listed above; when called, for a wrong shape, dtype
            (NotImplementedError if not floating-point), device or layout.
        ValueError: at construction, for a `condition_size` below 1, or an `eps` that is negative,
            infinite or NaN.

    Example:
        >>> layer = AdaLayerNorm(2, condition_size=1, eps=0.0, gate=True)
        >>> x, c = torch.tensor([[[1.0, 3.0], [30.0, 10.0]]]), torch.tensor([[2.0]])
        >>> y, gate = layer(x, c)
        >>> y.tolist(), gate.tolist()
        ([[[-1.0, 1.0], [1.0, -1.0]]], [[[0.0, 0.0]]])
        >>> with torch.no_grad():  # shift 0 and 0, scale 2 and 4, gate 6 and 8
        ...     _ = layer.modulation.weight.copy_(torch.tensor([[0.0, 0, 1, 2, 3, 4]]).T)
        >>> y, gate = layer(x, c)
        >>> y.tolist(), gate.tolist()
        ([[[-3.0, 5.0], [3.0, -5.0]]], [[[6.0, 8.0]]])
    """

    normalized_shape: tuple[int, ...]
    condition_size: int
    eps: float
    gate: bool
    zero_init: bool

    def __init__(
        self,
        normalized_shape: int | Iterable[int],
        condition_size: int,
        eps: float = 1e-6,
        *,
        gate: bool = False,
        zero_init: bool = True,
        bias: bool = True,
        device: Device = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self.normalized_shape = checked_shape(normalized_shape, _NAME)
        self.condition_size = checked_count(condition_size, "condition_size", _NAME, least=1)
        self.eps = checked_eps(eps, _NAME)
        self.gate = checked_bool(gate, "gate", _NAME)
        self.zero_init = checked_bool(zero_init, "zero_init", _NAME)
        has_bias = checked_bool(bias, "bias", _NAME)
        check_dtype(dtype, _NAME)
        self.norm = LayerNorm(self.normalized_shape, self.eps, elementwise_affine=False)
        outputs = self._parts * prod(self.normalized_shape)
        self.modulation = nn.Linear(self.condition_size, outputs, has_bias, device, dtype)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set the linear layer to zero, in place, or to the initial values of `nn.Linear`."""
        self.modulation.reset_parameters()
        if self.zero_init:
            for parameter in self.modulation.parameters():
                nn.init.zeros_(parameter)

    def forward(self, input: Tensor, condition: Tensor) -> Tensor | tuple[Tensor, Tensor]:
        """Return the modulated norm of `input`, and the gate if there is one."""
        self._check(input, condition)
        # Not in bfloat16: there, 1 + scale is 1 for every positive scale below 1/256.
        dtype = computing_dtype(input.dtype)
        modulation = self.modulation(condition.to(self.modulation.weight.dtype)).to(dtype)
        leading = condition.shape[:-1]
        between = (1,) * (input.ndim - len(leading) - len(self.normalized_shape))
        parts = modulation.reshape(*leading, self._parts, *between, *self.normalized_shape)
        shift, scale, *gate = parts.unbind(len(leading))
        output = (self.norm(input.to(dtype)) * (1 + scale) + shift).to(input.dtype)
        return (output, gate[0].to(input.dtype)) if self.gate else output

    @property
    def _parts(self) -> int:
        return 3 if self.gate else 2

    def _check(self, input: Tensor, condition: Tensor) -> None:
        """Raise unless input, condition and parameters are compatible."""
        check_last_dimensions(input, self.normalized_shape, _NAME)
        check_floating(condition, "condition", _NAME)
        outer = tuple(input.shape[: input.ndim - len(self.normalized_shape)])
        if not self._fits(tuple(condition.shape), outer):
            raise RuntimeError(
                f"{_NAME}: expected condition to have the shape (*, {self.condition_size}), where "
                f"* are the first dimensions of input or 1, but got condition of shape "
                f"{tuple(condition.shape)} for input of shape {tuple(input.shape)}"
            )
        weight = self.modulation.weight
        for name, tensor in (("input", input), ("condition", condition)):
            allowed = {tensor.dtype, computing_dtype(tensor.dtype)}
            if weight.dtype not in allowed:
                raise RuntimeError(
                    f"{_NAME}: expected the parameters to be "
                    f"{' or '.join(sorted(map(str, allowed)))} for {name} of {tensor.dtype}, "
                    f"but got {weight.dtype}"
                )
            if tensor.device != weight.device:
                raise RuntimeError(
                    f"{_NAME}: expected {name} to be on the device of the parameters, "
                    f"{weight.device}, but got {name} on {tensor.device}"
                )

    def _fits(self, condition: tuple[int, ...], outer: tuple[int, ...]) -> bool:
        """Return whether a condition of this shape fits these leading dimensions."""
        *leading, size = condition or (0,)
        pairs = zip(leading, outer, strict=False)
        return (
            size == self.condition_size
            and len(leading) <= len(outer)
            and all(given in (1, expected) for given, expected in pairs)
        )

    def extra_repr(self) -> str:
        """Return the arguments that the submodules don't show."""
        return f"gate={self.gate}, zero_init={self.zero_init}"


_NAME = AdaLayerNorm.__name__
