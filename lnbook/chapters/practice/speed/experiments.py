"""The experiments on speed: what a computation moves and keeps, and the versions to compare.

Counts of operations and bytes don't depend on how fast a machine is; times do. The LayerNorms and
LSTMs are the versions that the chapter builds step by step. The package's own versions, which also
handle special cases, are in `lnbook.functional` and `lnbook.recurrent`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

__all__ = [
    "LSTM_STEPS",
    "BlockedFunction",
    "CenteredFunction",
    "HandwrittenLSTM",
    "Kept",
    "Operation",
    "blocked_backward",
    "blocked_forward",
    "keep_forward",
    "kept_bytes",
    "lstm_by_hand",
    "lstm_handwritten",
    "lstm_hoisted",
    "lstm_naive",
    "lstm_one_norm",
    "lstm_one_sigmoid",
    "lstm_parameters",
    "operations",
    "variance_form",
]

Parameters: TypeAlias = Mapping[str, Tensor]
Gates: TypeAlias = tuple[Tensor, ...]

# The parameters of an LSTM layer with a norm for each gate, in order.
NAMES = (
    "weight_ih",
    "weight_hh",
    "norm_gates_weight",
    "norm_gates_bias",
    "norm_c_weight",
    "norm_c_bias",
)

layer_norm_backward = torch.ops.aten.native_layer_norm_backward.default


@dataclass(frozen=True)
class Operation:
    """One torch operation, as it was called.

    Attributes:
        name: what torch calls it, for example "mul" or "native_layer_norm".
        read: bytes of the tensors that it was given; 0 for a view or an allocation, and if it only
            takes the dtype, the device or the shape from them.
        written: bytes of the tensors that it filled; 0 for a view or an allocation.

    Example:
        >>> x = torch.ones(10, 25)  # 1,000 bytes
        >>> [operation] = operations(lambda: x.exp())
        >>> operation.read + operation.written
        2000
    """

    name: str
    read: int
    written: int


class _Recorder(TorchDispatchMode):
    """Records each operation that torch runs."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.found: list[Operation] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        del types
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        name = func.overloadpacket.__name__
        given = {key: value for key, value in kwargs.items() if key != "out"}
        inputs = _tensors((args[1:] if name == "copy_" else args, given))
        if name.startswith("new_") or name.endswith("_like"):
            inputs = []  # it reads no numbers
        outputs = _tensors(result)
        if _moves_nothing(func, inputs, outputs):
            self.found.append(Operation(name, 0, 0))
        else:
            read, written = sum(map(_bytes, inputs)), sum(map(_bytes, outputs))
            self.found.append(Operation(name, read, written))
        return result


def _tensors(tree: Any) -> list[Tensor]:
    return [leaf for leaf in tree_leaves(tree) if isinstance(leaf, Tensor)]


def _bytes(tensor: Tensor) -> int:
    # An expanded tensor has more elements than there are in memory.
    return min(tensor.numel() * tensor.element_size(), tensor.untyped_storage().nbytes())


def _moves_nothing(func: Any, inputs: list[Tensor], outputs: list[Tensor]) -> bool:
    if "empty" in func.overloadpacket.__name__:
        return True
    places = {tensor.untyped_storage().data_ptr() for tensor in inputs}
    shared = [tensor.untyped_storage().data_ptr() in places for tensor in outputs]
    return bool(shared) and all(shared) and not func._schema.is_mutable


def operations(call: Callable[[], Any]) -> list[Operation]:
    """List the operations that a call runs, with the bytes that each one reads and writes.

    This counts the tensors that operations are given and the ones that they fill. It doesn't know
    whether a tensor comes from main memory or from a cache, or what happens inside an operation.

    Args:
        call: what to run; operations of backward passes inside it count, too.

    Returns:
        The operations, in order.

    Example:
        >>> x = torch.ones(10, 25)  # 1,000 bytes
        >>> for operation in operations(lambda: (x * 2).sum(1)):
        ...     print(operation)
        Operation(name='mul', read=1000, written=1000)
        Operation(name='sum', read=1000, written=40)
    """
    recorder = _Recorder()
    with recorder:
        call()
    return recorder.found


