"""Move LayerNorm around and inside recurrent layers: `make measure NAME=lstm/beyond/runs`.

All runs use float64 and one thread, and take about a minute in total.
"""

from __future__ import annotations

from typing import Any

from lnbook.chapters.lstm.beyond import experiments

SEEDS = range(10)


def measure() -> list[dict[str, Any]]:
    """Train every setting with each seed, and record the test accuracy after 100 updates."""
    return [
        {
            "cell": cell,
            "place": place,
            "seed": seed,
            "accuracy": round(experiments.train(place, seed, cell=cell), 4),
        }
        for cell in ("LSTM", "GRU")
        for place in experiments.PLACES
        for seed in SEEDS
    ]
