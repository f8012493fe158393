r"""The fused time loop: the results of the plain one, with backpropagation written by hand.

Where the time goes: products of matrices, which nobody can avoid, and, for small layers, the
cost of calling some thirty small operations a step. Hence

- the input projection, in Ba's form with its norm, is computed for all steps at once;
- the four norms of the gates are one norm of a `(4 * N, hidden_size)` view;
- all nonlinearities are sigmoids, since :math:`\tanh(x) = 2 \sigma(2x) - 1` and a sigmoid takes
  a third of the time; the factor 2 within goes into the gain and bias of the norm before it;
- states are written into one buffer a kind, from which backward reads them;
- backward leaves in its loop only what depends on the step after. Local derivatives are computed
  for some steps at once, so few that they stay in the processor's cache; so are the gradients of
  gains and biases, and the gradients of the matrices are one product each at the end.

Second derivatives are those of the plain loop, to which backward turns when it is itself to be
differentiated.

Notation as in `lnbook.recurrent.steps`, and :math:`m = \sigma(f) \odot c + \sigma(i) \odot
\tanh(g)`, the cell before its norm; rows are packed as in `lnbook.recurrent.loop`.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from lnbook._check import checked_eps
from lnbook.functional._blocks import is_transformed
from lnbook.recurrent._autocast import no_autocast
from lnbook.recurrent._backward import Backward
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
) -> tuple[Tensor, Tensor, Tensor]:
    """Run one layer of an LSTM over its sequences: `plain_layer`, faster.

    How it is fast stands at the head of this module. The norm-free LSTM is PyTorch's own. If no
    gradient will be asked for, the states of the gates are not kept. First derivatives come from
    formulas written by hand, higher ones from the plain loop, at its speed. In the transforms of
    `torch.func`, under `torch.compile` and for tensors on the meta device the plain loop itself
    runs; dual tensors of forward-mode differentiation are refused outside of them.

    Args:
        variant: "ba", "per-gate", "carried" or "none".
        rows: inputs of shape `(sum(batch_sizes), input_size)`, float32 or float64, packed.
        batch_sizes: number of rows of each time step, never growing.
        h: first hidden states, of shape `(batch_sizes[0], hidden_size)` and the dtype of `rows`.
        c: first cell states, like `h`.
        parameters: tensors by their names in `LayerNormLSTMCell`, of the dtype of `rows`.
        eps: what is added to each variance, finite and at least 0.

    Returns:
        `(output, h_n, c_n)`: the hidden states of all steps, packed as `rows`, and the states
        of each sequence after its own last step, of the shape of `h`.

    Raises:
        TypeError: something is not a tensor, or `eps` is not a real number.
        KeyError: a weight is missing.
        RuntimeError: the shapes, dtypes or devices do not fit.
        ValueError: there is no such variant, or `eps` is negative, infinite or NaN.

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
        return _run(variant, rows, list(batch_sizes), h, c, parameters, eps)


def _run(
    variant: str,
    rows: Tensor,
    batch_sizes: list[int],
    h: Tensor,
    c: Tensor,
    parameters: Parameters,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor]:
    if variant == "none":
        return _native_layer(rows, batch_sizes, h, c, parameters)
    plan = Plan(variant, batch_sizes, eps, tuple(parameters))
    inputs = (rows, h, c, *parameters.values())
    if torch.is_grad_enabled() and any(tensor.requires_grad for tensor in inputs):
        return _NormedLayer.apply(plan, *inputs)  # type: ignore[no-any-return, no-untyped-call]
    return run_forward(plan, rows, h, c, parameters, keeping=False)[0]


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
    """A layer as one node of the graph; its inputs are rows, h, c and the parameters."""

    @staticmethod
    def forward(ctx: Any, plan: Plan, *inputs: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        rows, h, c, *tensors = inputs
        parameters = dict(zip(plan.names, tensors, strict=True))
        results, states, ctx.statistics = run_forward(plan, rows, h, c, parameters, keeping=True)
        ctx.plan = plan
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
    states = States._make([*saved[:6], saved[6:]])
    found = Backward(plan, tensors, states, ctx.statistics, needed).run(*grads)
    return [found[name] if name in needed else None for name in names]


def _differentiable_backward(
    plan: Plan, inputs: Sequence[Tensor], needs: Sequence[bool], grads: Sequence[Tensor]
) -> list[Tensor | None]:
    # Aliases, since an input may depend on another one: these are partial derivatives.
    aliases = [tensor.view_as(tensor) for tensor in inputs]
    rows, h, c, *tensors = aliases
    parameters = dict(zip(plan.names, tensors, strict=True))
    results = plain_layer(plan.variant, rows, plan.batch_sizes, h, c, parameters, plan.eps)
    wanted = [alias for alias, need in zip(aliases, needs, strict=True) if need]
    found = iter(torch.autograd.grad(results, wanted, grads, create_graph=True))
    return [next(found) if need else None for need in needs]
