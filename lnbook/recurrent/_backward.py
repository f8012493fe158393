"""Backward pass of the fused time loop; for an explanation see `lnbook.recurrent.fused`."""

from collections.abc import Container, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from lnbook.recurrent._forward import BIASES, Plan, States, Statistics

__all__ = ["Backward", "through_products"]

# Derivatives are computed for this many gate elements at once: more would take more memory, and
# not less time.
CHUNK_ELEMENTS = 1 << 18

layer_norm_backward = torch.ops.aten.native_layer_norm_backward.default
# Which gradients to compute: of the input, the weight, the bias.
INPUT, WEIGHT, AFFINE, ALL = (
    [True, False, False],
    [False, True, False],
    [False, True, True],
    [True, True, True],
)


class _Chunk(NamedTuple):
    """Local derivatives for the rows of a few steps, and the gradients computed from them."""

    # Derivatives of (m, m, m, h') with respect to the pre-activations of gates i, f, g, o.
    gates: Tensor
    normed: Tensor  # the derivative of h' with respect to LN(m)
    grad_gates: Tensor
    grad_normed: Tensor


class Backward:
    """Backpropagation through time for one layer; gradients are named after their tensors."""

    def __init__(
        self,
        plan: Plan,
        inputs: dict[str, Tensor],
        states: States,
        statistics: Statistics,
        needed: set[str],
    ) -> None:
        self.plan, self.inputs, self.states, self.statistics = plan, inputs, states, statistics
        self.needed = needed
        self.batch, self.size = inputs["h"].shape
        self.gate_gain = inputs["norm_gates_weight" if plan.per_gate else "norm_hh_weight"]
        self.cell_gain = inputs["norm_c_weight"]
        self.gate_width = self.size if plan.per_gate else 4 * self.size

    def run(self, grad_output: Tensor, grad_h_n: Tensor, grad_c_n: Tensor) -> dict[str, Tensor]:
        """Return the gradients of all inputs that require one, keyed by name."""
        sizes, states = self.plan.batch_sizes, self.states
        self.grad_h, self.grad_c = grad_output.clone(), grad_c_n.clone()
        for step, end in zip(self.grad_h.split(sizes), (*sizes[1:], 0), strict=True):
            if end < len(step):
                step[end:] += grad_h_n[end : len(step)]
        self.grad_summed = torch.empty_like(states.summed)
        self.grad_gates = None if self.plan.per_gate else torch.empty_like(states.summed)
        self.grads = {
            "norm_c_weight": torch.zeros_like(self.cell_gain),
            "norm_c_bias": torch.zeros_like(self.cell_gain),
            "norm_gates_weight": torch.zeros_like(self.gate_gain),
            "norm_gates_bias": torch.zeros_like(self.gate_gain),
            "norm_hh_weight": torch.zeros_like(self.gate_gain),
        }
        self._run_loop()
        self._finish()
        return self.grads

    def _run_loop(self) -> None:
        sizes = self.plan.batch_sizes
        given_cells = _given(self.inputs["c"], self.states.carried, sizes)
        steps = max(1, CHUNK_ELEMENTS // max(1, 4 * self.batch * self.size))
        scratch = self._scratch(min(steps * self.batch, len(self.grad_h)))
        following: Tensor | None = None  # gradient of the following step's summed inputs
        end_row = len(self.grad_h)
        for end in range(len(sizes), 0, -steps):
            span = slice(max(0, end - steps), end)
            rows = slice(end_row - sum(sizes[span]), end_row)
            chunk = self._local_derivatives(rows, given_cells[rows], scratch)
            following = self._run_steps(span, rows, chunk, following)
            self._add_affine_gradients(span, rows, chunk)
            end_row = rows.start

    def _scratch(self, rows: int) -> tuple[Tensor, ...]:
        wide, narrow = (rows, 4 * self.size), (rows, self.size)
        return tuple(self.grad_h.new_empty(shape) for shape in (wide, narrow, narrow, wide))

    def _local_derivatives(
        self, rows: slice, given_cells: Tensor, scratch: tuple[Tensor, ...]
    ) -> _Chunk:
        gates, normed, grad_normed, grad_gates = (
            buffer[: rows.stop - rows.start] for buffer in scratch
        )
        if self.grad_gates is not None:
            grad_gates = self.grad_gates[rows]
        i, f, g, o = self.states.gates[rows].chunk(4, dim=1)
        to_i, to_f, to_g, to_o = gates.chunk(4, dim=1)
        output, squashed = self.states.output[rows], self.states.squashed[rows]
        # sigmoid' = s (1 - s) and tanh' = 1 - t^2, in terms of what forward saved.
        torch.mul(i, g, out=to_i)
        torch.addcmul(i, to_i, g, value=-1, out=to_g)
        to_i.addcmul_(to_i, i, value=-1)
        torch.mul(given_cells, f, out=to_f)
        to_f.addcmul_(to_f, f, value=-1)
        torch.addcmul(output, output, o, value=-1, out=to_o)
        torch.addcmul(o, output, squashed, value=-1, out=normed)
        return _Chunk(gates, normed, grad_gates, grad_normed)

    def _run_steps(
        self, span: slice, rows: slice, chunk: _Chunk, following: Tensor | None
    ) -> Tensor | None:
        """Go backward through the steps in `span`, whose rows are `rows`."""
        weight, gain, shape = self.inputs["weight_hh"], self.cell_gain, (self.size,)
        found, steps = [], self._steps(span, rows, chunk)
        for dh, to_n, dn, m, f, to_ifg, to_o, da_ifg, da_o, da, total, of_gates, of_cell in steps:
            if following is not None:
                going_on = dh if len(dh) == len(following) else dh[: len(following)]
                going_on.addmm_(following, weight)
            dc = self.grad_c if len(dh) == self.batch else self.grad_c[: len(dh)]
            torch.mul(dh, to_n, out=dn)
            if self.plan.carries_norm:
                dn.add_(dc)
            dm = layer_norm_backward(dn, m, shape, *of_cell, gain, None, INPUT)[0]
            if not self.plan.carries_norm:
                dm.add_(dc)
            torch.mul(dm.unsqueeze(1), to_ifg, out=da_ifg)
            torch.mul(dh, to_o, out=da_o)
            torch.mul(dm, f, out=dc)
            following = self._through_gate_norm(da, total, of_gates)
            found.append(following)
        torch.cat(found[::-1], out=self.grad_summed[rows])
        return following

    def _steps(self, span: slice, rows: slice, chunk: _Chunk) -> Iterator[tuple[Any, ...]]:
        """For each step, last to first, yield its rows of every buffer and its statistics."""
        size, states = self.size, self.states
        local, grad = chunk.gates.view(-1, 4, size), chunk.grad_gates.view(-1, 4, size)
        forget = states.gates[rows, size : 2 * size]
        buffers = [self.grad_h[rows], chunk.normed, chunk.grad_normed, states.cells[rows], forget]
        buffers += [local[:, :3], local[:, 3], grad[:, :3], grad[:, 3]]
        buffers += [chunk.grad_gates, states.summed[rows]]
        views = (reversed(buffer.split(self.plan.batch_sizes[span])) for buffer in buffers)
        statistics = (reversed(kind[span]) for kind in self.statistics)
        return zip(*views, *statistics, strict=True)

    def _through_gate_norm(self, da: Tensor, total: Tensor, statistics: Sequence[Tensor]) -> Tensor:
        """Compute the gradient of one step's summed inputs from that of its gates."""
        shape, gain = (self.gate_width,), self.gate_gain
        result: Tensor
        if not self.plan.per_gate:
            result, *_ = layer_norm_backward(da, total, shape, *statistics, gain, None, INPUT)
            return result
        scaled, shaped = (da * gain).view(-1, self.size), total.view(-1, self.size)
        result, *_ = layer_norm_backward(scaled, shaped, shape, *statistics, None, None, INPUT)
        return result.view_as(da)

    def _add_affine_gradients(self, span: slice, rows: slice, chunk: _Chunk) -> None:
        cells, summed = self.states.cells[rows], self.states.summed[rows]
        statistics = map(torch.cat, zip(*self.statistics.cells[span], strict=True))
        gain = self.cell_gain
        _, grad_gain, grad_shift = layer_norm_backward(
            chunk.grad_normed, cells, gain.shape, *statistics, gain, gain, AFFINE
        )
        self.grads["norm_c_weight"] += grad_gain
        self.grads["norm_c_bias"] += grad_shift
        gain = self.gate_gain
        if self.plan.per_gate:
            shaped, shape = summed.view(-1, self.size), (self.size,)
            normed, *_ = torch.native_layer_norm(shaped, shape, None, None, self.plan.eps)
            self.grads["norm_gates_weight"] += normed.view_as(summed).mul_(chunk.grad_gates).sum(0)
            self.grads["norm_gates_bias"] += chunk.grad_gates.sum(0)
        else:
            statistics = map(torch.cat, zip(*self.statistics.gates[span], strict=True))
            self.grads["norm_hh_weight"] += layer_norm_backward(
                chunk.grad_gates, summed, gain.shape, *statistics, gain, None, WEIGHT
            )[1]

    def _finish(self) -> None:
        """Compute the gradients of the matrices and of the layer's inputs."""
        grads, summed = self.grads, self.grad_summed
        grads["c"] = self.grad_c
        if "h" in self.needed:
            grads["h"] = summed[: self.batch] @ self.inputs["weight_hh"]
        given = self.plan.batch_sizes, self.inputs, self.states.output
        grads |= through_products(*given, summed, self._unproject(), self.needed)

    def _unproject(self) -> Tensor:
        """Return the gradient of the input projection; in Ba's variant, through its norm."""
        if self.grad_gates is None:
            return self.grad_summed
        gain = self.inputs["norm_ih_weight"]
        projected, mean, rstd = self.states.projection
        grad_projected, grad_gain, grad_bias = layer_norm_backward(
            self.grad_gates, projected, gain.shape, mean, rstd, gain, gain, ALL
        )
        self.grads["norm_ih_weight"] = grad_gain
        self.grads |= {name: grad_bias.clone() for name in BIASES}
        result: Tensor = grad_projected
        return result


def through_products(
    batch_sizes: Sequence[int],
    inputs: Mapping[str, Tensor],
    output: Tensor,
    grad_summed: Tensor,
    grad_projected: Tensor,
    needed: Container[str],
) -> dict[str, Tensor]:
    """Return those gradients of the matrices and the input that are needed, by name.

    Args:
        batch_sizes: number of rows at each time step.
        inputs: "rows", "h", "weight_ih" and "weight_hh", by name.
        output: the hidden states of all steps.
        grad_summed: gradient of the products with `weight_hh`, of shape `(rows, 4 * hidden_size)`.
        grad_projected: gradient of the products with `weight_ih`, of the same shape.
        needed: the names of the gradients to compute.
    """
    grads = {}
    if "weight_hh" in needed:
        grads["weight_hh"] = grad_summed.t() @ _given(inputs["h"], output, batch_sizes)
    if "weight_ih" in needed:
        grads["weight_ih"] = grad_projected.t() @ inputs["rows"]
    if "rows" in needed:
        grads["rows"] = grad_projected @ inputs["weight_ih"]
    return grads


def _given(first: Tensor, states: Tensor, batch_sizes: Sequence[int]) -> Tensor:
    """Return the steps' input states, from the initial state and their outputs."""
    if batch_sizes[0] == batch_sizes[-1]:
        return torch.cat((first, states[: -len(first)]))
    made = (first, *states.split(list(batch_sizes)))
    return torch.cat([state[:size] for state, size in zip(made, batch_sizes, strict=False)])
