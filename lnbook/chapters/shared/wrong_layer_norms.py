"""Layer norms with one mistake each, which a good test refuses."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

import torch
from torch import Tensor

from lnbook.layers import LayerNorm

__all__ = ["MORE_WRONG", "WRONG"]

Formula = Callable[[Tensor, LayerNorm], Tensor]


def _module(name: str, formula: Formula) -> type[LayerNorm]:
    """A LayerNorm that computes `formula(x, layer)` instead of the right one."""

    def forward(self: LayerNorm, input: Tensor) -> Tensor:
        return formula(input, self)

    words = "".join(word.capitalize() for word in name.replace("-", " ").split() if word.isalnum())
    return type(words, (LayerNorm,), {"forward": forward, "__doc__": f"Wrong: {name}."})


def _modules(formulas: Mapping[str, Formula]) -> Mapping[str, type[LayerNorm]]:
    return MappingProxyType({name: _module(name, one) for name, one in formulas.items()})


def _dims(layer: LayerNorm) -> tuple[int, ...]:
    return tuple(range(-len(layer.normalized_shape), 0))


def centered(x: Tensor, dims: tuple[int, ...]) -> Tensor:
    """Return `x` less its mean over some dimensions."""
    return x - x.mean(dims, keepdim=True)


def variance(x: Tensor, dims: tuple[int, ...]) -> Tensor:
    """Return the biased variance over some dimensions."""
    return centered(x, dims).square().mean(dims, keepdim=True)


def _scale_and_shift(normalized: Tensor, layer: LayerNorm) -> Tensor:
    if layer.weight is not None:
        normalized = normalized * layer.weight
    return normalized if layer.bias is None else normalized + layer.bias


def _over(x: Tensor, layer: LayerNorm, dims: tuple[int, ...]) -> Tensor:
    """The right formula over given dims."""
    return _scale_and_shift(centered(x, dims) / torch.sqrt(variance(x, dims) + layer.eps), layer)


def _divided(x: Tensor, layer: LayerNorm, divisor: Tensor) -> Tensor:
    """The right formula but for what it divides by."""
    return _scale_and_shift(centered(x, _dims(layer)) / divisor, layer)


def _eps_outside(x: Tensor, layer: LayerNorm) -> Tensor:
    return _divided(x, layer, torch.sqrt(variance(x, _dims(layer))) + layer.eps)


def _eps_ignored(x: Tensor, layer: LayerNorm) -> Tensor:
    return _divided(x, layer, torch.sqrt(variance(x, _dims(layer)) + 1e-5))


def _unbiased(x: Tensor, layer: LayerNorm) -> Tensor:
    variance = x.var(_dims(layer), correction=1, keepdim=True)
    return _divided(x, layer, torch.sqrt(variance + layer.eps))


def _one_pass(x: Tensor, layer: LayerNorm) -> Tensor:
    dims = _dims(layer)
    variance = x.square().mean(dims, keepdim=True) - x.mean(dims, keepdim=True).square()
    return _divided(x, layer, torch.sqrt(variance + layer.eps))


def _affine_ignored(x: Tensor, layer: LayerNorm) -> Tensor:
    dims = _dims(layer)
    return centered(x, dims) / torch.sqrt(variance(x, dims) + layer.eps)


def _bias_first(x: Tensor, layer: LayerNorm) -> Tensor:
    normalized = _affine_ignored(x, layer)
    if layer.bias is not None:
        normalized = normalized + layer.bias
    return normalized if layer.weight is None else normalized * layer.weight


def _last_axis_only(x: Tensor, layer: LayerNorm) -> Tensor:
    return _over(x, layer, (-1,))


def _wrong_axis(x: Tensor, layer: LayerNorm) -> Tensor:
    return _over(x, layer, (0,))


def _whole_array(x: Tensor, layer: LayerNorm) -> Tensor:
    return _over(x, layer, tuple(range(x.ndim)))


def _no_root(x: Tensor, layer: LayerNorm) -> Tensor:
    return _divided(x, layer, variance(x, _dims(layer)) + layer.eps)


def _std_for_var(x: Tensor, layer: LayerNorm) -> Tensor:
    deviation = torch.sqrt(variance(x, _dims(layer)))
    return _divided(x, layer, torch.sqrt(deviation + layer.eps))


def _no_eps(x: Tensor, layer: LayerNorm) -> Tensor:
    return _divided(x, layer, torch.sqrt(variance(x, _dims(layer))))


WRONG: Mapping[str, type[LayerNorm]] = _modules(
    {
        "eps outside the root": _eps_outside,
        "eps fixed at 1e-5": _eps_ignored,
        "unbiased variance": _unbiased,
        "one-pass variance": _one_pass,
        "gamma and beta ignored": _affine_ignored,
        "(xhat + beta) * gamma": _bias_first,
        "last axis only": _last_axis_only,
        "first axis": _wrong_axis,
    }
)

MORE_WRONG: Mapping[str, type[LayerNorm]] = _modules(
    {
        "one mean for the whole array": _whole_array,
        "divides by the variance": _no_root,
        "std where var belongs": _std_for_var,
        "no eps": _no_eps,
    }
)