def kept_bytes(call: Callable[[], Any], *given: Tensor) -> int:
    """Count the bytes that a forward pass keeps for its backward pass.

    Args:
        call: runs the forward pass.
        given: tensors that exist anyway, such as the input and parameters; not counted.

    Returns:
        The bytes, each piece of memory counted once.

    Example:
        >>> x = torch.ones(100, requires_grad=True)
        >>> kept_bytes(lambda: x.exp(), x)  # the result, since it is its own derivative
        400
    """
    there = {tensor.untyped_storage().data_ptr() for tensor in given}
    kept: dict[int, int] = {}

    def put_aside(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in there:
            kept[storage.data_ptr()] = storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(put_aside, lambda tensor: tensor):
        result = call()
    del result  # kept alive until here, so that no memory is reused
    return sum(kept.values())


def variance_form(x: Tensor, weight: Tensor, bias: Tensor, eps: float = 1e-5) -> Tensor:
    r"""Normalize the last dimension with `var`, as you'd first write it; autograd does the rest.

    Args:
        x: floating-point input of shape `(*, H)`.
        weight: :math:`\gamma`, of shape `(H,)`.
        bias: :math:`\beta`, of shape `(H,)`.
        eps: value added to the variance.

    Example:
        >>> one, zero = torch.ones(2), torch.zeros(2)
        >>> variance_form(torch.tensor([[1.0, 3.0]]), one, zero, 0.0)
        tensor([[-1.,  1.]])
    """
    deviation = torch.sqrt(x.var(-1, correction=0, keepdim=True) + eps)
    return weight * ((x - x.mean(-1, keepdim=True)) / deviation) + bias


class CenteredFunction(torch.autograd.Function):
    r"""The textbook form of an autograd function: centers first, and keeps :math:`\hat{x}`.

    `apply(x, weight, bias, eps)` returns what `variance_form` does, up to rounding.

    Example:
        >>> one, zero = torch.ones(2), torch.zeros(2)
        >>> CenteredFunction.apply(torch.tensor([[1.0, 3.0]]), one, zero, 0.0)
        tensor([[-1.,  1.]])
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor, eps: float) -> Tensor:
        """Normalize the last dimension."""
        centered = x - x.mean(-1, keepdim=True)
        r = (centered.square().mean(-1, keepdim=True) + eps).rsqrt()
        xhat = centered * r
        ctx.save_for_backward(xhat, weight, r)
        return xhat * weight + bias

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor | None, ...]:
        """Return the gradients by the formula."""
        xhat, weight, r = ctx.saved_tensors
        g = grad_output * weight
        means = g.mean(-1, keepdim=True), (g * xhat).mean(-1, keepdim=True)
        grad = r * (g - means[0] - xhat * means[1])
        leading = tuple(range(grad_output.ndim - 1))
        return grad, (grad_output * xhat).sum(leading), grad_output.sum(leading), None


def blocked_forward(
    x: Tensor, weight: Tensor, bias: Tensor, eps: float, height: int
) -> tuple[Tensor, Tensor, Tensor]:
    r"""Normalize the rows of a matrix, `height` rows at a time and in place.

    Args:
        x: matrix of shape `(N, H)`, float32 or float64. Rows with a large mean lose digits here,
            but not in `lnbook.functional.LayerNormFunction`.
        weight: :math:`\gamma`, of shape `(H,)`.
        bias: :math:`\beta`, of shape `(H,)`.
        eps: value added to the variance.
        height: rows in a block, at least 1.

    Returns:
        The output, and the means and :math:`r` as columns of shape `(N, 1)`.

    Example:
        >>> x, one, zero = torch.tensor([[1.0, 3.0], [4.0, 2.0]]), torch.ones(2), torch.zeros(2)
        >>> y, mean, r = blocked_forward(x, one, zero, 0.0, height=1)
        >>> y.round(decimals=3), mean.tolist(), r.round(decimals=3).tolist()
        (tensor([[-1.,  1.],
                [ 1., -1.]]), [[2.0], [3.0]], [[1.0], [1.0]])
    """
    _check_height(height, "blocked_forward")
    y, means, rs = torch.empty_like(x), [], []
    for start in range(0, len(x), height):
        block, out = x[start : start + height], y[start : start + height]
        means.append(block.mean(1, keepdim=True))
        torch.sub(block, means[-1], out=out)
        norm = torch.linalg.vector_norm(out, dim=1, keepdim=True)
        rs.append((norm.square() / x.shape[1] + eps).rsqrt())
        torch.addcmul(bias, out.mul_(rs[-1]), weight, out=out)
    return y, torch.cat(means), torch.cat(rs)


def blocked_backward(
    grad_output: Tensor, x: Tensor, weight: Tensor, mean: Tensor, r: Tensor, height: int
) -> tuple[Tensor, Tensor, Tensor]:
    r"""Return the gradients of rows, weight and bias, `height` rows at a time and in place.

    .. math::
        \frac{\partial \mathcal{L}}{\partial x} = r \left( g - \overline{g} - c \, r^2 \,
        \overline{g c} \right), \qquad c = x - \mu,
        \qquad g = \gamma \, \partial \mathcal{L} / \partial y

    Args:
        grad_output: the upstream gradient, of shape `(N, H)`.
        x: the rows that `blocked_forward` was given.
        weight: :math:`\gamma`, of shape `(H,)`.
        mean: the means that it returned.
        r: the :math:`r` that it returned.
        height: rows in a block, at least 1.

    Returns:
        The gradients of `x`, `weight` and the bias.

    Example:
        >>> x, mean, r = torch.tensor([[1.0, 3.0]]), torch.tensor([[2.0]]), torch.ones(1, 1)
        >>> upstream = torch.tensor([[4.0, 0.0]])
        >>> blocked_backward(upstream, x, torch.ones(2), mean, r, height=1)[1]
        tensor([-4.,  0.])
    """
    _check_height(height, "blocked_backward")
    dx, dweight, dbias = torch.empty_like(x), torch.zeros_like(weight), torch.zeros_like(weight)
    minus_average = weight / -x.shape[1]
    for start in range(0, len(x), height):
        rows = slice(start, start + height)
        dy, r_ = grad_output[rows], r[rows]
        c = torch.sub(x[rows], mean[rows], out=dx[rows])
        product = dy * c
        along = torch.mv(product, minus_average).unsqueeze(1) * r_.square()
        c.mul_(along).add_(torch.mv(dy, minus_average).unsqueeze(1))
        torch.addcmul(c, dy, weight, out=c).mul_(r_)
        dweight.addmv_(product.t(), r_.squeeze(1))
        dbias += dy.sum(0)
    return dx, dweight, dbias


def _check_height(height: int, function: str) -> None:
    if height < 1:
        raise ValueError(f"{function}: expected height to be at least 1, but got {height}")


class BlockedFunction(torch.autograd.Function):
    """`blocked_forward` and `blocked_backward` as an autograd function.

    Call `apply(x, weight, bias, eps, height)`. It keeps the input and two numbers per row.

    Example:
        >>> one, zero = torch.ones(2), torch.zeros(2)
        >>> BlockedFunction.apply(torch.tensor([[1.0, 3.0]]), one, zero, 0.0, 1).round(decimals=3)
        tensor([[-1.,  1.]])
    """

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, weight: Tensor, bias: Tensor, eps: float, height: int
    ) -> Tensor:
        """Normalize the rows."""
        y, mean, r = blocked_forward(x, weight, bias, eps, height)
        ctx.save_for_backward(x, weight, mean, r)
        ctx.height = height
        return y

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor | None, ...]:
        """Return the gradients by the formula."""
        x, weight, mean, r = ctx.saved_tensors
        grads = blocked_backward(grad_output, x, weight, mean, r, ctx.height)
        return *grads, None, None


def lstm_parameters(input_size: int, hidden_size: int, seed: int = 0) -> dict[str, Tensor]:
    """Return random parameters of an LSTM layer with a norm for each gate, in float64.

    Args:
        input_size: number of features of the input, I.
        hidden_size: number of features of the state, H.
        seed: determines the numbers.

    Returns:
        `weight_ih` (4 H, I), `weight_hh` (4 H, H), `norm_gates_weight` and `norm_gates_bias`
        (4 H), `norm_c_weight` and `norm_c_bias` (H), as in `lnbook.recurrent`.

    Example:
        >>> lstm_parameters(3, 5)["weight_ih"].shape
        torch.Size([20, 3])
    """
    rng = np.random.default_rng(seed)
    gates, sizes = (4 * hidden_size,), {"ih": input_size, "hh": hidden_size}
    parameters = {
        f"weight_{name}": rng.uniform(-1, 1, (*gates, size)) / math.sqrt(size)
        for name, size in sizes.items()
    }
    for name, shape in (("gates", gates), ("c", (hidden_size,))):
        parameters[f"norm_{name}_weight"] = 1 + 0.1 * rng.normal(size=shape)
        parameters[f"norm_{name}_bias"] = 0.1 * rng.normal(size=shape)
    return {name: torch.tensor(value) for name, value in parameters.items()}


def lstm_naive(x: Tensor, p: Parameters, eps: float = 1e-5) -> Tensor:
    r"""Run an LSTM with a norm per gate exactly as its equations say, starting from zero states.

    .. math::
        k = \operatorname{LN}((W_x x + W_h h)_k) \text{ for each gate } k, \qquad
        c' = \sigma(f) \odot c + \sigma(i) \odot \tanh(g), \qquad
        h' = \sigma(o) \odot \tanh(\operatorname{LN}(c'))

    Args:
        x: sequences of shape `(L, N, I)`: time steps first.
        p: parameters, with the names from `lstm_parameters` and the dtype of `x`.
        eps: value added to each variance.

    Returns:
        The hidden states of all steps, of shape `(L, N, H)`.

    Example:
        >>> lstm_naive(torch.ones(3, 2, 1).double(), lstm_parameters(1, 4)).shape
        torch.Size([3, 2, 4])
    """
    gains, shifts = p["norm_gates_weight"].chunk(4), p["norm_gates_bias"].chunk(4)
    h = c = _first_state(x, p)
    outputs = []
    for step in x:
        a = step @ p["weight_ih"].t() + h @ p["weight_hh"].t()
        h, c = _next_states(_four_norms(a, gains, shifts, eps), c, p, eps)
        outputs.append(h)
    return torch.stack(outputs)


def lstm_hoisted(x: Tensor, p: Parameters, eps: float = 1e-5) -> Tensor:
    """Compute `lstm_naive` with the input projection of all steps in one product, before the loop.

    Arguments and result are the same as in `lstm_naive`.

    Example:
        >>> p = lstm_parameters(1, 4)
        >>> x = torch.linspace(-1, 1, 6).double().view(3, 2, 1)
        >>> torch.allclose(lstm_hoisted(x, p), lstm_naive(x, p))
        True
    """
    gains, shifts = p["norm_gates_weight"].chunk(4), p["norm_gates_bias"].chunk(4)
    h = c = _first_state(x, p)
    outputs = []
    for projected in x @ p["weight_ih"].t():
        a = torch.addmm(projected, h, p["weight_hh"].t())
        h, c = _next_states(_four_norms(a, gains, shifts, eps), c, p, eps)
        outputs.append(h)
    return torch.stack(outputs)


def lstm_one_norm(x: Tensor, p: Parameters, eps: float = 1e-5) -> Tensor:
    """Compute `lstm_hoisted` with one norm instead of four, on a view with one row per gate.

    Arguments and result are the same as in `lstm_naive`.

    Example:
        >>> p = lstm_parameters(1, 4)
        >>> x = torch.linspace(-1, 1, 6).double().view(3, 2, 1)
        >>> torch.allclose(lstm_one_norm(x, p), lstm_naive(x, p))
        True
    """
    gain, shift = p["norm_gates_weight"], p["norm_gates_bias"]
    h = c = _first_state(x, p)
    outputs = []
    for projected in x @ p["weight_ih"].t():
        a = torch.addmm(projected, h, p["weight_hh"].t())
        gates = torch.addcmul(shift, _one_norm(a, c.shape[1], eps), gain).chunk(4, 1)
        h, c = _next_states(gates, c, p, eps)
        outputs.append(h)
    return torch.stack(outputs)


def lstm_one_sigmoid(x: Tensor, p: Parameters, eps: float = 1e-5) -> Tensor:
    r"""Compute `lstm_one_norm` with one sigmoid for all gates: tanh(a) = 2 sigmoid(2a) - 1.

    The inner factor of 2 is absorbed into the candidate's gain and shift. Arguments and result are
    the same as in `lstm_naive`.

    Example:
        >>> p = lstm_parameters(1, 4)
        >>> x = torch.linspace(-1, 1, 6).double().view(3, 2, 1)
        >>> torch.allclose(lstm_one_sigmoid(x, p), lstm_naive(x, p))
        True
    """
    gain, shift = _with_doubled_candidates(p)
    h = c = _first_state(x, p)
    outputs = []
    for projected in x @ p["weight_ih"].t():
        a = torch.addmm(projected, h, p["weight_hh"].t())
        xhat = _one_norm(a, c.shape[1], eps)
        i, f, g, o = torch.addcmul(shift, xhat, gain).sigmoid().chunk(4, 1)
        c = torch.addcmul(f * c, i, 2 * g - 1)
        h = o * torch.tanh(_cell_norm(c, p, eps))
        outputs.append(h)
    return torch.stack(outputs)


def _first_state(x: Tensor, p: Parameters) -> Tensor:
    return x.new_zeros(x.shape[1], p["weight_hh"].shape[1])


def _four_norms(a: Tensor, gains: Gates, shifts: Gates, eps: float) -> Gates:
    """Normalize the summed inputs of each gate in a separate call."""
    return tuple(
        functional.layer_norm(part, gain.shape, gain, shift, eps)
        for part, gain, shift in zip(a.chunk(4, 1), gains, shifts, strict=True)
    )


def _one_norm(a: Tensor, size: int, eps: float) -> Tensor:
    """Normalize the summed inputs of all gates in one call, on a view with one row per gate."""
    return functional.layer_norm(a.view(-1, size), (size,), eps=eps).view_as(a)


def _next_states(gates: Gates, c: Tensor, p: Parameters, eps: float) -> tuple[Tensor, Tensor]:
    i, f, g, o = gates
    c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
    return torch.sigmoid(o) * torch.tanh(_cell_norm(c, p, eps)), c


def _cell_norm(c: Tensor, p: Parameters, eps: float) -> Tensor:
    shape = (c.shape[1],)
    return functional.layer_norm(c, shape, p["norm_c_weight"], p["norm_c_bias"], eps)


class Kept(NamedTuple):
    """What `keep_forward` keeps for the backward pass, with all steps stacked.

    Example:
        >>> kept = keep_forward(torch.ones(3, 2, 1).double(), lstm_parameters(1, 4))
        >>> kept.summed.shape, kept.cell.shape
        (torch.Size([3, 2, 16]), torch.Size([3, 2, 4]))
    """

    summed: Tensor  # the input of the gates' norm, (L, N, 4 H), and its statistics
    gates_mean: Tensor
    gates_r: Tensor
    gates: Tensor  # i, f, g, o after their nonlinearities
    cell: Tensor  # the input of the cell's norm, (L, N, H), and its statistics
    cell_mean: Tensor
    cell_r: Tensor
    squashed: Tensor  # tanh of the normalized cell
    output: Tensor


def keep_forward(x: Tensor, p: Parameters, eps: float = 1e-5) -> Kept:
    """Run `lstm_one_sigmoid` in buffers for all steps, and return what a backward pass needs.

    Arguments are the same as in `lstm_naive`.

    Example:
        >>> kept = keep_forward(torch.ones(3, 2, 1).double(), lstm_parameters(1, 4))
        >>> kept.output.shape, kept.gates.shape
        (torch.Size([3, 2, 4]), torch.Size([3, 2, 16]))
    """
    size = p["weight_hh"].shape[1]
    gain, shift = _with_doubled_candidates(p)
    cell_affine = p["norm_c_weight"], p["norm_c_bias"]
    summed = x @ p["weight_ih"].t()  # the recurrent part is added below
    gates = torch.empty_like(summed)
    cell, squashed, output = gates.new_empty(3, *x.shape[:2], size)
    h = c = _first_state(x, p)
    statistics = []
    for a, gate, m, t, out in zip(summed, gates, cell, squashed, output, strict=True):
        a.addmm_(h, p["weight_hh"].t())
        xhat, *of_gates = torch.native_layer_norm(a.view(-1, size), (size,), None, None, eps)
        torch.addcmul(shift, xhat.view_as(a), gain, out=gate).sigmoid_()
        i, f, g, o = gate.chunk(4, 1)
        g.mul_(2).sub_(1)
        torch.mul(f, c, out=m).addcmul_(i, g)
        n, *of_cell = torch.native_layer_norm(m, (size,), *cell_affine, eps)
        h, c = torch.mul(o, torch.tanh(n, out=t), out=out), m
        statistics.append((*of_gates, *of_cell))
    mean, r, cell_mean, cell_r = (torch.stack(part) for part in zip(*statistics, strict=True))
    return Kept(summed, mean, r, gates, cell, cell_mean, cell_r, squashed, output)


def _with_doubled_candidates(p: Parameters) -> tuple[Tensor, Tensor]:
    """Return the gates' gain and shift, doubled for g: tanh(a) = 2 sigmoid(2a) - 1."""
    factor = torch.ones_like(p["norm_gates_weight"])
    factor.chunk(4)[2].fill_(2)
    return p["norm_gates_weight"] * factor, p["norm_gates_bias"] * factor


