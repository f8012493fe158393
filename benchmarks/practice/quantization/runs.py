"""Quantize small language models: `make measure NAME=practice/quantization/runs`.

Takes about six minutes on one core.
"""

from typing import Any

import numpy as np
import torch

from lnbook.chapters.practice.quantization.experiments import (
    crest,
    largest_features,
    norm_tensors,
    product_error,
    quantized,
    test_loss,
    versions,
)
from lnbook.chapters.shared.language_model import held_out, train
from lnbook.data.text import load_text, windows
from lnbook.transformer import CausalLanguageModel

SEEDS = 5
STEPS = (0, 250, 2000)
SETTINGS: list[dict[str, Any]] = [
    {"bits": bits, "fine": fine} for bits in (8, 4) for fine in (False, True)
]
PARTS: dict[str, dict[str, Any]] = {
    "inputs": {"inputs": True, "outputs": False, "weights": False},
    "statistics": {"statistics": True, "outputs": False, "weights": False},
    "outputs": {"weights": False},
    "weights": {"outputs": False},
}


def measure() -> list[dict[str, Any]]:
    """Return each model's outliers around its norms, and its quantization errors."""
    return [result for seed in range(SEEDS) for result in measured(seed)]


def measured(seed: int) -> list[dict[str, Any]]:
    """Train one model, and return its outliers after some steps and its errors at the end."""
    text = load_text()
    test = held_out(text, 64)
    found = []
    for steps in STEPS:
        run = train(
            text, layers=4, steps=steps, seed=seed, every=0, start="xavier", dtype=torch.float32
        )
        model = run.model.double()
        found.append({"kind": "outliers", "seed": seed, "steps": steps, **outliers(model, test[0])})
    rng = np.random.default_rng([seed, 1])
    some, _ = windows(rng, text.train, 32, 64)
    exact = test_loss(model, test)
    for name, version in versions(model, some, rng).items():
        for setting in SETTINGS:
            with quantized(version, **setting) as coarse:
                loss = test_loss(coarse, test)
            error = product_error(version, test[0], **setting)
            found.append(
                {
                    "kind": "errors",
                    "seed": seed,
                    "version": name,
                    **setting,
                    "error": round(error, 6),
                    "loss": round(loss - exact, 5),
                }
            )
    for part, options in PARTS.items():
        for setting in SETTINGS:
            with quantized(model, **setting, **options) as coarse:
                loss = test_loss(coarse, test)
            found.append(
                {
                    "kind": "parts",
                    "seed": seed,
                    "part": part,
                    **setting,
                    "loss": round(loss - exact, 5),
                }
            )
    return found


def outliers(model: CausalLanguageModel, x: torch.Tensor) -> dict[str, Any]:
    """Return how extreme the largest numbers and features around each norm are."""
    tensors = norm_tensors(model, x)
    noise = np.random.default_rng(0).normal(size=tuple(tensors["output"][0].shape))
    return {
        "crest": {place: [round(crest(t), 2) for t in list_] for place, list_ in tensors.items()},
        "features": {
            place: [round(float(largest_features(t)[0]), 2) for t in list_]
            for place, list_ in tensors.items()
        },
        "normal crest": round(crest(torch.from_numpy(noise)), 2),
    }
