"""Experiments with sequences: norms for (N, L, D), which outputs a token affects, and coin flips.

All runs use float64, and their random numbers come from NumPy, so they're the same on every
processor.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from lnbook.training import fit, initialize_
from lnbook.transformer import CausalLanguageModel
from lnbook.transformer.normalization import Norm

__all__ = [
    "BatchNormOverTokens",
    "CoinFlips",
    "LayerNormOverSequence",
    "learn_coin_flips",
    "masked_batch_norm",
    "reach",
]

Array = NDArray[np.float64]

LENGTH, WIDTH, HEADS, LAYERS, RATE = 6, 16, 2, 2, 3e-3
TEST_SEQUENCES = 256
LOG_2 = math.log(2.0)


class BatchNormOverTokens(nn.Module):
    r"""Batch normalization of sequences, with every token of every sequence as an example.

    .. math::
        y_{nli} = \gamma_i \, \frac{x_{nli} - \mu_i}{\sqrt{\sigma^2_i + \epsilon}} + \beta_i

    with the mean and the biased variance of feature :math:`i` over all tokens of the batch in
    training, and the running ones in evaluation. Source: Ioffe and Szegedy 2015, algorithms 1
    and 2, through `torch.nn.BatchNorm1d`.

    Args:
        d_model: the number of features :math:`D`.

    Shape:
        Input and output: `(N, L, D)`, with the dtype of the parameters.

    Example:
        >>> x = torch.tensor([[[1.0], [3.0]], [[1.0], [3.0]]])
        >>> BatchNormOverTokens(1)(x).flatten().round(decimals=2).tolist()
        [-1.0, 1.0, -1.0, 1.0]
    """

    def __init__(self, d_model: int) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(d_model)

    def forward(self, x: Tensor) -> Tensor:
        """Return the normalized `x`, and update the running statistics in training."""
        y: Tensor = self.norm(x.transpose(1, 2)).transpose(1, 2)
        return y


class LayerNormOverSequence(nn.Module):
    r"""One mean and one variance for all tokens of a sequence of any length.

    .. math::
        y_{nli} = \gamma_i \, \frac{x_{nli} - \mu_n}{\sqrt{\sigma^2_n + \epsilon}} + \beta_i

    The statistics are those of `torch.nn.LayerNorm((L, D))` and of group normalization with one
    group (Wu and He 2018). As in group normalization, there's one pair of parameters per feature.

    Args:
        d_model: the number of features :math:`D`.
        eps: value added to the variance.

    Shape:
        Input and output: `(*, L, D)`, with the dtype of the parameters.

    Example:
        >>> x = torch.tensor([[[0.0, 4.0], [0.0, 4.0]]])
        >>> LayerNormOverSequence(2)(x).detach().round(decimals=2).tolist()
        [[[-1.0, 1.0], [-1.0, 1.0]]]
    """

    def __init__(self, d_model: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(d_model))
        self.bias = nn.Parameter(torch.zeros(d_model))

    def forward(self, x: Tensor) -> Tensor:
        """Return the normalized `x`."""
        normalized = functional.layer_norm(x, x.shape[-2:], eps=self.eps)
        return normalized * self.weight + self.bias


def masked_batch_norm(x: Tensor, real: Tensor, eps: float = 1e-5) -> Tensor:
    r"""Normalize each feature by its mean and variance over the real tokens of the batch.

    .. math::
        y_{nli} = \frac{x_{nli} - \mu_i}{\sqrt{\sigma^2_i + \epsilon}}, \qquad
        \mu_i = \frac{1}{\lvert R \rvert} \sum_{(n,l) \in R} x_{nli}, \qquad
        \sigma^2_i = \frac{1}{\lvert R \rvert} \sum_{(n,l) \in R} (x_{nli} - \mu_i)^2

    Source: Ioffe and Szegedy 2015, algorithm 1, with the set :math:`R` of real tokens as the
    batch.

    Args:
        x: floating tensor of shape `(N, L, D)`.
        real: bool tensor of shape `(N, L)`, True at real tokens and False at padding.
        eps: value added to the variance.

    Returns:
        Tensor with the shape and dtype of `x`, and 0 at padding.

    Raises:
        ValueError: the shapes don't fit, `real` isn't bool, or there is no real token.

    Example:
        >>> x = torch.tensor([[[1.0], [3.0], [0.0]]])
        >>> masked_batch_norm(x, torch.tensor([[True, True, False]])).round(decimals=2).tolist()
        [[[-1.0], [1.0], [0.0]]]
    """
    if x.ndim != 3 or real.shape != x.shape[:2] or real.dtype != torch.bool:
        raise ValueError(
            "masked_batch_norm: expected x of shape (N, L, D) and bool real of shape (N, L), "
            f"but got {tuple(x.shape)} and {real.dtype} {tuple(real.shape)}"
        )
    rows = x[real]
    if not len(rows):
        raise ValueError("masked_batch_norm: expected at least one real token, but got none")
    mean, variance = rows.mean(0), rows.var(0, unbiased=False)
    y = (x - mean) / torch.sqrt(variance + eps)
    return torch.where(real[..., None], y, torch.zeros_like(y))


def reach(
    function: Callable[[Tensor], Tensor], x: Tensor, other: Tensor, tolerance: float = 1e-9
) -> NDArray[np.bool_]:
    """Find which outputs change when one token of the first sequence is replaced.

    Args:
        function: any model or layer that takes a tensor `(N, L, ...)` and returns a tensor with
            the same first two axes. It's called without gradients.
        x: the input, of shape `(N, L)` (numbers of tokens) or `(N, L, D)`.
        other: the replacements, in the shape of `x`. Every token should differ.
        tolerance: smaller changes in the outputs don't count.

    Returns:
        Shape `(L, N, L)`: index `[l, n, m]` says whether replacing token `[0, l]` changes output
        `[n, m]`. A causal function has no True at `m < l`, and a function that keeps its sequences
        separate has none at `n > 0`.

    Raises:
        ValueError: `other` and `x` have different shapes.

    Example:
        >>> x, other = torch.zeros(1, 3), torch.ones(1, 3)
        >>> reach(lambda x: x.cumsum(1), x, other)[:, 0].astype(int)
        array([[1, 1, 1],
               [0, 1, 1],
               [0, 0, 1]])
    """
    if x.shape != other.shape:
        raise ValueError(
            f"reach: expected other of the shape of x, {tuple(x.shape)}, "
            f"but got {tuple(other.shape)}"
        )
    found = []
    with torch.no_grad():
        before = function(x)
        for place in range(x.shape[1]):
            changed = x.clone()
            changed[0, place] = other[0, place]
            moved = (function(changed) - before).abs() > tolerance
            found.append(moved.flatten(2).any(-1).numpy() if moved.ndim > 2 else moved.numpy())
    return np.stack(found)


@dataclass(frozen=True)
class CoinFlips:
    """How well a trained model predicts coins: its mean loss at each position. Guessing scores 1.

    Attributes:
        training: the loss on whole sequences, in batches and in training mode, shape `(6,)`.
        evaluation: the loss on whole sequences, in evaluation mode.
        generation: the loss in evaluation mode, where the model gets only the tokens before each
            guess.

    Example:
        >>> guess = np.ones(6)
        >>> cheat = CoinFlips(np.full(6, 0.25), evaluation=guess, generation=guess)
        >>> bool(cheat.training.mean() < 1.0 <= cheat.generation.mean())
        True
    """

    training: Array
    evaluation: Array
    generation: Array


def learn_coin_flips(
    norm: Norm = "layer_norm", batch_size: int = 2, seed: int = 0, steps: int = 300
) -> CoinFlips:
    r"""Train a causal language model on coin flips, where there's nothing to learn.

    Each sequence consists of seven independent flips of a fair coin. From the first six, the model
    predicts the last six, each one from the flips before it. No model can do better than a loss of
    :math:`\log 2` per coin, so a lower loss shows that the model sees the answer. The model has two
    Pre-LN blocks with 16 features and 2 heads. Every step of Adam (learning rate 0.003) uses new
    sequences.

    Args:
        norm: the model's norm, a name or a factory, as in `lnbook.transformer`.
        batch_size: sequences in a batch.
        seed: the seed for the weights and coin flips.
        steps: how many training steps.

    Returns:
        Losses on 256 new sequences, divided by :math:`\log 2`.

    Raises:
        ValueError: `batch_size` doesn't divide 256.

    Example:
        >>> guesses = learn_coin_flips(steps=0)
        >>> guesses.training.shape, bool(guesses.training.mean() > 0.9)
        ((6,), True)
    """
    if batch_size < 1 or TEST_SEQUENCES % batch_size:
        raise ValueError(
            f"learn_coin_flips: expected batch_size to divide {TEST_SEQUENCES}, "
            f"but got {batch_size}"
        )
    rng = np.random.default_rng(seed)
    model = CausalLanguageModel(
        2,
        LENGTH,
        WIDTH,
        HEADS,
        LAYERS,
        norm=norm,
        dim_feedforward=4 * WIDTH,
        dropout=0.0,
        dtype=torch.float64,
    )
    initialize_(model, rng)

    def flips(sequences: int) -> Tensor:
        return torch.tensor(rng.integers(0, 2, (sequences, LENGTH + 1)))

    def batches() -> Iterator[Tensor]:
        for _ in range(steps):
            yield flips(batch_size)

    def losses(scores: Tensor, coins: Tensor) -> Tensor:
        return functional.cross_entropy(scores.transpose(1, 2), coins, reduction="none") / LOG_2

    optimizer = torch.optim.Adam(model.parameters(), lr=RATE)
    fit(
        model,
        batches(),
        lambda model, coins: losses(model(coins[:, :-1]), coins[:, 1:]).mean(),
        optimizer,
        label="coin flips",
        total=steps,
    )
    test = flips(TEST_SEQUENCES)
    inputs, targets = test[:, :-1], test[:, 1:]
    with torch.no_grad():
        model.eval()
        whole = model(inputs)
        by_prefix = [model(inputs[:, : place + 1])[:, -1] for place in range(LENGTH)]
        model.train()
        in_batches = torch.cat([model(batch) for batch in inputs.split(batch_size)])
    return CoinFlips(
        *(
            losses(scores, targets).mean(0).numpy()
            for scores in (in_batches, whole, torch.stack(by_prefix, 1))
        )
    )
