"""The adding problem: a synthetic task that depends on inputs far back in a sequence."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from lnbook._check import check_generator, checked_count

__all__ = ["BASELINE", "adding_problem"]

BASELINE = 1 / 6  # mean squared error of always predicting 1, the mean of the sum


def adding_problem(rng: np.random.Generator, examples: int, length: int) -> tuple[Tensor, Tensor]:
    """Draw sequences of numbers, two of which are marked; the target is the sum of these two.

    One mark is in the first half, the other in the second. Source: Hochreiter and Schmidhuber 1997,
    experiment 4, in the form used by Le, Jaitly and Hinton 2015, section 4.1 (numbers from 0 to 1).

    Args:
        rng: generator for the numbers.
        examples: number of sequences, N.
        length: number of steps in each, L, at least 2.

    Returns:
        The sequences, float64 of shape `(N, L, 2)`: numbers uniform between 0 and 1, and marks 0 or
        1. The targets, float64 of shape `(N, 1)`.

    Raises:
        TypeError: `rng` is not a NumPy generator, or a number is not an integer.
        ValueError: `examples` is below 1, or `length` below 2.

    Example:
        >>> x, y = adding_problem(np.random.default_rng(0), examples=3, length=8)
        >>> torch.equal((x[..., 0] * x[..., 1]).sum(1, keepdim=True), y)
        True
    """
    check_generator(rng, "adding_problem")
    checked_count(examples, "examples", "adding_problem", least=1)
    checked_count(length, "length", "adding_problem", least=2)
    numbers = rng.uniform(size=(examples, length))
    marks = np.zeros((examples, length))
    half, rows = length // 2, np.arange(examples)
    marks[rows, rng.integers(0, half, examples)] = 1.0
    marks[rows, rng.integers(half, length, examples)] = 1.0
    answers = (numbers * marks).sum(axis=1, keepdims=True)
    return torch.from_numpy(np.stack([numbers, marks], axis=-1)), torch.from_numpy(answers)
