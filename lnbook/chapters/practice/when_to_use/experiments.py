"""The experiments for the chapter on when to use LayerNorm: small networks on digits.

Networks that differ only in their seeds are trained side by side, as one model with inputs of
shape `(S, N, H)`, which takes a fraction of the time needed to train them one by one. All runs
are in float64, and their random numbers come from NumPy, so they're the same on every processor.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from lnbook.data.digits import Digits, load_digits
from lnbook.training import fit, initialize_, minibatches

__all__ = [
    "GAINS",
    "ORDERS",
    "PLACES",
    "DropoutResult",
    "critic_values",
    "train_deep_residual",
    "train_plain",
    "train_with_dropout",
]

Array = NDArray[np.float64]
Batch = tuple[Tensor, Tensor]

PIXELS, CLASSES, BATCH = 64, 10, 32
PLACES = ("none", "before", "after")
STARTS = {"torch": 1.0, "he": 6**0.5}  # standard deviations of (3n)^-1/2 and (2/n)^1/2
ORDERS = ("before each norm", "after each norm", "after the last norm")
NORMS = ("LN", "BN")
GAINS = ("one", "scaled", "zero")
EPS = 1e-5
WEIGHTS, ORDER, MASKS = range(3)  # each use of a seed has its own generator


class _Linears(nn.Module):
    """Linear layers side by side, each initialized like PyTorch's, from its own generator."""

    def __init__(self, generators: Sequence[np.random.Generator], before: int, after: int) -> None:
        super().__init__()
        layers = [initialize_(nn.Linear(before, after).double(), rng) for rng in generators]
        self.weight = nn.Parameter(torch.stack([layer.weight.detach().T for layer in layers]))
        self.bias = nn.Parameter(torch.stack([layer.bias.detach()[None] for layer in layers]))

    def forward(self, x: Tensor) -> Tensor:
        return torch.baddbmm(self.bias, x, self.weight)


class _Norms(nn.Module):
    """Norms side by side: each has its own gain and shift and, if it's BN, running statistics."""

    mean: Tensor
    variance: Tensor

    def __init__(self, kind: str, count: int, features: int, gain: float = 1.0) -> None:
        super().__init__()
        zeros = torch.zeros(count, 1, features, dtype=torch.float64)
        self.kind = kind
        self.weight = nn.Parameter(zeros + gain)
        self.bias = nn.Parameter(zeros.clone())
        self.register_buffer("mean", zeros.clone())
        self.register_buffer("variance", zeros + 1.0)

    def forward(self, x: Tensor) -> Tensor:
        if self.kind == "LN":
            return functional.layer_norm(x, x.shape[-1:], eps=EPS) * self.weight + self.bias
        mean, variance = self.mean, self.variance
        if self.training:
            mean, variance = x.mean(1, keepdim=True), x.var(1, correction=0, keepdim=True)
            with torch.no_grad():  # PyTorch's momentum and its unbiased running variance
                self.mean.lerp_(mean, 0.1)
                self.variance.lerp_(x.var(1, keepdim=True), 0.1)
        return (x - mean) / (variance + EPS).sqrt() * self.weight + self.bias


class _Dropouts(nn.Module):
    """Dropout layers side by side, with masks from each network's own generator."""

    def __init__(self, generators: Sequence[np.random.Generator], share: float) -> None:
        super().__init__()
        self.generators, self.share = generators, share

    def forward(self, x: Tensor) -> Tensor:
        if not self.training:
            return x
        kept = np.stack([rng.random(tuple(x.shape[1:])) >= self.share for rng in self.generators])
        return x * torch.from_numpy(kept) / (1 - self.share)


class _Residuals(nn.Module):
    """Residual blocks side by side: x + LN(W2 relu(W1 x))."""

    def __init__(
        self, generators: Sequence[np.random.Generator], features: int, gain: float
    ) -> None:
        super().__init__()
        self.branch = nn.Sequential(
            _Linears(generators, features, features),
            nn.ReLU(),
            _Linears(generators, features, features),
            _Norms("LN", len(generators), features, gain),
        )

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = x + self.branch(x)
        return y


@cache
def _digits() -> Digits:
    return load_digits()


def _generators(seeds: Sequence[int], use: int) -> list[np.random.Generator]:
    return [np.random.default_rng([seed, use]) for seed in seeds]


def _batches(seeds: Sequence[int], steps: int) -> Iterator[Batch]:
    """Batches for each network, in its own order."""
    digits = _digits()
    streams = [
        minibatches(rng, digits.train_x, digits.train_y, batch_size=BATCH, steps=steps)
        for rng in _generators(seeds, ORDER)
    ]
    for parts in zip(*streams, strict=True):
        yield torch.stack([x for x, _ in parts]), torch.stack([y for _, y in parts])


def _loss(model: nn.Module, batch: Batch) -> Tensor:
    """The sum of all networks' losses, so each network gets the gradient of its own loss."""
    x, y = batch
    return functional.cross_entropy(model(x).flatten(0, 1), y.flatten()) * len(y)


