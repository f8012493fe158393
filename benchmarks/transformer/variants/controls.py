"""Train the controls for `runs`: `make measure NAME=transformer/variants/controls`.

They are Post-LN with DeepNorm's initialization but not its alpha, in each setting where DeepNorm
was trained, and 12 normalized blocks with the same small initialization as the 12 blocks without a
norm. Takes about three minutes on one core.
"""

from typing import Any

from benchmarks.transformer.variants.runs import DEEP, RATES, SHALLOW, measured
from lnbook.data.text import load_text


def measure() -> list[dict[str, Any]]:
    """Return the same measurements as `runs`, for the control runs."""
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
