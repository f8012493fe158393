"""The controls of `runs`: `make measure NAME=transformer/variants/controls`.

Post-LN with DeepNorm's start alone, at each setting in which DeepNorm was trained; and stacks of
12 blocks with a norm from the smaller start, in which those without a norm were trained. About
three minutes on one core.
"""

from typing import Any

from benchmarks.transformer.variants.runs import DEEP, RATES, SHALLOW, measured
from lnbook.data.text import load_text


def measure() -> list[dict[str, Any]]:
    """Return what `runs` returns, for other runs."""
    text = load_text()
    settings = [SHALLOW | {"lr": lr, "seed": seed} for lr in RATES for seed in range(5)]
    settings += [DEEP | {"seed": seed} for seed in range(3)]
    runs = [("Post-LN", setting | {"start": "deepnorm"}) for setting in settings]
    runs += [
        (variant, DEEP | {"start": "pytorch", "seed": seed})
        for variant in ("Pre-LN", "Post-LN", "Peri-LN", "RMSNorm")
        for seed in range(3)
    ]
    return [measured(text, variant, setting) for variant, setting in runs]
