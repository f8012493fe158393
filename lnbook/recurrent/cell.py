"""A module for one step of a layer-normalized LSTM."""

import torch
from torch import Tensor, nn

from lnbook._check import checked_bool, checked_count, checked_eps
from lnbook._check_tensors import Device, check_dtype
from lnbook.recurrent._given import check_input, checked_states
from lnbook.recurrent.parameters import (
    checked_forget_bias,
    checked_variant,
    initialize,
    shapes_of,
)
from lnbook.recurrent.steps import STEPS

__all__ = ["LayerNormLSTMCell"]

_NAME = "LayerNormLSTMCell"


class LayerNormLSTMCell(nn.Module):
    r"""One step of a layer-normalized LSTM, with the arguments and states of `torch.nn.LSTMCell`.

    .. math::
        a = \operatorname{LN}(W_h h; \alpha_1, \beta_1)
        + \operatorname{LN}(W_x x; \alpha_2, \beta_2) + b, \qquad
        c' = \sigma(f) \odot c + \sigma(i) \odot \tanh(g), \qquad
        h' = \sigma(o) \odot \tanh(\operatorname{LN}(c'; \alpha_3, \beta_3))

    Source: Ba, Kiros and Hinton 2016, eq. 20-22, for the default, `variant="ba"`. The other
    variants: "per-gate" has a separate norm for each gate, after the sum
    (`lnbook.recurrent.per_gate_step`); "carried" carries over the normalized cell
    (`lnbook.recurrent.carried_step`); "none" (or None) has no norm, and the same state dict as
    `torch.nn.LSTMCell`. The gates are in PyTorch's order: i, f, g, o.

    Args:
        input_size: number of features of the input.
        hidden_size: number of features of the states.
        bias: whether the gates and the norms learn biases.
        device: device of the parameters.
        dtype: dtype of the parameters: float16, bfloat16, float32 or float64; PyTorch's default
            dtype if None.
        variant: "ba", "per-gate", "carried", "none" or None.
        forget_bias: initial bias of the forget gate; if None, 1 (Jozefowicz, Zaremba and Sutskever
            2015), or 0 without `bias`.
        eps: value added to each variance, finite and at least 0. With 0, an all-zero state, such as
            the default initial state, can't be normalized and gives NaN.

    Attributes:
        weight_ih, weight_hh: :math:`W_x` of shape `(4 * hidden_size, input_size)` and
            :math:`W_h` of shape `(4 * hidden_size, hidden_size)`, initialized uniformly in
            :math:`\pm 1 / \sqrt{n}`, where :math:`n` is the number of columns.
        bias_gates: :math:`b`, of shape `(4 * hidden_size,)`; in "ba" and "carried".
        norm_hh_weight, norm_hh_bias, norm_ih_weight, norm_ih_bias: :math:`\alpha_1, \beta_1,
            \alpha_2, \beta_2`, with the shape of `bias_gates`; in "ba" and "carried".
        norm_gates_weight, norm_gates_bias: gains and biases of the four gates, concatenated, of
            shape `(4 * hidden_size,)`; in "per-gate".
        norm_c_weight, norm_c_bias: :math:`\alpha_3, \beta_3`, of shape `(hidden_size,)`; in all but
            "none".
        bias_ih, bias_hh: as in `torch.nn.LSTMCell`; in "none".

    Shape:
        Input: `(N, input_size)` or `(input_size,)`. States: `(N, hidden_size)` or
        `(hidden_size,)`, zeros if not given. All have the dtype of the parameters. The given states
        aren't modified.

    Raises:
        TypeError: at construction, for an argument of the wrong type; when called, for an input
            that is not a tensor or states that are not a pair of tensors.
        ValueError: at construction, for a size below 1, an unknown variant, or an `eps` or
            `forget_bias` out of its range; when called, for the wrong number of dimensions or the
            wrong dtype.
        RuntimeError: at construction, for a `dtype` not listed above; when called, for the wrong
            size or device.

    Example:
        >>> cell = LayerNormLSTMCell(3, 2)
        >>> cell
        LayerNormLSTMCell(3, 2, variant='ba')
        >>> h, c = cell(torch.zeros(5, 3))
        >>> h, c = cell(torch.ones(5, 3), (h, c))
        >>> h.shape, c.shape
        (torch.Size([5, 2]), torch.Size([5, 2]))
    """

    weight_ih: Tensor

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        device: Device = None,
        dtype: torch.dtype | None = None,
        *,
        variant: str | None = "ba",
        forget_bias: float | None = None,
        eps: float = 1e-5,
    ) -> None:
        super().__init__()
        self.input_size = checked_count(input_size, "input_size", _NAME, least=1)
        self.hidden_size = checked_count(hidden_size, "hidden_size", _NAME, least=1)
        self.bias = checked_bool(bias, "bias", _NAME)
        self.variant = checked_variant(variant, _NAME)
        self.forget_bias = checked_forget_bias(forget_bias, bias, _NAME)
        self.eps = checked_eps(eps, _NAME)
        check_dtype(dtype, _NAME)
        shapes = shapes_of(self.variant, self.input_size, self.hidden_size, bias)
        for parameter, shape in shapes.items():
            values = torch.empty(shape, device=device, dtype=dtype)
            self.register_parameter(parameter, nn.Parameter(values))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Initialize the parameters in place."""
        initialize(dict(self.named_parameters()), self.variant, self.forget_bias)

    def forward(
        self, input: Tensor, hx: tuple[Tensor, Tensor] | None = None
    ) -> tuple[Tensor, Tensor]:
        """Return the next hidden state and cell state."""
        check_input(input, (1, 2), self.input_size, self.weight_ih, _NAME)
        batched = input.ndim == 2
        x = input if batched else input.unsqueeze(0)
        if hx is None:
            h = c = x.new_zeros(len(x), self.hidden_size)
        else:
            h, c = checked_states(hx, (*input.shape[:-1], self.hidden_size), x, _NAME)
            h, c = (h, c) if batched else (h.unsqueeze(0), c.unsqueeze(0))
        # Half-precision states are computed in float32 and rounded once per step.
        working = torch.promote_types(input.dtype, torch.float32)
        parameters = {name: p.to(working) for name, p in self.named_parameters()}
        step = STEPS[self.variant]
        h, c = step(x.to(working), h.to(working), c.to(working), parameters, self.eps)
        h, c = h.to(input.dtype), c.to(input.dtype)
        return (h, c) if batched else (h[0], c[0])

    def extra_repr(self) -> str:
        """Return the arguments that distinguish one cell from another."""
        bias = "" if self.bias else ", bias=False"
        return f"{self.input_size}, {self.hidden_size}{bias}, variant={self.variant!r}"
