"""What recurrent modules share: layers, directions, packed sequences, dropout between layers."""

import warnings
from abc import abstractmethod
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.rnn import PackedSequence

from lnbook._check import checked_between, checked_bool, checked_count, checked_eps
from lnbook._check_tensors import Device, check_dtype
from lnbook.recurrent._given import check_features, check_input

__all__ = ["Stack"]

States = tuple[Tensor, ...]


class Stack(nn.Module):
    """Recurrent layers, each of which reads the output of the one below, in one or two directions.

    A subclass says which parameters a cell has, which states it carries, and how one layer runs in
    one direction. It calls `_create` at the end of its `__init__`.
    """

    NAME: ClassVar[str]
    weight_ih_l0: Tensor

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int,
        bias: bool,
        batch_first: bool,
        dropout: float,
        bidirectional: bool,
        eps: float,
    ) -> None:
        super().__init__()
        self.input_size = checked_count(input_size, "input_size", self.NAME, least=1)
        self.hidden_size = checked_count(hidden_size, "hidden_size", self.NAME, least=1)
        self.num_layers = checked_count(num_layers, "num_layers", self.NAME, least=1)
        self.bias = checked_bool(bias, "bias", self.NAME)
        self.batch_first = checked_bool(batch_first, "batch_first", self.NAME)
        self.dropout = _checked_dropout(dropout, num_layers, self.NAME)
        self.bidirectional = checked_bool(bidirectional, "bidirectional", self.NAME)
        self.eps = checked_eps(eps, self.NAME)
        self.variant: str

    @abstractmethod
    def reset_parameters(self) -> None:
        """Initialize the parameters in place."""

    @abstractmethod
    def _shapes(self, layer: int) -> dict[str, tuple[int, ...]]:
        """Return the names and shapes of a cell's parameters."""

    @abstractmethod
    def _zeros(self, zeros: Tensor) -> States:
        """Return the initial states if the caller gave none, from a tensor of zeros."""

    @abstractmethod
    def _checked(self, hx: Any, shape: tuple[int, ...], input: Tensor) -> States:
        """Return the given states; raise unless each has the given shape."""

    @abstractmethod
    def _run_one(
        self, rows: Tensor, batch_sizes: list[int], states: States, parameters: dict[str, Tensor]
    ) -> tuple[Tensor, ...]:
        """Run one layer in one direction; return its output and the last states."""

    def _create(self, device: Device, dtype: torch.dtype | None) -> None:
        check_dtype(dtype, self.NAME)
        for layer, suffix in self._walks():
            for name, shape in self._shapes(layer).items():
                values = torch.empty(shape, device=device, dtype=dtype)
                self.register_parameter(name + suffix, nn.Parameter(values))
        self.reset_parameters()

    def extra_repr(self) -> str:
        """Return the arguments; optional ones only if they differ from their defaults."""
        defaults = {"num_layers": 1, "bias": True, "batch_first": False, "dropout": 0.0}
        defaults |= {"bidirectional": False}
        changed = [
            f", {name}={getattr(self, name)!r}"
            for name, default in defaults.items()
            if getattr(self, name) != default
        ]
        return f"{self.input_size}, {self.hidden_size}{''.join(changed)}, variant={self.variant!r}"

    def _share(self, cell: nn.Module, layer: int, reverse: bool) -> None:
        """Replace the parameters of a cell with those of a layer, or raise IndexError."""
        suffix = f"_l{layer}" + ("_reverse" if reverse else "")
        if (layer, suffix) not in self._walks():
            raise IndexError(
                f"{self.NAME}: expected a layer from 0 to {self.num_layers - 1}, with reverse=True "
                f"only if bidirectional, but got layer={layer!r}, reverse={reverse!r}"
            )
        for name, parameter in self._parameters_of(layer, suffix).items():
            setattr(cell, name, parameter)

    def _forward(self, input: Tensor, hx: Any) -> tuple[Tensor, States]:
        check_input(input, (2, 3), self.input_size, self.weight_ih_l0, self.NAME)
        self._check_length(input)
        batched = input.ndim == 3
        x = input if batched else input.unsqueeze(1)
        if batched and self.batch_first:
            x = x.transpose(0, 1)
        length, batch = x.shape[:2]
        states = self._first_states(hx, batch, batched, input)
        rows, last = self._run(x.flatten(0, 1), [batch] * length, states)
        output = rows.unflatten(0, (length, batch))
        if not batched:
            return output[:, 0], tuple(state[:, 0] for state in last)
        return output.transpose(0, 1) if self.batch_first else output, last

    def _forward_packed(self, input: PackedSequence, hx: Any) -> tuple[PackedSequence, States]:
        data, batch_sizes, order, inverse = input
        name = "the data of input"
        check_features(data, self.input_size, self.weight_ih_l0, name, self.NAME)
        sizes = batch_sizes.tolist()
        states = self._first_states(hx, sizes[0], True, data)
        if order is not None:
            states = tuple(state.index_select(1, order) for state in states)
        rows, last = self._run(data, sizes, states)
        if inverse is not None:
            last = tuple(state.index_select(1, inverse) for state in last)
        return PackedSequence(rows, batch_sizes, order, inverse), last

    def _run(self, rows: Tensor, batch_sizes: list[int], states: States) -> tuple[Tensor, States]:
        """Run all layers on rows packed as described in `lnbook.recurrent.loop`."""
        dtype = rows.dtype
        turn = _turn(batch_sizes, rows.device) if self.bidirectional else None
        outputs: list[Tensor] = []
        ends: list[list[Tensor]] = []
        for layer, suffix in self._walks():
            back = turn if suffix.endswith("_reverse") else None
            x = rows if back is None else rows.index_select(0, back)
            first = tuple(state[len(ends)] for state in states)
            output, *last = self._run_wide(x, batch_sizes, first, layer, suffix)
            outputs.append(output if back is None else output.index_select(0, back))
            ends.append(last)
            if len(outputs) == 1 + self.bidirectional:
                rows = torch.cat(outputs, dim=1) if self.bidirectional else output
                rows, outputs = rows.to(dtype), []
                if layer < self.num_layers - 1:
                    rows = functional.dropout(rows, self.dropout, self.training)
        return rows, tuple(torch.stack(kind).to(dtype) for kind in zip(*ends, strict=True))

    def _run_wide(
        self, rows: Tensor, batch_sizes: list[int], states: States, layer: int, suffix: str
    ) -> tuple[Tensor, ...]:
        # Half precision is computed in float32, so states are rounded once, not at every step.
        working = torch.promote_types(rows.dtype, torch.float32)
        parameters = {
            name: parameter.to(working)
            for name, parameter in self._parameters_of(layer, suffix).items()
        }
        wide = tuple(state.to(working) for state in states)
        return self._run_one(rows.to(working), batch_sizes, wide, parameters)

    def _walks(self) -> list[tuple[int, str]]:
        """Return the layer index and suffix of every pass over the sequence, in PyTorch's order."""
        ways = ("", "_reverse") if self.bidirectional else ("",)
        return [(layer, f"_l{layer}{way}") for layer in range(self.num_layers) for way in ways]

    def _width(self, layer: int) -> int:
        return self.hidden_size * (1 + self.bidirectional) if layer else self.input_size

    def _parameters_of(self, layer: int, suffix: str) -> dict[str, Tensor]:
        return {name: getattr(self, name + suffix) for name in self._shapes(layer)}

    def _first_states(self, hx: Any, batch: int, batched: bool, input: Tensor) -> States:
        walks, size = len(self._walks()), self.hidden_size
        if hx is None:
            return self._zeros(input.new_zeros(walks, batch, size))
        states = self._checked(hx, (walks, batch, size) if batched else (walks, size), input)
        return states if batched else tuple(state.unsqueeze(1) for state in states)

    def _check_length(self, input: Tensor) -> None:
        if input.shape[1 if self.batch_first and input.ndim == 3 else 0] == 0:
            raise RuntimeError(
                f"{self.NAME}: expected a sequence of at least one step, but got input of shape "
                f"{tuple(input.shape)}"
            )


def _turn(batch_sizes: list[int], device: torch.device) -> Tensor:
    """Return each row's index in the reversed sequences; the permutation is its own inverse."""
    sizes, rows = torch.tensor(batch_sizes), torch.arange(sum(batch_sizes))
    starts = sizes.cumsum(0) - sizes
    steps = torch.arange(len(batch_sizes)).repeat_interleave(sizes)
    members = rows - starts[steps]
    # The batch shrinks as sequences end, so a sequence's length is how many steps still include it.
    lengths = len(batch_sizes) - torch.searchsorted(sizes.flip(0), members, right=True)
    return (starts[lengths - 1 - steps] + members).to(device)


def _checked_dropout(dropout: Any, num_layers: int, function: str) -> float:
    value = checked_between(dropout, "dropout", function, 0.0, 1.0)
    if value > 0.0 and num_layers == 1:
        warnings.warn(
            f"{function}: dropout acts between layers, so dropout={dropout!r} has no effect "
            "with num_layers=1",
            stacklevel=4,
        )
    return value
