"""Train the controls for `runs`: `make measure NAME=transformer/training/controls`.

It records the first steps of some runs one by one, tries large learning rates with two blocks and
with a smaller initialization, and continues runs that were stuck after 200 steps. Takes about five
minutes in float32 on one thread.
"""

from __future__ import annotations

from typing import Any

from benchmarks.transformer.training.runs import HEAD_SCALE, LR, measured
from lnbook.data.text import load_text

RATES = (4e-3, 1e-2)  # too high for six blocks with Xavier initialization
LONG_STEPS, LONG_EVERY = 1000, 100
EARLY_STEPS = 20


def measure() -> list[dict[str, Any]]:
    """Return one measurement per run."""
    text = load_text()
    found = []
    frequencies: dict[str, Any] = {"frequencies": True, "head_scale": HEAD_SCALE}
    starts: list[tuple[str, float, dict[str, Any]]] = [
        ("Post-LN", LR, {}),
        ("Post-LN", LR, frequencies),
        ("Post-LN", LR / 2, {}),
        ("Pre-LN", LR, {}),
        ("Pre-LN", max(RATES), {}),
    ]
    kind: dict[str, Any]
    for block, lr, more in starts:
        kind = {"block": block, "warm_up": 0, "layers": 6, "lr": lr, **more}
        for seed in range(3):
            found.append(measured(text, "early", steps=EARLY_STEPS, every=1, seed=seed, **kind))
    kinds = (("Post-LN", 0), ("Post-LN", 100), ("Pre-LN", 0))
    parts: list[tuple[str, dict[str, Any]]] = [
        ("two", {"layers": 2}),
        ("small start", {"layers": 6, "start": "pytorch"}),
    ]
    for part, more in parts:
        for lr in RATES:
            for block, warm_up in kinds:
                kind = {"block": block, "warm_up": warm_up, "lr": lr, **more}
                found += [measured(text, part, seed=seed, **kind) for seed in range(2)]
    for seed in range(3):
        kind = {"block": "Post-LN", "warm_up": 0, "layers": 6, "lr": LR, "seed": seed}
        found.append(measured(text, "long", steps=LONG_STEPS, every=LONG_EVERY, **kind))
    return found
