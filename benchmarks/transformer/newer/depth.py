"""Train 16 blocks with scaled norms and controls: `make measure NAME=transformer/newer/depth`.

Takes about five minutes on one core.
"""

from typing import Any

import torch

from benchmarks.transformer.newer.logits import numbers
from lnbook.chapters.shared.language_model import held_out
from lnbook.chapters.transformer.newer.experiments import block_losses, stream_sizes, train
from lnbook.data.text import Text, load_text

DESIGNS = ("Pre-LN", "scaled norms", "scaled gains", "constant scale", "scaled weights")
RATES = (0.001, 0.003, 0.01)
SEEDS = 3


def measure() -> list[dict[str, Any]]:
    """Return the losses, the sizes of the stream, and the losses with each block left out."""
    text = load_text()
    seeds = range(SEEDS)
    settings = [{"lr": lr, "seed": seed, "steps": 150} for lr in RATES for seed in seeds]
    runs = [(design, setting) for setting in settings for design in DESIGNS]
    settings = [{"lr": lr, "seed": seed, "steps": 400} for lr in RATES[1:] for seed in seeds]
    runs += [(design, setting) for setting in settings for design in DESIGNS[:2]]
    return [measured(text, design, setting) for design, setting in runs]


def measured(text: Text, design: str, setting: dict[str, Any]) -> dict[str, Any]:
    """Train one design, and return it with its setting and results."""
    # The long runs end with a learning rate of zero.
    decay = setting["steps"] > 150
    run = train(text, design, layers=16, decay=decay, dtype=torch.float32, **setting)
    batch = held_out(text, 32)
    return {
        "design": design,
        **setting,
        "loss": numbers(run)["losses"][-1],
        "stream": [float(f"{size:.5g}") for size in stream_sizes(run.model, batch[0])],
        "without": [round(float(loss), 5) for loss in block_losses(run.model, batch)],
    }
