"""Fine-tune a small transformer in many ways: `make measure NAME=practice/fine_tuning/runs`.

Takes about five minutes on one core.
"""

from typing import Any

import torch

from lnbook.chapters.practice.fine_tuning.experiments import (
    METHODS,
    Classifier,
    build,
    fine_tune,
    pretrain,
)

RATES = (0.003, 0.01, 0.03, 0.1)
SEEDS = 5
UNTRAINED = ("head", "norms, no head", "norms", "random", "everything")


def measure() -> list[dict[str, Any]]:
    """Return the accuracy of every method, learning rate and seed, with and without pretraining."""
    found = []
    for seed in range(SEEDS):
        pretrained = pretrain(seed, dtype=torch.float32)
        fresh = build(seed, torch.float32)
        found += [measured(pretrained, method, seed, "pretrained") for method in METHODS]
        found += [measured(fresh, method, seed, "untrained") for method in UNTRAINED]
    return found


def measured(start: Classifier, method: str, seed: int, name: str) -> dict[str, Any]:
    """Fine-tune a model once with each learning rate."""
    runs = [fine_tune(start, method, seed, lr=lr) for lr in RATES]
    return {
        "start": name,
        "method": method,
        "seed": seed,
        "parameters": runs[0].parameters,
        "rates": list(RATES),
        "validation": [round(run.validation, 4) for run in runs],
        "test": [round(run.test, 4) for run in runs],
    }
