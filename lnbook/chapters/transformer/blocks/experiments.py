"""The experiments for the chapter on transformer blocks.

All runs are in float64, and their random numbers come from NumPy, so they're the same on every
processor. Stacks are initialized as in Xiong et al. 2020: see `xavier_init_`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from lnbook.chapters.shared.residual_stream import (
    FEATURES,
    LENGTH,
    SEQUENCES,
    new_stack,
    random_input,
)
from lnbook.training import initialize_
from lnbook.transformer import (
    PostLNBlock,
    PreLNBlock,
    TransformerBlock,
)

__all__ = ["CLASSES", "first_loss", "sameness_under_dropout"]

Array = NDArray[np.float64]
CLASSES = 50


@torch.no_grad()
def first_loss(final_norm: bool, depth: int = 24, seed: int = 0) -> float:
    r"""Measure how far the loss of a new Pre-LN stack with a linear head exceeds that of guessing.

    The head has 50 classes and is initialized like `torch.nn.Linear`. Inputs and classes are
    random, so only luck beats :math:`\ln 50`.

    Args:
        final_norm: whether there's a norm between the last block and the head.
        depth: the number of blocks.
        seed: determines weights, inputs and classes, which are the same with and without the norm.

    Returns:
        The mean cross-entropy over 32 tokens, minus :math:`\ln 50`.

    Example:
        >>> first_loss(final_norm=False) > first_loss(final_norm=True)
        True
    """
    rng = np.random.default_rng(seed)
    x, encoder = random_input(rng), new_stack(PreLNBlock, depth, rng, final_norm)
    head = initialize_(nn.Linear(FEATURES, CLASSES, dtype=torch.float64), rng)
    classes = torch.from_numpy(rng.integers(0, CLASSES, SEQUENCES * LENGTH))
    loss = functional.cross_entropy(head(encoder(x)).flatten(0, 1), classes)
    return loss.item() - math.log(CLASSES)


@torch.no_grad()
def sameness_under_dropout(
    block: type[TransformerBlock], where: str, depth: int = 12, share: float = 0.1, seed: int = 0
) -> Array:
    r"""Compare two forward passes that differ only in which numbers dropout drops.

    Dropout is applied in one of two places, for both branches of each block:

    - `"branch"`: on what a branch adds, :math:`x + \operatorname{Dropout}(F(x))`;
    - `"stream"`: on the sum, :math:`\operatorname{Dropout}(x + F(x))`.

    Args:
        block: `PostLNBlock` or `PreLNBlock`.
        where: `"branch"` or `"stream"`.
        depth: the number of blocks.
        share: the dropout probability, at least 0 and less than 1.
        seed: determines weights, input and dropout.

    Returns:
        The cosine between the two streams of a token after each block, averaged over the tokens:
        1 if they point the same way, 0 if they have nothing in common. Shape `(depth + 1,)`,
        starting with the input.

    Raises:
        ValueError: `block`, `where` or `share` has a value that isn't listed above.

    Example:
        >>> from lnbook.transformer import PreLNBlock
        >>> branch, stream = (sameness_under_dropout(PreLNBlock, w) for w in ("branch", "stream"))
        >>> branch[0].item(), bool(branch[-1] > stream[-1])
        (1.0, True)
    """
    if block not in (PostLNBlock, PreLNBlock):
        raise ValueError(f"expected block to be PostLNBlock or PreLNBlock, but got {block!r}")
    if where not in ("branch", "stream"):
        raise ValueError(f"expected where to be 'branch' or 'stream', but got {where!r}")
    if not 0 <= share < 1:
        raise ValueError(f"expected share to be at least 0 and less than 1, but got {share}")
    rng = np.random.default_rng(seed)
    x, encoder = random_input(rng), new_stack(block, depth, rng)

    def drop(values: Tensor) -> Tensor:  # torch's random numbers differ between processors
        kept = torch.from_numpy(rng.random(tuple(values.shape)) >= share)
        return values * kept / (1 - share)

    def add(stream: Tensor, branch: Tensor) -> Tensor:
        return stream + drop(branch) if where == "branch" else drop(stream + branch)

    first = second = x
    cosines = [1.0]
    layer: Any
    for layer in encoder.layers:
        passed = []
        for stream in (first, second):
            for norm, branch in (
                (layer.norm1, layer.self_attn),
                (layer.norm2, layer.feed_forward),
            ):
                if block is PreLNBlock:
                    stream = add(stream, branch(norm(stream)))
                else:
                    stream = norm(add(stream, branch(stream)))
            passed.append(stream)
        first, second = passed
        cosines.append(functional.cosine_similarity(first, second, dim=-1).mean().item())
    return np.array(cosines)