def lstm_by_hand(grad_output: Tensor, x: Tensor, p: Parameters, kept: Kept) -> dict[str, Tensor]:
    """Go back through the steps that `keep_forward` ran: backpropagation through time.

    The loop contains only what depends on the next step. Local derivatives are computed before the
    loop, for all steps at once, and the gradients of the parameters after it.

    Args:
        grad_output: the upstream gradient of all hidden states, of shape `(L, N, H)`.
        x: the sequences.
        p: the parameters.
        kept: what `keep_forward` returned.

    Returns:
        The gradients of `x` and of each parameter, keyed by name.

    Example:
        >>> x, p = torch.ones(3, 2, 1).double(), lstm_parameters(1, 4)
        >>> kept = keep_forward(x, p)
        >>> lstm_by_hand(torch.ones_like(kept.output), x, p, kept)["weight_hh"].shape
        torch.Size([16, 4])
    """
    size = [kept.cell.shape[2]]
    zeros = torch.zeros_like(kept.cell[:1])
    given_h, given_c = (torch.cat((zeros, made[:-1])) for made in (kept.output, kept.cell))
    da, dn = _local_derivatives(kept, given_c)
    summed, forget = kept.summed.view_as(da), kept.gates.chunk(4, -1)[1]
    gain = p["norm_gates_weight"].view(4, -1)
    back = torch.empty_like(da)  # the gradient with respect to the input of the gates' norm
    dh = dc = zeros[0]
    for s in reversed(range(len(x))):
        dh = grad_output[s] + dh
        dn[s].mul_(dh)
        statistics = kept.cell_mean[s], kept.cell_r[s]
        dm = _norm_backward(dn[s], kept.cell[s], size, *statistics, p["norm_c_weight"]) + dc
        da[s, :, :3].mul_(dm.unsqueeze(1))
        da[s, :, 3].mul_(dh)
        statistics = kept.gates_mean[s], kept.gates_r[s]
        scaled, rows = (da[s] * gain).view(-1, *size), summed[s].view(-1, *size)
        back[s] = _norm_backward(scaled, rows, size, *statistics, None).view_as(da[s])
        dh, dc = back[s].flatten(1) @ p["weight_hh"], dm * forget[s]
    flat = back.flatten(0, 1).flatten(1)
    gates_shape = (*da.shape[:3], 1)
    xhat = (summed - kept.gates_mean.view(gates_shape)).mul_(kept.gates_r.view(gates_shape))
    return {
        "x": (flat @ p["weight_ih"]).view_as(x),
        "weight_ih": flat.t() @ x.flatten(0, 1),
        "weight_hh": flat.t() @ given_h.flatten(0, 1),
        "norm_gates_weight": xhat.mul_(da).sum((0, 1)).flatten(),
        "norm_gates_bias": da.sum((0, 1)).flatten(),
        "norm_c_weight": (kept.cell - kept.cell_mean).mul_(kept.cell_r).mul_(dn).sum((0, 1)),
        "norm_c_bias": dn.sum((0, 1)),
    }


