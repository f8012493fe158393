"""Train character language models with Post-LN and Pre-LN.

`make measure NAME=transformer/training/runs`. All runs use float32 and one thread,
and take about 15 minutes in total. The text is the documentation that comes with Python, so the
losses depend on its version.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch

from lnbook.chapters.shared import language_model
from lnbook.chapters.transformer.training import experiments
from lnbook.data.text import Text, load_text
from lnbook.transformer import PostLNBlock, PreLNBlock, TransformerBlock

BLOCKS: dict[str, type[TransformerBlock]] = {"Post-LN": PostLNBlock, "Pre-LN": PreLNBlock}
WARM_UPS = (0, 100)
LR = 2e-3
LRS = (3e-4, 1e-3, 2e-3, 4e-3, 1e-2)
SIZE = {"width": 64, "heads": 4, "batch": 8, "length": 64, "dtype": torch.float32}
STEPS, EVERY = 200, 20
LONG_STEPS, LONG_LR = 600, 1e-3
HEAD_SCALE = 0.1
TRACED = (0, 2, 5, 10, 20, 50)
PROMPT, SAMPLE, TEMPERATURE = "The ", 300, 0.8


def measure() -> list[dict[str, Any]]:
    """Return the baselines, then one measurement per run."""
    text = load_text()
    found: list[dict[str, Any]] = [
        {"part": "baselines", **language_model.baselines(text)},
        {
            "part": "text",
            "train": len(text.train),
            "test": len(text.test),
            "alphabet": len(text.alphabet),
        },
    ]
    for name in BLOCKS:
        for warm_up in WARM_UPS:
            kind = {"block": name, "warm_up": warm_up}
            for lr in LRS:
                for seed in range(5 if lr == LR else 2):
                    found.append(measured(text, "six", layers=6, lr=lr, seed=seed, **kind))
            for seed in range(3):
                found.append(measured(text, "two", layers=2, lr=LR, seed=seed, **kind))
            for seed in range(2):
                found.append(measured(text, "twelve", layers=12, lr=1e-3, seed=seed, **kind))
    found += _starts(text)
    for name, warm_up in (("Post-LN", 0), ("Post-LN", 100), ("Pre-LN", 0)):
        found += [
            _traced(text, name, warm_up, seed, steps) for seed in range(3) for steps in TRACED
        ]
    for name in BLOCKS:
        for start in ("xavier", "pytorch"):
            for seed in range(2):
                found.append(_long(text, name, start, seed))
    return found


def _starts(text: Text) -> list[dict[str, Any]]:
    """Runs without warm-up, with different initializations."""
    found = []
    for seed in range(5):
        kind = {"layers": 6, "lr": LR, "seed": seed, "warm_up": 0}
        post = kind | {"block": "Post-LN"}
        found += [
            measured(text, "frequencies", frequencies=True, head_scale=HEAD_SCALE, **post),
            measured(text, "small head", head_scale=HEAD_SCALE, **post),
        ]
        found += [
            measured(text, "small start", start="pytorch", block=block, **kind) for block in BLOCKS
        ]
    return found


def _run(
    text: Text, *, block: str, warm_up: int, steps: int = STEPS, every: int = EVERY, **more: Any
) -> language_model.Run:
    return language_model.train(
        text,
        BLOCKS[block],
        warm_up_steps=warm_up,
        steps=steps,
        every=every,
        **SIZE,  # type: ignore[arg-type]
        **more,
    )


def measured(text: Text, part: str, **kind: Any) -> dict[str, Any]:
    """Train with the settings in `kind`, and return them with the run's curves."""
    return {"part": part, **kind, **_curves(_run(text, **kind))}


def _curves(run: language_model.Run) -> dict[str, Any]:
    return {
        "steps": run.steps,
        "losses": _rounded(run.losses),
        "shares": _rounded(run.shares),
        "diverged": math.isinf(run.final),
    }


def _traced(text: Text, block: str, warm_up: int, seed: int, steps: int) -> dict[str, Any]:
    """Measure each block after a few steps."""
    kind: dict[str, Any] = {"block": block, "warm_up": warm_up, "seed": seed, "layers": 6, "lr": LR}
    model = _run(text, steps=steps, every=0, **kind).model
    x, y = language_model.held_out(text, SIZE["length"])  # type: ignore[arg-type]
    return {
        "part": "trace",
        **kind,
        "step": steps,
        "shares": _rounded(language_model.differing_share(model, x)),
        "gradients": [float(f"{g:.3g}") for g in experiments.gradient_by_block(model, x, y)],
    }


def _long(text: Text, block: str, start: str, seed: int) -> dict[str, Any]:
    kind: dict[str, Any] = {
        "block": block,
        "warm_up": 100,
        "seed": seed,
        "layers": 6,
        "lr": LONG_LR,
    }
    run = _run(text, start=start, steps=LONG_STEPS, every=50, **kind)
    told = {"part": "long", "start": start, **kind, **_curves(run)}
    if seed == 0:
        rng = np.random.default_rng(0)
        told["sample"] = experiments.generate(
            run.model, text, PROMPT, SAMPLE, rng, temperature=TEMPERATURE
        )
    return told


def _rounded(values: Any) -> list[float]:
    return [round(float(value), 4) for value in values]
