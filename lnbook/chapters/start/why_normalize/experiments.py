"""The experiments for "Why normalize?": deep networks, with and without a norm.

Networks that differ only in their seeds are trained side by side, as one model whose inputs have
shape `(S, N, H)`. That takes a fraction of the time that training them one by one would. All runs
are in float64, and their random numbers come from NumPy, so they're the same on every processor.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from lnbook.data.digits import Digits, load_digits
from lnbook.training import fit, minibatches

__all__ = ["KINDS", "DeepNetworks", "train"]

Array = NDArray[np.float64]
Batch = tuple[Tensor, Tensor]

KINDS = ("no norm", "LayerNorm")
DEPTH, WIDTH = 20, 64
PIXELS, CLASSES, BATCH = 64, 10, 32
EPS = 1e-5
WEIGHTS, ORDER = range(2)  # each use of a seed gets its own generator


class DeepNetworks(nn.Module):
    r"""Deep networks side by side: each hidden layer is linear, then an optional norm and a ReLU.

    The weights of a hidden layer with :math:`n` inputs start with the standard deviation
    :math:`s \sqrt{2/n}`, those of the last layer with :math:`\sqrt{1/n}`; biases start at 0.
    The norm has no parameters, so networks with and without it have the same parameters.

    Args:
        kind: "no norm" or "LayerNorm".
        factor: s. Without a norm, every layer multiplies the size of the signal by about s.
        depth: the number of hidden layers, at least 1.
        seeds: one for each network; a seed gives both kinds the same weights.

    Raises:
        ValueError: `kind` isn't known, `factor` isn't positive, or `depth` is below 1.

    Example:
        >>> networks = DeepNetworks("LayerNorm", 1.0, depth=3, seeds=[0, 1])
        >>> networks(torch.zeros(2, 5, 64, dtype=torch.float64)).shape
        torch.Size([2, 5, 10])
    """

    def __init__(self, kind: str, factor: float, depth: int, seeds: Sequence[int]) -> None:
        super().__init__()
        if kind not in KINDS:
            raise ValueError(f"DeepNetworks: expected kind to be one of {KINDS}, but got {kind!r}")
        if not factor > 0:
            raise ValueError(f"DeepNetworks: expected factor to be positive, but got {factor}")
        if depth < 1:
            raise ValueError(f"DeepNetworks: expected depth of at least 1, but got {depth}")
        self.normalized = kind == "LayerNorm"
        self.weights, self.biases = nn.ParameterList(), nn.ParameterList()
        generators = [np.random.default_rng([seed, WEIGHTS]) for seed in seeds]
        for number in range(depth + 1):
            before = WIDTH if number else PIXELS
            after = WIDTH if number < depth else CLASSES
            scale = factor * np.sqrt(2 / before) if number < depth else np.sqrt(1 / before)
            drawn = np.stack([scale * rng.normal(size=(before, after)) for rng in generators])
            self.weights.append(nn.Parameter(torch.from_numpy(drawn)))
            zeros = torch.zeros(len(generators), 1, after, dtype=torch.float64)
            self.biases.append(nn.Parameter(zeros))

    def forward(self, x: Tensor) -> Tensor:
        """Return the scores of the ten digits."""
        for weight, bias in zip(self.weights[:-1], self.biases[:-1], strict=True):
            x = torch.baddbmm(bias, x, weight)
            if self.normalized:
                x = functional.layer_norm(x, x.shape[-1:], eps=EPS)
            x = x.relu()
        return torch.baddbmm(self.biases[-1], x, self.weights[-1])


@cache
def _digits() -> Digits:
    return load_digits()


def train(
    kind: str,
    factor: float,
    lr: float,
    *,
    depth: int = DEPTH,
    steps: int = 300,
    seeds: Sequence[int] = range(3),
) -> Array:
    """Train deep networks on digits with Adam, in batches of 32.

    A seed determines the weights and the batches, so both kinds start from the same weights and
    see the same images.

    Args:
        kind: "no norm" or "LayerNorm".
        factor: the size of the starting weights; see `DeepNetworks`.
        lr: the learning rate.
        depth: the number of hidden layers.
        steps: the number of batches.
        seeds: one for each network.

    Returns:
        The test accuracy of each network, shape `(S,)`; 0 for a network whose numbers are no
        longer finite.

    Raises:
        ValueError: `DeepNetworks` rejects an argument.

    Example:
        >>> bool((train("LayerNorm", 0.5, 0.003, depth=2, steps=100) > 0.7).all())
        True
    """
    networks = DeepNetworks(kind, factor, depth, seeds)
    fit(
        networks,
        _batches(seeds, steps),
        _loss,
        torch.optim.Adam(networks.parameters(), lr=lr),
        label=f"{kind}, learning rate {lr:g}",
        total=steps,
    )
    digits = _digits()
    with torch.no_grad():
        scores = networks(digits.test_x.expand(len(seeds), -1, -1))
    right = (scores.argmax(-1) == digits.test_y) & scores.isfinite().all(-1)
    accuracies: Array = right.double().mean(-1).numpy()
    return accuracies


def _batches(seeds: Sequence[int], steps: int) -> Iterator[Batch]:
    """Yield a batch for each network, which sees the images in its own order."""
    digits = _digits()
    streams = [
        minibatches(
            np.random.default_rng([seed, ORDER]),
            digits.train_x,
            digits.train_y,
            batch_size=BATCH,
            steps=steps,
        )
        for seed in seeds
    ]
    for parts in zip(*streams, strict=True):
        yield torch.stack([x for x, _ in parts]), torch.stack([y for _, y in parts])


def _loss(networks: nn.Module, batch: Batch) -> Tensor:
    """The sum of the losses of all networks, so that each gets the gradient of its own loss.

    A loss that's no longer finite counts as 0, so that the other networks can continue training.
    """
    x, y = batch
    losses = functional.cross_entropy(
        networks(x).flatten(0, 1), y.flatten(), reduction="none"
    ).view(y.shape)
    return losses.mean(1).nan_to_num(0.0, 0.0, 0.0).sum()
