"""Gradients of an encoder-decoder before training starts."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from lnbook.chapters.shared.encoder import (
    HEADS,
    SEQUENCES,
    TOKENS,
    factors,
    make_encoder,
    norms_of_gradients,
    random_batch,
    send_back,
    watch,
)
from lnbook.transformer import (
    PostLNBlock,
    PreLNBlock,
    TransformerBlock,
    xavier_init_,
)

__all__ = ["DECODER_STEPS", "decoder_at_start"]

Array = NDArray[np.float64]
DECODER_STEPS = (
    "self-attention and residual",
    "norm 1",
    "cross-attention and residual",
    "norm 2",
    "feed-forward and residual",
    "norm 3",
)


def decoder_at_start(
    norm_first: bool, depth: int, seed: int = 0, *, width: int = 64
) -> tuple[Array, Array]:
    """Run one forward and backward pass through an untrained encoder-decoder.

    Both halves have `depth` blocks with four heads, a feed-forward width of 4 `width` and Xavier
    initialization. The decoder consists of PyTorch's own layers, with a causal mask. The data and
    the loss are the same as in `at_start`, with inputs for both halves.

    Args:
        norm_first: whether both halves are Pre-LN, with final norms; otherwise Post-LN.
        depth: the number of blocks in each half.
        seed: determines inputs, targets and weights.
        width: the size of the stream, a multiple of 4.

    Returns:
        The Frobenius norms of the gradients of the second feed-forward matrices in the decoder,
        first block first, shape `(depth,)`; and for Post-LN the factors of the backward steps,
        named in `DECODER_STEPS`, shape `(depth, 6)`. For Pre-LN, that array has the shape `(0, 6)`.

    Raises:
        ValueError: `depth` is below 1, or `width` isn't a multiple of 4.

    Example:
        >>> weights, factors = decoder_at_start(False, 6)
        >>> weights.shape, factors.shape, bool(weights[0] < weights[-1] / 2)
        ((6,), (6, 6), True)
    """
    rng = np.random.default_rng(seed)
    x, embedding, targets = random_batch(rng, width)
    source = torch.from_numpy(rng.normal(size=(SEQUENCES, TOKENS, width)))
    block: type[TransformerBlock] = PreLNBlock if norm_first else PostLNBlock
    encoder = make_encoder(block, depth, "xavier", width=width, rng=rng)
    kind: dict[str, Any] = {"norm_first": norm_first, "batch_first": True, "dtype": torch.float64}
    layers = [
        nn.TransformerDecoderLayer(width, HEADS, 4 * width, 0.0, **kind) for _ in range(depth)
    ]
    xavier_init_(nn.ModuleList(layers), rng=rng)
    mask = torch.full((TOKENS, TOKENS), -torch.inf, dtype=torch.float64).triu(1)
    steps = [x]
    if not norm_first:
        for layer in layers:
            watch((layer.norm1, layer.norm2, layer.norm3), steps)
    memory, out = encoder(source), x
    for layer in layers:
        out = layer(out, memory, tgt_mask=mask)
    final = nn.LayerNorm(width, dtype=torch.float64) if norm_first else nn.Identity()
    send_back(final(out), embedding, targets)
    weights = norms_of_gradients([layer.linear2.weight for layer in layers])
    return weights, factors(steps, len(DECODER_STEPS))
