"""Remove deep blocks together: `make measure NAME=transformer/newer/together`.

Takes about three minutes on one core.
"""

from typing import Any

import torch

from benchmarks.transformer.newer.depth import DESIGNS, RATES, SEEDS
from lnbook.chapters.shared.language_model import held_out
from lnbook.chapters.transformer.newer.experiments import loss_without, train
from lnbook.data.text import load_text

STEPS = 400
DEEP = range(5, 16)  # blocks 6 to 16


def measure() -> list[dict[str, Any]]:
    """Train the long runs of `depth` again, and return the loss without their deep blocks."""
    text = load_text()
    batch = held_out(text, 32)
    found = []
    for lr in RATES[1:]:
        for seed in range(SEEDS):
            for design in DESIGNS[:2]:
                setting: dict[str, Any] = {"lr": lr, "seed": seed, "steps": STEPS}
                run = train(text, design, layers=16, decay=True, dtype=torch.float32, **setting)
                rise = round(loss_without(run.model, batch, DEEP), 4)
                found.append({"design": design, **setting, "together": rise})
    return found
