"""The checkers of the chapter on gradients before training."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lnbook.chapters.shared.checker import NotYet, as_array, checker, judge, running
from lnbook.chapters.shared.encoder import at_start
from lnbook.transformer import PreLNBlock

__all__ = ["check_final_norm", "check_stream_bounds", "check_update_sizes"]

Array = NDArray[np.float64]

SHALLOW, DEEP, SEEDS = 2, 24, 5

BOUNDS = "Your pair of bounds"
WIDTH, DEPTH = 512, 24
SHARE = np.array([1 + DEPTH / 2, 1 + 3 * DEPTH / 2])  # the squared length, divided by d
BOUNDS_MISTAKES = {
    f"{BOUNDS} leaves out the input, which has d already: the 1.": WIDTH * (SHARE - 1),
    f"{BOUNDS} is divided by d. Multiply by 512.": SHARE,
    f"{BOUNDS} holds lengths. Asked for is the squared length.": np.sqrt(WIDTH * SHARE),
    f"{BOUNDS} is the wrong way around: smaller one first.": WIDTH * SHARE[::-1],
}

FACTORS = "Your pair of factors"
FACTOR = np.sort(1 / np.sqrt(SHARE))
FACTOR_MISTAKES = {
    f"{FACTORS} is the wrong way around: the longer the stream, the smaller.": FACTOR[::-1],
    f"{FACTORS} lacks the root: a norm divides by the length, not by its square.": FACTOR**2,
    f"{FACTORS} is upside down: a norm divides by the length.": np.sort(1 / FACTOR),
    f"{FACTORS} lacks the root of d: the norm gives its output that length.": (
        FACTOR / np.sqrt(WIDTH)
    ),
    f"{FACTORS} is 1 / sqrt(L). The bounds of Lemma 2 are more exact.": np.full(2, DEPTH**-0.5),
}


@checker
def check_stream_bounds(stream: Any = None, factor: Any = None) -> str:
    r"""Check the bounds for a Pre-LN stack of 24 blocks of width 512 at its start.

    Args:
        stream: the two bounds of the expected squared length of the stream, smaller one first.
        factor: the two values of :math:`\sqrt{d} / \lVert x_L \rVert` that belong to them,
            smaller one first. Three digits are enough.

    Example:
        >>> check_stream_bounds([6144, 18432])
        Not yet. Your pair of bounds leaves out the input, which has d already: the 1.
    """
    judge(
        as_array(stream, (2,), BOUNDS),
        WIDTH * SHARE,
        BOUNDS_MISTAKES,
        otherwise=f"{BOUNDS} is off. Put d = 512 and l = 24 into both sides of Lemma 2.",
        tolerance=0.5,
    )
    judge(
        as_array(factor, (2,), FACTORS),
        FACTOR,
        FACTOR_MISTAKES,
        otherwise=f"{FACTORS} is off. Divide d by your squared lengths, and take the root.",
        tolerance=6e-4,
    )
    return "The final norm makes gradients 3.6 to 6.1 times shorter."


def _lengths(x: Array) -> Array:
    return np.asarray(np.linalg.norm(x, axis=-1))


def _sizes(states: Array) -> Array:
    before, after = states[:-1], states[1:]
    return np.asarray((_lengths(after - before) / _lengths(before)).mean(-1))


UPDATE_MISTAKES: dict[str, Callable[[Array], Array]] = {
    "It divides by the stream after the block. Divide by the stream that the block changed.": (
        lambda x: (_lengths(x[1:] - x[:-1]) / _lengths(x[1:])).mean(-1)
    ),
    "It divides the lengths before and after the block. Take the length of the difference.": (
        lambda x: (_lengths(x[1:]) / _lengths(x[:-1])).mean(-1)
    ),
    "It subtracts lengths. Subtract the streams, then take the length.": (
        lambda x: (np.abs(_lengths(x[1:]) - _lengths(x[:-1])) / _lengths(x[:-1])).mean(-1)
    ),
    "It does not divide by the length of the stream: the share is asked for.": (
        lambda x: _lengths(x[1:] - x[:-1]).mean(-1)
    ),
    "It gives shares of squared lengths. Take the roots.": (
        lambda x: ((_lengths(x[1:] - x[:-1]) / _lengths(x[:-1])) ** 2).mean(-1)
    ),
    "It divides means. Take the share of each token first, then the mean over tokens.": (
        lambda x: _lengths(x[1:] - x[:-1]).mean(-1) / _lengths(x[:-1]).mean(-1)
    ),
    "It takes the length over all tokens together. Each token has its own share.": (
        lambda x: np.sqrt(((x[1:] - x[:-1]) ** 2).sum((-2, -1)) / (x[:-1] ** 2).sum((-2, -1)))
    ),
    "It sums over the tokens. Take their mean.": lambda x: _sizes(x) * x.shape[1],
    "It compares each stream with the input. Compare it with the one just before.": (
        lambda x: (_lengths(x[1:] - x[0]) / _lengths(x[0])).mean(-1)
    ),
}
"""Wrong sizes of updates, by the message that each must get."""


@checker
def check_update_sizes(function: Callable[[Array], ArrayLike]) -> str:
    """Check a function that measures how much each block changes the stream.

    Calls `function(states)` with random streams in float64.

    Args:
        function: takes the streams before the first block and after each, shape
            `(L + 1, tokens, d)`; returns the mean over tokens of the length of the change as a
            share of the length of the stream before it, shape `(L,)`.

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
            raise NotYet("It changes its input. Work on new arrays.")
        if answer is None or answer is ...:
            raise NotYet("Your function returns nothing yet.")
        judge(
            as_array(answer, (shape[0] - 1,), "What your function returns"),
            _sizes(states),
            {text: wrong(states) for text, wrong in UPDATE_MISTAKES.items()},
            otherwise=f"For states of shape {shape} the sizes are off.",
        )
    return "Each token counts with its own share."


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
    """Check what becomes of the last gradient of a Pre-LN stack that has no final norm.

    Args:
        answer: with growing depth, "it falls", "it stays" or "it grows".
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
            "That is the ratio with the final norm. Pass final_norm=False.": (
                lambda: np.array(_ratio(True))
            ),
            "Your ratio is upside down: 24 blocks over 2.": np.array(1 / right),
        },
        otherwise="Your ratio is off. Take seeds 0 to 4, weights[-1], and the means first.",
        tolerance=0.02,
    )
    if answer != "it grows":
        raise NotYet(f"Your ratio of {right:.2f} says something else.")
    return "It is the final norm that makes the last gradient fall with depth."
