"""The handwritten digits included in scikit-learn: 1797 images of 8 x 8 pixels."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
import torch
from torch import Tensor

from lnbook._check import checked_count

__all__ = ["Digits", "Split", "load_digits", "split"]

LARGEST_PIXEL = 16.0
TEST_EVERY = 4


@dataclass(frozen=True)
class Digits:
    """Images and their classes, for training and testing.

    Attributes:
        train_x: float64 of shape `(1347, 64)`, pixels from 0 to 1, row by row.
        train_y: int64 of shape `(1347,)`, the digit from 0 to 9.
        test_x: like `train_x`, of shape `(450, 64)`.
        test_y: like `train_y`, of shape `(450,)`.

    Example:
        >>> digits = load_digits()
        >>> digits.train_x.min().item(), digits.train_x.max().item()
        (0.0, 1.0)
    """

    train_x: Tensor
    train_y: Tensor
    test_x: Tensor
    test_y: Tensor


def load_digits() -> Digits:
    """Load scikit-learn's digits with a fixed split: every fourth image is for testing.

    Source: Alpaydin and Kaynak 1998, Optical Recognition of Handwritten Digits, the test set of
    the UCI repository, as distributed with scikit-learn. The writers aren't identified, so one
    writer's images can be in both parts.

    Example:
        >>> digits = load_digits()
        >>> digits.train_x.shape, digits.test_x.shape
        (torch.Size([1347, 64]), torch.Size([450, 64]))
        >>> digits.test_y[:5].tolist()
        [0, 4, 8, 2, 6]
    """
    from sklearn import datasets  # not at the top, because this import takes a second

    bunch = datasets.load_digits()
    x = torch.tensor(bunch.data / LARGEST_PIXEL)
    y = torch.tensor(bunch.target).long()
    test = torch.arange(len(y)) % TEST_EVERY == 0
    return Digits(x[~test], y[~test], x[test], y[test])


Batch = tuple[Tensor, Tensor]
TESTING, VALIDATION = 450, 150
SPLIT = 0  # each use of a seed has its own generator


@dataclass(frozen=True)
class Split:
    """The digits, split at random: inputs of shape `(N, 64)` and classes of shape `(N,)`.

    Attributes:
        train: 1197 images to train on.
        validation: 150 images for choosing a learning rate.
        test: 450 images for the final result.

    Example:
        >>> part = split(seed=1)
        >>> part.test[0].shape, part.validation[1].shape
        (torch.Size([450, 64]), torch.Size([150]))
    """

    train: Batch
    validation: Batch
    test: Batch


@cache
def _digits() -> Batch:
    digits = load_digits()
    return torch.cat([digits.train_x, digits.test_x]), torch.cat([digits.train_y, digits.test_y])


def split(seed: int) -> Split:
    """Split the 1797 digits for training, validation and testing, as determined by the seed.

    Raises:
        TypeError: `seed` is not an integer.
        ValueError: `seed` is negative.

    Example:
        >>> [len(part[1]) for part in (split(0).train, split(0).validation, split(0).test)]
        [1197, 150, 450]
    """
    seed = checked_count(seed, "seed", "split")
    x, y = _digits()
    order = torch.from_numpy(np.random.default_rng([seed, SPLIT]).permutation(len(y)))
    ends = TESTING, TESTING + VALIDATION
    test, validation, training = torch.tensor_split(order, ends)
    return Split(*((x[rows], y[rows]) for rows in (training, validation, test)))
