r"""The fused time loop: same results as the plain one, with hand-written backpropagation.

On a CPU, a kernel compiled by Numba does all the work (`lnbook.kernels.cpu.lstm`). Where it can't
run, for example on another device or without Numba, the loop consists of torch operations.

That loop spends its time on matrix products, which are unavoidable, and, for small layers, on the
overhead of calling about thirty small operations per step. Therefore:

- the input projection (including its norm, in Ba's variant) is computed for all steps at once;
- the four gates' norms are computed as one norm of a `(4 * N, hidden_size)` view;
- all nonlinearities are sigmoids, since :math:`\tanh(x) = 2 \sigma(2x) - 1` and a sigmoid takes a
  third of the time; the inner factor of 2 is absorbed into the gain and bias of the preceding norm;
- each kind of state is written into one buffer, from which backward reads it;
- the backward loop contains only what depends on the following step. Local derivatives and the
  gradients of gains and biases are computed for a few steps at once, few enough to stay in the
  processor's cache; the gradients of the matrices take one product each at the end.

For second derivatives, backward switches to the plain loop.

The notation is the same as in `lnbook.recurrent.steps`, plus :math:`m = \sigma(f) \odot c +
\sigma(i) \odot \tanh(g)`, the cell before its norm. Rows are packed as in `lnbook.recurrent.loop`.
"""

import warnings
from collections.abc import Sequence
from functools import cache
from typing import Any

import torch
from torch import Tensor

from lnbook._check import checked_eps
from lnbook.functional._blocks import is_transformed
from lnbook.kernels.cpu import lstm
from lnbook.recurrent._autocast import no_autocast
from lnbook.recurrent._backward import Backward, through_products
from lnbook.recurrent._forward import Plan, States, run_forward
from lnbook.recurrent._given import check_layer
from lnbook.recurrent.loop import plain_layer
from lnbook.recurrent.parameters import checked_variant
from lnbook.recurrent.steps import Parameters

__all__ = ["fused_layer"]


def fused_layer(
    variant: str,
    rows: Tensor,
    batch_sizes: Sequence[int],
    h: Tensor,
    c: Tensor,
    parameters: Parameters,
    eps: float = 1e-5,
    *,
    compiled: bool = True,
) -> tuple[Tensor, Tensor, Tensor]:
    """Run one layer of an LSTM over its sequences, like `plain_layer` but faster.

    The module docstring explains the optimizations. On a CPU, the first call with a dtype compiles
    a kernel, and so does the first backward pass; each takes about ten seconds, and the result is
    kept on disk. Without normalization, PyTorch's LSTM runs. If no gradient is needed, the gates
    are not saved. First derivatives use hand-written formulas; higher ones come from the plain
    loop, at its speed. Inside `torch.func` transforms, under `torch.compile` and for tensors on the
    meta device, the plain loop itself runs; elsewhere, dual tensors (forward-mode differentiation)
    are rejected.

    Args:
        variant: "ba", "per-gate", "carried" or "none".
        rows: inputs of shape `(sum(batch_sizes), input_size)`, float32 or float64, packed.
        batch_sizes: number of rows at each time step, never increasing.
        h: initial hidden states, of shape `(batch_sizes[0], hidden_size)` and the dtype of `rows`.
        c: initial cell states, like `h`.
        parameters: tensors keyed by name, as in `LayerNormLSTMCell`, with the dtype of `rows`.
        eps: value added to each variance, finite and at least 0.
        compiled: whether to run the kernel, if there is one, instead of torch operations.

    Returns:
        `(output, h_n, c_n)`: the hidden states of all steps, packed like `rows`, and the states
        after each sequence's own last step, with the shape of `h`.

    Raises:
        TypeError: an argument is not a tensor, or `eps` is not a real number.
        KeyError: a weight is missing.
        RuntimeError: the shapes, dtypes or devices don't match.
        ValueError: there is no such variant, or `eps` is negative, infinite or NaN.

    Warns:
        UserWarning: once, if there's no kernel for the CPU because Numba isn't installed.

    Example:
        >>> parameters = {"weight_ih": torch.zeros(8, 1), "weight_hh": torch.zeros(8, 2)}
        >>> parameters |= {"norm_gates_weight": torch.ones(8), "norm_c_weight": torch.ones(2)}
        >>> zero, c = torch.zeros(1, 2), torch.tensor([[4.0, 12.0]])
        >>> fused_layer("per-gate", torch.zeros(2, 1), [1, 1], zero, c, parameters)[2]
        tensor([[1., 3.]])
    """
    variant = checked_variant(variant, "fused_layer")
    eps = checked_eps(eps, "fused_layer")
    check_layer("fused_layer", rows, batch_sizes, h, c, parameters, variant)
    if is_transformed() or rows.is_meta:
        return plain_layer(variant, rows, batch_sizes, h, c, parameters, eps)
    with no_autocast(rows.device):
        return _run(variant, rows, list(batch_sizes), h, c, parameters, eps, compiled)


