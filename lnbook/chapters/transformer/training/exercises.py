"""Checkers for the exercises in the chapter on training transformers."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lnbook.chapters.shared.checker import NotYet, as_array, checker, judge, running

__all__ = [
    "check_bigram_loss",
    "check_schedule",
    "check_second_updates",
    "check_sharing",
]

Array = NDArray[np.float64]
Integers = NDArray[np.int64]

TOLERANCE = 1e-6  # an answer in float32 is good enough

# In units of the learning rate: what Adam adds in step 2 after a gradient of g > 0 in step 1.
FIRST, SECOND = 0.1 / (1 - 0.9**2), 0.001 / (1 - 0.999**2)
SAME, FLIPPED = -1.0, 0.01 / (1 - 0.9**2)
ZERO = -FIRST * 0.9 / (SECOND * 0.999) ** 0.5
SIGN = "Your sign for '{}' is wrong: a step goes against the average of the gradients."
UPDATE_MISTAKES = {
    "same": {
        SIGN.format("same"): -SAME,
        "Two equal steps don't add up: 'same' asks for the second step alone.": 2 * SAME,
        "The running averages start at 0, and Adam corrects for that.": (
            -0.19 / (0.001 * 1.999) ** 0.5
        ),
    },
    "flipped": {
        SIGN.format("flipped"): -FLIPPED,
        "Adam doesn't follow the last gradient alone: its average of g and -g is nearly 0.": 1.0,
        "After g and -g, the average isn't exactly 0: the newer gradient counts a bit more.": 0.0,
        "The running averages start at 0, and Adam corrects for that.": (
            0.01 / (0.001 * 1.999) ** 0.5
        ),
    },
    "zero": {
        SIGN.format("zero"): -ZERO,
        "A gradient of 0 doesn't stop Adam: its average still contains the first one.": 0.0,
        "Divide by the square root of the second average, too. It isn't g squared any more.": (
            -FIRST * 0.9
        ),
        "Divide by the square root of the second average, not by the average itself.": (
            -FIRST * 0.9 / (SECOND * 0.999)
        ),
        "The running averages start at 0, and Adam corrects for that.": (
            -0.09 / (0.001 * 0.999) ** 0.5
        ),
    },
}


@checker
def check_second_updates(same: Any = None, flipped: Any = None, zero: Any = None) -> str:
    """Check what Adam adds to a parameter in step 2, in units of the learning rate.

    The gradient of step 1 is g > 0. Two decimals are enough.

    Args:
        same: the update if the gradient of step 2 is g again.
        flipped: the update if it is -g.
        zero: the update if it is 0.

    Example:
        >>> check_second_updates(same=-1, flipped=1)
        Not yet. Adam doesn't follow the last gradient alone: its average of g and -g is nearly 0.
    """
    for name, answer, right in (
        ("same", same, SAME),
        ("flipped", flipped, FLIPPED),
        ("zero", zero, ZERO),
    ):
        judge(
            as_array(answer, (), f"Your answer for '{name}'"),
            right,
            UPDATE_MISTAKES[name],
            otherwise=f"Your answer for '{name}' is off. Compute both averages, correct them, "
            "and divide the first by the square root of the second.",
            tolerance=0.005,
        )
    return "Adam keeps its speed in a direction that stays, and nearly stops in one that flips."


Share = Callable[[float, float, int], float]

POST_MISTAKES: dict[str, Share] = {
    "That's the Pre-LN share. In Post-LN, a norm sets the squared length back to 1 each time.": (
        lambda s, a, k: s / (1 + k * a)
    ),
    "Your Post-LN share is the one after a single block.": lambda s, a, k: s / (1 + a),
    "Your Post-LN share has one square root too many: it's about squared lengths, and so is a.": (
        lambda s, a, k: s / (1 + a) ** (k / 2)
    ),
    "Your Post-LN share doesn't depend on S, the share at the start.": (
        lambda _s, a, k: 1 / (1 + a) ** k
    ),
    "Your Post-LN share falls below 0 for large a: the added vector isn't taken from the rest.": (
        lambda s, a, k: s * (1 - a) ** k
    ),
}
PRE_MISTAKES: dict[str, Share] = {
    "That's the Post-LN share. In Pre-LN, no norm sets the squared length back to 1.": (
        lambda s, a, k: s / (1 + a) ** k
    ),
    "Your Pre-LN share is the one after a single block.": lambda s, a, k: s / (1 + a),
    "In your Pre-LN share, the added vectors point the same way. But they're orthogonal, so their "
    "squared lengths add up.": lambda s, a, k: s / (1 + k**2 * a),
    "Your Pre-LN share doesn't depend on S, the share at the start.": (
        lambda _s, a, k: 1 / (1 + k * a)
    ),
    "Your Pre-LN share has one square root too many: it's about squared lengths, and so is a.": (
        lambda s, a, k: s / (1 + k * a) ** 0.5
    ),
}
"""Wrong shares, keyed by the message for each."""


@checker
def check_sharing(post: Callable[..., Any], pre: Callable[..., Any]) -> str:
    """Check how the differing share falls when each block adds the same vector to every position.

    Calls both functions with S (the share at the start), a (the squared length of what a block
    adds) and k (the number of blocks).

    Args:
        post: returns the share after k blocks if a norm sets the mean squared length back to 1.
        pre: returns this share without such norms.

    Example:
        >>> check_sharing(lambda S, a, k: S / (1 + k * a), lambda S, a, k: S / (1 + k * a))
        Not yet. That's the Pre-LN share. In Post-LN, a norm sets the squared length back to 1 \
each time.
    """
    right: tuple[Share, Share] = (
        lambda s, a, k: s / (1 + a) ** k,
        lambda s, a, k: s / (1 + k * a),
    )
    for name, function, expected, mistakes in (
        ("post_share", post, right[0], POST_MISTAKES),
        ("pre_share", pre, right[1], PRE_MISTAKES),
    ):
        for case in ((0.5, 1.0, 6), (0.9, 0.2, 3), (0.4, 2.0, 1)):
            with running(name, context=f"for S, a, k = {case}"):
                answer = function(*case)
            judge(
                as_array(answer, (), f"What {name} returns"),
                expected(*case),
                {text: wrong(*case) for text, wrong in mistakes.items()},
                otherwise=f"For S, a, k = {case}, {name} should be {expected(*case):.4f}.",
                tolerance=TOLERANCE,
            )
    return "Norms on the stream make the share fall geometrically. Without them, it falls like 1/k."


def _bigram(train: Integers, test: Integers, size: int, axis: int | None = 1) -> float:
    counts = np.ones((size, size))
    np.add.at(counts, (train[:-1], train[1:]), 1.0)
    chances = counts / counts.sum(axis=axis, keepdims=True)
    return float(-np.log(chances[test[:-1], test[1:]]).mean())


def _unigram(train: Integers, test: Integers, size: int) -> float:
    counts = np.bincount(train, minlength=size) + 1.0
    return float(-np.log(counts / counts.sum())[test[1:]].mean())


BIGRAM_MISTAKES: dict[str, Callable[[Integers, Integers, int], float]] = {
    "It only counts single characters. Use the previous character, too.": _unigram,
    "It divides by the sums of the columns, which gives the probability of the previous character, "
    "given the next one. Each row of the table should sum to 1.": partial(_bigram, axis=0),
    "It divides by the sum of the whole table, which gives the joint probability of the pair. "
    "Each row should sum to 1.": partial(_bigram, axis=None),
    "It reads the table the wrong way around: the row is the previous character, and the column "
    "is the next one.": lambda train, test, size: _bigram(train, test[::-1], size),
    "The sign is wrong: a loss is minus the logarithm.": lambda *args: -_bigram(*args),
    "It takes the logarithm to base 2. The losses of this chapter are in nats.": lambda *args: (
        _bigram(*args) / np.log(2)
    ),
    "It returns a sum. Divide by the number of predicted characters.": (
        lambda train, test, size: _bigram(train, test, size) * (len(test) - 1)
    ),
    "It divides by the length of the test text, but its first character isn't predicted.": (
        lambda train, test, size: _bigram(train, test, size) * (len(test) - 1) / len(test)
    ),
    "It returns the perplexity, the exponential of the loss.": lambda *args: float(
        np.exp(_bigram(*args))
    ),
    "It measures the loss on the training text.": lambda train, _test, size: _bigram(
        train, train, size
    ),
    "It counts the pairs in the test text. Count them in the training text.": (
        lambda _train, test, size: _bigram(test, test, size)
    ),
}
"""Wrong losses, keyed by the message for each."""


@checker
def check_bigram_loss(function: Callable[[Integers, Integers, int], Any]) -> str:
    """Check a function that computes the test loss of a bigram model.

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
                "It returns NaN or infinity: some pair in the test text was never seen. Add 1."
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
    return "That's the loss of the bigram model."


