"""Checks and conversions for the reference functions' array arguments."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lnbook._check import checked_integers

Array = NDArray[np.float64]


def real(array: ArrayLike, name: str, function: str) -> Array:
    """Return `array` as float64; raise TypeError unless it contains real numbers."""
    array = np.asarray(array)
    if array.dtype.kind not in "biuf":
        raise TypeError(
            f"{function}: expected {name} to contain real numbers, but got dtype {array.dtype}"
        )
    return array.astype(np.float64)


def shaped(array: ArrayLike, name: str, shape: tuple[int, ...], function: str) -> Array:
    """Return `array` as float64; raise ValueError unless it has the shape `shape`."""
    array = real(array, name, function)
    if array.shape != shape:
        raise ValueError(
            f"{function}: expected {name} to have the shape {shape}, but got {array.shape}"
        )
    return array


def parameter(
    array: ArrayLike | None, name: str, shape: tuple[int, ...], default: float, function: str
) -> Array:
    """Return a weight or bias as `shaped` does, or an array of `default` if it is None."""
    return np.full(shape, default) if array is None else shaped(array, name, shape, function)


def fitting_shape(
    x: Array, normalized_shape: int | Sequence[int], function: str
) -> tuple[int, ...]:
    """Return `normalized_shape` as a tuple; raise ValueError unless `x.shape` ends with it."""
    shape = checked_integers(normalized_shape, function)
    if not shape or x.shape[-len(shape) :] != shape:
        raise ValueError(
            f"{function}: expected the last dimensions of x to be normalized_shape={shape} "
            f"(at least one dimension), but got x of shape {x.shape}"
        )
    return shape
