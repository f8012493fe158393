"""Code that the checkers share: verdicts, parsing answers and recognizing common mistakes.

A checker compares an answer with the right one and with those that common mistakes produce, so that
it can say what went wrong, not just that something did.
"""

from __future__ import annotations

import copy
import inspect
import operator
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from typing import Any, ParamSpec

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = [
    "NotYet",
    "Verdict",
    "as_array",
    "as_count",
    "checker",
    "judge",
    "judge_choice",
    "judge_letters",
    "run_answer",
    "running",
]

Array = NDArray[np.float64]
Arguments = ParamSpec("Arguments")


class NotYet(Exception):  # noqa: N818, since for the reader it isn't an error
    """What to tell the reader about an answer that isn't right yet.

    Example:
        >>> raise NotYet("Your mean is the median.")
        Traceback (most recent call last):
        lnbook.chapters.shared.checker.NotYet: Your mean is the median.
    """


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
        """The text that a notebook shows."""
        return f"{'Correct.' if self.correct else 'Not yet.'} {self.message}"


def checker(check: Callable[Arguments, str]) -> Callable[Arguments, Verdict]:
    """Turn a function that returns praise or raises `NotYet` into a checker.

    Example:
        >>> @checker
        ... def check_mean(mean):
        ...     judge(as_array(mean, (), "Your mean"), 2.0, {}, otherwise="Add them up.")
        ...     return "The mean is 2."
        >>> check_mean(2)
        Correct. The mean is 2.
        >>> check_mean(3)
        Not yet. Add them up.
    """

    @wraps(check)
    def verdict(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Verdict:
        try:
            return Verdict(True, check(*args, **kwargs))
        except NotYet as hint:
            return Verdict(False, str(hint))

    signature = inspect.signature(check)
    verdict.__signature__ = signature.replace(return_annotation="Verdict")  # type: ignore[attr-defined]
    return verdict


@contextmanager
def _without_warnings() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def as_array(answer: Any, shape: tuple[int, ...], what: str) -> Array:
    """Convert an answer to float64 numbers of a given shape.

    Args:
        answer: the reader's answer: numbers, an array or a tensor.
        shape: the expected shape.
        what: what to call the answer, for example "Your mean".

    Raises:
        NotYet: the answer is missing, has the wrong type or shape, or contains NaN or infinity.

    Example:
        >>> as_array([1, 2.5], (2,), "Your row")
        array([1. , 2.5])
        >>> as_array([1, ...], (2,), "Your row")
        Traceback (most recent call last):
        lnbook.chapters.shared.checker.NotYet: Your row still has a '...' in it.
    """
    if answer is None or answer is ...:
        raise NotYet(f"{what} is still missing.")
    if isinstance(answer, (list, tuple)) and any(item is ... for item in answer):
        raise NotYet(f"{what} still has a '...' in it.")
    wanted = f"numbers of shape {shape}" if shape else "one number"
    if hasattr(answer, "detach"):
        answer = answer.detach()
    try:
        with _without_warnings():
            array = np.asarray(answer, dtype=np.float64)
    except (TypeError, ValueError):
        raise NotYet(f"{what} should be {wanted}, but is {answer!r}.") from None
    if array.shape != shape:
        given = f"has the shape {array.shape}" if array.shape else "is one number"
        raise NotYet(f"{what} should be {wanted}, but {given}.")
    if not np.isfinite(array).all():
        raise NotYet(f"{what} contains NaN or infinity.")
    return array


def as_count(answer: Any, what: str) -> int:
    """Convert an answer to a whole number; 392.0 counts, too.

    Raises:
        NotYet: the answer is missing, or isn't a whole number.

    Example:
        >>> as_count(32 / 4 * 49, "Your count")
        392
    """
    if answer is None or answer is ...:
        raise NotYet(f"{what} is still missing.")
    try:
        return operator.index(answer)
    except TypeError:
        pass
    try:
        value = float(answer)
    except (TypeError, ValueError):
        value = float("nan")
    if not value.is_integer():
        raise NotYet(f"{what} should be one whole number, but is {answer!r}.")
    return int(value)


@contextmanager
def running(what: str = "Your function", context: str = "") -> Iterator[None]:
    """Tell the reader about an error that their code raises inside the block.

    Warnings are dropped. A warning goes to stderr, and a lab's check cell that writes there
    earns no points, even for a right answer (`lnbook.labs.grade.points_of`).

    Args:
        what: what to call their code, for example "Your test".
        context: what to say about its arguments, for example their shapes.

    Raises:
        NotYet: the block raises an error.

    Example:
        >>> with running("Your loop"):
        ...     1 / 0
        Traceback (most recent call last):
        lnbook.chapters.shared.checker.NotYet: Your loop raised ZeroDivisionError: division by zero.
    """
    try:
        with _without_warnings():
            yield
    except NotYet:
        raise
    except Exception as error:
        told = f" ({context})" if context else ""
        hint = " Did you keep the axis with keepdims=True?" if "broadcast" in str(error) else ""
        message = str(error).rstrip()
        raise NotYet(f"{what} raised {type(error).__name__}: {message}{told}.{hint}") from error


def run_answer(
    function: Callable[..., Any], *given: Any, context: str, hint: str = "a new array"
) -> Any:
    """Call the reader's function with copies of the arguments, and return its result.

    Args:
        function: the reader's function.
        given: its arguments: arrays, tensors and numbers.
        context: what to say about them if the function raises, for example their shapes.
        hint: what to compute instead of modifying an argument.

    Raises:
        NotYet: the function raises, returns nothing or modifies an argument.

    Example:
        >>> x = np.ones((2, 3))
        >>> run_answer(np.sum, x, context="x had the shape (2, 3)")
        np.float64(6.0)
        >>> run_answer(lambda x: None, x, context="")  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        lnbook.chapters.shared.checker.NotYet: Your function returns nothing...
    """
    copies = [item.clone() if hasattr(item, "clone") else copy.copy(item) for item in given]
    with running(context=context):
        answer = function(*copies)
    if answer is None:
        raise NotYet("Your function returns nothing. Did you forget `return`?")
    if not all(map(np.array_equal, given, copies)):
        raise NotYet(f"Your function changes its input. Compute {hint} instead.")
    return answer


def judge(
    answer: ArrayLike,
    expected: ArrayLike,
    mistakes: Mapping[str, ArrayLike | Callable[[], ArrayLike]],
    *,
    otherwise: str,
    tolerance: float = 1e-5,
    relative: bool = False,
) -> None:
    """Compare an answer with the right one, then with those of common mistakes.

    A checker that only reads its arguments and passes them to this function also works on the page,
    in the browser (`bookbuild.site.answer_rules`).

    Args:
        answer: the reader's answer, or a list of answers that are judged together.
        expected: the right answer, with the same shape.
        mistakes: for each message, the answer that this mistake produces (or how to compute it).
        otherwise: the message if no known mistake matches.
        tolerance: the largest difference that still counts as equal. The default accepts answers
            that were computed in float32.
        relative: whether to compare logarithms, so that a tolerance of 0.01 means about 1%.

    Raises:
        NotYet: the answer is wrong.

    Example:
        >>> mistakes = {"You divided by H - 1.": 2.0}
        >>> judge(np.array(1.0), 1.0, mistakes, otherwise="That's not it.")
        >>> judge(np.array(2.0), 1.0, mistakes, otherwise="That's not it.")
        Traceback (most recent call last):
        lnbook.chapters.shared.checker.NotYet: You divided by H - 1.
    """
    given = np.asarray(answer, dtype=np.float64)

    def near(value: Array) -> bool:
        if not relative:
            return bool(np.allclose(given, value, rtol=0.0, atol=tolerance))
        with np.errstate(divide="ignore", invalid="ignore"):
            difference = np.log(given / value)
        return bool(((given == value) | (np.abs(difference) <= tolerance)).all())

    if near(np.asarray(expected)):
        return
    for message, wrong in mistakes.items():
        value = np.asarray(wrong() if callable(wrong) else wrong)
        if value.shape == given.shape and near(value):
            raise NotYet(message)
    raise NotYet(otherwise)


def judge_choice(
    answer: Any,
    name: str,
    options: Collection[str],
    right: str | Collection[str],
    replies: str | Mapping[str, str],
) -> None:
    """Judge a multiple-choice question whose options are words.

    Args:
        answer: the reader's answer.
        name: what the question is called, for example "a".
        options: all words that can be chosen.
        right: the right word, or all that are right.
        replies: one reply to any wrong word, or a reply to each.

    Raises:
        NotYet: the answer is missing, isn't one of the options, or is wrong.

    Example:
        >>> judge_choice("same", "a", ("same", "varies"), "varies", "In which order?")
        Traceback (most recent call last):
        lnbook.chapters.shared.checker.NotYet: a: In which order?
    """
    if answer is None or answer is ... or answer == "...":
        raise NotYet(f"{name} is still missing.")
    chosen = answer.strip(" ().").lower() if isinstance(answer, str) else ""  # "(B)" is b
    chosen = next((option for option in options if option.lower() == chosen), "")
    if not chosen:
        raise NotYet(f"{name} should be one of {', '.join(options)}, but is {answer!r}.")
    if chosen not in ((right,) if isinstance(right, str) else right):
        raise NotYet(f"{name}: {replies if isinstance(replies, str) else replies[chosen]}")


def judge_letters(answer: Any, reasons: Mapping[str, tuple[bool, str]]) -> None:
    """Judge a question that asks which statements are right.

    Args:
        answer: the reader's answer: the letters of these statements.
        reasons: for each letter, whether it belongs to the answer, and what to say if the reader
            got it wrong; the first one that's wrong decides.

    Raises:
        NotYet: the answer is missing, has other letters in it, or is wrong.

    Example:
        >>> judge_letters("ab", {"a": (True, "a is true."), "b": (False, "b is false.")})
        Traceback (most recent call last):
        lnbook.chapters.shared.checker.NotYet: b is false.
    """
    if answer is None or answer is ...:
        raise NotYet("Your letters are still missing.")
    if isinstance(answer, (list, tuple, set)) and all(isinstance(one, str) for one in answer):
        answer = "".join(answer)
    if not isinstance(answer, str):
        raise NotYet(f'Give the letters as a string, such as "ab", not {answer!r}.')
    given = {letter for letter in answer.lower() if letter.isalpha()}
    if not given:
        raise NotYet("Your letters are still missing.")
    known = sorted(reasons)
    if unknown := sorted(given - set(known)):
        raise NotYet(
            f"{unknown[0]} isn't one of the letters: they go from {known[0]} to {known[-1]}."
        )
    for letter, (belongs, why) in reasons.items():
        if (letter in given) != belongs:
            raise NotYet(why)
