"""Train nGPT and controls: `make measure NAME=transformer/newer/sphere`.

Takes about two minutes on one core.
"""

from typing import Any

import torch

from benchmarks.transformer.newer.logits import numbers
from lnbook.chapters.transformer.newer.experiments import train
from lnbook.data.text import load_text

DESIGNS = ("Pre-LN", "nGPT", "nGPT, free weights")
RATES = (0.01, 0.03, 0.1)
BUDGETS = (100, 300)
SEEDS = 3


def measure() -> list[dict[str, Any]]:
    """Return the test loss of every run; the learning rate falls to zero in each."""
    settings: list[dict[str, Any]] = [
        {"steps": steps, "lr": lr, "seed": seed, "bfloat16": False}
        for steps in BUDGETS
        for lr in RATES
        for seed in range(SEEDS)
    ]
    short = [setting for setting in settings if setting["steps"] == BUDGETS[0]]
    rounded = [setting | {"bfloat16": True} for setting in short if setting["lr"] < RATES[-1]]
    runs = [(design, setting) for setting in settings for design in DESIGNS]
    runs += [("nGPT, larger steps", setting) for setting in short]
    runs += [(design, setting) for setting in rounded for design in DESIGNS[:2]]
    text = load_text()
    found = []
    for design, setting in runs:
        run = train(text, design, decay=True, dtype=torch.float32, **setting)
        found.append({"design": design, **setting, "loss": numbers(run)["losses"][-1]})
    return found
