"""Right and wrong backward passes of a normalization, which several checkers compare with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lnbook.chapters.shared.checker import Verdict, called

Array = NDArray[np.float64]
TOLERANCE = 1e-9


def row_mean(values: Array) -> Array:
    """Return the mean of each row, as a column."""
    mean: Array = values.mean(-1, keepdims=True)
    return mean


def dx_of(
    g: Array,
    x: Array,
    eps: float,
    *,
    mean_term: float = 1.0,
    xhat_term: float = 1.0,
    power: float = 1.0,
    rms: bool = False,
) -> Array:
    """The gradient for x, with a weight for each of its terms and a power for r."""
    centered = x if rms else x - row_mean(x)
    r = (row_mean(centered**2) + eps) ** -0.5
    xhat = centered * r
    mean_part = 0.0 if rms else mean_term * row_mean(g)
    gradient: Array = r**power * (g - mean_part - xhat_term * xhat * row_mean(g * xhat))
    return gradient


def dx_with_r_without_eps(g: Array, x: Array, eps: float, *, rms: bool = False) -> Array:
    """The right xhat, but an r that forgot eps."""
    right = dx_of(g, x, eps, rms=rms)
    variance = row_mean((x if rms else x - row_mean(x)) ** 2)
    wrong: Array = right * np.sqrt((variance + eps) / variance)
    return wrong


def call_with_shapes(
    function: Callable[..., Any], arrays: Sequence[Array | None], eps: float
) -> Any | Verdict:
    """What the reader's function returns for copies of some arrays, or what went wrong."""
    shapes = ", ".join(str(array.shape) for array in arrays if array is not None)
    return called(function, *arrays, eps, told=f"for shapes {shapes}")


def rms_xhat(x: Array, eps: float) -> Array:
    """Return the rows divided by their root mean square."""
    xhat: Array = x * (row_mean(x**2) + eps) ** -0.5
    return xhat
