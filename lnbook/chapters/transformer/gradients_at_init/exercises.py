"""The checkers for the chapter on gradients before training."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lnbook.chapters.shared.checker import (
    NotYet,
    as_array,
    as_count,
    checker,
    judge,
    running,
)
from lnbook.chapters.shared.encoder import at_start
from lnbook.transformer import PreLNBlock

__all__ = ["check_branch_length", "check_depths", "check_final_norm", "check_update_sizes"]

Array = NDArray[np.float64]

SHALLOW, DEEP, SEEDS = 2, 24, 5

LengthOf = Callable[[int, int, float, float], float]

LENGTH_MISTAKES: dict[str, LengthOf] = {
    "Your formula leaves out ReLU, which takes away half of the mean square.": (
        lambda d, m, s, t: s**2 * t**2 * m * d**2
    ),
    "ReLU takes away half of the mean square, and only once.": (
        lambda d, m, s, t: s**2 * t**2 * m * d**2 / 4
    ),
    "A variance is the square of a standard deviation.": lambda d, m, s, t: s * t * m * d**2 / 2,
    "Your formula has d only once. You need it twice: as |x|^2 and as the number of entries.": (
        lambda d, m, s, t: s**2 * t**2 * m * d / 2
    ),
    "Your formula leaves out m: an entry of the result is a sum over the hidden features.": (
        lambda d, _m, s, t: s**2 * t**2 * d**2 / 2
    ),
    "That's a length. The question is about the squared length.": (
        lambda d, m, s, t: (s**2 * t**2 * m * d**2 / 2) ** 0.5
    ),
    "That's the squared length of the sum. The question is about the branch alone.": (
        lambda d, m, s, t: d + s**2 * t**2 * m * d**2 / 2
    ),
}
"""Wrong squared lengths, keyed by the message for each."""


@checker
def check_branch_length(function: Callable[..., Any]) -> str:
    r"""Check the expected squared length of what a new feed-forward network adds.

    .. math::
        \mathbb{E} \lVert W_2 \operatorname{ReLU}(W_1 x) \rVert^2, \qquad \lVert x \rVert^2 = d

    Args:
        function: takes d, the number m of hidden features, and the standard deviations of the
            entries of :math:`W_1` and :math:`W_2`.

    Example:
        >>> check_branch_length(lambda d, m, s_1, s_2: s_1**2 * s_2**2 * m * d**2)
        Not yet. Your formula leaves out ReLU, which takes away half of the mean square.
    """
    for case in ((64, 256, 0.125, 0.0625), (10, 30, 0.5, 0.25)):
        d, m, s, t = case
        with running("branch_length", context=f"for d, m, s_1, s_2 = {case}"):
            answer = function(*case)
        right = s**2 * t**2 * m * d**2 / 2
        judge(
            as_array(answer, (), "What branch_length returns"),
            right,
            {text: wrong(*case) for text, wrong in LENGTH_MISTAKES.items()},
            otherwise=f"For d, m, s_1, s_2 = {case} it should be {right:.5g}.",
            tolerance=1e-5 * right,
        )
    return "In the setting of the theorem, that's d / 2."


@checker
def check_depths(at_least: Any = None, at_most: Any = None) -> str:
    """Check at which depths Lemma 2 puts the factor of the final norm above or below 1/4.

    Args:
        at_least: the largest depth at which the factor is certain to be at least 1/4.
        at_most: the smallest depth at which it's certain to be at most 1/4.

    Example:
        >>> check_depths(at_least=30)
        Not yet. at_least: the lower bound only says that the stream isn't shorter. A factor \
of at least 1/4 requires that it isn't longer.
    """
    for name, answer, right, mistakes in (
        (
            "at_least",
            at_least,
            10,
            {
                "the lower bound only says that the stream isn't shorter. A factor of at least "
                "1/4 requires that it isn't longer.": 30,
                "the factor is a square root: it's 1/4 when the squared length is 16 d.": 2,
                "that's one block too many. For 11 blocks, the upper bound is 17.5 d.": 11,
            },
        ),
        (
            "at_most",
            at_most,
            30,
            {
                "the upper bound only says that the stream isn't longer. A factor of at most "
                "1/4 requires that it isn't shorter.": 10,
                "the factor is a square root: it's 1/4 when the squared length is 16 d.": 6,
                "that leaves out the input, which already has a squared length of d.": 32,
                "that's one block too many. 30 are enough.": 31,
            },
        ),
    ):
        judge(
            as_count(answer, f"Your depth for {name}"),
            right,
            {f"{name}: {text}": wrong for text, wrong in mistakes.items()},
            otherwise=f"Your depth for {name} is off. Set one side of Lemma 2 equal to 16 d.",
        )
    return "In between, Lemma 2 leaves it open."


def _lengths(x: Array) -> Array:
    return np.asarray(np.linalg.norm(x, axis=-1))


def _sizes(states: Array) -> Array:
    before, after = states[:-1], states[1:]
    return np.asarray((_lengths(after - before) / _lengths(before)).mean(-1))


UPDATE_MISTAKES: dict[str, Callable[[Array], Array]] = {
    "It divides by the stream after the block. Divide by the stream before it.": (
        lambda x: (_lengths(x[1:] - x[:-1]) / _lengths(x[1:])).mean(-1)
    ),
    "It compares the lengths before and after the block. Take the length of the difference.": (
        lambda x: (_lengths(x[1:]) / _lengths(x[:-1])).mean(-1)
    ),
    "It subtracts lengths. Subtract the streams first, then take the length.": (
        lambda x: (np.abs(_lengths(x[1:]) - _lengths(x[:-1])) / _lengths(x[:-1])).mean(-1)
    ),
    "It doesn't divide by the length of the stream. The question is about the share.": (
        lambda x: _lengths(x[1:] - x[:-1]).mean(-1)
    ),
    "It returns shares of squared lengths. Take the square roots.": (
        lambda x: ((_lengths(x[1:] - x[:-1]) / _lengths(x[:-1])) ** 2).mean(-1)
    ),
    "It divides two means. Compute the share for each token first, then the mean over tokens.": (
        lambda x: _lengths(x[1:] - x[:-1]).mean(-1) / _lengths(x[:-1]).mean(-1)
    ),
    "It takes the length over all tokens together. Each token has its own share.": (
        lambda x: np.sqrt(((x[1:] - x[:-1]) ** 2).sum((-2, -1)) / (x[:-1] ** 2).sum((-2, -1)))
    ),
    "It sums over the tokens. Take the mean.": lambda x: _sizes(x) * x.shape[1],
    "It compares each stream with the input. Compare it with the one just before it.": (
        lambda x: (_lengths(x[1:] - x[0]) / _lengths(x[0])).mean(-1)
    ),
}
"""Wrong sizes of updates, keyed by the message for each."""


@checker
def check_update_sizes(function: Callable[[Array], ArrayLike]) -> str:
    """Check a function that measures how much each block changes the stream.

    Calls `function(states)` with random streams in float64.

    Args:
        function: takes the streams before the first block and after each, shape
            `(L + 1, tokens, d)`; returns, averaged over tokens, the length of the change relative
            to the length of the stream before it, shape `(L,)`.

    Example:
        >>> check_update_sizes(lambda states: states)
        Not yet. What your function returns should be numbers of shape (3,), but has the shape \
