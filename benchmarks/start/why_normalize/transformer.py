"""Train character language models with and without LayerNorm.

`make measure NAME=start/why_normalize/transformer`. The runs differ in whether there are norms, in
the scale of the blocks' initial weights, in the learning rate and in the seed. The text is the
documentation that comes with Python, so a different version of Python gives different losses. Takes
about five minutes on one core.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

from lnbook.chapters.shared import language_model
from lnbook.data.text import load_text
from lnbook.transformer import PreLNBlock

NORMS = {"LayerNorm": "layer_norm", "no norm": "none"}
STARTS = {"larger": "xavier", "smaller": "pytorch"}
RATES = (1e-3, 3e-3, 1e-2, 3e-2)
SEEDS = range(3)
SETTING: dict[str, Any] = {
    "layers": 12,
    "width": 32,
    "heads": 4,
    "length": 32,
    "batch": 8,
    "steps": 100,
    "every": 0,
}


def measure() -> list[dict[str, Any]]:
    """Return the baselines and the settings, followed by the test loss of each run."""
    text = load_text()
    baselines = language_model.baselines(text)
    found: list[dict[str, Any]] = [{**baselines, "characters": len(text.alphabet), **SETTING}]
    for lr, start, norm, seed in itertools.product(RATES, STARTS, NORMS, SEEDS):
        run = language_model.train(
            text, PreLNBlock, lr=lr, seed=seed, start=STARTS[start], norm=NORMS[norm], **SETTING
        )
        loss = round(run.final, 4) if math.isfinite(run.final) else None
        found.append({"norm": norm, "start": start, "lr": lr, "seed": seed, "loss": loss})
    return found
