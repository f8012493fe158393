"""Experiments for the chapter on batch sizes: small networks on handwritten digits.

Networks with the same settings but different seeds are trained side by side, as one model. That
takes a fraction of the time and gives the same results. All runs use float64 and random numbers
from NumPy, so apart from rounding, which BN with batches of two amplifies, they are the same on
every processor.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from lnbook.data.digits import TESTING, Split, split
from lnbook.training import fit, initialize_, minibatches

__all__ = ["NORMS", "Ghost", "Result", "SideBySide", "accuracy_by_statistics", "network", "train"]

Array = NDArray[np.float64]
Batch = tuple[Tensor, Tensor]

PIXELS, WIDTH, CLASSES, GROUPS = 64, 64, 10, 8
NORMS = ("none", "LN", "GN", "BN")
STARTS = {"torch": 1.0, "he": 6**0.5}  # standard deviations of (3n)^-1/2 and (2/n)^1/2
WEIGHTS, ORDER, PROBE = range(1, 4)  # what a seed is used for; lnbook.data.digits.split uses 0


def network(
    norm: str, seed: int = 0, depth: int = 2, start: str = "torch", eps: float = 1e-5
) -> nn.Sequential:
    """Build a network for digits: linear, norm, ReLU, repeated `depth` times, then a linear layer.

    Args:
        norm: "none", "LN", "GN" (8 groups) or "BN".
        seed: seed for the weights, which are the same for every norm.
        depth: number of hidden layers of 64 features.
        start: "torch" for PyTorch's default weights; "he" for weights 6 ** 0.5 times as large,
            with a variance of 2 / 64, and biases of 0 (He et al. 2015).
        eps: the epsilon of the norms.

    Returns:
        A float64 network from `(N, 64)` to `(N, 10)`.

    Raises:
        ValueError: `norm` or `start` is unknown, or `depth` is below 1.

    Example:
        >>> [type(layer).__name__ for layer in network("LN", depth=1)]
        ['Linear', 'LayerNorm', 'ReLU', 'Linear']
    """
    if norm not in NORMS:
        raise ValueError(f"network: expected norm to be one of {NORMS}, but got {norm!r}")
    if start not in STARTS:
        raise ValueError(f"network: expected start to be one of {tuple(STARTS)}, but got {start!r}")
    if depth < 1:
        raise ValueError(f"network: expected depth of at least 1, but got {depth}")
    layers: list[nn.Module] = []
    for number in range(depth):
        layers.append(nn.Linear(WIDTH if number else PIXELS, WIDTH))
        if norm != "none":
            layers.append(_norm(norm, eps))
        layers.append(nn.ReLU())
    layers.append(nn.Linear(WIDTH, CLASSES))
    model = initialize_(nn.Sequential(*layers).double(), np.random.default_rng([seed, WEIGHTS]))
    if start != "torch":
        with torch.no_grad():
            for layer in model:
                if isinstance(layer, nn.Linear):
                    layer.weight.mul_(STARTS[start])
                    layer.bias.zero_()
    return model


def _norm(norm: str, eps: float) -> nn.Module:
    if norm == "LN":
        return nn.LayerNorm(WIDTH, eps)
    return nn.GroupNorm(GROUPS, WIDTH, eps) if norm == "GN" else nn.BatchNorm1d(WIDTH, eps)


class Ghost(nn.Module):
    """Batch normalization over parts of a batch, each with its own statistics.

    In evaluation mode it behaves like the given batch normalization. Source: Hoffer et al. 2017,
    "ghost batch normalization".

    Args:
        norm: the batch normalization.
        size: number of examples that share their statistics.

    Shape:
        Input and output: `(N, H)`, N a multiple of `size`.

    Example:
        >>> norm = Ghost(nn.BatchNorm1d(1), size=2)
        >>> norm(torch.tensor([[1.0], [3.0], [60.0], [20.0]])).flatten().round().tolist()
        [-1.0, 1.0, 1.0, -1.0]
    """

    def __init__(self, norm: nn.BatchNorm1d, size: int) -> None:
        super().__init__()
        self.norm, self.size = norm, size

    def forward(self, x: Tensor) -> Tensor:
        """Return the normalized `x`."""
        if not self.training:
            return cast(Tensor, self.norm(x))
        return torch.cat([self.norm(part) for part in x.split(self.size)])


class SideBySide(nn.Module):
    """Several networks of the same shape as one model, each with its own weights and inputs.

    The layer norm of S networks side by side is a group norm with S groups; a batch norm treats
    each feature separately anyway.

    Args:
        networks: made by `network`, all with the same norm and depth.

    Shape:
        Input: `(S, N, 64)`, a batch for each network. Output: `(S, N, 10)`.

    Example:
        >>> networks = [network("LN", seed) for seed in range(3)]
        >>> x = torch.linspace(0, 1, 3 * 2 * 64, dtype=torch.float64).view(3, 2, 64)
        >>> together = SideBySide(networks)(x)
        >>> torch.allclose(together[1], networks[1](x[1]))
        True
    """

    def __init__(self, networks: Sequence[nn.Sequential]) -> None:
        super().__init__()
        self.count = len(networks)
        self.steps = nn.ModuleList(_joined(layers) for layers in zip(*networks, strict=True))

    def forward(self, x: Tensor) -> Tensor:
        """Return the output of each network for its own inputs."""
        for step in self.steps:
            if isinstance(step, (_Linears, nn.ReLU)):
                x = step(x)
            else:
                flat = x.transpose(0, 1).flatten(1)  # (N, S * H), the features of all networks
                x = step(flat).view(x.shape[1], self.count, -1).transpose(0, 1)
        return x

    @torch.no_grad()
    def networks(self) -> list[nn.Sequential]:
        """Return a copy of each network."""
        apart = [_apart(step, self.count) for step in self.steps]
        return [nn.Sequential(*layers) for layers in zip(*apart, strict=True)]


class _Linears(nn.Module):
    """Linear layers side by side: weights `(S, in, out)`, biases `(S, 1, out)`."""

    def __init__(self, layers: Sequence[nn.Linear]) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.stack([layer.weight.detach().T for layer in layers]))
        self.bias = nn.Parameter(torch.stack([layer.bias.detach()[None] for layer in layers]))

    def forward(self, x: Tensor) -> Tensor:
        return torch.baddbmm(self.bias, x, self.weight)


def _joined(layers: Sequence[nn.Module]) -> nn.Module:
    """Join one layer of every network into a single layer; norms start from scratch."""
    first, count = layers[0], len(layers)
    if isinstance(first, nn.Linear):
        return _Linears([layer for layer in layers if isinstance(layer, nn.Linear)])
    if isinstance(first, nn.ReLU):
        return nn.ReLU()
    features, groups = count * WIDTH, count
    if isinstance(first, nn.BatchNorm1d):
        return nn.BatchNorm1d(features, first.eps, dtype=torch.float64)
    if isinstance(first, nn.GroupNorm):
        groups *= first.num_groups
    eps = cast(float, first.eps)
    return nn.GroupNorm(groups, features, eps, dtype=torch.float64)


def _apart(step: nn.Module, count: int) -> list[nn.Module]:
    """Split the shared layer into one layer for each network."""
    if isinstance(step, Ghost):
        step = step.norm
    layers: list[nn.Module] = []
    for number in range(count):
        layer: nn.Module
        if isinstance(step, _Linears):
            layer = nn.Linear(*step.weight.shape[1:])
            values = {"weight": step.weight[number].T, "bias": step.bias[number, 0]}
        elif isinstance(step, (nn.BatchNorm1d, nn.GroupNorm)):
            one = slice(number * WIDTH, (number + 1) * WIDTH)
            values = {
                name: value[one] if value.ndim else value
                for name, value in step.state_dict().items()
            }
            if isinstance(step, nn.BatchNorm1d):
                layer = nn.BatchNorm1d(WIDTH, step.eps)
            elif step.num_groups == count:
                layer = nn.LayerNorm(WIDTH, step.eps)
            else:
                layer = nn.GroupNorm(step.num_groups // count, WIDTH, step.eps)
        else:
            layer, values = nn.ReLU(), {}
        layer.double().load_state_dict({name: value.clone() for name, value in values.items()})
        layers.append(layer)
    return layers


@dataclass(frozen=True)
class Result:
    """The trained networks for one setting and S seeds, with their measurements.

    Attributes:
        steps: the updates after which the rest was measured, shape `(K,)`.
        training_loss: loss on all training images, in evaluation mode, shape `(K, S)`.
        test_loss: loss on the test images, shape `(K, S)`.
        validation: accuracy on the validation images, shape `(K, S)`.
        test: accuracy on the test images, shape `(K, S)`.
        model: the networks at the end, side by side.
        splits: the images of each seed.

    Example:
        >>> result = train("none", batch_size=64, steps=2, seeds=[0, 1, 2])
        >>> result.steps.tolist(), result.validation.shape, len(result.splits)
        ([2], (1, 3), 3)
    """

    steps: NDArray[np.int64]
    training_loss: Array
    test_loss: Array
    validation: Array
    test: Array
    model: SideBySide
    splits: tuple[Split, ...]


def train(
    norm: str,
    batch_size: int,
    lr: float = 1e-3,
    *,
    steps: int = 400,
    seeds: Sequence[int] = range(5),
    every: int = 0,
    depth: int = 2,
    start: str = "torch",
    eps: float = 1e-5,
    ghost: int | None = None,
    counted: int | None = None,
) -> Result:
    """Train networks on digits with Adam, one for each seed.

    A seed determines the split of the digits, the weights and the order of the images, so two
    runs with the same seed differ only in the norm.

    Args:
        norm: "none", "LN", "GN" or "BN".
        batch_size: images per batch.
        lr: the learning rate.
        steps: number of updates.
        seeds: the seeds, one for each network.
        every: number of updates between measurements; 0 to measure once, at the end.
        depth: number of hidden layers.
        start: "torch" or "he", as in `network`.
        eps: the epsilon of the norms.
        ghost: number of images in a batch that share BN's statistics; None for all of them.
        counted: number of images in a batch that count toward the loss; None for all of them. The
            others affect only BN's statistics.

    Returns:
        The measurements and the trained networks.

    Raises:
        ValueError: `ghost` or `counted` doesn't fit the batch, there are no seeds, or `network` or
            `lnbook.training` rejects an argument.

    Example:
        >>> result = train("LN", batch_size=32, steps=60, seeds=[0, 1])
        >>> result.test.shape, bool((result.test > 0.6).all())
        ((1, 2), True)
    """
    if not seeds:
        raise ValueError("train: expected at least one seed, but got none")
    if ghost is not None and (norm != "BN" or ghost < 2 or batch_size % ghost):
        raise ValueError(
            f"train: expected ghost to be at least 2 and a divisor of batch_size {batch_size}, "
            f"with norm 'BN', but got {ghost} with {norm!r}"
        )
    if counted is not None and not 1 <= counted <= batch_size:
        raise ValueError(f"train: expected counted from 1 to {batch_size}, but got {counted}")
    splits = tuple(split(seed) for seed in seeds)
    model = SideBySide([network(norm, seed, depth, start, eps) for seed in seeds])
    if ghost is not None:
        for number, step in enumerate(model.steps):
            if isinstance(step, nn.BatchNorm1d):
                model.steps[number] = Ghost(step, ghost)
    measured: list[dict[str, Array]] = []

    def probe(model: nn.Module) -> float:
        measured.append(_measure(model, splits))
        return float(measured[-1]["test"].mean())

    def loss(model: nn.Module, batch: Batch) -> Tensor:
        x, y = batch
        z, y = model(x)[:, :counted], y[:, :counted]
        return len(splits) * cross_entropy(z.flatten(0, 1), y.flatten())  # a sum over networks

    history = fit(
        model,
        _batches(splits, seeds, batch_size, steps),
        loss,
        torch.optim.Adam(model.parameters(), lr=lr),
        measure={"test": probe},
        every=every,
        label=f"{norm}, batches of {batch_size}",
        total=steps,
    )
    columns = {name: np.stack([values[name] for values in measured]) for name in measured[0]}
    return Result(np.array(history.steps), **columns, model=model, splits=splits)


def _batches(
    splits: Sequence[Split], seeds: Sequence[int], batch_size: int, steps: int
) -> Iterator[Batch]:
    """Stack the batches of all seeds: `(S, N, 64)` and `(S, N)`."""
    each = [
        minibatches(
            np.random.default_rng([seed, ORDER]), *one.train, batch_size=batch_size, steps=steps
        )
        for one, seed in zip(splits, seeds, strict=True)
    ]
    for batches in zip(*each, strict=True):
        x, y = zip(*batches, strict=True)
        yield torch.stack(x), torch.stack(y)


def _measure(model: nn.Module, splits: Sequence[Split]) -> dict[str, Array]:
    training = _score(model, [one.train for one in splits])
    validation = _score(model, [one.validation for one in splits])
    test = _score(model, [one.test for one in splits])
    return {
        "training_loss": training[0],
        "test_loss": test[0],
        "validation": validation[1],
        "test": test[1],
    }


def _score(model: nn.Module, parts: Sequence[Batch]) -> tuple[Array, Array]:
    """Loss and accuracy of each network, each of shape `(S,)`."""
    z = model(torch.stack([x for x, _ in parts]))
    y = torch.stack([y for _, y in parts])
    losses = cross_entropy(z.flatten(0, 1), y.flatten(), reduction="none").view(y.shape)
    return losses.mean(1).numpy(), (z.argmax(-1) == y).double().mean(1).numpy()


@torch.no_grad()
def accuracy_by_statistics(result: Result, sizes: Sequence[int] = ()) -> Mapping[str, Array]:
    """Test networks with batch normalization, using statistics from several sources.

    Args:
        result: trained networks; they aren't changed.
        sizes: batch sizes. For each, the test images are split into random batches, which are
            normalized with their own statistics, as in training.

    Returns:
        The accuracies on the test images, of shape `(S,)`, with the "running averages" of training,
        with the statistics of the "training set", and with those of "batches of ..." for each of
        `sizes`.

    Example:
        >>> result = train("BN", batch_size=32, steps=20, seeds=[0])
        >>> list(accuracy_by_statistics(result, sizes=[2]))
        ['running averages', 'training set', 'batches of 2']
    """
    tests = [one.test for one in result.splits]
    accuracies = {"running averages": _score(result.model.eval(), tests)[1]}
    model = copy.deepcopy(result.model).train()
    for part in model.modules():
        if isinstance(part, Ghost):
            part.size = TESTING * PIXELS  # all in one batch
        if isinstance(part, nn.BatchNorm1d):
            part.momentum = 1.0  # the next batch replaces everything before it
    model(torch.stack([one.train[0] for one in result.splits]))
    accuracies["training set"] = _score(model.eval(), tests)[1]
    model.train()
    rng = np.random.default_rng([0, PROBE])
    for size in sizes:
        order = torch.from_numpy(rng.permutation(TESTING))[: TESTING // size * size]
        parts = [
            _score(model, [(x[rows], y[rows]) for x, y in tests]) for rows in order.view(-1, size)
        ]
        accuracies[f"batches of {size}"] = np.mean([accuracy for _, accuracy in parts], axis=0)
    return accuracies
