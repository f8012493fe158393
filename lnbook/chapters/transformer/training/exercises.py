"""Checkers for the exercises of the chapter on training transformers."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lnbook.chapters.shared.checker import NotYet, as_array, checker, judge, running

__all__ = ["check_bigram_loss", "check_first_updates", "check_schedule"]

Array = NDArray[np.float64]
Integers = NDArray[np.int64]

GRADIENTS = np.array([1e-3, -100.0])
LR, WARM_UP = 0.002, 50
TOLERANCE = 1e-6  # an answer in float32 is as good


@checker
def check_first_updates(without: Any = None, with_warm_up: Any = None) -> str:
    """Check the first two updates of Adam, without warm-up and with 50 steps of it.

    The gradients of the two parameters are 0.001 and -100, the learning rate is 0.002.

    Args:
        without: what is added to the two parameters in step 1 without warm-up.
        with_warm_up: the same with warm-up.

    Example:
        >>> check_first_updates([-2e-6, 0.2])
        Not yet. That is a step of SGD. Adam divides by the size of the gradient.
    """
    right = -LR * np.sign(GRADIENTS)
    for answer, expected, what in (
        (without, right, "Your pair without warm-up"),
        (with_warm_up, right / WARM_UP, "Your pair with warm-up"),
    ):
        size = float(np.abs(expected).max())
        mistakes = {
            "A step goes against the gradient: turn the signs around.": -expected,
            "That is a step of SGD. Adam divides by the size of the gradient.": -size * GRADIENTS,
            "The signs differ: so do those of the gradients.": np.full(2, -size),
            "The running averages start at 0, and Adam corrects for that: after one step both "
            "are those of the gradient itself.": expected * 0.1 / np.sqrt(0.001),
            "With warm-up, step 1 has one fiftieth of the learning rate.": right,
            "Steps count from 1, so the learning rate of the first is not 0.": np.zeros(2),
        }
        judge(
            as_array(answer, (2,), what),
            expected,
            mistakes,
            otherwise=f"{what} is off. After one step, Adam's two averages are g and g squared.",
            tolerance=1e-3 * size,
        )
    return "Every parameter moves by the learning rate, however small its gradient is."


def _bigram(train: Integers, test: Integers, size: int, axis: int | None = 1) -> float:
    counts = np.ones((size, size))
    np.add.at(counts, (train[:-1], train[1:]), 1.0)
    chances = counts / counts.sum(axis=axis, keepdims=True)
    return float(-np.log(chances[test[:-1], test[1:]]).mean())


def _unigram(train: Integers, test: Integers, size: int) -> float:
    counts = np.bincount(train, minlength=size) + 1.0
    return float(-np.log(counts / counts.sum())[test[1:]].mean())


BIGRAM_MISTAKES: dict[str, Callable[[Integers, Integers, int], float]] = {
    "It only counts single characters: use the one before.": _unigram,
    "It divides by sums over columns: that is the chance of the character before, given the "
    "next. Each row of the table should sum to 1.": partial(_bigram, axis=0),
    "It divides by the sum of the whole table: that is the chance of the pair. Each row should "
    "sum to 1.": partial(_bigram, axis=None),
    "It reads the table the wrong way around: the row is the character before, the column the "
    "next.": lambda train, test, size: _bigram(train, test[::-1], size),
    "The sign is wrong: a loss is minus the logarithm.": lambda *args: -_bigram(*args),
    "It takes the logarithm to base 2. The losses of this chapter are in nats.": lambda *args: (
        _bigram(*args) / np.log(2)
    ),
    "It returns a sum. Divide by the number of characters that are predicted.": (
        lambda train, test, size: _bigram(train, test, size) * (len(test) - 1)
    ),
    "It divides by the length of the test text, but its first character is not predicted.": (
        lambda train, test, size: _bigram(train, test, size) * (len(test) - 1) / len(test)
    ),
    "It returns the perplexity, the exponential of the loss.": lambda *args: float(
        np.exp(_bigram(*args))
    ),
    "It measures on the training text.": lambda train, _test, size: _bigram(train, train, size),
    "It counts in the test text. Whoever predicts does not know it yet.": (
        lambda _train, test, size: _bigram(test, test, size)
    ),
}
"""Wrong losses, by the message that each must get."""


@checker
def check_bigram_loss(function: Callable[[Integers, Integers, int], Any]) -> str:
    """Check a function that computes the test loss of a model that counts pairs.

    Calls `function(train, test, size)` with made-up texts.

    Args:
        function: takes two texts as integers from 0 to `size` - 1, of shapes `(T,)` and `(U,)`,
            and returns the mean cross-entropy in nats, with 1 added to each count.

    Example:
        >>> check_bigram_loss(lambda train, test, size: 0.0)
        Not yet. For an alphabet of 4 characters your loss is 0.0000, but should be 1.0550.
    """
    rng = np.random.default_rng(1948)
    for size, length in ((4, 60), (9, 300)):
        chances = rng.dirichlet(np.full(size, 0.5), size)
        train, test = (_chain(rng, chances, n) for n in (length, length // 2))
        with running("It"):
            answer = function(train.copy(), test.copy(), size)
        if isinstance(answer, (float, np.floating)) and not np.isfinite(answer):
            raise NotYet(
                "It returns NaN or infinity: a pair of the test text was never seen. Add 1."
            )
        loss = as_array(answer, (), "What your function returns")
        right = _bigram(train, test, size)
        judge(
            loss,
            np.array(right),
            {text: np.array(wrong(train, test, size)) for text, wrong in BIGRAM_MISTAKES.items()},
            otherwise=(
                f"For an alphabet of {size} characters your loss is {float(loss):.4f}, "
                f"but should be {right:.4f}."
            ),
            tolerance=TOLERANCE,
        )
    return "That is the loss of a model that counts pairs."


def _chain(rng: np.random.Generator, chances: Array, length: int) -> Integers:
    states = [0]
    while len(states) < length:
        states.append(int(rng.choice(len(chances), p=chances[states[-1]])))
    return np.array(states)


def _schedule(step: int, width: int, warm_up: int) -> float:
    return float(width**-0.5 * min(step**-0.5, step * warm_up**-1.5))


SCHEDULE_MISTAKES: dict[str, Callable[[int, int, int], float]] = {
    "It takes the larger of the two. Take the smaller: min.": lambda step, width, warm_up: (
        width**-0.5 * max(step**-0.5, step * warm_up**-1.5)
    ),
    "It lacks the factor width ** -0.5.": lambda step, _width, warm_up: min(
        step**-0.5, step * warm_up**-1.5
    ),
    "It multiplies by the root of the width. The exponent is -0.5.": lambda step, width, warm_up: (
        width**0.5 * min(step**-0.5, step * warm_up**-1.5)
    ),
    "It never falls: after the warm-up it should go on as step ** -0.5.": (
        lambda step, width, warm_up: width**-0.5 * min(warm_up**-0.5, step * warm_up**-1.5)
    ),
    "It has no warm-up: for small steps it should be step * warm_up ** -1.5.": (
        lambda step, width, _warm_up: width**-0.5 * step**-0.5
    ),
    "It counts steps from 0. Here they count from 1.": lambda step, width, warm_up: _schedule(
        step + 1, width, warm_up
    ),
    "The rise and the fall do not meet: the exponent of warm_up is -1.5.": (
        lambda step, width, warm_up: width**-0.5 * min(step**-0.5, step * warm_up**-0.5)
    ),
    "The rise and the fall do not meet: the exponent of warm_up is -1.5, not -1.": (
        lambda step, width, warm_up: width**-0.5 * min(step**-0.5, step / warm_up)
    ),
}
"""Wrong schedules, by the message that each must get."""


@checker
def check_schedule(function: Callable[[int, int, int], Any]) -> str:
    r"""Check the learning rate of the original transformer.

    .. math::
        \eta_t = D^{-1/2} \min\left(t^{-1/2},\; t \, w^{-3/2}\right)

    Source: Vaswani et al. 2017, equation 3. Calls `function(step, width, warm_up)`.

    Args:
        function: takes the step, counted from 1, the width D and the number w of steps of
            warm-up, and returns the learning rate.

    Example:
        >>> check_schedule(lambda step, width, warm_up: width**-0.5 * step**-0.5)
        Not yet. It has no warm-up: for small steps it should be step * warm_up ** -1.5.
    """
    cases = [(step, width, 40) for width in (64, 100) for step in (1, 7, 39, 40, 41, 90, 400)]
    rates = []
    for case in cases:
        with running("It"):
            answer = function(*case)
        rates.append(as_array(answer, (), f"What your function returns for step {case[0]}"))
    judge(
        np.array(rates),
        np.array([_schedule(*case) for case in cases]),
        {
            text: np.array([wrong(*case) for case in cases])
            for text, wrong in SCHEDULE_MISTAKES.items()
        },
        otherwise="The learning rates differ from the formula. Print a few beside your own.",
        tolerance=TOLERANCE,
    )
    return "It rises evenly to its peak, and then falls like a root."
