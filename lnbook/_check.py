"""Checks of arguments that the floors of lnbook share. Imports neither NumPy nor torch."""

import math
import numbers
import operator
from collections.abc import Iterable
from typing import Any


def checked_eps(eps: Any, function: str) -> float:
    """Return `eps` as a float.

    Raises:
        TypeError: `eps` is not a real number (a bool and a tensor are not).
        ValueError: `eps` is negative, infinite or NaN.
    """
    if isinstance(eps, bool) or not isinstance(eps, numbers.Real):
        raise TypeError(
            f"{function}: expected eps to be a real number, but got {eps!r} "
            f"of type {type(eps).__name__}"
        )
    value = float(eps)
    if not 0.0 <= value < math.inf:
        raise ValueError(f"{function}: expected eps to be finite and at least 0, but got {eps!r}")
    return value


def checked_shape(normalized_shape: Iterable[Any], function: str) -> tuple[int, ...]:
    """Return `normalized_shape` as a tuple of Python ints.

    Raises:
        TypeError: an element is not an integer (a bool is not).
        RuntimeError: there is no element, or a negative one.
    """
    shape = tuple(_checked_size(size, function) for size in normalized_shape)
    if not shape or min(shape) < 0:
        raise RuntimeError(
            f"{function}: expected normalized_shape to hold at least one size and no negative "
            f"one, but got normalized_shape={shape}"
        )
    return shape


def _checked_size(size: Any, function: str) -> int:
    try:
        if isinstance(size, bool):
            raise TypeError
        return operator.index(size)
    except TypeError:
        raise TypeError(
            f"{function}: expected normalized_shape to hold integers, but got {size!r} "
            f"of type {type(size).__name__}"
        ) from None


def checked_real(value: Any, name: str, function: str) -> float:
    """Return `value` as a float.

    Raises:
        TypeError: `value` is not a real number (a bool and a tensor are not).
        ValueError: `value` is infinite or NaN.
    """
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise TypeError(
            f"{function}: expected {name} to be a real number, but got {value!r} "
            f"of type {type(value).__name__}"
        )
    if not math.isfinite(value):
        raise ValueError(f"{function}: expected {name} to be finite, but got {value!r}")
    return float(value)


def checked_count(value: Any, name: str, function: str, least: int = 0) -> int:
    """Return `value` as a Python int.

    Raises:
        TypeError: `value` is not an integer (a bool is not).
        ValueError: `value` is below `least`.
    """
    count = checked_integer(value, name, function)
    if count < least:
        raise ValueError(f"{function}: expected {name} to be at least {least}, but got {count}")
    return count


def checked_integer(value: Any, name: str, function: str) -> int:
    """Return `value` as a Python int; raise TypeError if it is not an integer (a bool is not)."""
    try:
        if isinstance(value, bool):
            raise TypeError
        return operator.index(value)
    except TypeError:
        raise TypeError(
            f"{function}: expected {name} to be an integer, but got {value!r} "
            f"of type {type(value).__name__}"
        ) from None


def checked_bool(value: Any, name: str, function: str) -> bool:
    """Return `value`, which must be True or False; raise TypeError if it is something else."""
    if not isinstance(value, bool):
        raise TypeError(
            f"{function}: expected {name} to be True or False, but got {value!r} "
            f"of type {type(value).__name__}"
        )
    return value
