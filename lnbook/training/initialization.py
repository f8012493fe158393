"""Initialization from a NumPy generator, since torch's numbers differ between processors."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from lnbook._check import check_generator
from lnbook._check_tensors import check_module

__all__ = ["initialize_"]

AnyModule = TypeVar("AnyModule", bound=nn.Module)


@torch.no_grad()
def initialize_(module: AnyModule, rng: np.random.Generator) -> AnyModule:
    r"""Reinitialize a model's weights in place, as PyTorch's linear layers and embeddings do.

    .. math::
        W_{ij},\, b_i \sim \mathcal{U}\left(-n^{-1/2}, n^{-1/2}\right), \qquad
        E_{ij} \sim \mathcal{N}(0, 1)

    with :math:`n` the fan-in of the matrix. Biases are drawn only for linear and convolutional
    layers; all other vectors, such as the gains and biases of norms and the biases of recurrent
    layers, keep their values. Source: PyTorch, `nn.Linear` and `nn.Embedding`.

    Args:
        module: any model. Its submodules are initialized in the order of `modules()`.
        rng: random number generator.

    Returns:
        `module`.

    Raises:
        TypeError: `module` is not a module, or `rng` is not a NumPy generator.

    Example:
        >>> layer = initialize_(nn.Linear(4, 2), np.random.default_rng(0))
        >>> layer.weight.abs().max().item() <= 4**-0.5, round(layer.weight[0, 0].item(), 4)
        (True, 0.137)
    """
    check_module(module, "module", "initialize_")
    check_generator(rng, "initialize_")
    seen: set[Tensor] = set()
    for part in module.modules():
        for name, parameter in part.named_parameters(recurse=False):
            if parameter not in seen:  # draw a tensor shared by two modules only once
                seen.add(parameter)
                _draw(part, name, parameter, rng)
    return module


def _draw(part: nn.Module, name: str, parameter: Tensor, rng: np.random.Generator) -> None:
    if hasattr(part, "normalized_shape"):
        return  # a norm over several axes has gains with several axes, but they aren't a matrix
    shape = tuple(parameter.shape)
    if isinstance(part, nn.Embedding):
        parameter.copy_(torch.from_numpy(rng.standard_normal(shape)))
        return
    drawn_bias = name == "bias" and isinstance(part, (nn.Linear, nn.modules.conv._ConvNd))
    if parameter.ndim < 2 and not drawn_bias:
        return
    matrix = part.weight if drawn_bias else parameter
    assert isinstance(matrix, Tensor)
    bound = (matrix[0].numel()) ** -0.5
    parameter.copy_(torch.from_numpy(rng.uniform(-bound, bound, shape)))
