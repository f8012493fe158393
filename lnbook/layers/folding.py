"""Fold parts of a trained model's norm into the adjacent linear layers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import torch
from torch import Tensor, nn

from lnbook._check_tensors import check_floating, check_module
from lnbook.layers.layer_norm import LayerNorm
from lnbook.layers.rms_norm import RMSNorm

__all__ = ["fold_affine_", "fold_centering"]

Foldable: TypeAlias = LayerNorm | nn.LayerNorm | RMSNorm | nn.RMSNorm
NORMS = (LayerNorm, nn.LayerNorm, RMSNorm, nn.RMSNorm)


@torch.no_grad()
def fold_affine_(model: nn.Module, norm: str, linears: Sequence[str]) -> None:
    r"""Move a norm's gamma and beta into the linear layers that consume its output, in place.

    .. math::
        W (\gamma \odot \hat{x} + \beta) + b = W' \hat{x} + b', \qquad
        W' = W \operatorname{diag}(\gamma), \qquad b' = b + W \beta

    The norm stays, with its gains set to 1 and its biases to 0. A linear layer without a bias gets
    one if beta is not 0. Outputs stay the same up to rounding, provided that `linears` lists
    *every* consumer of the norm's output. The modules don't record their consumers, so compare
    outputs afterward to catch one that you missed, such as the residual stream after a Post-LN.
    Gradients, and therefore further training, do change.

    Args:
        model: the module that contains the norm and the linear layers.
        norm: path of a `LayerNorm` or `RMSNorm` (from lnbook or PyTorch) over one dimension.
        linears: paths of one or more `torch.nn.Linear` modules.

    Raises:
        TypeError: `norm` or one of `linears` points to something else, `linears` is a string,
            `norm` is not a string, or `model` is not a module.
        AttributeError: `model` has nothing at a path.
        ValueError: `linears` is empty, sizes don't match, or a parameter (as in tied embeddings) or
            module that would change is used in two places.

    Example:
        >>> model = nn.Sequential(nn.LayerNorm(2), nn.Linear(2, 1))
        >>> _ = model[0].weight.data.copy_(torch.tensor([2.0, 3.0]))
        >>> _ = model[1].weight.data.fill_(1.0)
        >>> fold_affine_(model, "0", ["1"])
        >>> model[0].weight.tolist(), model[1].weight.tolist()
        ([1.0, 1.0], [[2.0, 3.0]])
    """
    source, readers = _checked_parts(model, norm, linears)
    gamma, beta = source.weight, getattr(source, "bias", None)
    for reader in readers:
        if beta is not None and bool((beta != 0).any()):
            shift = reader.weight @ beta.to(reader.weight.dtype)
            if reader.bias is None:
                reader.bias = nn.Parameter(shift)
            else:
                reader.bias.add_(shift)
        if gamma is not None:
            reader.weight.mul_(gamma.to(reader.weight.dtype))
    if gamma is not None:
        gamma.fill_(1.0)
    if beta is not None:
        beta.fill_(0.0)


@torch.no_grad()
def fold_centering(weight: Tensor, bias: Tensor | None = None) -> tuple[Tensor, Tensor | None]:
    r"""Remove the mean over outputs from a linear layer, so that its outputs sum to zero.

    .. math::
        W' = \left(I - \tfrac{1}{H} \mathbf{1} \mathbf{1}^\top\right) W, \qquad
        b' = b - \overline{b}, \qquad
        \operatorname{LN}(W x + b) = \operatorname{RMSNorm}(W' x + b')

    with the same eps, gamma and beta on both sides. Source: Jiang et al. 2023.

    Args:
        weight: :math:`W`, of shape `(H, D)`, as stored in `torch.nn.Linear`.
        bias: :math:`b`, of shape `(H,)`, or None.

    Returns:
        New tensors :math:`W'` and :math:`b'`.

    Raises:
        TypeError: `weight` or `bias` is not a tensor.
        RuntimeError: one of them is not dense; its subclass NotImplementedError if one is not
            floating-point.
        ValueError: `weight` does not have two dimensions, or `bias` does not have length `H`.

    Example:
        >>> fold_centering(torch.tensor([[1.0, 0.0], [3.0, 4.0]]), torch.tensor([1.0, 2.0]))
        (tensor([[-1., -2.],
                [ 1.,  2.]]), tensor([-0.5000,  0.5000]))
    """
    for name, given in (("weight", weight), ("bias", bias)):
        if given is not None or name == "weight":
            check_floating(given, name, "fold_centering")
    if weight.ndim != 2:
        raise ValueError(
            f"fold_centering: expected weight of shape (H, D), but got {tuple(weight.shape)}"
        )
    if bias is not None and bias.shape != weight.shape[:1]:
        raise ValueError(
            f"fold_centering: expected bias of shape ({len(weight)},), but got {tuple(bias.shape)}"
        )
    return weight - weight.mean(0), None if bias is None else bias - bias.mean()


def _checked_parts(model: Any, norm: Any, linears: Any) -> tuple[Foldable, list[nn.Linear]]:
    """Return the norm and the linear layers at the paths."""
    owner = "fold_affine_"
    check_module(model, "model", owner)
    if not isinstance(norm, str):
        raise TypeError(f"{owner}: expected norm to be a path, but got {norm!r}")
    if isinstance(linears, str):
        raise TypeError(f"{owner}: expected linears to be a list of paths, but got {linears!r}")
    if not linears:
        raise ValueError(f"{owner}: expected linears to have at least one path, but got {linears}")
    source = model.get_submodule(norm)
    if not isinstance(source, NORMS) or len(source.normalized_shape) != 1:
        raise TypeError(
            f"{owner}: expected {norm!r} to be a LayerNorm or RMSNorm over one dimension, "
            f"but got {source}"
        )
    readers = {path: _linear(model, path, owner) for path in linears}
    for path, reader in readers.items():
        if (reader.in_features,) != tuple(source.normalized_shape):
            raise ValueError(
                f"{owner}: expected {path!r} to read {source.normalized_shape[0]} features, "
                f"but it reads {reader.in_features}"
            )
    _refuse_shared(model, [norm, *readers], owner)
    return source, [*readers.values()]


def _linear(model: nn.Module, path: str, owner: str) -> nn.Linear:
    found = model.get_submodule(path)
    if not isinstance(found, nn.Linear):
        raise TypeError(
            f"{owner}: expected {path!r} to be a torch.nn.Linear, but got {type(found).__name__}"
        )
    return found


def _refuse_shared(model: nn.Module, paths: Sequence[str], owner: str) -> None:
    """Raise unless the modules at `paths` and their parameters are each used in only one place."""
    parts = {id(model.get_submodule(path)) for path in paths}
    changed = {id(p) for path in paths for p in model.get_submodule(path).parameters(recurse=False)}
    places: dict[int, list[str]] = {}
    for name, module in model.named_modules(remove_duplicate=False):
        if id(module) in parts:
            places.setdefault(id(module), []).append(name)
    for name, parameter in model.named_parameters(remove_duplicate=False):
        if id(parameter) in changed:
            places.setdefault(id(parameter), []).append(name)
    for names in places.values():
        if len(names) > 1:
            raise ValueError(
                f"{owner}: expected every tensor or module that changes to be used once, "
                f"but got the same one at {' and '.join(names)}"
            )
    if len(parts) < len(paths):
        raise ValueError(f"{owner}: expected each path once, but got {list(paths)}")
