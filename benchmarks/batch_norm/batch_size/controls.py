"""Controls for the chapter on batch sizes: training to the end, and pairs with a larger epsilon.

In `runs`, every run stops after 400 updates. To find out whether noise in the statistics improves
generalization, you have to compare networks that fit their training images equally well. So here,
training continues, and the results are recorded at several training losses.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import numpy as np

from lnbook.chapters.batch_norm.batch_size.experiments import Result, train
from lnbook.data.digits import Split, split

SEEDS = range(8)
LOSSES = (0.1, 0.03, 0.01)  # training losses to compare at
STEPS, EVERY = {4: 2000, 8: 1400}, 20  # keyed by how many images share the statistics
OTHERWISE = 800
COUNTED, STATISTICS = (32, 128), (4, 8, 32, 128)
FEW = 150
EPSILONS = (1e-3, 1e-1)
DIGITS = 4


def cases() -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the part that each setting belongs to, and its arguments for `measure_one`.

    These are the arguments of `train`; `images` is the number of training images.

    The parts are "noise" (batch normalization whose statistics and loss use different numbers of
    images, compared with layer normalization, with longer training on all or just a few training
    images) and "epsilon" (batch normalization of pairs, where a small epsilon makes rounding
    errors grow).
    """
    for counted, images in [*((counted, None) for counted in COUNTED), (COUNTED[0], FEW)]:
        common = {"images": images, "batch_size": counted, "ghost": None, "counted": None}
        yield "noise", {"norm": "LN", "steps": OTHERWISE} | common
        for statistics in STATISTICS:
            sizes = {
                "batch_size": max(counted, statistics),
                "ghost": statistics if statistics < counted else None,
                "counted": counted if counted < statistics else None,
            }
            steps = STEPS.get(statistics, OTHERWISE)
            yield "noise", {"norm": "BN", "steps": steps} | common | sizes
    for eps in EPSILONS:
        yield "epsilon", {"norm": "BN", "batch_size": 2, "eps": eps}


def measure() -> list[dict[str, Any]]:
    """Train every setting; takes about 4 minutes on one core."""
    return [
        {"part": part} | arguments | measure_one(part, arguments) for part, arguments in cases()
    ]


def measure_one(part: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """Train one setting and return its record."""
    if part == "epsilon":
        return {"test": train(seeds=SEEDS, **arguments).test[-1].round(DIGITS).tolist()}
    options = {name: value for name, value in arguments.items() if name != "images"}
    with patch(
        "lnbook.chapters.batch_norm.batch_size.experiments.split",
        lambda seed: few(seed, arguments["images"]),
    ):
        result = train(seeds=SEEDS, every=EVERY, **options)
    return {"reached": [reached(result, loss) for loss in LOSSES]}


def few(seed: int, images: int | None) -> Split:
    """Split the digits like `split`, but keep only the first `images` for training (None: all)."""
    one = split(seed)
    x, y = one.train
    return replace(one, train=(x[:images], y[:images]))


def reached(result: Result, loss: float) -> dict[str, Any]:
    """Return the state of the networks when their training loss first reaches `loss`.

    Returns:
        The number of updates, the test loss and the test accuracy for each seed; None for all
        three if a network never reaches the loss.
    """
    there = result.training_loss <= loss
    found: dict[str, Any] = {"training_loss": loss, "steps": None, "test_loss": None, "test": None}
    if there.any(axis=0).all():
        first, seeds = there.argmax(axis=0), np.arange(there.shape[1])
        found["steps"] = result.steps[first].tolist()
        found["test_loss"] = result.test_loss[first, seeds].round(DIGITS).tolist()
        found["test"] = result.test[first, seeds].round(DIGITS).tolist()
    return found
