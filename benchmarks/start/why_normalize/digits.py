"""Train deep networks on digits with many initialization scales and learning rates.

`make measure NAME=start/why_normalize/digits`. Takes about five minutes on one core.
"""

from __future__ import annotations

import itertools
from typing import Any

from lnbook.chapters.start.why_normalize.experiments import KINDS, train

FACTORS = (0.4, 0.55, 0.75, 1.0, 1.35, 1.8, 2.5)
RATES = (1e-4, 3e-4, 1e-3, 3e-3, 1e-2)
SEEDS = range(5)


def measure() -> list[dict[str, Any]]:
    """Return the test accuracy of each network."""
    return [
        {
            "kind": kind,
            "factor": factor,
            "lr": lr,
            "accuracy": [round(float(a), 4) for a in train(kind, factor, lr, seeds=SEEDS)],
        }
        for kind, factor, lr in itertools.product(KINDS, FACTORS, RATES)
    ]
