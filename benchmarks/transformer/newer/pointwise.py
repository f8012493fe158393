"""Train with functions in place of norms: `make measure NAME=transformer/newer/pointwise`.

Takes about two minutes on one core.
"""

from typing import Any

import torch

from benchmarks.transformer.newer.logits import numbers
from lnbook.chapters.transformer.newer.experiments import train
from lnbook.data.text import Text, load_text

DESIGNS = ("Pre-LN", "DyT", "DyT, 1", "Derf", "Derf, 1")
LITTLE = ("Pre-LN", "DyT", "Derf")
RATES = (0.003, 0.01)
CHARACTERS = 4000


def measure() -> list[dict[str, Any]]:
    """Return test and training losses, with all of the training text and with a small part."""
    text = load_text()
    little = Text(text.alphabet, text.train[:CHARACTERS], text.test)
    parts = (("all", text, DESIGNS, 5, 150), ("little", little, LITTLE, 3, 400))
    found = []
    for name, part, designs, seeds, steps in parts:
        for lr in RATES:
            for seed in range(seeds):
                for design in designs:
                    setting: dict[str, Any] = {"lr": lr, "seed": seed}
                    run = train(part, design, steps=steps, every=50, dtype=torch.float32, **setting)
                    found.append({"text": name, "design": design, **setting, **numbers(run)})
    return found
