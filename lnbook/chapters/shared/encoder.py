"""Gradients and hidden states in a stack of blocks before training starts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from lnbook.training import initialize_
from lnbook.transformer import (
    PostLNBlock,
    SelfAttention,
    TransformerBlock,
    TransformerEncoder,
    xavier_init_,
)

__all__ = ["ENCODER_STEPS", "SETTINGS", "Start", "at_start", "make_encoder"]

Array = NDArray[np.float64]

SEQUENCES, TOKENS, WORDS, HEADS = 8, 16, 100, 4
SETTINGS = ("theorem", "xavier", "pytorch")
ENCODER_STEPS = ("attention and residual", "norm 1", "feed-forward and residual", "norm 2")


@dataclass(frozen=True)
class Start:
    """Measurements of a stack of L blocks before the first training step.

    Attributes:
        weights: the Frobenius norm of the gradient with respect to each block's second
            feed-forward matrix, starting with the first block, shape `(L,)`.
        gradients: the norm of the gradient with respect to the stream, over all tokens together:
            before the first block and after each block, shape `(L + 1,)`.
        stream: the mean over tokens of the squared length of the stream, divided by the width,
            shape `(L + 1,)`.
        before_norm: the same for the input of each block's last norm, shape `(L,)`.
        updates: the length of each block's change to the stream, relative to the length of the
            stream before the block, averaged over tokens, shape `(L,)`.
        alike: the mean cosine between two tokens of the same sequence, shape `(L + 1,)`.
        common: the fraction of the squared gradient with respect to the stream that is the same for
            all tokens of a sequence, shape `(L + 1,)`.
        factors: for each of `ENCODER_STEPS`, the factor by which its backward pass changes the
            norm of the gradient over all tokens; empty except for Post-LN. Shape `(L, 4)`.

    Example:
        >>> start = at_start(PostLNBlock, 3)
        >>> start.alike.shape, start.factors.shape
        ((4,), (3, 4))
    """

    weights: Array
    gradients: Array
    stream: Array
    before_norm: Array
    updates: Array
    alike: Array
    common: Array
    factors: Array


def make_encoder(
    block: type[TransformerBlock],
    depth: int,
    setting: str = "theorem",
    *,
    width: int = 64,
    final_norm: bool | None = None,
    rng: np.random.Generator,
) -> TransformerEncoder:
    r"""Build a stack of blocks in float64, without dropout, in one of three settings.

    - `"theorem"`: the setting of Xiong et al. 2020, section 3.3. One head with
      :math:`W_Q = W_K = 0` and no output matrix, feed-forward matrices `width` x `width`, all
      drawn from Xavier's normal distribution.
    - `"xavier"`: four heads, feed-forward width 4 `width`, all matrices drawn from the same
      distribution.
    - `"pytorch"`: the same architecture, initialized like `torch.nn.TransformerEncoderLayer`.

    Args:
        block: the class of the blocks.
        depth: the number of blocks.
        setting: one of `SETTINGS`.
        width: the size of the stream, a multiple of 4.
        final_norm: see `TransformerEncoder`.
        rng: draws the weights.

    Returns:
        The stack.

    Raises:
        ValueError: `setting` isn't one of these, or a size doesn't fit.

    Example:
        >>> from lnbook.transformer import PreLNBlock
        >>> encoder = make_encoder(PreLNBlock, 2, width=8, rng=np.random.default_rng(0))
        >>> attention = encoder.layers[0].self_attn
        >>> attention.in_proj_weight[:16].count_nonzero().item(), attention.num_heads
        (0, 1)
    """
    if setting not in SETTINGS:
        known = ", ".join(SETTINGS)
        raise ValueError(
            f"make_encoder: expected setting to be one of {known}, but got {setting!r}"
        )
    theorem = setting == "theorem"
    encoder = TransformerEncoder(
        block,
        depth,
        width,
        1 if theorem else HEADS,
        dim_feedforward=width if theorem else 4 * width,
        dropout=0.0,
        dtype=torch.float64,
        final_norm=final_norm,
    )
    if setting == "pytorch":
        return _pytorch_init_(encoder, rng)
    xavier_init_(encoder, zero_query_key=theorem, rng=rng)
    if theorem:
        with torch.no_grad():
            for layer in _blocks(encoder):
                nn.init.eye_(layer.self_attn.out_proj.weight)
    return encoder


def _blocks(encoder: TransformerEncoder) -> list[Any]:
    return list(encoder.layers)


@torch.no_grad()
def _pytorch_init_(encoder: TransformerEncoder, rng: np.random.Generator) -> TransformerEncoder:
    """Initialize like PyTorch's layer: linear layers by fan-in, input projections by Xavier."""
    initialize_(encoder, rng)
    for part in encoder.modules():
        if isinstance(part, SelfAttention):
            height, width = part.in_proj_weight.shape
            bound = (6 / (height + width)) ** 0.5
            values = rng.uniform(-bound, bound, (height, width))
            part.in_proj_weight.copy_(torch.from_numpy(values))
            for bias in (part.in_proj_bias, part.out_proj.bias):
                if bias is not None:
                    bias.zero_()
    return encoder