def _local_derivatives(kept: Kept, given_c: Tensor) -> tuple[Tensor, Tensor]:
    """Return the local derivatives of a step.

    They're the derivatives of m and h' with respect to the gates' inputs, which have been
    normalized, scaled and shifted, and of h' with respect to LN(m).
    """
    i, f, g, o = kept.gates.chunk(4, -1)
    local = torch.empty_like(kept.gates)
    to_i, to_f, to_g, to_o = local.chunk(4, -1)
    # sigmoid' = s (1 - s) and tanh' = 1 - t^2, in terms of what the forward pass kept.
    torch.mul(i, g, out=to_i)
    torch.addcmul(i, to_i, g, value=-1, out=to_g)
    to_i.addcmul_(to_i, i, value=-1)
    torch.mul(given_c, f, out=to_f)
    to_f.addcmul_(to_f, f, value=-1)
    torch.addcmul(kept.output, kept.output, o, value=-1, out=to_o)
    to_n = torch.addcmul(o, kept.output, kept.squashed, value=-1)
    return local.view(*local.shape[:2], 4, -1), to_n


def _norm_backward(
    grad: Tensor, x: Tensor, shape: list[int], mean: Tensor, r: Tensor, gain: Tensor | None
) -> Tensor:
    found = layer_norm_backward(grad, x, shape, mean, r, gain, None, [True, False, False])
    result: Tensor = found[0]
    return result