(4, 5, 6).
    """
    rng = np.random.default_rng(2020)
    for shape in ((4, 5, 6), (3, 7, 2)):
        states = rng.normal(size=shape).cumsum(axis=0) * rng.uniform(0.5, 3.0, (1, shape[1], 1))
        handed = states.copy()
        with running(f"For states of shape {shape} it"):
            answer: Any = function(handed)
        if not np.array_equal(handed, states):
            raise NotYet("It modifies its input. Compute new arrays instead.")
        if answer is None or answer is ...:
            raise NotYet("Your function returns nothing yet.")
        judge(
            as_array(answer, (shape[0] - 1,), "What your function returns"),
            _sizes(states),
            {text: wrong(states) for text, wrong in UPDATE_MISTAKES.items()},
            otherwise=f"For states of shape {shape} the sizes are off.",
        )
    return "Each token contributes its own share."


@cache
def _last_gradients(depth: int, final_norm: bool) -> tuple[float, ...]:
    return tuple(
        float(at_start(PreLNBlock, depth, seed=seed, final_norm=final_norm).weights[-1])
        for seed in range(SEEDS)
    )


def _ratio(final_norm: bool) -> float:
    deep, shallow = (_last_gradients(depth, final_norm) for depth in (DEEP, SHALLOW))
    return float(np.mean(deep) / np.mean(shallow))


@checker
def check_final_norm(answer: Any = None, ratio: Any = None) -> str:
    """Check what happens to the last gradient of a Pre-LN stack without a final norm.

    Args:
        answer: "it falls", "it stays" or "it grows", as the stack gets deeper.
        ratio: the mean over seeds 0 to 4 of the last block's gradient in stacks of 24 blocks,
            divided by that in stacks of 2, in the setting of the theorem.

    Example:
        >>> check_final_norm("it shrinks")
        Not yet. Answer "it falls", "it stays" or "it grows".
    """
    if answer is None or answer is ...:
        raise NotYet("Your answer is still missing.")
    if answer not in ("it falls", "it stays", "it grows"):
        raise NotYet('Answer "it falls", "it stays" or "it grows".')
    given = as_array(ratio, (), "Your ratio")
    right = _ratio(False)
    judge(
        given,
        np.array(right),
        {
            "That's the ratio with the final norm. Pass final_norm=False.": (
                lambda: np.array(_ratio(True))
            ),
            "Your ratio is upside down: divide the mean for 24 blocks by the mean for 2.": np.array(
                1 / right
            ),
            "That's the mean of five ratios. Take the two means first, then divide.": (
                lambda: np.mean(
                    np.divide(_last_gradients(DEEP, False), _last_gradients(SHALLOW, False))
                )
            ),
        },
        otherwise="Your ratio is off. Take seeds 0 to 4 and weights[-1], and the means first.",
        tolerance=0.013,
    )
    if answer != "it grows":
        raise NotYet(f"Your ratio of {right:.2f} says otherwise.")
    return "Only the final norm makes the last gradient fall with depth."
