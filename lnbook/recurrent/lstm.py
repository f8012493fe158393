"""A multi-layer layer-normalized LSTM with the interface of `torch.nn.LSTM`."""

import warnings
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.rnn import PackedSequence

from lnbook._check import (
    Implementation,
    checked_between,
    checked_bool,
    checked_count,
    checked_eps,
    checked_implementation,
)
from lnbook._check_tensors import Device, check_dtype, check_tensor
from lnbook.recurrent._given import check_like, checked_states
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

_NAME = "LayerNormLSTM"
States = tuple[Tensor, Tensor]


class LayerNormLSTM(nn.Module):
    r"""A layer-normalized LSTM, with the arguments, shapes and states of `torch.nn.LSTM`.

    Every layer is a `LayerNormLSTMCell` applied along the sequence:

    .. math::
        (h_t, c_t) = \operatorname{cell}(x_t, h_{t-1}, c_{t-1})

    Source: Ba, Kiros and Hinton 2016, eq. 20-22, for the default, `variant="ba"`; for the other
    variants see `LayerNormLSTMCell`. With `variant="none"` (or None), there is no norm, and the
    state dict, outputs and dropout are the same as in `torch.nn.LSTM`.

    All implementations compute the same function, up to rounding:

    - `"auto"`, the default, picks the fastest: `"fused"`.
    - `"fused"` is `lnbook.recurrent.fused_layer`, which projects the inputs of all steps at once,
      writes states in place, and backpropagates through time with hand-written formulas.
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
        weight_ih_l0, weight_hh_l0 and so on: the parameters of `LayerNormLSTMCell`, named as there,
            plus the layer number and, for the backward direction, `_reverse`.

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

    weight_ih_l0: Tensor

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
        super().__init__()
        self.input_size = checked_count(input_size, "input_size", _NAME, least=1)
        self.hidden_size = checked_count(hidden_size, "hidden_size", _NAME, least=1)
        self.num_layers = checked_count(num_layers, "num_layers", _NAME, least=1)
        self.bias = checked_bool(bias, "bias", _NAME)
        self.batch_first = checked_bool(batch_first, "batch_first", _NAME)
        self.dropout = _checked_dropout(dropout, num_layers)
        self.bidirectional = checked_bool(bidirectional, "bidirectional", _NAME)
        self.variant = checked_variant(variant, _NAME)
        self.forget_bias = checked_forget_bias(forget_bias, bias, _NAME)
        self.eps = checked_eps(eps, _NAME)
        self.implementation = checked_implementation(implementation, _NAME, native=False)
        check_dtype(dtype, _NAME)
        for layer, suffix in self._walks():
            for name, shape in self._shapes(layer).items():
                values = torch.empty(shape, device=device, dtype=dtype)
                self.register_parameter(name + suffix, nn.Parameter(values))
        self.reset_parameters()

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
        suffix = f"_l{layer}" + ("_reverse" if reverse else "")
        if (layer, suffix) not in self._walks():
            raise IndexError(
                f"{_NAME}: expected a layer from 0 to {self.num_layers - 1}, with reverse=True "
                f"only if bidirectional, but got layer={layer!r}, reverse={reverse!r}"
            )
        cell = LayerNormLSTMCell(
            self._width(layer),
            self.hidden_size,
            self.bias,
            "meta",
            variant=self.variant,
            forget_bias=self.forget_bias,
            eps=self.eps,
        )
        for name, parameter in self._parameters_of(layer, suffix).items():
            setattr(cell, name, parameter)
        return cell

    def forward(
        self, input: Tensor | PackedSequence, hx: States | None = None
    ) -> tuple[Tensor | PackedSequence, States]:
        """Return the output of the last layer and the last states of all layers."""
        if isinstance(input, PackedSequence):
            return self._forward_packed(input, hx)
        self._check_input(input)
        batched = input.ndim == 3
        x = input if batched else input.unsqueeze(1)
        if batched and self.batch_first:
            x = x.transpose(0, 1)
        length, batch = x.shape[:2]
        h, c = self._first_states(hx, batch, batched, input)
        rows, h_n, c_n = self._run(x.flatten(0, 1), [batch] * length, h, c)
        output = rows.unflatten(0, (length, batch))
        if not batched:
            return output[:, 0], (h_n[:, 0], c_n[:, 0])
        return output.transpose(0, 1) if self.batch_first else output, (h_n, c_n)

    def extra_repr(self) -> str:
        """Return the arguments; those with defaults only where they differ from them."""
        defaults = {"num_layers": 1, "bias": True, "batch_first": False, "dropout": 0.0}
        defaults |= {"bidirectional": False}
        changed = [
            f", {name}={getattr(self, name)!r}"
            for name, default in defaults.items()
            if getattr(self, name) != default
        ]
        auto = self.implementation == "auto"
        return (
            f"{self.input_size}, {self.hidden_size}{''.join(changed)}, variant={self.variant!r}"
            + ("" if auto else f", implementation={self.implementation!r}")
        )

    def _forward_packed(
        self, input: PackedSequence, hx: States | None
    ) -> tuple[PackedSequence, States]:
        data, batch_sizes, order, inverse = input
        self._check_features(data, "the data of input")
        sizes = batch_sizes.tolist()
        h, c = self._first_states(hx, sizes[0], True, data)
        if order is not None:
            h, c = h.index_select(1, order), c.index_select(1, order)
        rows, h_n, c_n = self._run(data, sizes, h, c)
        if inverse is not None:
            h_n, c_n = h_n.index_select(1, inverse), c_n.index_select(1, inverse)
        return PackedSequence(rows, batch_sizes, order, inverse), (h_n, c_n)

    def _run(
        self, rows: Tensor, batch_sizes: list[int], h: Tensor, c: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Run all layers on rows packed as described in `lnbook.recurrent.loop`."""
        dtype = rows.dtype
        turn = _turn(batch_sizes, rows.device) if self.bidirectional else None
        outputs: list[Tensor] = []
        h_n: list[Tensor] = []
        c_n: list[Tensor] = []
        for layer, suffix in self._walks():
            walk = len(h_n)
            if suffix.endswith("_reverse") and turn is not None:
                x = rows.index_select(0, turn)
                output, *ends = self._run_one(layer, suffix, x, batch_sizes, h[walk], c[walk])
                output = output.index_select(0, turn)
            else:
                output, *ends = self._run_one(layer, suffix, rows, batch_sizes, h[walk], c[walk])
            outputs.append(output)
            h_n.append(ends[0])
            c_n.append(ends[1])
            if len(outputs) == 1 + self.bidirectional:
                rows = torch.cat(outputs, dim=1) if self.bidirectional else output
                rows, outputs = rows.to(dtype), []
                if layer < self.num_layers - 1:
                    rows = functional.dropout(rows, self.dropout, self.training)
        return rows, torch.stack(h_n).to(dtype), torch.stack(c_n).to(dtype)

    def _run_one(
        self, layer: int, suffix: str, rows: Tensor, batch_sizes: list[int], h: Tensor, c: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        # Half precision is computed in float32, so states are rounded once, not at every step.
        working = torch.promote_types(rows.dtype, torch.float32)
        run = plain_layer if self.implementation == "plain" else fused_layer
        parameters = {
            name: parameter.to(working)
            for name, parameter in self._parameters_of(layer, suffix).items()
        }
        tensors = rows.to(working), h.to(working), c.to(working)
        return run(self.variant, tensors[0], batch_sizes, *tensors[1:], parameters, self.eps)

    def _walks(self) -> list[tuple[int, str]]:
        """Return the layer index and suffix of every pass over the sequence, in PyTorch's order."""
        ways = ("", "_reverse") if self.bidirectional else ("",)
        return [(layer, f"_l{layer}{way}") for layer in range(self.num_layers) for way in ways]

    def _width(self, layer: int) -> int:
        return self.hidden_size * (1 + self.bidirectional) if layer else self.input_size

    def _shapes(self, layer: int) -> dict[str, tuple[int, ...]]:
        return shapes_of(self.variant, self._width(layer), self.hidden_size, self.bias)

    def _parameters_of(self, layer: int, suffix: str) -> dict[str, Tensor]:
        return {name: getattr(self, name + suffix) for name in self._shapes(layer)}

    def _first_states(self, hx: States | None, batch: int, batched: bool, input: Tensor) -> States:
        walks, size = len(self._walks()), self.hidden_size
        if hx is None:
            zeros = input.new_zeros(walks, batch, size)
            return zeros, zeros
        shape = (walks, batch, size) if batched else (walks, size)
        h, c = checked_states(hx, shape, input, _NAME)
        return (h, c) if batched else (h.unsqueeze(1), c.unsqueeze(1))

    def _check_input(self, input: Any) -> None:
        check_tensor(input, "input", _NAME)
        if input.ndim not in (2, 3):
            raise ValueError(
                f"{_NAME}: expected input to have 2 or 3 dimensions, but got shape "
                f"{tuple(input.shape)}"
            )
        self._check_features(input, "input")
        if input.shape[1 if self.batch_first and input.ndim == 3 else 0] == 0:
            raise RuntimeError(
                f"{_NAME}: expected a sequence of at least one step, but got input of shape "
                f"{tuple(input.shape)}"
            )

    def _check_features(self, input: Tensor, name: str) -> None:
        if input.shape[-1] != self.input_size:
            raise RuntimeError(
                f"{_NAME}: expected {name} to have the shape (*, {self.input_size}), "
                f"but got {tuple(input.shape)}"
            )
        check_like(input, self.weight_ih_l0, name, _NAME)


def _turn(batch_sizes: list[int], device: torch.device) -> Tensor:
    """Return the index of each row in the reversed sequences: it is its own inverse."""
    sizes, rows = torch.tensor(batch_sizes), torch.arange(sum(batch_sizes))
    starts = sizes.cumsum(0) - sizes
    steps = torch.arange(len(batch_sizes)).repeat_interleave(sizes)
    members = rows - starts[steps]
    # The batch shrinks as sequences end: a sequence's length is the number of larger batches.
    lengths = len(batch_sizes) - torch.searchsorted(sizes.flip(0), members, right=True)
    return (starts[lengths - 1 - steps] + members).to(device)


def _checked_dropout(dropout: Any, num_layers: int) -> float:
    value = checked_between(dropout, "dropout", _NAME, 0.0, 1.0)
    if value > 0.0 and num_layers == 1:
        warnings.warn(
            f"{_NAME}: dropout acts between layers, so dropout={dropout!r} has no effect "
            "with num_layers=1",
            stacklevel=3,
        )
    return value
