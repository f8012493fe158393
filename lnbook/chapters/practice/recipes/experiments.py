"""The experiment for the recipe on weight decay: what decay does to LayerNorm's gains.

It runs in float64 with random numbers from NumPy, so it's the same on every processor.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from lnbook.data.digits import Digits, load_digits
from lnbook.layers import LayerNorm
from lnbook.training import decay_groups, fit, initialize_, minibatches

__all__ = ["DECAYED", "DecayRun", "train_with_decay"]

DECAYED = ("nothing", "matrices", "everything")
PIXELS, WIDTH, CLASSES = 64, 32, 10
BATCH, RATE, EVERY = 64, 3e-3, 50


@dataclass(frozen=True)
class DecayRun:
    """What happened to the gains in a run, and how accurate the network became.

    Attributes:
        steps: the steps after which the gains were read: 0 and every 50th.
        gains: at these steps, the mean absolute value of all gains.
        accuracy: accuracy on the 450 test images at the end.

    Example:
        >>> run = train_with_decay("nothing", 0.1, steps=0)
        >>> run.steps, 0.0 <= run.accuracy <= 0.5  # not trained
        ((0,), True)
    """

    steps: tuple[int, ...]
    gains: tuple[float, ...]
    accuracy: float


def train_with_decay(
    decayed: str, weight_decay: float, seed: int = 0, steps: int = 200
) -> DecayRun:
    """Train a small network with two LayerNorms on handwritten digits with AdamW.

    The network has two hidden layers of 32 features, each `relu(LayerNorm(W x + b))`, and a
    linear layer to ten classes. It's trained in batches of 64 at a learning rate of 3e-3. Initial
    values and batches depend only on `seed`, so runs that differ only in what decays can be
    compared.

    Args:
        decayed: "nothing", "matrices" (those that `decay_groups` decays) or "everything".
        weight_decay: the weight decay of these parameters.
        seed: the seed for initial values and batches.
        steps: how many updates.

    Returns:
        The gains during training and the accuracy after the last step.

    Raises:
        ValueError: `decayed` isn't one of these.

    Example:
        >>> train_with_decay("nothing", 0.1, steps=0).gains
        (1.0,)
    """
    if decayed not in DECAYED:
        raise ValueError(
            f"train_with_decay: expected decayed to be one of {', '.join(DECAYED)}, "
            f"but got {decayed!r}"
        )
    rng = np.random.default_rng(seed)
    model = initialize_(_network(), rng)
    groups = decay_groups(model, 0.0 if decayed == "nothing" else weight_decay)
    if decayed == "everything":
        groups[1]["weight_decay"] = weight_decay
    digits = _digits()
    history = fit(
        model,
        minibatches(rng, digits.train_x, digits.train_y, batch_size=BATCH, steps=steps),
        _loss,
        torch.optim.AdamW(groups, lr=RATE),
        measure={"gain": _gain},
        every=EVERY,
        total=steps,
        label=f"decay of {decayed}",
    )
    with torch.no_grad():
        right = model(digits.test_x).argmax(-1) == digits.test_y
    measured = zip(history.steps, history.measures["gain"], strict=True)
    gains = {0: 1.0, **dict(measured)}  # gains start at 1
    return DecayRun(tuple(gains), tuple(gains.values()), float(right.double().mean()))


def _network() -> nn.Sequential:
    return nn.Sequential(
        nn.Linear(PIXELS, WIDTH),
        LayerNorm(WIDTH),
        nn.ReLU(),
        nn.Linear(WIDTH, WIDTH),
        LayerNorm(WIDTH),
        nn.ReLU(),
        nn.Linear(WIDTH, CLASSES),
    ).double()


def _loss(model: nn.Module, batch: tuple[Tensor, ...]) -> Tensor:
    images, classes = batch
    return functional.cross_entropy(model(images), classes)


def _gain(model: nn.Module) -> float:
    norms = [part for part in model.modules() if isinstance(part, LayerNorm)]
    return float(torch.stack([norm.get_parameter("weight") for norm in norms]).abs().mean())


@lru_cache(maxsize=1)
def _digits() -> Digits:
    return load_digits()
