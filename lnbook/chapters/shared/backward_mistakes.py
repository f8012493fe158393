"""Right and wrong backward passes of a normalization layer, used by several checkers."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def row_mean(values: Array) -> Array:
    """Return the mean of each row, as a column."""
    mean: Array = values.mean(-1, keepdims=True)
    return mean


def dx_of(
    g: Array,
    x: Array,
    eps: float,
    *,
    mean_term: float | None = None,
    xhat_term: float = 1.0,
    power: float = 1.0,
    rms: bool = False,
) -> Array:
    """Return the gradient with respect to x, with a factor for each term and a power of r.

    By default, the factor of the mean term is 1, or 0 for RMSNorm.
    """
    if mean_term is None:
        mean_term = 0.0 if rms else 1.0
    centered = x if rms else x - row_mean(x)
    r = (row_mean(centered**2) + eps) ** -0.5
    xhat = centered * r
    terms = mean_term * row_mean(g) + xhat_term * xhat * row_mean(g * xhat)
    gradient: Array = r**power * (g - terms)
    return gradient


def dx_with_r_without_eps(g: Array, x: Array, eps: float, *, rms: bool = False) -> Array:
    """Return the gradient with the right xhat, but with an r that leaves out eps."""
    right = dx_of(g, x, eps, rms=rms)
    variance = row_mean((x if rms else x - row_mean(x)) ** 2)
    wrong: Array = right * np.sqrt((variance + eps) / variance)
    return wrong


def rms_xhat(x: Array, eps: float) -> Array:
    """Return the rows divided by their root mean square, with eps."""
    xhat: Array = x * (row_mean(x**2) + eps) ** -0.5
    return xhat