def _fit(model: nn.Module, seeds: Sequence[int], lr: float, steps: int, label: str) -> list[float]:
    """Train with Adam, and return the mean loss of each step."""
    history = fit(
        model,
        _batches(seeds, steps),
        _loss,
        torch.optim.Adam(model.parameters(), lr=lr),
        label=label,
        total=steps,
    )
    model.eval()
    return [loss / len(seeds) for loss in history.losses]


@torch.no_grad()
def _test(model: nn.Module, count: int) -> tuple[Array, Array]:
    """For each network, mean cross-entropy and accuracy on the test digits."""
    digits = _digits()
    scores = model(digits.test_x.expand(count, -1, -1))
    losses = [functional.cross_entropy(part, digits.test_y).item() for part in scores]
    right = (scores.argmax(-1) == digits.test_y).double().mean(-1)
    return np.array(losses), right.numpy()


def _check(name: str, value: object, known: Sequence[str], caller: str) -> None:
    if value not in known:
        raise ValueError(f"{caller}: expected {name} to be one of {known}, but got {value!r}")


def train_plain(
    place: str,
    depth: int,
    lr: float = 3e-3,
    *,
    start: str = "torch",
    steps: int = 200,
    seeds: Sequence[int] = range(5),
) -> Array:
    """Train plain networks on digits, with a LayerNorm before or after each ReLU, or without norms.

    The hidden layers have 32 features. A seed determines weights and batches, so all three kinds of
    network start with the same weights and see the same images. They're trained with Adam in
    batches of 32.

    Args:
        place: "none", "before" (linear, norm, ReLU) or "after" (linear, ReLU, norm).
        depth: how many hidden layers, at least 1.
        lr: the learning rate.
        start: "torch" for PyTorch's default weights; "he" for weights 6 ** 0.5 times as large,
            with variance 2/n for n inputs, and biases of 0 (He et al. 2015).
        steps: how many batches.
        seeds: one network per seed.

    Returns:
        The test accuracy of each network, shape `(S,)`.

    Raises:
        ValueError: `place` or `start` is not known, or `depth` is below 1.

    Example:
        >>> bool((train_plain("before", depth=1, steps=60, seeds=[0, 1]) > 0.7).all())
        True
    """
    _check("place", place, PLACES, "train_plain")
    _check("start", start, tuple(STARTS), "train_plain")
    if depth < 1:
        raise ValueError(f"train_plain: expected depth of at least 1, but got {depth}")
    width = 32
    generators = _generators(seeds, WEIGHTS)
    layers: list[nn.Module] = []
    for number in range(depth):
        layers.append(_Linears(generators, width if number else PIXELS, width))
        norm = _Norms("LN", len(seeds), width)
        after: dict[str, list[nn.Module]] = {
            "none": [nn.ReLU()],
            "before": [norm, nn.ReLU()],
            "after": [nn.ReLU(), norm],
        }
        layers += after[place]
    model = nn.Sequential(*layers, _Linears(generators, width, CLASSES))
    if start != "torch":
        with torch.no_grad():
            for layer in model:
                if isinstance(layer, _Linears):
                    layer.weight.mul_(STARTS[start])
                    layer.bias.zero_()
    _fit(model, seeds, lr, steps, f"{place}, {depth} layers")
    return _test(model, len(seeds))[1]


def train_deep_residual(
    gain: str,
    depth: int = 16,
    lr: float = 3e-3,
    *,
    steps: int = 100,
    seeds: Sequence[int] = range(5),
) -> tuple[Array, Array]:
    r"""Train deep residual networks whose branches end in a LayerNorm, with a given initial gain.

    Each block computes :math:`x + \operatorname{LN}(W_2 \operatorname{relu}(W_1 x))` with 32
    features; the stack ends with a norm and a linear layer. Training uses Adam and batches of 32
    digits.

    Args:
        gain: the initial gamma of each branch's norm: "one", "scaled" (`depth` ** -0.5) or "zero".
        depth: how many blocks.
        lr: the learning rate.
        steps: how many batches.
        seeds: one network per seed, with the same weights for all gains.

    Returns:
        The loss of each step, averaged over the networks, shape `(steps,)`; and the test
        accuracy of each network, shape `(S,)`.

    Raises:
        ValueError: `gain` is not known.

    Example:
        >>> losses, right = train_deep_residual("zero", depth=2, steps=40, seeds=[0])
        >>> losses.shape, bool(losses[-1] < losses[0]), right.shape
        ((40,), True, (1,))
    """
    _check("gain", gain, GAINS, "train_deep_residual")
    width = 32
    value = {"one": 1.0, "scaled": depth**-0.5, "zero": 0.0}[gain]
    generators = _generators(seeds, WEIGHTS)
    model = nn.Sequential(
        _Linears(generators, PIXELS, width),
        *(_Residuals(generators, width, value) for _ in range(depth)),
        _Norms("LN", len(seeds), width),
        _Linears(generators, width, CLASSES),
    )
    losses = _fit(model, seeds, lr, steps, f"gain {gain}")
    return np.array(losses), _test(model, len(seeds))[1]


