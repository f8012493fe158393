"""Train networks on digits with several norms, batch sizes and learning rates."""

from collections.abc import Iterator
from typing import Any

import torch

from lnbook.chapters.batch_norm.batch_size.experiments import NORMS, accuracy_by_statistics, train

SEEDS = range(8)
BATCH_SIZES = (2, 4, 8, 16, 32, 128)
RATES = (3e-4, 1e-3, 3e-3, 1e-2)
UPDATES = 400
EPOCHS, IMAGES = 4, 1197
DEPTH, DEEP_UPDATES, DEEP_SEEDS = 20, 300, 5
DIGITS = 4


def cases() -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the part that each setting belongs to, and its arguments for `train`.

    The parts are "updates" (the same number of updates at all batch sizes), "epochs" (the same
    number of images), "statistics" (batch normalization whose statistics and loss use different
    numbers of images), "depth" (deep networks) and "sources" (batch normalization tested with
    statistics from several sources).
    """
    for norm in NORMS:
        for batch_size in BATCH_SIZES:
            for lr in RATES:
                common = {"norm": norm, "batch_size": batch_size, "lr": lr}
                yield "updates", common | {"steps": UPDATES}
                yield "epochs", common | {"steps": EPOCHS * IMAGES // batch_size}
    for counted in (2, 8, 32, 128):
        for statistics in (2, 4, 8, 32, 128):
            sizes = {
                "batch_size": max(counted, statistics),
                "ghost": statistics if statistics < counted else None,
                "counted": counted if counted < statistics else None,
            }
            yield "statistics", {"norm": "BN", "lr": 1e-3, "steps": UPDATES} | sizes
    for norm in ("none", "LN", "BN"):
        for start in ("torch", "he"):
            for lr in (1e-4, *RATES):
                sizes = {"batch_size": 32, "steps": DEEP_UPDATES, "depth": DEPTH}
                yield "depth", {"norm": norm, "start": start, "lr": lr} | sizes
    for batch_size in (2, 4, 8, 32):
        yield "sources", {"norm": "BN", "batch_size": batch_size, "lr": 1e-3, "steps": UPDATES}


def measure() -> list[dict[str, Any]]:
    """Train every setting; takes about 8 minutes on one core."""
    torch.set_num_threads(1)
    return [
        {"part": part} | arguments | measure_one(part, arguments) for part, arguments in cases()
    ]


def measure_one(part: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """Train one setting and return its record."""
    result = train(seeds=SEEDS[:DEEP_SEEDS] if part == "depth" else SEEDS, **arguments)
    recorded = {
        "training_loss": round(result.training_loss[-1].mean().item(), DIGITS),
        "test_loss": round(result.test_loss[-1].mean().item(), DIGITS),
        "validation": round(result.validation[-1].mean().item(), DIGITS),
        "test": result.test[-1].round(DIGITS).tolist(),
    }
    if part == "sources":
        found = accuracy_by_statistics(result, [arguments["batch_size"]])
        names = ("running averages", "training set", "own batch")
        recorded["sources"] = {
            name: accuracy.round(DIGITS).tolist()
            for name, accuracy in zip(names, found.values(), strict=True)
        }
    return recorded