def random_batch(rng: np.random.Generator, width: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return normal inputs, a word embedding whose rows have a length near 1, and targets."""
    x = torch.from_numpy(rng.normal(size=(SEQUENCES, TOKENS, width))).requires_grad_()
    embedding = torch.from_numpy(rng.normal(size=(WORDS, width)) / np.sqrt(width))
    targets = torch.from_numpy(rng.integers(0, WORDS, (SEQUENCES, TOKENS)))
    return x, embedding, targets


def send_back(out: Tensor, embedding: Tensor, targets: Tensor) -> None:
    """Backpropagate the mean cross-entropy over all positions."""
    torch.autograd.backward(cross_entropy((out @ embedding.T).flatten(0, 1), targets.flatten()))


def _keep(store: list[Tensor], tensor: Tensor) -> None:
    tensor.retain_grad()
    store.append(tensor)


def watch(norms: Iterable[nn.Module], store: list[Tensor]) -> None:
    """Store each norm's input and output, in the order of the forward pass."""

    def hook(_: nn.Module, inputs: tuple[Any, ...], output: Tensor) -> None:
        _keep(store, inputs[0])
        _keep(store, output)

    for norm in norms:
        norm.register_forward_hook(hook)


def norms_of_gradients(tensors: Sequence[Tensor]) -> Array:
    """Return the norm of the gradient of each tensor that has one."""
    return np.array([t.grad.norm().item() for t in tensors if t.grad is not None])


def factors(tensors: Sequence[Tensor], steps: int) -> Array:
    """Return the factors from the output of each step to its input, in forward order."""
    lengths = norms_of_gradients(tensors)
    return (lengths[:-1] / lengths[1:]).reshape(-1, steps)


def _squared_length(x: Tensor) -> float:
    return float(x.detach().square().mean())


def _alike(x: Tensor) -> float:
    unit = nn.functional.normalize(x.detach(), dim=-1)
    tokens = unit.shape[-2]
    pairs = tokens * unit.mean(-2).square().sum(-1) - 1  # the 1 is each token paired with itself
    return pairs.mean().item() / (tokens - 1)


def _common(gradient: Tensor) -> float:
    mean = gradient.mean(dim=-2)
    return float(gradient.shape[-2] * mean.square().sum() / gradient.square().sum())


def _update(before: Tensor, after: Tensor) -> float:
    change = (after - before).detach().norm(dim=-1)
    return float((change / before.detach().norm(dim=-1)).mean())


def at_start(
    block: type[TransformerBlock],
    depth: int,
    setting: str = "theorem",
    seed: int = 0,
    *,
    width: int = 64,
    final_norm: bool | None = None,
) -> Start:
    r"""Run one forward and backward pass through an untrained stack.

    The inputs are 8 sequences of 16 tokens from :math:`\mathcal{N}(0, I)`. The loss is the mean
    cross-entropy of :math:`\operatorname{softmax}(W_{emb} y)` with random targets among 100
    words; the rows of :math:`W_{emb}` have a length near 1. There's no mask.

    Source: the setting of Xiong et al. 2020, section 3.3, and two others: see `make_encoder`.

    Args:
        block: the class of the blocks, for example `PostLNBlock`.
        depth: the number of blocks.
        setting: one of `SETTINGS`.
        seed: determines the inputs, the targets and the weights.
        width: the size of the stream, a multiple of 4.
        final_norm: see `TransformerEncoder`.

    Returns:
        The measurements.

    Raises:
        ValueError: `setting` isn't one of these, or a size doesn't fit.

    Example:
        >>> start = at_start(PostLNBlock, 3)
        >>> start.weights.shape, start.stream.round(3).tolist()[1:]
        ((3,), [1.0, 1.0, 1.0])
    """
    rng = np.random.default_rng(seed)
    x, embedding, targets = random_batch(rng, width)
    encoder = make_encoder(block, depth, setting, width=width, final_norm=final_norm, rng=rng)
    stream, read, steps = [x], [], [x]
    for layer in _blocks(encoder):
        layer.register_forward_hook(lambda _m, _i, out: _keep(stream, out))
        layer.norm2.register_forward_hook(lambda _m, inputs, _o: read.append(inputs[0]))
        if issubclass(block, PostLNBlock):
            watch((layer.norm1, layer.norm2), steps)
    send_back(encoder(x), embedding, targets)
    return Start(
        weights=norms_of_gradients([layer.linear2.weight for layer in _blocks(encoder)]),
        gradients=norms_of_gradients(stream),
        stream=np.array([_squared_length(s) for s in stream]),
        before_norm=np.array([_squared_length(r) for r in read]),
        updates=np.array([_update(a, b) for a, b in pairwise(stream)]),
        alike=np.array([_alike(s) for s in stream]),
        common=np.array([_common(s.grad) for s in stream if s.grad is not None]),
        factors=factors(steps, len(ENCODER_STEPS)),
    )
