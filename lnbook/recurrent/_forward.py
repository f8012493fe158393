"""Forward pass of the fused time loop; for an explanation see `lnbook.recurrent.fused`."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from lnbook.recurrent.loop import final_rows
from lnbook.recurrent.steps import Parameters

__all__ = ["Plan", "States", "Statistics", "run_forward"]

MINUS_ONE = torch.tensor(-1.0)
BIASES = ("bias_gates", "norm_ih_bias", "norm_hh_bias")


class Plan(NamedTuple):
    """Everything that defines a layer except its tensors."""

    variant: str
    batch_sizes: list[int]
    eps: float
    names: tuple[str, ...]
    compiled: bool = False  # whether a kernel may run instead of torch operations

    @property
    def per_gate(self) -> bool:
        return self.variant == "per-gate"

    @property
    def carries_norm(self) -> bool:
        return self.variant == "carried"


class States(NamedTuple):
    """What forward saves for backward; each tensor contains the rows of all steps."""

    summed: Tensor  # input of the gates' norm
    gates: Tensor  # after their nonlinearities
    cells: Tensor  # m
    squashed: Tensor  # tanh(LN(m))
    carried: Tensor  # the cell passed to the next step: m or LN(m)
    output: Tensor
    projection: tuple[Tensor, ...]  # Ba: W_x x before its norm, and that norm's statistics


class Statistics(NamedTuple):
    """Mean and reciprocal standard deviation of the norms in the loop: two tensors per step."""

    gates: list[Sequence[Tensor]]
    cells: list[Sequence[Tensor]]


def run_forward(
    plan: Plan, rows: Tensor, h: Tensor, c: Tensor, parameters: Parameters, keeping: bool
) -> tuple[tuple[Tensor, Tensor, Tensor], States, Statistics]:
    """Run the loop; `keeping` says whether to save the states of every step."""
    batch, size = h.shape

    def buffer(width: int) -> Tensor:
        return rows.new_empty(len(rows) if keeping else batch, width)

    added, projection = _project(plan, rows, parameters)
    # The projection's memory is reused: for the per-gate sum, or in Ba's variant for the gates.
    summed = added if plan.per_gate else buffer(4 * size)
    gates = added if keeping and not plan.per_gate else buffer(4 * size)
    cells, squashed, output = buffer(size), buffer(size), rows.new_empty(len(rows), size)
    gate_norm, cell_norm = _gate_norm(plan, parameters), _cell_norm(plan, parameters)
    carried: list[Tensor] = []
    statistics = Statistics([], [])
    buffers = (added, summed, gates, *_by_gate(gates), cells, squashed, output)
    for add, total, gate, i, f, g, o, cell, squash, out in zip(
        *(_steps(buffer, plan.batch_sizes) for buffer in buffers), strict=True
    ):
        if len(out) < len(h):
            h, c = h[: len(out)], c[: len(out)]
        doubled, *gate_statistics = gate_norm(add, total, h)
        torch.sigmoid(doubled, out=gate)
        torch.add(MINUS_ONE, g, alpha=2, out=g)
        torch.mul(f, c, out=cell).addcmul_(i, g)
        normed, *cell_statistics = cell_norm(cell)
        c = normed if plan.carries_norm else cell
        torch.sigmoid(2 * normed if plan.carries_norm else normed, out=squash)
        torch.add(MINUS_ONE, squash, alpha=2, out=squash)
        h = torch.mul(o, squash, out=out)
        carried.append(c)
        if keeping:
            statistics.gates.append(gate_statistics)
            statistics.cells.append(cell_statistics)
    results = output, final_rows(output.split(plan.batch_sizes)), final_rows(carried)
    kept = torch.cat(carried) if keeping and plan.carries_norm else cells
    return results, States(summed, gates, cells, squashed, kept, output, projection), statistics


def _project(plan: Plan, rows: Tensor, parameters: Parameters) -> tuple[Tensor, tuple[Tensor, ...]]:
    """Return what all steps' inputs add to the gates, and what backward needs from it."""
    projected = torch.mm(rows, parameters["weight_ih"].t())
    if plan.per_gate:
        return projected, ()
    # The three biases are added all at once.
    biases = [parameters[name] for name in BIASES if name in parameters]
    added, mean, rstd = torch.native_layer_norm(
        projected,
        projected.shape[1:],
        _with_doubled_candidates(parameters["norm_ih_weight"]),
        _with_doubled_candidates(sum(biases[1:], biases[0])) if biases else None,
        plan.eps,
    )
    return added, (projected, mean, rstd)


def _gate_norm(plan: Plan, parameters: Parameters) -> Callable[..., tuple[Tensor, ...]]:
    """Return the part of a step that computes the gates before their nonlinearities."""
    weight = parameters["weight_hh"].t()
    if plan.per_gate:
        gain = _with_doubled_candidates(parameters["norm_gates_weight"])
        shift = parameters.get("norm_gates_bias")
        shift = gain.new_zeros(()) if shift is None else _with_doubled_candidates(shift)
        shape = (weight.shape[0],)

        def per_gate(_: Tensor, total: Tensor, h: Tensor) -> tuple[Tensor, ...]:
            total.addmm_(h, weight)
            normed, mean, rstd = torch.native_layer_norm(
                total.view(-1, *shape), shape, None, None, plan.eps
            )
            return torch.addcmul(shift, normed.view_as(total), gain), mean, rstd

        return per_gate
    gain = _with_doubled_candidates(parameters["norm_hh_weight"])

    def joint(add: Tensor, total: Tensor, h: Tensor) -> tuple[Tensor, ...]:
        torch.mm(h, weight, out=total)
        normed, mean, rstd = torch.native_layer_norm(total, gain.shape, gain, None, plan.eps)
        return normed.add_(add), mean, rstd

    return joint


def _cell_norm(plan: Plan, parameters: Parameters) -> Callable[[Tensor], tuple[Tensor, ...]]:
    gain, shift = parameters["norm_c_weight"], parameters.get("norm_c_bias")
    if not plan.carries_norm:
        gain, shift = 2 * gain, None if shift is None else 2 * shift
    return lambda cell: torch.native_layer_norm(cell, gain.shape, gain, shift, plan.eps)


def _with_doubled_candidates(affine: Tensor) -> Tensor:
    factors = affine.new_tensor([1.0, 1.0, 2.0, 1.0])
    return (affine.view(4, -1) * factors.unsqueeze(1)).flatten()


def _by_gate(gates: Tensor) -> tuple[Tensor, ...]:
    return gates.chunk(4, dim=1)


def _steps(buffer: Tensor, batch_sizes: list[int]) -> Sequence[Tensor]:
    """Return the rows of each step, or the same rows every time if the buffer has no more."""
    if len(buffer) == sum(batch_sizes):
        rows: tuple[Tensor, ...] = buffer.split(batch_sizes)
        return rows
    views = {size: buffer[:size] for size in set(batch_sizes)}
    return [views[size] for size in batch_sizes]
