"""Train the variants with 12 blocks: `make measure NAME=transformer/adaptive/deep`.

Takes about six minutes on one core.
"""

from typing import Any

from benchmarks.transformer.adaptive.runs import measured
from lnbook.chapters.transformer.adaptive.experiments import VARIANTS

SEEDS = 3


def measure() -> list[dict[str, Any]]:
    """Return the same measurements as `runs`, with 12 blocks and one learning rate."""
    settings = [{"lr": 0.003, "seed": seed, "layers": 12} for seed in range(SEEDS)]
    return [measured(variant, **setting) for setting in settings for variant in VARIANTS]
