"""Batches of examples in random order."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor

from lnbook._check import check_generator, checked_count, checked_integer

__all__ = ["minibatches"]


def minibatches(
    rng: np.random.Generator, *arrays: Tensor, batch_size: int, steps: int
) -> Iterator[tuple[Tensor, ...]]:
    """Yield `steps` batches, reshuffling the data for each epoch.

    An incomplete last batch of an epoch is dropped, so every batch has `batch_size` examples.

    Args:
        rng: generator for the random orders.
        arrays: tensors whose first dimension runs over the same N examples.
        batch_size: number of examples per batch, from 1 to N.
        steps: number of batches.

    Yields:
        For each batch, the same rows of all `arrays`.

    Raises:
        TypeError: at the first batch, if `rng` is not a NumPy generator or a number is not an
            integer.
        ValueError: at the first batch, if the sizes don't match.

    Example:
        >>> x = torch.arange(5)
        >>> [batch.tolist() for (batch,) in minibatches(
        ...     np.random.default_rng(0), x, batch_size=2, steps=3)]
        [[2, 4], [3, 0], [4, 1]]
    """
    check_generator(rng, "minibatches")
    checked_integer(batch_size, "batch_size", "minibatches")
    checked_count(steps, "steps", "minibatches")
    lengths = {len(array) for array in arrays}
    if len(lengths) != 1:
        raise ValueError(f"minibatches: expected arrays of equal length, but got {sorted(lengths)}")
    (examples,) = lengths
    if not 1 <= batch_size <= examples:
        raise ValueError(
            f"minibatches: expected batch_size to be from 1 to {examples}, the number of examples, "
            f"but got {batch_size}"
        )
    whole = examples // batch_size
    for step in range(steps):
        if step % whole == 0:
            order = torch.from_numpy(rng.permutation(examples))
        rows = order[step % whole * batch_size :][:batch_size]
        yield tuple(array[rows] for array in arrays)
