"""Training a small language model with different kinds of blocks on real text."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from lnbook.data.text import Text, windows
from lnbook.training import fit, initialize_, warm_up
from lnbook.transformer import (
    CausalLanguageModel,
    DeepNormBlock,
    PreLNBlock,
    TransformerBlock,
    deepnorm_init_,
    xavier_init_,
)

__all__ = ["Run", "baselines", "build", "differing_share", "held_out", "train"]

Array = NDArray[np.float64]

STARTS = ("xavier", "pytorch", "deepnorm")
TEST_WINDOWS = 64
TEST_SEED = 10**6  # not the seed of any run; all runs are tested on the same parts of the text


@dataclass
class Run:
    """The result of a training run.

    Attributes:
        model: the trained model.
        train_losses: the loss of each step, on its batch, before the update.
        steps: the steps after which the model was tested.
        losses: the test loss after each of these steps.
        shares: the last block's differing share (see `differing_share`) after each of these steps.

    Example:
        >>> ab = torch.tensor([0, 1] * 50)
        >>> small = {"layers": 1, "width": 8, "heads": 2, "length": 8}
        >>> run = train(Text("ab", ab, ab), steps=4, every=2, **small)
        >>> len(run.train_losses), run.steps, run.final == run.losses[-1]
        (4, [2, 4], True)
    """

    model: CausalLanguageModel
    train_losses: list[float] = field(repr=False)
    steps: list[int]
    losses: list[float]
    shares: list[float]

    @property
    def final(self) -> float:
        """The test loss at the end, or infinity if the run stopped at a loss that isn't finite."""
        finite = all(math.isfinite(loss) for loss in (*self.train_losses[-1:], *self.losses[-1:]))
        return self.losses[-1] if finite else math.inf


def baselines(text: Text) -> dict[str, float]:
    r"""Compute the test loss of two models that only count characters.

    .. math::
        p(b) = \frac{n_b + 1}{\sum_c (n_c + 1)}, \qquad
        p(b \mid a) = \frac{n_{ab} + 1}{\sum_c (n_{ac} + 1)}

    The counts :math:`n` are from the training text. The first model knows how often each character
    occurs. The second also sees the previous character.

    Args:
        text: the text.

    Returns:
        The mean cross-entropy on the test text, in nats per character: `"unigram"`, `"bigram"`.

    Example:
        >>> ab = torch.tensor([0, 1] * 50)
        >>> found = baselines(Text("ab", ab, ab))
        >>> round(found["unigram"], 4), round(found["bigram"], 4)
        (0.6931, 0.0196)
    """
    size = len(text.alphabet)
    train, test = text.train.numpy(), text.test.numpy()
    singles = np.bincount(train, minlength=size) + 1.0
    pairs = np.bincount(train[:-1] * size + train[1:], minlength=size**2) + 1.0
    pairs = pairs.reshape(size, size)
    unigram = np.log(singles / singles.sum())
    bigram = np.log(pairs / pairs.sum(axis=1, keepdims=True))
    return {
        "unigram": float(-unigram[test[1:]].mean()),
        "bigram": float(-bigram[test[:-1], test[1:]].mean()),
    }


def build(
    vocab_size: int,
    rng: np.random.Generator,
    block: type[TransformerBlock] = PreLNBlock,
    *,
    layers: int = 6,
    width: int = 64,
    heads: int = 4,
    length: int = 64,
    start: str = "xavier",
    dtype: torch.dtype = torch.float64,
    **options: Any,
) -> CausalLanguageModel:
    """Build a language model with initial values from a NumPy generator.

    The feed-forward networks are four times as wide as the stream, with GELU and no dropout unless
    `options` specifies otherwise. Embeddings start from N(0, 1), and the head starts like
    `nn.Linear`.

    Args:
        vocab_size: the number of different characters.
        rng: draws the initial values.
        block: the class of the blocks.
        layers: the number of blocks.
        width: D, the size of the stream.
        heads: the number of attention heads.
        length: the longest window.
        start: `"xavier"`, Xavier's normal distribution for the matrices of the blocks and zeros
            for their biases; `"pytorch"`, the smaller values of `nn.Linear`; or `"deepnorm"`,
            Xavier's distribution with the branches scaled down by DeepNorm's rule, for any kind of
            block. DeepNorm blocks get that initialization with `"xavier"`, too.
        dtype: the dtype of the parameters and of the computation.
        options: other keyword arguments for `CausalLanguageModel` and its blocks.

    Raises:
        ValueError: `start` isn't one of these.

    Example:
        >>> model = build(10, np.random.default_rng(0), layers=1, width=8, heads=2, length=4)
        >>> model(torch.tensor([1, 2, 3])).shape
        torch.Size([3, 10])
    """
    if start not in STARTS:
        known = ", ".join(STARTS)
        raise ValueError(f"build: expected start to be one of {known}, but got {start!r}")
    settings: dict[str, Any] = {
        "dim_feedforward": 4 * width,
        "dropout": 0.0,
        "activation": "gelu",
    } | options
    model = CausalLanguageModel(
        vocab_size, length, width, heads, layers, block, dtype=dtype, **settings
    )
    initialize_(model, rng)
    if start != "pytorch":
        xavier_init_(model.encoder, rng=rng)
        for part in model.encoder.layers:
            if start == "deepnorm" or isinstance(part, DeepNormBlock):
                deepnorm_init_(part, (8.0 * layers) ** -0.25, rng=rng)
    return model


