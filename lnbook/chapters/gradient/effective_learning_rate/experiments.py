"""Training with weight decay: how far each step turns the weights before a norm.

All runs are in float64, and their random numbers come from NumPy, so they're the same on every
processor.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

__all__ = ["Run", "logits", "noisy_task", "train", "turn", "windows"]

Array = NDArray[np.float64]

INPUTS, WIDTH, CLASSES = 8, 32, 3
EXAMPLES, BATCH, FLIPPED = 512, 16, 0.3
TASK, START, ORDER = range(3)  # each use of a seed has its own generator


class Run(NamedTuple):
    """What a run recorded at each step, for the two weight matrices before the norms.

    Attributes:
        angles: how far the step turned each matrix, in radians, shape `(steps, 2)`.
        norms: the norm of each matrix after the step, shape `(steps, 2)`.
        losses: the loss of the step's batch, shape `(steps,)`.

    Example:
        >>> Run(np.zeros((3, 2)), np.ones((3, 2)), np.ones(3)).norms.shape
        (3, 2)
    """

    angles: Array
    norms: Array
    losses: Array


def noisy_task(seed: int) -> tuple[Tensor, Tensor]:
    """Return inputs of shape (512, 8) and labels, 30% of them drawn at random.

    Example:
        >>> inputs, labels = noisy_task(0)
        >>> inputs.shape, labels.unique().tolist()
        (torch.Size([512, 8]), [0, 1, 2])
    """
    rng = np.random.default_rng([seed, TASK])
    inputs = rng.normal(size=(EXAMPLES, INPUTS))
    hidden = np.tanh(inputs @ rng.normal(size=(INPUTS, 12)))
    labels = (hidden @ rng.normal(size=(12, CLASSES))).argmax(axis=1)
    flipped = rng.random(EXAMPLES) < FLIPPED
    labels = np.where(flipped, rng.integers(0, CLASSES, EXAMPLES), labels)
    return torch.tensor(inputs), torch.tensor(labels)


def logits(weights: Sequence[Tensor], inputs: Tensor, norm: bool = True) -> Tensor:
    """Return the outputs of the network: linear, norm and ReLU, twice, then linear.

    The norm has epsilon 0 and no parameters, so multiplying one of the first two matrices by a
    positive number changes nothing.

    Args:
        weights: matrices of shape (32, 8), (32, 32) and (3, 32).
        inputs: shape `(N, 8)`.
        norm: whether to normalize.

    Example:
        >>> weights = [torch.ones(32, 8), torch.eye(32), torch.ones(3, 32)]
        >>> logits(weights, torch.ones(5, 8)).shape
        torch.Size([5, 3])
    """
    hidden = inputs
    for weight in weights[:2]:
        hidden = hidden @ weight.T
        if norm:
            hidden = functional.layer_norm(hidden, (WIDTH,), eps=0.0)
        hidden = torch.relu(hidden)
    return hidden @ weights[2].T


def turn(before: Tensor, after: Tensor) -> float:
    """Return the angle between two matrices, flattened to vectors, in radians.

    Example:
        >>> round(turn(torch.tensor([[1.0, 0.0]]), torch.tensor([[3.0, 3.0]])), 4)
        0.7854
    """
    # Not the arc cosine: it loses half the digits of a small angle.
    one, other = before / before.norm(), after / after.norm()
    return 2.0 * float(torch.atan2((one - other).norm(), (one + other).norm()))


def train(
    lr: float | Sequence[float],
    decay: float,
    seed: int,
    steps: int,
    *,
    norm: bool = True,
    factor: float = 1.0,
    optimizer: str = "SGD",
    momentum: float = 0.0,
) -> Run:
    r"""Train a small network, and record how the weights before the norms change.

    Plain SGD takes :math:`W` to :math:`(1 - \eta\lambda) W - \eta G`. The last matrix, with no norm
    after it, is never decayed.

    Args:
        lr: the learning rate, or one for each step.
        decay: the weight decay of the two matrices before the norms.
        seed: determines the task, the initial weights and the batches.
        steps: the number of steps.
        norm: whether the network has norms.
        factor: what to multiply the two matrices by at the start.
        optimizer: "SGD" or "AdamW".
        momentum: the momentum of SGD.

    Raises:
        ValueError: `lr` has the wrong length, or `optimizer` isn't known.

    Example:
        >>> run = train(0.1, 0.01, seed=0, steps=3)
        >>> run.angles.shape, run.norms.shape, run.losses.shape
        ((3, 2), (3, 2), (3,))
    """
    rates = np.asarray(lr, dtype=float)
    if rates.shape not in ((), (steps,)):
        raise ValueError(f"train: expected one lr or {steps}, but got an array of {rates.shape}")
    if optimizer not in ("SGD", "AdamW"):
        raise ValueError(f"train: expected optimizer to be 'SGD' or 'AdamW', but got {optimizer!r}")
    inputs, labels = noisy_task(seed)
    weights = _start(seed, factor)
    groups: list[dict[str, Any]] = [
        {"params": weights[:2], "weight_decay": decay},
        {"params": weights[2:]},
    ]
    if optimizer == "SGD":
        steps_of: torch.optim.Optimizer = torch.optim.SGD(groups, lr=1.0, momentum=momentum)
    else:
        steps_of = torch.optim.AdamW(groups, lr=1.0, weight_decay=0.0)
    order = np.random.default_rng([seed, ORDER])
    found: list[tuple[list[float], list[float], float]] = []
    for rate in np.broadcast_to(rates, (steps,)):
        for group in steps_of.param_groups:
            group["lr"] = float(rate)
        rows = torch.tensor(order.integers(0, EXAMPLES, BATCH))
        loss = functional.cross_entropy(logits(weights, inputs[rows], norm), labels[rows])
        before = [weight.detach().clone() for weight in weights[:2]]
        steps_of.zero_grad()
        loss.backward()
        steps_of.step()
        after = [weight.detach() for weight in weights[:2]]
        angles = [turn(*pair) for pair in zip(before, after, strict=True)]
        found.append((angles, [float(weight.norm()) for weight in after], loss.item()))
    angles_found, norms, losses = zip(*found, strict=True)
    return Run(np.array(angles_found), np.array(norms), np.array(losses))


def _start(seed: int, factor: float) -> list[Tensor]:
    rng = np.random.default_rng([seed, START])
    shapes = ((WIDTH, INPUTS), (WIDTH, WIDTH), (CLASSES, WIDTH))
    weights = [rng.normal(size=shape) / np.sqrt(shape[1]) for shape in shapes]
    weights = [weights[0] * factor, weights[1] * factor, weights[2]]
    return [torch.tensor(weight, requires_grad=True) for weight in weights]


def windows(values: Array, size: int) -> Array:
    """Return the root mean square of each window of steps, for curves with less noise.

    Args:
        values: shape `(steps, ...)`, a multiple of `size` steps.
        size: steps per window.

    Raises:
        ValueError: the steps don't divide into windows.

    Example:
        >>> windows(np.array([3.0, 4.0, 0.0, 2.0]), 2).round(3).tolist()
        [3.536, 1.414]
    """
    if size < 1 or len(values) % size:
        raise ValueError(
            f"windows: expected the number of steps to be a multiple of size={size}, "
            f"but got {len(values)} steps"
        )
    grouped = values.reshape(-1, size, *values.shape[1:])
    means: Array = np.sqrt(np.square(grouped).mean(axis=1))
    return means