def _chain(rng: np.random.Generator, chances: Array, length: int) -> Integers:
    states = [0]
    while len(states) < length:
        states.append(int(rng.choice(len(chances), p=chances[states[-1]])))
    return np.array(states)


def _schedule(step: int, width: int, warm_up: int) -> float:
    return float(width**-0.5 * min(step**-0.5, step * warm_up**-1.5))


SCHEDULE_MISTAKES: dict[str, Callable[[int, int, int], float]] = {
    "It takes the larger of the two. Take the smaller, with min.": lambda step, width, warm_up: (
        width**-0.5 * max(step**-0.5, step * warm_up**-1.5)
    ),
    "It's missing the factor width ** -0.5.": lambda step, _width, warm_up: min(
        step**-0.5, step * warm_up**-1.5
    ),
    "It multiplies by the square root of the width. The exponent is -0.5.": (
        lambda step, width, warm_up: width**0.5 * min(step**-0.5, step * warm_up**-1.5)
    ),
    "It never falls: after the warm-up, it should continue as step ** -0.5.": (
        lambda step, width, warm_up: width**-0.5 * min(warm_up**-0.5, step * warm_up**-1.5)
    ),
    "It has no warm-up: for small steps, it should be step * warm_up ** -1.5.": (
        lambda step, width, _warm_up: width**-0.5 * step**-0.5
    ),
    "It counts steps from 0. Here, the first step is 1.": lambda step, width, warm_up: _schedule(
        step + 1, width, warm_up
    ),
    "The rise and the fall don't meet: the exponent of warm_up should be -1.5.": (
        lambda step, width, warm_up: width**-0.5 * min(step**-0.5, step * warm_up**-0.5)
    ),
    "The rise and the fall don't meet: the exponent of warm_up should be -1.5, not -1.": (
        lambda step, width, warm_up: width**-0.5 * min(step**-0.5, step / warm_up)
    ),
}
"""Wrong schedules, keyed by the message for each."""


@checker
def check_schedule(function: Callable[[int, int, int], Any]) -> str:
    r"""Check the learning-rate schedule of the original transformer.

    .. math::
        \eta_t = D^{-1/2} \min\left(t^{-1/2},\; t \, w^{-3/2}\right)

    Source: Vaswani et al. 2017, equation 3. Calls `function(step, width, warm_up)`.

    Args:
        function: takes the step, starting at 1, the width D and the number w of warm-up steps, and
            returns the learning rate.

    Example:
        >>> check_schedule(lambda step, width, warm_up: width**-0.5 * step**-0.5)
        Not yet. It has no warm-up: for small steps, it should be step * warm_up ** -1.5.
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
        otherwise="The learning rates differ from the formula. Print a few and compare.",
        tolerance=TOLERANCE,
    )
    return "It rises linearly to its peak, then falls like one over the square root of the step."
