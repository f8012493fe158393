"""What the checkers of all parts share: verdicts, and answers told from known mistakes.

A checker compares an answer with the right one and with the answers that known mistakes give, so
that it can say what went wrong rather than only that something did.
"""

from __future__ import annotations

import copy
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Verdict", "as_array", "called", "judge", "whole_number"]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Verdict:
    """Whether an answer is right, and what to tell the reader.

    Example:
        >>> Verdict(False, "Your mean is the median.")
        Not yet. Your mean is the median.
        >>> Verdict(True, "The mean is 2.").correct
        True
    """

    correct: bool
    message: str

    def __repr__(self) -> str:
        """What a notebook shows."""
        return f"{'Correct.' if self.correct else 'Not yet.'} {self.message}"


def as_array(answer: Any, shape: tuple[int, ...], what: str) -> Array | Verdict:
    """Read an answer as float64 numbers of a shape, or say why that cannot be done.

    Args:
        answer: what the reader gave: numbers, an array or a tensor.
        shape: the shape that is asked for.
        what: how to call the answer, for example "Your mean".

    Returns:
        The array, or the verdict that says what was given and what was expected.

    Example:
        >>> as_array([1, 2.5], (2,), "Your row")
        array([1. , 2.5])
        >>> as_array([1, ...], (2,), "Your row")
        Not yet. Your row still has a '...' in it.
        >>> as_array(3, (2,), "Your row")
        Not yet. Your row should be numbers of shape (2,), but is one number.
    """
    if answer is None or answer is ...:
        return Verdict(False, f"{what} is still missing.")
    if isinstance(answer, (list, tuple)) and any(item is ... for item in answer):
        return Verdict(False, f"{what} still has a '...' in it.")
    wanted = f"numbers of shape {shape}" if shape else "one number"
    try:
        array = np.asarray(answer, dtype=np.float64)
    except (TypeError, ValueError):
        return Verdict(False, f"{what} should be {wanted}, but is {answer!r}.")
    if array.shape != shape:
        given = f"has the shape {array.shape}" if array.shape else "is one number"
        return Verdict(False, f"{what} should be {wanted}, but {given}.")
    if not np.isfinite(array).all():
        return Verdict(False, f"{what} holds NaN or infinity.")
    return array


def whole_number(answer: Any) -> int | None:
    """Read an answer as a whole number, None if it is none; 392.0 is one too.

    Example:
        >>> whole_number(32 / 4 * 49), whole_number(0.5), whole_number("many")
        (392, None, None)
    """
    try:
        return operator.index(answer)
    except TypeError:
        pass
    try:
        value = float(answer)
    except (TypeError, ValueError):
        return None
    return int(value) if value.is_integer() else None


def called(
    function: Callable[..., Any], *given: Any, told: str, instead: str = "a new array"
) -> Any | Verdict:
    """Call the reader's function with copies, or say what went wrong.

    Args:
        function: what the reader wrote.
        given: its arguments; arrays, tensors and numbers.
        told: what to tell of them if the function raises, for example the shape.
        instead: what to compute rather than to change an argument.

    Returns:
        What the function returns, or the verdict if it raises, returns nothing or changes what it
        was given.

    Example:
        >>> x = np.ones((2, 3))
        >>> called(np.sum, x, told="x had the shape (2, 3)")
        np.float64(6.0)
        >>> called(lambda x: None, x, told="x had the shape (2, 3)")
        Not yet. Your function returns nothing. Did you forget `return`?
    """
    copies = [item.clone() if hasattr(item, "clone") else copy.copy(item) for item in given]
    try:
        answer = function(*copies)
    except Exception as error:
        hint = " Did you keep the axis with keepdims=True?" if "broadcast" in str(error) else ""
        what = f"Your function raised {type(error).__name__}: {error}"
        return Verdict(False, f"{what} ({told}).{hint}")
    if answer is None:
        return Verdict(False, "Your function returns nothing. Did you forget `return`?")
    if not all(map(np.array_equal, given, copies)):
        return Verdict(False, f"Your function changes its input. Compute {instead} instead.")
    return answer


def judge(
    answer: Array,
    expected: Array,
    mistakes: Mapping[str, Array | Callable[[], Array]],
    *,
    otherwise: str,
    tolerance: float,
) -> Verdict | None:
    """Compare an answer with the right one, then with those of known mistakes.

    Args:
        answer: what the reader gave.
        expected: what is right, of the same shape.
        mistakes: for each message the answer that this mistake gives (or how to compute it).
        otherwise: the message if no known mistake fits.
        tolerance: the largest difference that still counts as equal.

    Returns:
        None if the answer is right, else the verdict.

    Example:
        >>> mistakes = {"You divided by H - 1.": np.array(2.0)}
        >>> settings = {"otherwise": "It is another number.", "tolerance": 1e-6}
        >>> judge(np.array(2.0), np.array(1.0), mistakes, **settings)
        Not yet. You divided by H - 1.
        >>> judge(np.array(1.0), np.array(1.0), mistakes, **settings) is None
        True
    """
    if np.allclose(answer, expected, rtol=0.0, atol=tolerance):
        return None
    for message, wrong in mistakes.items():
        value = wrong() if callable(wrong) else wrong
        same_shape = value.shape == answer.shape
        if same_shape and np.allclose(answer, value, rtol=0.0, atol=tolerance):
            return Verdict(False, message)
    return Verdict(False, otherwise)
