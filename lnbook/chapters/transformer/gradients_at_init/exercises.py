"""The checkers of the chapter on gradients before training."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lnbook.chapters.shared.checker import Verdict, as_array, judge
from lnbook.chapters.shared.encoder import at_start
from lnbook.transformer import PreLNBlock

__all__ = ["check_final_norm", "check_stream_bounds", "check_update_sizes"]

Array = NDArray[np.float64]

BOUNDS_WIDTH, BOUNDS_DEPTH = 512, 24
SHALLOW, DEEP, SEEDS = 2, 24, 5
TOLERANCE = 1e-9


def check_stream_bounds(stream: Any = None, factor: Any = None) -> Verdict:
    r"""Check the bounds for a Pre-LN stack of 24 blocks of width 512 at its start.

    Args:
        stream: the two bounds of the expected squared length of the stream, smaller one first.
        factor: the two values of :math:`\sqrt{d} / \lVert x_L \rVert` that belong to them,
            smaller one first.

    Returns:
        The verdict; a known mistake is called by its name. Three digits are enough.

    Example:
        >>> check_stream_bounds([6144, 18432])
        Not yet. Your pair of bounds leaves out the input, which has d already: the 1.
    """
    d, depth = BOUNDS_WIDTH, BOUNDS_DEPTH
    given = as_array(stream, (2,), "Your pair of bounds")
    if isinstance(given, Verdict):
        return given
    share = np.array([1 + depth / 2, 1 + 3 * depth / 2])
    what = "Your pair of bounds"
    verdict = judge(
        given,
        d * share,
        {
            f"{what} leaves out the input, which has d already: the 1.": d * (share - 1),
            f"{what} is divided by d. Multiply by 512.": share,
            f"{what} holds lengths. Asked for is the squared length.": np.sqrt(d * share),
            f"{what} is the wrong way around: smaller one first.": d * share[::-1],
        },
        otherwise=f"{what} is off. Put d = 512 and l = 24 into both sides of Lemma 2.",
        tolerance=0.5,
    )
    if verdict is not None:
        return verdict
    what = "Your pair of factors"
    factors = as_array(factor, (2,), what)
    if isinstance(factors, Verdict):
        return factors
    right = np.sort(1 / np.sqrt(share))
    verdict = judge(
        factors,
        right,
        {
            f"{what} is the wrong way around: the longer the stream, the smaller.": right[::-1],
            f"{what} lacks the root: a norm divides by the length, not by its square.": right**2,
            f"{what} is upside down: a norm divides by the length.": np.sort(1 / right),
            f"{what} lacks the root of d: the norm gives its output that length.": right
            / np.sqrt(d),
            f"{what} is 1 / sqrt(L). The bounds of Lemma 2 are more exact.": np.full(
                2, depth**-0.5
            ),
        },
        otherwise=f"{what} is off. Divide d by your squared lengths, and take the root.",
        tolerance=6e-4,
    )
    return verdict or Verdict(True, "The final norm makes gradients 3.6 to 6.1 times shorter.")


def _lengths(x: Array) -> Array:
    lengths: Array = np.sqrt((x**2).sum(-1))
    return lengths


def _sizes(states: Array) -> Array:
    before, after = states[:-1], states[1:]
    sizes: Array = (_lengths(after - before) / _lengths(before)).mean(-1)
    return sizes


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


def check_update_sizes(function: Callable[[Array], ArrayLike]) -> Verdict:
    """Check a function that measures how much each block changes the stream.

    Calls `function(states)` with random streams in float64.

    Args:
        function: takes the streams before the first block and after each, shape
            `(L + 1, tokens, d)`; returns the mean over tokens of the length of the change as a
            share of the length of the stream before it, shape `(L,)`.

    Returns:
        The verdict; a known mistake is called by its name.

    Example:
        >>> check_update_sizes(lambda states: states)
        Not yet. What your function returns should be numbers of shape (3,), but has the shape \
(4, 5, 6).
    """
    rng = np.random.default_rng(2020)
    for shape in ((4, 5, 6), (3, 7, 2)):
        states = rng.normal(size=shape).cumsum(axis=0) * rng.uniform(0.5, 3.0, (1, shape[1], 1))
        handed = states.copy()
        try:
            answer: Any = function(handed)
        except Exception as error:  # the reader's own
            told = f"For states of shape {shape} it raised {type(error).__name__}: {error}."
            return Verdict(False, told)
        if not np.array_equal(handed, states):
            return Verdict(False, "It changes its input. Work on new arrays.")
        if answer is None or answer is ...:
            return Verdict(False, "Your function returns nothing yet.")
        given = as_array(answer, (shape[0] - 1,), "What your function returns")
        if isinstance(given, Verdict):
            return given
        verdict = judge(
            given,
            _sizes(states),
            {text: wrong(states) for text, wrong in UPDATE_MISTAKES.items()},
            otherwise=f"For states of shape {shape} the sizes are off.",
            tolerance=TOLERANCE,
        )
        if verdict is not None:
            return verdict
    return Verdict(True, "Each token counts with its own share.")


@cache
def _last_gradients(depth: int, final_norm: bool) -> tuple[float, ...]:
    return tuple(
        float(at_start(PreLNBlock, depth, seed=seed, final_norm=final_norm).weights[-1])
        for seed in range(SEEDS)
    )


def _ratio(final_norm: bool) -> float:
    deep, shallow = (_last_gradients(depth, final_norm) for depth in (DEEP, SHALLOW))
    return float(np.mean(deep) / np.mean(shallow))


def check_final_norm(answer: Any = None, ratio: Any = None) -> Verdict:
    """Check what becomes of the last gradient of a Pre-LN stack that has no final norm.

    Args:
        answer: with growing depth, "it falls", "it stays" or "it grows".
        ratio: the mean over seeds 0 to 4 of the last block's gradient in stacks of 24 blocks,
            divided by that in stacks of 2, in the setting of the theorem.

    Returns:
        The verdict; a known mistake is called by its name.

    Example:
        >>> check_final_norm("it shrinks")
        Not yet. Answer "it falls", "it stays" or "it grows".
    """
    if answer is None or answer is ...:
        return Verdict(False, "Your answer is still missing.")
    if answer not in ("it falls", "it stays", "it grows"):
        return Verdict(False, 'Answer "it falls", "it stays" or "it grows".')
    given = as_array(ratio, (), "Your ratio")
    if isinstance(given, Verdict):
        return given
    right = _ratio(False)
    verdict = judge(
        given,
        np.array(right),
        {
            "That is the ratio with the final norm. Pass final_norm=False.": np.array(_ratio(True)),
            "Your ratio is upside down: 24 blocks over 2.": np.array(1 / right),
        },
        otherwise="Your ratio is off. Take seeds 0 to 4, weights[-1], and the means first.",
        tolerance=0.02,
    )
    if verdict is not None:
        return verdict
    if answer != "it grows":
        return Verdict(False, f"Your ratio of {right:.2f} says something else.")
    return Verdict(True, "It is the final norm that makes the last gradient fall with depth.")
