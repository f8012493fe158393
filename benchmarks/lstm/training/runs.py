"""Train LSTM variants on two tasks: `make measure NAME=lstm/training/runs`.

The learning rate and the gain vary, too. All runs use float32 and one thread, and take about ten
minutes in total. Scores are recorded every 25 updates; gradients are with respect to the cell state
at each step, after training.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from lnbook.chapters.lstm.training import experiments

SEEDS = range(5)
VARIANTS = ("none", "ba", "per-gate", "carried")
RATES = (3e-3, 1e-2, 3e-2)
STEPS, LONG, EVERY = 300, 900, 25
LENGTH = 50
USUAL: dict[str, Any] = {"lr": 1e-2, "gain": 1.0, "clip": 1.0, "steps": STEPS}


def cases() -> Iterator[dict[str, Any]]:
    """Yield each setting's task (for digits, the input's form) and its arguments for `train`."""
    for task in ("adding", "pixels"):
        for lr in RATES:
            for variant in VARIANTS:
                yield USUAL | {"task": task, "variant": variant, "lr": lr}
            yield USUAL | {"task": task, "variant": "ba", "lr": lr, "gain": 0.1}
    yield USUAL | {"task": "adding", "variant": "none", "steps": LONG}
    yield USUAL | {"task": "pixels", "variant": "ba", "clip": None}
    yield USUAL | {"task": "binary", "variant": "none"}
    for variant in ("none", "ba"):
        yield USUAL | {"task": "with a constant", "variant": variant}


def measure() -> list[dict[str, Any]]:
    """Train every setting with each seed."""
    return [_measured(case, seed) for case in cases() for seed in SEEDS]


def _measured(case: dict[str, Any], seed: int) -> dict[str, Any]:
    if case["task"] == "adding":
        task = experiments.adding(seed, LENGTH)
    else:
        task = experiments.digits(seed, case["task"])
    run = experiments.train(
        task,
        case["variant"],
        **{name: case[name] for name in USUAL},
        seed=seed,
        every=EVERY,
        dtype=torch.float32,
    )
    norms = experiments.norms_over_steps(run.model, task)
    return case | {
        "seed": seed,
        "scores": [round(score, 4) for score in run.scores],
        "gradient": [float(f"{length:.3g}") for length in norms.cell_gradient],
    }
