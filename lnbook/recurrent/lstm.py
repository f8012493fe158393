"""A multi-layer layer-normalized LSTM with the interface of `torch.nn.LSTM`."""

from typing import Any

import torch
from torch import Tensor
from torch.nn.utils.rnn import PackedSequence

from lnbook._check import Implementation, checked_implementation
from lnbook._check_tensors import Device
from lnbook.recurrent._given import checked_states
from lnbook.recurrent._stack import Stack
from lnbook.recurrent.cell import LayerNormLSTMCell
from lnbook.recurrent.fused import fused_layer
from lnbook.recurrent.loop import plain_layer
from lnbook.recurrent.parameters import (
    checked_forget_bias,
    checked_variant,
    initialize,
    shapes_of,
)

__all__ = ["LayerNormLSTM"]

States = tuple[Tensor, Tensor]


class LayerNormLSTM(Stack):
    r"""A layer-normalized LSTM, with the arguments, shapes and states of `torch.nn.LSTM`.

    Every layer is a `LayerNormLSTMCell` applied along the sequence:

    .. math::
        (h_t, c_t) = \operatorname{cell}(x_t, h_{t-1}, c_{t-1})

    Source: Ba, Kiros and Hinton 2016, eq. 20-22, for the default, `variant="ba"`; for the other
    variants see `LayerNormLSTMCell`. With `variant="none"` (or None), there is no norm, and the
    state dict, outputs and dropout are the same as in `torch.nn.LSTM`.

    All implementations compute the same function, up to rounding:

    - `"auto"`, the default, is `lnbook.recurrent.fused_layer` in torch operations: it projects the
      inputs of all steps at once, writes states in place, and backpropagates through time with
      hand-written formulas.
    - `"fused"` does this in a kernel compiled by Numba, where there is one (on a CPU, in float32
      and float64). It's faster, but the first use on a machine compiles it, which takes about ten
      seconds for each dtype and direction.
    - `"plain"` is `lnbook.recurrent.plain_layer`, differentiated by autograd. It also supports
      forward-mode differentiation, and is used inside `torch.func` transforms, `torch.compile`
      (which unrolls it) and `torch.export`.

    There is no `"native"`, since PyTorch has no layer-normalized LSTM.

    Args:
        input_size: number of features of the input.
        hidden_size: number of features of a state.
        num_layers: number of stacked layers; each takes the output of the one below as input.
        bias: whether the gates and the norms learn biases.
        batch_first: whether input and output are `(N, L, *)` rather than `(L, N, *)`; doesn't apply
            to the states.
        dropout: probability of dropping each element of a layer's output before the layer above, in
            training mode.
        bidirectional: whether each layer also runs backward, with separate parameters.
        device: device of the parameters.
        dtype: dtype of the parameters: float16, bfloat16, float32 or float64; PyTorch's default
            dtype if None.
        variant: "ba", "per-gate", "carried", "none" or None.
        forget_bias: initial bias of the forget gates; if None, 1 (Jozefowicz, Zaremba and Sutskever
            2015), or 0 without `bias`.
        eps: value added to each variance, finite and at least 0. With 0, an all-zero state, such as
            the default initial state, can't be normalized and gives NaN.
        implementation: `"auto"`, `"fused"` or `"plain"`.

    Attributes:
        weight_ih_l0, weight_hh_l0 and so on: the parameters of `LayerNormLSTMCell`, with the
            same names plus the layer number and, for the backward direction, `_reverse`.

    Shape:
        Input: `(L, N, input_size)`, `(N, L, input_size)` with `batch_first`, `(L, input_size)` if
        unbatched, or a `PackedSequence` for sequences of different lengths
        (`torch.nn.utils.rnn.pack_padded_sequence` packs padded ones); L is at least 1. `(h_0,
        c_0)`: each `(D * num_layers, N, hidden_size)`, without N for unbatched input, where D is 2
        if `bidirectional`, otherwise 1; zeros if not given, and never modified. All have the dtype
        of the parameters; float16 and bfloat16 are computed in float32 and rounded once, at the end
        of each layer.

        Output: the last layer's hidden states, shaped or packed like the input, with `D *
        hidden_size` features, and `(h_n, c_n)`, the states after the last step of each sequence, in
        the shape of `(h_0, c_0)`.

    Raises:
        TypeError: at construction, for an argument of the wrong type; when called, for an input
            that is not a tensor or `PackedSequence`, or states that are not a pair of tensors.
        ValueError: at construction, for a size below 1, an unknown variant or implementation, or a
            `dropout`, `eps` or `forget_bias` out of its range; when called, for the wrong number of
            dimensions or the wrong dtype.
        RuntimeError: at construction, for a `dtype` not listed above; when called, for the wrong
            size or device, or an empty sequence.

    Warns:
        UserWarning: at construction, for a `dropout` that has no effect because there is only one
            layer.

    Example:
        >>> lstm = LayerNormLSTM(3, 2, num_layers=2)
        >>> lstm
        LayerNormLSTM(3, 2, num_layers=2, variant='ba')
        >>> output, (h_n, c_n) = lstm(torch.zeros(7, 5, 3))
        >>> output.shape, h_n.shape
        (torch.Size([7, 5, 2]), torch.Size([2, 5, 2]))
    """

    NAME = "LayerNormLSTM"

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        *,
        device: Device = None,
        dtype: torch.dtype | None = None,
        variant: str | None = "ba",
        forget_bias: float | None = None,
        eps: float = 1e-5,
        implementation: Implementation = "auto",
    ) -> None:
        super().__init__(
            input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, eps
        )
        self.variant = checked_variant(variant, self.NAME)
        self.forget_bias = checked_forget_bias(forget_bias, bias, self.NAME)
        self.implementation = checked_implementation(implementation, self.NAME, native=False)
        self._create(device, dtype)

    def reset_parameters(self) -> None:
        """Initialize the parameters in place."""
        for layer, suffix in self._walks():
            initialize(self._parameters_of(layer, suffix), self.variant, self.forget_bias)

    def cell(self, layer: int = 0, reverse: bool = False) -> LayerNormLSTMCell:
        """Return one layer as a cell that shares its parameters with this module.

        Args:
            layer: index of the layer, starting at 0.
            reverse: whether to return the backward direction.

        Raises:
            IndexError: there is no such layer.
        """
        cell = LayerNormLSTMCell(
            self._width(layer),
            self.hidden_size,
            self.bias,
            "meta",
            variant=self.variant,
            forget_bias=self.forget_bias,
            eps=self.eps,
        )
        self._share(cell, layer, reverse)
        return cell

    def forward(
        self, input: Tensor | PackedSequence, hx: States | None = None
    ) -> tuple[Tensor | PackedSequence, States]:
        """Return the output of the last layer and the last states of all layers."""
        run = self._forward_packed if isinstance(input, PackedSequence) else self._forward
        output, (h_n, c_n) = run(input, hx)  # type: ignore[arg-type]
        return output, (h_n, c_n)

    def extra_repr(self) -> str:
        """Return the arguments; optional ones only if they differ from their defaults."""
        auto = self.implementation == "auto"
        shown = super().extra_repr()
        return shown if auto else f"{shown}, implementation={self.implementation!r}"

    def _shapes(self, layer: int) -> dict[str, tuple[int, ...]]:
        return shapes_of(self.variant, self._width(layer), self.hidden_size, self.bias)

    def _zeros(self, zeros: Tensor) -> tuple[Tensor, ...]:
        return zeros, zeros

    def _checked(self, hx: Any, shape: tuple[int, ...], input: Tensor) -> tuple[Tensor, ...]:
        return checked_states(hx, shape, input, self.NAME)

    def _run_one(
        self,
        rows: Tensor,
        batch_sizes: list[int],
        states: tuple[Tensor, ...],
        parameters: dict[str, Tensor],
    ) -> tuple[Tensor, ...]:
        h, c = states
        given = self.variant, rows, batch_sizes, h, c, parameters, self.eps
        if self.implementation == "plain":
            return plain_layer(*given)
        return fused_layer(*given, compiled=self.implementation == "fused")