class HandwrittenLSTM(torch.autograd.Function):
    """`keep_forward` and `lstm_by_hand` as an autograd function.

    Call `apply(x, eps, *parameters)` with the values of `lstm_parameters`, in the same order.

    Example:
        >>> p = lstm_parameters(1, 4)
        >>> HandwrittenLSTM.apply(torch.ones(3, 2, 1).double(), 1e-5, *p.values()).shape
        torch.Size([3, 2, 4])
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, eps: float, *parameters: Tensor) -> Tensor:
        """Run the time loop."""
        kept = keep_forward(x, dict(zip(NAMES, parameters, strict=True)), eps)
        ctx.save_for_backward(x, *parameters, *kept)
        return kept.output

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor | None, ...]:
        """Return the gradients of x and of the parameters."""
        x, *saved = ctx.saved_tensors
        p = dict(zip(NAMES, saved[: len(NAMES)], strict=True))
        found = lstm_by_hand(grad_output, x, p, Kept(*saved[len(NAMES) :]))
        return found["x"], None, *(found[name] for name in NAMES)


def lstm_handwritten(x: Tensor, p: Parameters, eps: float = 1e-5) -> Tensor:
    """Compute `lstm_one_sigmoid` with `HandwrittenLSTM` for its gradients.

    Arguments and result are the same as in `lstm_naive`.

    Example:
        >>> p = lstm_parameters(1, 4)
        >>> x = torch.linspace(-1, 1, 6).double().view(3, 2, 1)
        >>> torch.allclose(lstm_handwritten(x, p), lstm_naive(x, p))
        True
    """
    parameters = (p[name] for name in NAMES)
    output: Tensor = HandwrittenLSTM.apply(x, eps, *parameters)  # type: ignore[no-untyped-call]
    return output


# The steps from the naive loop to the fast one; each includes the previous ones.
LSTM_STEPS: dict[str, Callable[[Tensor, Parameters], Tensor]] = {
    "naive": lstm_naive,
    "input projection hoisted": lstm_hoisted,
    "one norm on a view": lstm_one_norm,
    "one sigmoid": lstm_one_sigmoid,
    "backward by hand": lstm_handwritten,
}
