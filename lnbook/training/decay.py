"""Parameter groups for the optimizer: which parameters should get weight decay."""

from __future__ import annotations

from typing import Any

from torch import nn

from lnbook._check import checked_real
from lnbook._check_tensors import check_module

__all__ = ["decay_groups"]


def decay_groups(model: nn.Module, weight_decay: float) -> list[dict[str, Any]]:
    """Split a model's parameters into those with weight decay and those without.

    Matrices, kernels and embeddings decay. Parameters with fewer than two dimensions (biases,
    gains) don't, nor do the parameters of a norm over several dimensions, such as
    `LayerNorm((8, 8))`, whose gain looks like a matrix. Names don't matter. A parameter shared by
    several modules appears once, and doesn't decay if one of them is such a norm. Frozen parameters
    are left out.

    Args:
        model: any model.
        weight_decay: weight decay of the first group, finite and at least 0.

    Returns:
        Two parameter groups, dicts with `params` and `weight_decay`: first the parameters that
        decay, then the others, each in the model's order. Either can be empty.

    Raises:
        TypeError: `model` is not a module, or `weight_decay` is not a real number.
        ValueError: `weight_decay` is negative, infinite or NaN.

    Example:
        >>> model = nn.Sequential(nn.Linear(3, 2), nn.LayerNorm(2))
        >>> decayed, kept = decay_groups(model, weight_decay=0.1)
        >>> [tuple(parameter.shape) for parameter in decayed["params"]], decayed["weight_decay"]
        ([(2, 3)], 0.1)
        >>> [tuple(parameter.shape) for parameter in kept["params"]], kept["weight_decay"]
        ([(2,), (2,), (2,)], 0.0)
    """
    check_module(model, "model", "decay_groups")
    rate = checked_real(weight_decay, "weight_decay", "decay_groups", least=0)
    of_norms = {
        parameter
        for part in model.modules()
        if hasattr(part, "normalized_shape")
        for parameter in part.parameters(recurse=False)
    }
    decayed: list[nn.Parameter] = []
    kept: list[nn.Parameter] = []
    for parameter in model.parameters():  # each once, even if modules share it
        if parameter.requires_grad:
            decays = parameter.ndim >= 2 and parameter not in of_norms
            (decayed if decays else kept).append(parameter)
    return [
        {"params": decayed, "weight_decay": rate},
        {"params": kept, "weight_decay": 0.0},
    ]