def train(
    text: Text,
    block: type[TransformerBlock] = PreLNBlock,
    *,
    layers: int = 6,
    width: int = 64,
    heads: int = 4,
    lr: float = 2e-3,
    warm_up_steps: int = 0,
    steps: int = 300,
    batch: int = 8,
    length: int = 64,
    seed: int = 0,
    start: str = "xavier",
    frequencies: bool = False,
    head_scale: float = 1.0,
    every: int = 25,
    clip: float | None = None,
    dtype: torch.dtype = torch.float64,
    **options: Any,
) -> Run:
    """Train a language model with Adam, and test it along the way.

    Each step takes `batch` random windows from the training text. Tests use 64 windows from the
    test text, the same ones for all runs with the same `length`.

    Args:
        text: what to train on.
        block: the class of the blocks.
        layers: the number of blocks.
        width: D, the size of the stream.
        heads: the number of attention heads.
        lr: the learning rate after the warm-up.
        warm_up_steps: the number of steps over which the learning rate rises.
        steps: the number of training steps, at least 0.
        batch: the number of windows per step.
        length: the number of characters in a window.
        seed: determines the initial values and the windows.
        start: see `build`.
        frequencies: whether the bias of the head starts at the logarithms of the character
            frequencies.
        head_scale: multiplies the weights of the head at initialization.
        every: the number of steps between tests; 0 to test only at the end.
        clip: the largest norm of the gradient; None for no limit.
        dtype: the dtype of the parameters and of the computation.
        options: other keyword arguments for `CausalLanguageModel` and its blocks.

    Returns:
        The run.

    Raises:
        ValueError: `build`, `windows`, `warm_up` or `fit` rejects a value.

    Example:
        >>> ab = torch.tensor([0, 1] * 50)
        >>> run = train(Text("ab", ab, ab), layers=1, width=8, heads=2, length=8, steps=20)
        >>> run.steps, run.final < math.log(2)
        ([20], True)
    """
    rng = np.random.default_rng(seed)
    model = build(
        len(text.alphabet),
        rng,
        block,
        layers=layers,
        width=width,
        heads=heads,
        length=length,
        start=start,
        dtype=dtype,
        **options,
    )
    with torch.no_grad():
        model.head.weight.mul_(head_scale)
        if frequencies:
            model.head.bias.copy_(_log_frequencies(text))
    x, y = held_out(text, length)
    history = fit(
        model,
        _batches(rng, text, batch, length, steps),
        loss,
        torch.optim.Adam(model.parameters(), lr=lr),
        schedule=warm_up(warm_up_steps),
        clip=clip,
        measure={
            "loss": lambda model: loss(model, (x, y)).item(),
            "share": lambda _: float(differing_share(model, x)[-1]),
        },
        every=every,
        label=f"{block.__name__}, seed {seed}",
        total=steps,
    )
    measures = history.measures
    return Run(model, history.losses, history.steps, measures["loss"], measures["share"])


def _batches(
    rng: np.random.Generator, text: Text, batch: int, length: int, steps: int
) -> Iterator[tuple[Tensor, Tensor]]:
    return (windows(rng, text.train, batch, length) for _ in range(steps))


def loss(model: torch.nn.Module, batch: tuple[Tensor, Tensor]) -> Tensor:
    """Return the mean cross-entropy of the next token."""
    x, y = batch
    return functional.cross_entropy(model(x).flatten(0, 1), y.flatten())


def _log_frequencies(text: Text) -> Tensor:
    counts = torch.bincount(text.train, minlength=len(text.alphabet)) + 1.0
    return (counts / counts.sum()).log()


def held_out(text: Text, length: int) -> tuple[Tensor, Tensor]:
    """Return the windows on which all runs are tested.

    Args:
        text: the text.
        length: the number of characters in a window.

    Returns:
        Characters and next characters, each of shape `(64, length)`.

    Example:
        >>> x, y = held_out(Text("ab", torch.zeros(9).long(), torch.zeros(9).long()), 4)
        >>> x.shape
        torch.Size([64, 4])
    """
    return windows(np.random.default_rng(TEST_SEED), text.test, TEST_WINDOWS, length)


def forward(model: CausalLanguageModel, x: Tensor) -> tuple[Tensor, list[Tensor]]:
    """Return the scores, and the hidden states after each block."""
    outputs: list[Tensor] = []
    hooks = [
        layer.register_forward_hook(lambda _module, _inputs, output: outputs.append(output))
        for layer in model.encoder.layers
    ]
    try:
        scores = model(x)
    finally:
        for hook in hooks:
            hook.remove()
    return scores, outputs


@torch.no_grad()
def differing_share(model: CausalLanguageModel, x: Tensor) -> Array:
    r"""Measure how much the hidden states differ from one position in a text to another.

    .. math::
        S_l = 1 - \frac{\lVert \overline{h_l} \rVert^2}{\overline{\lVert h_l \rVert^2}}

    with means over all positions of all windows. At 0, every position has the same hidden state, so
    the model can no longer tell one input from another. At 1, the hidden states have a mean of 0.

    Args:
        model: the model.
        x: characters, integers of shape `(N, L)`.

    Returns:
        :math:`S_l` after each block, shape `(layers,)`.

    Example:
        >>> model = build(9, np.random.default_rng(0), layers=2, width=8, heads=2, length=4)
        >>> share = differing_share(model, torch.tensor([[1, 2, 3]]))
        >>> share.shape, bool(0 < share.min() <= share.max() < 1)
        ((2,), True)
    """
    shares = []
    for stream in forward(model, x)[1]:
        rows = stream.detach().double().flatten(0, -2)
        whole = rows.square().sum(-1).mean().item()
        common = rows.mean(0).square().sum().item()
        shares.append(max(0.0, 1.0 - common / whole))
    return np.array(shares)
