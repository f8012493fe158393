"""Train Post-LN and Pre-LN until both produce text: `make measure NAME=transformer/training/long`.

These runs are ten times as long as those in `runs`, with an initialization that lets both train.
Takes about seven minutes in float32 on one thread.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from lnbook.chapters.shared import language_model
from lnbook.chapters.transformer.training import experiments
from lnbook.data.text import load_text
from lnbook.transformer import PostLNBlock, PreLNBlock, TransformerBlock

BLOCKS: dict[str, type[TransformerBlock]] = {"Post-LN": PostLNBlock, "Pre-LN": PreLNBlock}
LAYERS, LR, WARM_UP, STEPS, EVERY = 6, 2e-3, 100, 2000, 100
PROMPT, SAMPLE, TEMPERATURE = "The ", 400, 0.8


def measure() -> list[dict[str, Any]]:
    """Return one measurement per run; seed 0's include a text sample."""
    text = load_text()
    found = []
    for name, block in BLOCKS.items():
        for seed in range(3):
            run = language_model.train(
                text,
                block,
                layers=LAYERS,
                lr=LR,
                warm_up_steps=WARM_UP,
                steps=STEPS,
                every=EVERY,
                seed=seed,
                start="pytorch",
                dtype=torch.float32,
            )
            told: dict[str, Any] = {"block": name, "layers": LAYERS, "lr": LR, "warm_up": WARM_UP}
            told |= {"start": "pytorch", "seed": seed, "steps": run.steps}
            told["losses"] = [round(loss, 4) for loss in run.losses]
            if seed == 0:
                told["sample"] = experiments.generate(
                    run.model,
                    text,
                    PROMPT,
                    SAMPLE,
                    np.random.default_rng(0),
                    temperature=TEMPERATURE,
                )
            found.append(told)
    return found
