"""Train the variants of the denoiser: `make measure NAME=transformer/adaptive/runs`.

Takes about eight minutes on one core.
"""

from typing import Any

import torch

from lnbook.chapters.transformer.adaptive.experiments import VARIANTS, accuracy, sample, train

RATES = (0.003, 0.01)
SEEDS = 5
STEPS, EVERY = 250, 50
SAMPLES = 200


def measure() -> list[dict[str, Any]]:
    """Return every run's test losses and the accuracy of its samples."""
    settings = [{"lr": lr, "seed": seed} for lr in RATES for seed in range(SEEDS)]
    return [measured(variant, **setting) for setting in settings for variant in VARIANTS]


def measured(variant: str, **setting: Any) -> dict[str, Any]:
    """Train one variant, and return it with its setting and results."""
    run = train(variant, steps=STEPS, every=EVERY, **setting)
    y = torch.arange(SAMPLES) % 10
    return {
        "variant": variant,
        **setting,
        "steps": run.steps,
        "losses": [round(loss, 4) for loss in run.losses],
        "accuracy": round(accuracy(sample(run.model, y), y), 4),
    }
