"""Data and a loss for encoders, as `lnbook.chapters.shared.encoder.at_start` draws them."""

import numpy as np
import torch
from torch.nn.functional import cross_entropy

from lnbook.transformer import PostLNBlock, PreLNBlock

BLOCKS = {False: PostLNBlock, True: PreLNBlock}  # by PyTorch's option `norm_first`


def data(rng, width):
    x = rng.normal(size=(8, 16, width))
    words = rng.normal(size=(100, width)) / np.sqrt(width)
    return x, torch.tensor(words), torch.tensor(rng.integers(0, 100, (8, 16)))


def mean_loss(out, words, targets):
    return cross_entropy((out @ words.T).reshape(-1, 100), targets.reshape(-1))
