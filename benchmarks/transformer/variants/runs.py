"""Train the variants of the normalized transformer: `make measure NAME=transformer/variants/runs`.

Takes about seven minutes on one core.
"""

import math
from typing import Any

from lnbook.chapters.transformer.variants.experiments import VARIANTS, train_variant
from lnbook.data.text import Text, load_text

RATES = (0.003, 0.01, 0.03)
SHALLOW: dict[str, Any] = {"layers": 4, "start": "pytorch", "steps": 150}
DEEP: dict[str, Any] = {"layers": 12, "steps": 100, "lr": 0.003}


def measure() -> list[dict[str, Any]]:
    """Return the test loss and the largest attention score of every run."""
    text = load_text()
    settings = [SHALLOW | {"lr": lr, "seed": seed} for lr in RATES for seed in range(5)]
    settings += [DEEP | {"start": "xavier", "seed": seed} for seed in range(3)]
    runs = [(variant, setting) for setting in settings for variant in VARIANTS]
    runs += [("none", DEEP | {"start": "pytorch", "seed": seed}) for seed in range(3)]
    return [measured(text, variant, setting) for variant, setting in runs]


def measured(text: Text, variant: str, setting: dict[str, Any]) -> dict[str, Any]:
    """Train one variant, and return it with its setting and results."""
    run = train_variant(text, variant, **setting)
    return {"variant": variant, **setting, "loss": _finite(run.loss), "logit": _finite(run.logit)}


def _finite(value: float) -> float | None:
    """Replace infinity and NaN, which JSON doesn't have, with None."""
    return round(value, 4) if math.isfinite(value) else None
