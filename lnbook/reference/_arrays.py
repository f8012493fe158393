"""Checks and conversions of the arrays that the reference takes."""

import operator
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]


def real(array: ArrayLike, name: str) -> Array:
    """Return `array` in float64; raise TypeError unless it holds real numbers."""
    array = np.asarray(array)
    if array.dtype.kind not in "biuf":
        raise TypeError(f"expected {name} to hold real numbers, but got dtype {array.dtype}")
    return array.astype(np.float64)


def fitting_shape(x: Array, normalized_shape: int | Sequence[int]) -> tuple[int, ...]:
    """Return `normalized_shape` as a tuple; raise ValueError unless `x` ends in it."""
    if isinstance(normalized_shape, int):
        normalized_shape = (normalized_shape,)
    shape = tuple(operator.index(size) for size in normalized_shape)
    if not shape or x.shape[-len(shape) :] != shape:
        raise ValueError(
            f"expected the last dimensions of x to be normalized_shape={shape} "
            f"(at least one dimension), but got x of shape {x.shape}"
        )
    return shape


def affine(array: ArrayLike | None, name: str, shape: tuple[int, ...], default: float) -> Array:
    """Return a weight or bias in float64, by default full of `default`.

    Raises:
        TypeError: it does not hold real numbers.
        ValueError: it has another shape than `shape`.
    """
    if array is None:
        return np.full(shape, default)
    array = real(array, name)
    if array.shape != shape:
        raise ValueError(f"expected {name} to have the shape {shape}, but got {array.shape}")
    return array


def same_shape(array: ArrayLike, x: Array, name: str, function: str) -> Array:
    """Return `array` in float64; raise ValueError unless it has the shape of `x`."""
    array = real(array, name)
    if array.shape != x.shape:
        raise ValueError(
            f"{function}: expected {name} to have the shape {x.shape} of x, but got {array.shape}"
        )
    return array


def vector(x: ArrayLike, function: str) -> Array:
    """Return `x` in float64; raise ValueError unless it is a vector with an element."""
    x = real(x, "x")
    if x.ndim != 1 or x.size == 0:
        raise ValueError(
            f"{function}: expected x to be a vector of shape (H,) with H at least 1, "
            f"but got shape {x.shape}"
        )
    return x
