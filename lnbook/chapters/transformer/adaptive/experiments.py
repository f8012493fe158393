"""The chapter's measurements, as functions that return plain numbers."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lnbook import reference

__all__ = ["change_by_scale"]


def change_by_scale(row: ArrayLike, scales: ArrayLike) -> NDArray[np.float64]:
    """Return how much doubling a row changes its normalized values, at several scales.

    Args:
        row: numbers of shape `(H,)`.
        scales: factors to multiply the row by first, shape `(S,)`.

    Returns:
        The largest change at each scale, shape `(S,)`.

    Example:
        >>> bool(change_by_scale([1.0, 2.0, 4.0], [1.0])[0] < 1e-4)
        True
    """
    x = np.multiply.outer(np.asarray(scales, dtype=float), np.asarray(row, dtype=float))
    once, twice = (reference.layer_norm(factor * x, x.shape[-1]) for factor in (1.0, 2.0))
    change: NDArray[np.float64] = np.abs(twice - once).max(axis=-1)
    return change