@dataclass(frozen=True)
class DropoutResult:
    """How well networks trained with dropout do in evaluation, with one number per seed.

    Attributes:
        loss: mean cross-entropy on the test digits, shape `(S,)`.
        right: test accuracy, shape `(S,)`.
        remeasured: the loss after BN's running statistics have been remeasured on the training
            digits, without dropout, shape `(S,)`. Equal to `loss` for LN.
        ratio: for the last norm of each network, the variance of its inputs over the training
            digits in evaluation, divided by the running variance; the median over the features,
            shape `(S,)`. NaN for LN, which has no running variance.

    Example:
        >>> result = train_with_dropout("BN", "after each norm", steps=20, seeds=[0, 1, 2])
        >>> result.loss.shape, result.ratio.shape
        ((3,), (3,))
    """

    loss: Array
    right: Array
    remeasured: Array
    ratio: Array


def train_with_dropout(
    norm: str,
    order: str,
    share: float = 0.5,
    *,
    lr: float = 1e-3,
    steps: int = 300,
    seeds: Sequence[int] = range(5),
) -> DropoutResult:
    """Train networks with two hidden layers on digits, with a norm and dropout in a given order.

    Each hidden layer is linear (64 features), ReLU and norm. Training uses Adam and batches of 32.

    Args:
        norm: "LN" or "BN".
        order: where dropout goes: "before each norm" (between ReLU and norm), "after each
            norm", or "after the last norm" only.
        share: the fraction that is dropped, at least 0 and less than 1.
        lr: the learning rate.
        steps: how many batches.
        seeds: one network per seed, with the same weights and batches for all settings.

    Returns:
        How well the networks do in evaluation.

    Raises:
        ValueError: `norm` or `order` is not known, or `share` is out of range.

    Example:
        >>> result = train_with_dropout("LN", "after each norm", steps=80, seeds=[0, 1])
        >>> result.loss.shape, bool((result.remeasured == result.loss).all())
        ((2,), True)
    """
    _check("norm", norm, NORMS, "train_with_dropout")
    _check("order", order, ORDERS, "train_with_dropout")
    if not 0 <= share < 1:
        raise ValueError(
            f"train_with_dropout: expected share to be at least 0 and less than 1, but got {share}"
        )
    width, count = 64, len(seeds)
    generators, masks = _generators(seeds, WEIGHTS), _generators(seeds, MASKS)
    layers: list[nn.Module] = []
    for last in (False, True):
        normalize, drop = _Norms(norm, count, width), _Dropouts(masks, share)
        layers += [_Linears(generators, PIXELS, width), nn.ReLU()]  # 64 pixels, 64 features
        if order == "before each norm":
            layers += [drop, normalize]
        else:
            layers += [normalize, drop] if last or order == "after each norm" else [normalize]
    model = nn.Sequential(*layers, _Linears(generators, width, CLASSES))
    _fit(model, seeds, lr, steps, f"{norm}, {order}")
    loss, right = _test(model, count)
    ratio = np.full(count, np.nan)
    if norm == "BN":
        ratio = _remeasure(model, count)
    return DropoutResult(loss, right, _test(model, count)[0], ratio)


@torch.no_grad()
def _remeasure(model: nn.Sequential, count: int) -> Array:
    """Measure the running statistics without dropout; return the last norm's variance ratio."""
    x = _digits().train_x.expand(count, -1, -1)
    ratio = np.full(count, np.nan)
    for layer in model:
        if isinstance(layer, _Norms):
            variance = x.var(1, keepdim=True)
            ratio = (variance / layer.variance).median(-1).values.flatten().numpy()
            layer.mean.copy_(x.mean(1, keepdim=True))
            layer.variance.copy_(variance)
        x = layer(x)
    return ratio


@torch.no_grad()
def critic_values(norm: bool, distances: Sequence[float], seeds: Sequence[int] = range(5)) -> Array:
    """Compute the values that untrained critics output for inputs far from any training data.

    A critic has four inputs and two hidden layers of 64 features, each with a linear layer, a
    LayerNorm if requested, and a ReLU. Its inputs are 32 normal rows times the distance.

    Args:
        norm: whether there are norms.
        distances: K factors.
        seeds: one critic per seed, whose weights are the same with and without norms.

    Returns:
        The largest absolute value over the 32 rows, shape `(S, K)`.

    Example:
        >>> near, far = critic_values(False, [1.0, 1000.0], seeds=[0])[0]
        >>> bool(far > 100 * near)
        True
    """
    width = 64
    generators = _generators(seeds, WEIGHTS)
    layers: list[nn.Module] = []
    for before in (4, width):
        layers.append(_Linears(generators, before, width))
        if norm:
            layers.append(_Norms("LN", len(seeds), width))
        layers.append(nn.ReLU())
    model = nn.Sequential(*layers, _Linears(generators, width, 1))
    rows = torch.from_numpy(np.random.default_rng(0).normal(size=(32, 4)))
    rows = rows.expand(len(seeds), -1, -1)
    return np.stack([model(d * rows).abs().amax((1, 2)).numpy() for d in distances], axis=1)
