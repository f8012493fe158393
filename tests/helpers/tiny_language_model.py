"""A text and language models small enough to train in a test."""

import numpy as np
import torch

from lnbook.chapters.shared import language_model
from lnbook.data.text import Text
from lnbook.transformer import CausalLanguageModel, PreLNBlock, TransformerBlock

TINY = {"layers": 2, "width": 8, "heads": 2, "length": 6}


def _text() -> Text:
    words = np.random.default_rng(4).choice(["abc", "aad", "abac"], 400)
    numbers = torch.tensor(["abcd".index(letter) for letter in "".join(words)])
    return Text("abcd", numbers[:1000], numbers[1000:])


TEXT = _text()  # `a` is the most frequent letter, and each letter limits what comes next


def model(block: type[TransformerBlock] = PreLNBlock, seed: int = 0) -> CausalLanguageModel:
    return language_model.build(4, np.random.default_rng(seed), block, **TINY)
