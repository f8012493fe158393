"""Experiments for the chapter on training and evaluation: small networks on the digits.

All runs use float64 and random numbers from NumPy, so they are the same on every processor.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from lnbook.data.digits import Digits, load_digits
from lnbook.training import fit, initialize_, minibatches

__all__ = [
    "MomentumRun",
    "accuracy",
    "accuracy_by_momentum",
    "changed_classes",
    "digits_network",
    "output_gap",
    "train_digits",
]

Array = NDArray[np.float64]

PIXELS, WIDTH, CLASSES = 64, 64, 10
LEARNING_RATE = 1e-3
NORMS = {"BatchNorm": nn.BatchNorm1d, "LayerNorm": nn.LayerNorm}
TRAINING_SEED = 1000  # added to the seed, so that batches and weights use different seeds


def digits_network(norm: str, seed: int = 0) -> nn.Sequential:
    """Build a network for the digits with two hidden layers of 64 features, normalized before ReLU.

    Args:
        norm: "BatchNorm" or "LayerNorm".
        seed: seed for the initial weights.

    Returns:
        A model in float64, from `(N, 64)` to `(N, 10)`.

    Raises:
        ValueError: `norm` is unknown.

    Example:
        >>> model = digits_network("LayerNorm")
        >>> model(torch.zeros(3, 64).double()).shape
        torch.Size([3, 10])
    """
    if norm not in NORMS:
        known = " or ".join(NORMS)
        raise ValueError(f"digits_network: expected norm to be {known}, but got {norm!r}")
    layers: list[nn.Module] = []
    for size in (PIXELS, WIDTH):
        layers += [nn.Linear(size, WIDTH), NORMS[norm](WIDTH), nn.ReLU()]
    model = nn.Sequential(*layers, nn.Linear(WIDTH, CLASSES)).double()
    return initialize_(model, np.random.default_rng(seed))


def train_digits(
    norm: str, seed: int = 0, *, batch_size: int = 32, steps: int = 300
) -> nn.Sequential:
    """Train `digits_network` with Adam and a learning rate of 0.001.

    Args:
        norm: "BatchNorm" or "LayerNorm".
        seed: seed for the weights and the batches.
        batch_size: images per batch.
        steps: number of training steps.

    Returns:
        The trained model, in evaluation mode.

    Raises:
        ValueError: `norm` is unknown, or the sizes don't fit the 1347 images.

    Example:
        >>> model = train_digits("BatchNorm", steps=2)
        >>> model.training, model[1].num_batches_tracked.item()
        (False, 2)
    """
    digits = load_digits()
    model = digits_network(norm, seed)
    batches = _batches(digits, seed, batch_size, steps)
    fit(model, batches, _loss, _adam(model), label=f"{norm}, seed {seed}", total=steps)
    return model.eval()


def _batches(digits: Digits, seed: int, size: int, steps: int) -> Iterator[tuple[Tensor, ...]]:
    rng = np.random.default_rng(TRAINING_SEED + seed)
    return minibatches(rng, digits.train_x, digits.train_y, batch_size=size, steps=steps)


def _loss(model: nn.Module, batch: tuple[Tensor, ...]) -> Tensor:
    return nn.functional.cross_entropy(model(batch[0]), batch[1])


def _adam(model: nn.Module) -> torch.optim.Adam:
    return torch.optim.Adam(model.parameters(), lr=LEARNING_RATE)


@torch.no_grad()
def accuracy(
    model: nn.Module, x: Tensor, y: Tensor, *, training: bool, batch_size: int | None = None
) -> float:
    """Return the accuracy in one of the two modes.

    Works on a copy of the model, so its running statistics stay the same.

    Args:
        model: a model from `(N, D)` to `(N, classes)`.
        x: shape `(N, D)`, split into batches in order.
        y: the classes, shape `(N,)`.
        training: whether the copy is in training mode.
        batch_size: a divisor of N, or None for a single batch.

    Returns:
        The accuracy, from 0 to 1.

    Raises:
        ValueError: `batch_size` doesn't divide N.

    Example:
        >>> x = torch.eye(3)
        >>> accuracy(nn.Identity(), x, torch.tensor([0, 1, 1]), training=False)
        0.6666666666666666
    """
    classes = _classes(copy.deepcopy(model).train(training), x, batch_size, "accuracy")
    return (classes == y).sum().item() / len(y)


def _classes(model: nn.Module, x: Tensor, batch_size: int | None, caller: str) -> Tensor:
    size = len(x) if batch_size is None else batch_size
    _check_size(x, size, caller)
    return torch.cat([model(rows).argmax(dim=1) for rows in x.split(size)])


def _check_size(x: Tensor, size: int, caller: str) -> None:
    if size < 1 or len(x) % size:
        raise ValueError(
            f"{caller}: expected batch_size to divide the {len(x)} examples, but got {size}"
        )


@torch.no_grad()
def changed_classes(
    model: nn.Module,
    x: Tensor,
    *,
    training: bool,
    batch_size: int,
    repeats: int = 10,
    seed: int = 0,
) -> float:
    """Return the fraction of examples whose predicted class depends on the rest of their batch.

    Shuffles the examples into batches `repeats` times and predicts with a copy of the model.

    Args:
        model: a model from `(N, D)` to `(N, classes)`.
        x: shape `(N, D)`.
        training: whether the copy is in training mode.
        batch_size: a divisor of N.
        repeats: how many times to shuffle the examples, at least 2.
        seed: seed for the shuffles.

    Returns:
        The fraction of examples that don't get the same class every time.

    Raises:
        ValueError: `batch_size` doesn't divide N, or `repeats` is less than 2.

    Example:
        >>> x = torch.tensor([[1.0, 2.0], [3.0, 2.0], [1.0, 0.0], [4.0, 5.0]])
        >>> changed_classes(nn.LayerNorm(2), x, training=True, batch_size=2)
        0.0
    """
    if repeats < 2:
        raise ValueError(f"changed_classes: expected repeats of at least 2, but got {repeats}")
    rng = np.random.default_rng(seed)
    model = copy.deepcopy(model).train(training)
    found = torch.empty(repeats, len(x), dtype=torch.long)
    for row in found:
        order = torch.from_numpy(rng.permutation(len(x)))
        row[order] = _classes(model, x[order], batch_size, "changed_classes")
    return (found != found[0]).any(dim=0).sum().item() / len(x)


@torch.no_grad()
def output_gap(model: nn.Module, x: Tensor, *, batch_size: int) -> float:
    r"""Return the relative distance between the outputs in training and in evaluation mode.

    .. math::
        \left( \sum (y_\text{training} - y_\text{evaluation})^2
        \Big/ \sum y_\text{evaluation}^2 \right)^{1/2}

    Works on copies of the model.

    Args:
        model: a model from `(N, D)` to `(N, K)`.
        x: shape `(N, D)`, split into batches in order.
        batch_size: a divisor of N.

    Returns:
        The root mean square of the difference, relative to that of the outputs.

    Raises:
        ValueError: `batch_size` doesn't divide N.

    Example:
        >>> output_gap(nn.LayerNorm(3), torch.arange(12.0).view(4, 3) ** 2, batch_size=2)
        0.0
    """
    _check_size(x, batch_size, "output_gap")
    batch, single = (
        torch.cat([chosen(rows) for rows in x.split(batch_size)])
        for chosen in (copy.deepcopy(model).train(), copy.deepcopy(model).eval())
    )
    return float((batch - single).norm() / single.norm())


@dataclass(frozen=True)
class MomentumRun:
    """One training run, evaluated with running statistics for several momenta.

    Attributes:
        steps: the steps after which the network was evaluated, shape `(K,)`.
        accuracy: the test accuracy after these steps for each momentum, shape `(K,)`.
        batch_accuracy: the same, but with the statistics of the whole test set, shape `(K,)`.

    Example:
        >>> run = accuracy_by_momentum([0.1, None], steps=4, every=2)
        >>> {momentum: accuracy.shape for momentum, accuracy in run.accuracy.items()}
        {0.1: (2,), None: (2,)}
    """

    steps: NDArray[np.int64]
    accuracy: dict[float | None, Array]
    batch_accuracy: Array


def accuracy_by_momentum(
    momenta: Sequence[float | None],
    seed: int = 0,
    *,
    batch_size: int = 8,
    steps: int = 300,
    every: int = 10,
) -> MomentumRun:
    r"""Train with batch normalization once, and evaluate with several momenta.

    Training never reads the running statistics, so one run is enough for all momenta. A hook on
    each norm keeps a set of running statistics for each momentum,

    .. math::
        r_t = (1 - m) \, r_{t-1} + m \, b_t, \qquad r_0 = 0 \text{ (mean) or } 1 \text{ (variance)}

    with the mean and the unbiased variance :math:`b_t` of each batch. Source: PyTorch's
    documentation of `BatchNorm1d`.

    Args:
        momenta: the weight :math:`m` of the last batch, or None for the mean of all batches.
        seed: seed for the weights and the batches.
        batch_size: images per batch, at least 2.
        steps: number of training steps.
        every: number of steps between evaluations, at least 1.

    Returns:
        The accuracies during training.

    Raises:
        ValueError: `momenta` is empty or contains a number outside 0 to 1, or `every` is less than
            1.

    Example:
        >>> run = accuracy_by_momentum([0.1], steps=4, every=2)
        >>> run.steps.tolist(), list(run.accuracy)
        ([2, 4], [0.1])
    """
    if not momenta or any(m is not None and not 0 <= m <= 1 for m in momenta):
        raise ValueError(
            f"accuracy_by_momentum: expected momenta from 0 to 1 or None, but got {momenta!r}"
        )
    if every < 1:
        raise ValueError(f"accuracy_by_momentum: expected every of at least 1, but got {every}")
    digits = load_digits()
    model = digits_network("BatchNorm", seed)
    norms = [layer for layer in model if isinstance(layer, nn.BatchNorm1d)]
    averages = [_Averages(norm, momenta) for norm in norms]

    def measured(momentum: float | None) -> Callable[[nn.Module], float]:
        def evaluate(model: nn.Module) -> float:
            for average in averages:
                average.write(momentum)
            return accuracy(model, digits.test_x, digits.test_y, training=False)

        return evaluate

    def by_batch(model: nn.Module) -> float:
        return accuracy(model, digits.test_x, digits.test_y, training=True)

    history = fit(
        model,
        _batches(digits, seed, batch_size, steps),
        _loss,
        _adam(model),
        measure={**{str(m): measured(m) for m in momenta}, "batch": by_batch},
        every=every,
        label=f"seed {seed}",
        total=steps,
    )
    return MomentumRun(
        np.array(history.steps),
        {m: np.array(history.measures[str(m)]) for m in momenta},
        np.array(history.measures["batch"]),
    )


class _Averages:
    """Running statistics of one norm for several momenta, updated with each training batch."""

    def __init__(self, norm: nn.BatchNorm1d, momenta: Sequence[float | None]) -> None:
        self.batches = 0
        mean, var = norm.running_mean, norm.running_var
        assert mean is not None
        assert var is not None
        self.buffers = (mean, var)
        self.values = {m: (mean.clone(), var.clone()) for m in momenta}
        norm.register_forward_hook(self._move)

    @torch.no_grad()
    def _move(self, norm: nn.Module, inputs: tuple[Tensor], _: Tensor) -> None:
        if not norm.training:
            return
        self.batches += 1
        (x,) = inputs
        batch = x.mean(dim=0), x.var(dim=0, correction=1)
        for momentum, running in self.values.items():
            share = 1 / self.batches if momentum is None else momentum
            for old, new in zip(running, batch, strict=True):
                old.mul_(1 - share).add_(share * new)

    def write(self, momentum: float | None) -> None:
        for buffer, value in zip(self.buffers, self.values[momentum], strict=True):
            buffer.copy_(value)
