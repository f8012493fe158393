"""What the fused norms do while they're being traced, and the operators' derivatives.

`torch.compile` and `torch.export` get an operator for their graph. The transforms of `torch.func`
and `torch.jit.trace` get the plain function.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from lnbook.kernels import operators


def takes_operators(input: Tensor) -> bool:
    """Return whether the current tracer gets an operator and there's one for this device."""
    return torch.compiler.is_compiling() and operators.runs_on(input.device.type)


def register(operator: Any, backward: Callable[..., tuple[Tensor | None, ...]]) -> None:
    """Register the backward pass of an autograd Function as an operator's derivative."""
    operator.register_autograd(lambda ctx, grad, _: backward(ctx, grad), setup_context=_save)


def _save(ctx: Any, inputs: tuple[Any, ...], output: Sequence[Tensor]) -> None:
    """Save what the autograd Functions save for the backward pass."""
    input, ctx.shape, *parameters, ctx.eps = inputs
    ctx.save_for_backward(input, *parameters, output[1])
    ctx.mark_non_differentiable(output[1])