def _run(
    variant: str,
    rows: Tensor,
    batch_sizes: list[int],
    h: Tensor,
    c: Tensor,
    parameters: Parameters,
    eps: float,
    compiled: bool,
) -> tuple[Tensor, Tensor, Tensor]:
    if variant == "none":
        return _native_layer(rows, batch_sizes, h, c, parameters)
    plan = Plan(variant, batch_sizes, eps, tuple(parameters), compiled)
    inputs = (rows, h, c, *parameters.values())
    if torch.is_grad_enabled() and any(tensor.requires_grad for tensor in inputs):
        return _NormedLayer.apply(plan, *inputs)  # type: ignore[no-any-return, no-untyped-call]
    if _has_kernel(plan, inputs):
        return lstm.forward(variant, batch_sizes, eps, rows, h, c, parameters, keeps=False)[0]
    return run_forward(plan, rows, h, c, parameters, keeping=False)[0]


def _has_kernel(plan: Plan, inputs: Sequence[Tensor]) -> bool:
    if not plan.compiled or not lstm.covers(plan.variant, inputs):
        return False
    if not lstm.is_available():
        _warn_once()
        return False
    return True


@cache
def _warn_once() -> None:
    warnings.warn(
        "fused_layer: Numba isn't installed, so the time loop runs in torch operations. "
        "That can take several times as long. To change it: pip install numba",
        stacklevel=2,
    )


def _native_layer(
    rows: Tensor, batch_sizes: Sequence[int], h: Tensor, c: Tensor, parameters: Parameters
) -> tuple[Tensor, Tensor, Tensor]:
    names = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
    weights = [parameters[name] for name in names if name in parameters]
    states, has_biases = (h.unsqueeze(0), c.unsqueeze(0)), len(weights) == 4
    if batch_sizes[0] == batch_sizes[-1]:
        steps = rows.view(len(batch_sizes), batch_sizes[0], rows.shape[1])
        result = torch.lstm(steps, states, weights, has_biases, 1, 0.0, False, False, False)
    else:
        sizes = torch.tensor(batch_sizes)
        result = torch.lstm(rows, sizes, states, weights, has_biases, 1, 0.0, False, False)
    output, h_n, c_n = result
    return output.view(len(rows), h.shape[1]), h_n[0], c_n[0]


class _NormedLayer(torch.autograd.Function):
    """A layer as one node of the autograd graph; its inputs are rows, h, c and the parameters."""

    @staticmethod
    def forward(ctx: Any, plan: Plan, *inputs: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        rows, h, c, *tensors = inputs
        parameters = dict(zip(plan.names, tensors, strict=True))
        ctx.plan, ctx.has_kernel = plan, _has_kernel(plan, inputs)
        if ctx.has_kernel:
            given = plan.variant, plan.batch_sizes, plan.eps
            results, saved = lstm.forward(*given, rows, h, c, parameters, keeps=True)
            ctx.save_for_backward(*inputs, *saved)
            return results
        results, states, ctx.statistics = run_forward(plan, rows, h, c, parameters, keeping=True)
        ctx.save_for_backward(*inputs, *states[:-1], *states.projection)
        return results

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        with no_autocast(ctx.saved_tensors[0].device):
            return None, *_backward(ctx, grads)


def _backward(ctx: Any, grads: Sequence[Tensor]) -> Sequence[Tensor | None]:
    plan, needs = ctx.plan, ctx.needs_input_grad[1:]
    inputs, saved = ctx.saved_tensors[: len(needs)], ctx.saved_tensors[len(needs) :]
    if torch.is_grad_enabled():
        return _differentiable_backward(plan, inputs, needs, grads)
    names = ("rows", "h", "c", *plan.names)
    tensors = dict(zip(names, inputs, strict=True))
    needed = {name for name, need in zip(names, needs, strict=True) if need}
    if ctx.has_kernel:
        given = plan.variant, plan.batch_sizes, plan.eps
        state = lstm.Saved(*saved)
        found, summed, projected = lstm.backward(*given, tensors, state, grads)
        products = plan.batch_sizes, tensors, state.output, summed, projected, needed
        found |= through_products(*products)
        return [found[name] if name in needed else None for name in names]
    states = States._make([*saved[:6], saved[6:]])
    found = Backward(plan, tensors, states, ctx.statistics, needed).run(*grads)
    return [found[name] if name in needed else None for name in names]


def _differentiable_backward(
    plan: Plan, inputs: Sequence[Tensor], needs: Sequence[bool], grads: Sequence[Tensor]
) -> list[Tensor | None]:
    # Use aliases, because these are partial derivatives, and one input can depend on another.
    aliases = [tensor.view_as(tensor) for tensor in inputs]
    rows, h, c, *tensors = aliases
    parameters = dict(zip(plan.names, tensors, strict=True))
    results = plain_layer(plan.variant, rows, plan.batch_sizes, h, c, parameters, plan.eps)
    wanted = [alias for alias, need in zip(aliases, needs, strict=True) if need]
    found = iter(torch.autograd.grad(results, wanted, grads, create_graph=True))
    return [next(found) if need else None for need in needs]
