"""Argument checks that don't need torch, shared by all subpackages; see also `_check_tensors`."""

import math
import numbers
import operator
from collections.abc import Iterable
from typing import Any, Literal, TypeAlias

import numpy as np

Implementation: TypeAlias = Literal["auto", "native", "fused", "plain"]


def checked_real(value: Any, name: str, function: str, least: float = -math.inf) -> float:
    """Return `value` as a float.

    Raises:
        TypeError: `value` is not a real number (bools and tensors don't count).
        ValueError: `value` is infinite, NaN or below `least`.
    """
    number = _real(value, name, function)
    # Not math.isfinite, because torch.compile can't see inside it.
    if not (-math.inf < number < math.inf and number >= least):
        bound = "" if least == -math.inf else f" and at least {least}"
        raise ValueError(f"{function}: expected {name} to be finite{bound}, but got {value!r}")
    return number


def checked_eps(eps: Any, function: str) -> float:
    """Return `eps` as a float, finite and at least 0; raise the same errors as `checked_real`."""
    return checked_real(eps, "eps", function, least=0)


def checked_between(value: Any, name: str, function: str, least: float, most: float) -> float:
    """Return `value` as a float between `least` and `most`, inclusive.

    Raises:
        TypeError: `value` is not a real number (bools and tensors don't count).
        ValueError: `value` is NaN or outside the interval.
    """
    number = _real(value, name, function)
    if not least <= number <= most:
        raise ValueError(
            f"{function}: expected {name} to be between {least} and {most}, but got {value!r}"
        )
    return number


def _real(value: Any, name: str, function: str) -> float:
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise TypeError(
            f"{function}: expected {name} to be a real number, but got {value!r} "
            f"of type {type(value).__name__}"
        )
    return float(value)


def checked_integers(normalized_shape: Any, function: str) -> tuple[int, ...]:
    """Return `normalized_shape`, an integer or a sequence of integers, as a tuple of Python ints.

    Raises:
        TypeError: it is neither, or an element is not an integer (bools don't count).
    """
    if isinstance(normalized_shape, numbers.Integral):
        normalized_shape = (normalized_shape,)
    if not isinstance(normalized_shape, Iterable) or isinstance(normalized_shape, (str, bytes)):
        raise TypeError(
            f"{function}: expected normalized_shape to be an integer or a sequence of integers, "
            f"but got {normalized_shape!r} of type {type(normalized_shape).__name__}"
        )
    expected = "normalized_shape to contain integers"
    return tuple(_integer(size, expected, function) for size in normalized_shape)


def checked_shape(normalized_shape: Any, function: str) -> tuple[int, ...]:
    """Return what `checked_integers` returns; raise RuntimeError if it is empty or negative."""
    shape = checked_integers(normalized_shape, function)
    if not shape or min(shape) < 0:
        raise RuntimeError(
            f"{function}: expected normalized_shape to have at least one dimension and no "
            f"negative sizes, but got normalized_shape={shape}"
        )
    return shape


def checked_count(value: Any, name: str, function: str, least: int = 0) -> int:
    """Return `value` as a Python int.

    Raises:
        TypeError: `value` is not an integer (bools don't count).
        ValueError: `value` is below `least`.
    """
    count = checked_integer(value, name, function)
    if count < least:
        raise ValueError(f"{function}: expected {name} to be at least {least}, but got {count}")
    return count


def checked_integer(value: Any, name: str, function: str) -> int:
    """Return `value` as a Python int; raise TypeError for anything else, including bools."""
    return _integer(value, f"{name} to be an integer", function)


def _integer(value: Any, expected: str, function: str) -> int:
    try:
        if isinstance(value, bool):
            raise TypeError
        return operator.index(value)
    except TypeError:
        raise TypeError(
            f"{function}: expected {expected}, but got {value!r} of type {type(value).__name__}"
        ) from None


def checked_bool(value: Any, name: str, function: str) -> bool:
    """Return `value`, which must be True or False; raise TypeError if it isn't."""
    if not isinstance(value, bool):
        raise TypeError(
            f"{function}: expected {name} to be True or False, but got {value!r} "
            f"of type {type(value).__name__}"
        )
    return value


def checked_implementation(value: Any, function: str, native: bool = True) -> Implementation:
    """Return `value`, which must name an implementation; raise ValueError if it doesn't.

    `native` says whether PyTorch has its own kernel for the operation.
    """
    for known in ("auto", "native", "fused", "plain"):
        if value == known and (native or known != "native"):
            return known
    names = "'auto', 'native', 'fused' or 'plain'" if native else "'auto', 'fused' or 'plain'"
    reason = "" if native else ", since PyTorch has no kernel for it"
    raise ValueError(
        f"{function}: expected implementation to be {names}{reason}, but got {value!r}"
    )


def check_generator(rng: Any, function: str) -> None:
    """Raise TypeError unless `rng` is a NumPy generator (a seed isn't)."""
    if not isinstance(rng, np.random.Generator):
        raise TypeError(
            f"{function}: expected rng to be a numpy.random.Generator, but got {type(rng).__name__}"
        )
