"""LayerNorm modules for trying out tests: one that's right, the others with one mistake each.

A wrong module has the arguments and parameters of `torch.nn.LayerNorm`. Only one line of its
formula is different.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

import torch
from torch import Tensor

from lnbook.layers import LayerNorm

__all__ = ["MORE_WRONG", "WRONG"]

Formula = Callable[[Tensor, LayerNorm, tuple[int, ...]], Tensor]


def _module(name: str, formula: Formula) -> type[LayerNorm]:
    """A LayerNorm that computes `formula(x, layer, dims)` instead of calling torch's kernel."""

    def forward(self: LayerNorm, input: Tensor) -> Tensor:
        return formula(input, self, tuple(range(-len(self.normalized_shape), 0)))

    words = "".join(word.capitalize() for word in name.replace("-", " ").split() if word.isalnum())
    return type(
        words, (LayerNorm,), {"forward": forward, "__doc__": f"LayerNorm with one change: {name}."}
    )


def _modules(formulas: Mapping[str, Formula]) -> Mapping[str, type[LayerNorm]]:
    return MappingProxyType({name: _module(name, one) for name, one in formulas.items()})


def centered(x: Tensor, dims: tuple[int, ...]) -> Tensor:
    """Return `x` minus its mean over some dimensions."""
    return x - x.mean(dims, keepdim=True)


def variance(x: Tensor, dims: tuple[int, ...]) -> Tensor:
    """Return the biased variance over some dimensions."""
    return centered(x, dims).square().mean(dims, keepdim=True)


def _xhat(x: Tensor, layer: LayerNorm, dims: tuple[int, ...]) -> Tensor:
    return centered(x, dims) / torch.sqrt(variance(x, dims) + layer.eps)


def _scaled(x: Tensor, layer: LayerNorm) -> Tensor:
    return x if layer.weight is None else x * layer.weight


def _shifted(x: Tensor, layer: LayerNorm) -> Tensor:
    return x if layer.bias is None else x + layer.bias


def _affine(x: Tensor, layer: LayerNorm) -> Tensor:
    return _shifted(_scaled(x, layer), layer)


def _one_pass(x: Tensor, layer: LayerNorm, dims: tuple[int, ...]) -> Tensor:
    variance = x.square().mean(dims, keepdim=True) - x.mean(dims, keepdim=True).square()
    return _affine(centered(x, dims) / torch.sqrt(variance + layer.eps), layer)


class PlainLayerNorm(LayerNorm):
    """The plain formula: it differs from torch's kernel only by rounding."""

    def forward(self, input: Tensor) -> Tensor:
        """Normalize the last dimensions of `input`."""
        super().forward(input)  # refuses a wrong shape
        dims = tuple(range(-len(self.normalized_shape), 0))
        return _affine(_xhat(input, self, dims), self)


WRONG: Mapping[str, type[LayerNorm]] = _modules(
    {
        "eps outside the root": lambda x, layer, dims: _affine(
            centered(x, dims) / (torch.sqrt(variance(x, dims)) + layer.eps), layer
        ),
        "eps fixed at 1e-5": lambda x, layer, dims: _affine(
            centered(x, dims) / torch.sqrt(variance(x, dims) + 1e-5), layer
        ),
        "unbiased variance": lambda x, layer, dims: _affine(
            centered(x, dims) / torch.sqrt(x.var(dims, keepdim=True) + layer.eps), layer
        ),
        "one-pass variance": _one_pass,
        "gamma and beta ignored": _xhat,
        "(xhat + beta) * gamma": lambda x, layer, dims: _scaled(
            _shifted(_xhat(x, layer, dims), layer), layer
        ),
        "last axis only": lambda x, layer, _dims: _affine(_xhat(x, layer, (-1,)), layer),
        "first axis": lambda x, layer, _dims: _affine(_xhat(x, layer, (0,)), layer),
    }
)

MORE_WRONG: Mapping[str, type[LayerNorm]] = _modules(
    {
        "one mean for the whole array": lambda x, layer, _dims: _affine(
            _xhat(x, layer, tuple(range(x.ndim))), layer
        ),
        "divides by the variance": lambda x, layer, dims: _affine(
            centered(x, dims) / (variance(x, dims) + layer.eps), layer
        ),
        "std where var belongs": lambda x, layer, dims: _affine(
            centered(x, dims) / torch.sqrt(torch.sqrt(variance(x, dims)) + layer.eps), layer
        ),
        "no eps": lambda x, layer, dims: _affine(
            centered(x, dims) / torch.sqrt(variance(x, dims)), layer
        ),
    }
)
