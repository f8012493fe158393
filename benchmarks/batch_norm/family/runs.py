"""Train convnets on digits with each norm, with more steps and learning rates than the chapter."""

from typing import Any

from lnbook.chapters.batch_norm.family.experiments import KINDS, train
from lnbook.training.progress import progress

HEADS = ("pooled", "flat")
RATES = (0.003, 0.01, 0.03)
SEEDS = range(5)
STEPS, EVERY = 400, 50


def measure() -> list[dict[str, Any]]:
    """Train each norm with each head and learning rate; return all seeds' accuracies by step."""
    settings = [(head, rate, kind) for head in HEADS for rate in RATES for kind in KINDS]
    measurements = []
    for head, rate, kind in progress(settings, "convnets"):
        runs = [train(kind, head, seed, STEPS, rate, EVERY) for seed in SEEDS]
        measurements.append(
            {
                "head": head,
                "rate": rate,
                "kind": kind,
                "steps": runs[0].steps,
                "accuracies": [[round(a, 4) for a in run.accuracies] for run in runs],
            }
        )
    return measurements
