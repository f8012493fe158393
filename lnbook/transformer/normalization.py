"""Norms for transformers, by name or from a factory."""

from collections.abc import Callable
from typing import TypeAlias

import torch
from torch import nn

from lnbook._check_tensors import Device
from lnbook.layers import DyT, LayerNorm, RMSNorm

__all__ = ["Norm", "make_norm"]

Norm: TypeAlias = str | Callable[[int], nn.Module]


def make_norm(
    norm: Norm,
    features: int,
    *,
    eps: float = 1e-5,
    bias: bool = True,
    device: Device = None,
    dtype: torch.dtype | None = None,
) -> nn.Module:
    """Create a norm over the last dimension from its name or a factory.

    Args:
        norm: `"layer_norm"`, `"rms_norm"`, `"dyt"`, `"none"` (the identity), or a callable that
            takes the number of features and returns a module.
        features: size of the last dimension of the norm's input.
        eps: value that `"layer_norm"` and `"rms_norm"` add to the variance or mean square.
        bias: whether `"layer_norm"` and `"dyt"` learn a bias.
        device: device to which the parameters are moved.
        dtype: dtype of the parameters; PyTorch's default dtype if None.

    Returns:
        A new module.

    Raises:
        TypeError: `norm` is neither a string nor callable, or it returns something other than
            a module.
        ValueError: there is no norm with that name.

    Example:
        >>> make_norm("layer_norm", 4, eps=1e-6)
        LayerNorm((4,), eps=1e-06, elementwise_affine=True, bias=True)
        >>> make_norm(lambda features: nn.RMSNorm(features, eps=0.5), 4)
        RMSNorm((4,), eps=0.5, elementwise_affine=True)
    """
    module = _named(norm, features, eps, bias) if isinstance(norm, str) else _made(norm, features)
    return module.to(device=device, dtype=dtype)


def _named(name: str, features: int, eps: float, bias: bool) -> nn.Module:
    norms: dict[str, Callable[[], nn.Module]] = {
        "layer_norm": lambda: LayerNorm(features, eps, bias=bias),
        "rms_norm": lambda: RMSNorm(features, eps),
        "dyt": lambda: DyT(features, bias=bias),
        "none": nn.Identity,
    }
    if name not in norms:
        known = ", ".join(map(repr, norms))
        raise ValueError(
            f"make_norm: expected norm to be one of {known} or a callable, but got {name!r}"
        )
    return norms[name]()


def _made(norm: Callable[[int], nn.Module], features: int) -> nn.Module:
    if not callable(norm):
        raise TypeError(
            "make_norm: expected norm to be a name or a callable that takes the number of "
            f"features, but got {norm!r} of type {type(norm).__name__}"
        )
    module = norm(features)
    if not isinstance(module, nn.Module):
        raise TypeError(
            f"make_norm: expected norm({features}) to return a torch module, "
            f"but got {type(module).__name__}"
        )
    return module
