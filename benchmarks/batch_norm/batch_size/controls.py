"""Controls for the chapter on batch sizes: training to the end, and pairs with a larger epsilon.

`runs` stops every run after 400 updates. Whether noise in the statistics helps a
network to generalize shows only when the networks that are compared fit their training images
equally well, so here they train on, and what they are at a given training loss is recorded.
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
LOSSES = (0.1, 0.03, 0.01)  # of the training images, to compare at
STEPS, EVERY = {4: 2000, 8: 1400}, 20  # by how many images share the statistics
OTHERWISE = 800
COUNTED, STATISTICS = (32, 128), (4, 8, 32, 128)
FEW = 150
EPSILONS = (1e-3, 1e-1)
DIGITS = 4


def cases() -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield for each setting the part that it belongs to, and the arguments of `measure_one`.

    They are those of `train`; `images` is how many of the training images there are.

    The parts: "noise", batch normalization whose statistics and whose loss take different numbers
    of images, and layer normalization beside it, all trained on, with all training images and with
    few; "epsilon", batch normalization of pairs, where a small epsilon lets rounding errors grow.
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
    """Train all of them; some 4 minutes of one core."""
    return [
        {"part": part} | arguments | measure_one(part, arguments) for part, arguments in cases()
    ]


def measure_one(part: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """Train one setting and return what is recorded of it."""
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
    """Deal the digits out as `split` does, and keep the first training images; None for all."""
    one = split(seed)
    x, y = one.train
    return replace(one, train=(x[:images], y[:images]))


def reached(result: Result, loss: float) -> dict[str, Any]:
    """What the networks are when their training loss is first no larger than `loss`.

    Returns:
        For each seed the number of updates, the test loss and the test accuracy; None for all
        three if a network never gets there.
    """
    there = result.training_loss <= loss
    found: dict[str, Any] = {"training_loss": loss, "steps": None, "test_loss": None, "test": None}
    if there.any(axis=0).all():
        first, seeds = there.argmax(axis=0), np.arange(there.shape[1])
        found["steps"] = result.steps[first].tolist()
        found["test_loss"] = result.test_loss[first, seeds].round(DIGITS).tolist()
        found["test"] = result.test[first, seeds].round(DIGITS).tolist()
    return found
