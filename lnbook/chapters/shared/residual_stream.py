"""The size of the residual stream in a stack of new blocks."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lnbook.transformer import (
    TransformerBlock,
    TransformerEncoder,
    xavier_init_,
)

__all__ = ["branch_size", "stream_sizes"]

Array = NDArray[np.float64]

FEATURES, HEADS, FEED_FORWARD = 64, 4, 256
SEQUENCES, LENGTH = 2, 16


def new_stack(
    block: type[TransformerBlock],
    depth: int,
    rng: np.random.Generator,
    final_norm: bool = False,
    activation: str = "relu",
) -> TransformerEncoder:
    """Return a stack of blocks with 64 features and four heads, initialized from `rng`."""
    encoder = TransformerEncoder(
        block,
        depth,
        FEATURES,
        HEADS,
        final_norm=final_norm,
        dim_feedforward=FEED_FORWARD,
        dropout=0.0,
        activation=activation,
        dtype=torch.float64,
    )
    xavier_init_(encoder, rng=rng)
    return encoder


def random_input(rng: np.random.Generator) -> Tensor:
    """Return normal random numbers: 2 sequences of 16 tokens with 64 features each."""
    return torch.from_numpy(rng.standard_normal((SEQUENCES, LENGTH, FEATURES)))


def _size(x: Tensor) -> float:
    return x.square().mean().sqrt().item()


@torch.no_grad()
def stream_sizes(
    block: type[TransformerBlock], depth: int = 24, *, branch_scale: float = 1.0, seed: int = 0
) -> Array:
    r"""Measure the residual stream of a new stack after each block.

    .. math::
        \sqrt{\frac{1}{N L D} \sum_{n, l, d} x_{n l d}^2}

    The input is normal: 2 sequences of 16 tokens with 64 features each.

    Args:
        block: `PostLNBlock`, `PreLNBlock` or another block from `lnbook.transformer`.
        depth: the number of blocks.
        branch_scale: multiplies the last matrix of each branch at initialization.
        seed: determines the weights and the input.

    Returns:
        The root mean square of the input and of the output of each block, shape `(depth + 1,)`.

    Example:
        >>> from lnbook.transformer import PreLNBlock
        >>> sizes = stream_sizes(PreLNBlock, depth=3)
        >>> sizes.shape, bool((np.diff(sizes) > 0).all())
        ((4,), True)
    """
    rng = np.random.default_rng(seed)
    x, encoder = random_input(rng), new_stack(block, depth, rng)
    sizes = [_size(x)]
    layer: Any
    for layer in encoder.layers:
        layer.self_attn.out_proj.weight.mul_(branch_scale)
        layer.linear2.weight.mul_(branch_scale)
        x = layer(x)
        sizes.append(_size(x))
    return np.array(sizes)


@torch.no_grad()
def branch_size(block: type[TransformerBlock], activation: str, seed: int = 0) -> float:
    """Measure what the feed-forward network of a new block writes to the stream.

    Args:
        block: `PostLNBlock` or `PreLNBlock`.
        activation: `"relu"` or `"gelu"`.
        seed: determines the weights and the input, which are the same for all blocks and
            activations.

    Returns:
        The root mean square of the output of the feed-forward network.

    Example:
        >>> from lnbook.transformer import PreLNBlock
        >>> branch_size(PreLNBlock, "relu") > branch_size(PreLNBlock, "gelu")
        True
    """
    rng = np.random.default_rng(seed)
    x, encoder = random_input(rng), new_stack(block, 1, rng, activation=activation)
    written: list[Tensor] = []
    layer: Any = encoder.layers[0]
    layer.linear2.register_forward_hook(lambda _module, _args, y: written.append(y))
    encoder(x)
    return _size(written[0])
