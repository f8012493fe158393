"""Train with and without a limit on the logits: `make measure NAME=transformer/newer/logits`.

Takes about a minute on one core.
"""

import math
from typing import Any

import torch

from lnbook.chapters.transformer.newer.experiments import Trained, train
from lnbook.data.text import load_text

DESIGNS = ("Pre-LN", "QK-norm", "soft cap")
RATES = (0.01, 0.03, 0.1, 0.3)
SEEDS = 3


def measure() -> list[dict[str, Any]]:
    """Return the losses and the largest logits of every run."""
    text = load_text()
    found = []
    for lr in RATES:
        for seed in range(SEEDS):
            for design in DESIGNS:
                setting: dict[str, Any] = {"lr": lr, "seed": seed}
                run = train(text, design, steps=150, every=25, dtype=torch.float32, **setting)
                found.append({"design": design, **setting, **numbers(run)})
    return found


def numbers(run: Trained) -> dict[str, Any]:
    """Return the measurements, with None for anything that isn't finite."""
    lists = {"losses": run.losses, "fitted": run.fitted, "logits": run.logits}
    return {"steps": run.steps} | {
        name: [float(f"{v:.5g}") if math.isfinite(v) else None for v in values]
        for name, values in lists.items()
    }
