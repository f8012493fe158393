"""Checkers for the exercises in "Choose epsilon, and keep your digits"."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lnbook.chapters.shared.checker import NotYet, as_array, checker, judge, run_answer

__all__ = ["check_choose_eps", "check_merge", "check_reach", "check_which_eps"]

Array = NDArray[np.float64]
Pair = tuple[float, float]
Merge = Callable[[int, float, float, int, float, float], Pair]

PARTS: tuple[tuple[tuple[float, ...], tuple[float, ...]], ...] = (
    ((3.0, 5.0, 10.0), (4.0, 1.0)),
    ((-2.5, 0.5, 4.0, 4.0), (7.25,)),
)
LARGE_PARTS = (1e8 + 4.0, 1e8 + 7.0), (1e8 + 13.0, 1e8 + 16.0, 1e8 + 10.0)


def _statistics(part: tuple[float, ...]) -> tuple[int, float, float]:
    values = np.array(part)
    mean = float(values.mean())
    return len(part), mean, float(((values - mean) ** 2).sum())


def _right(
    n_a: int, mean_a: float, total_a: float, n_b: int, mean_b: float, total_b: float
) -> Pair:
    delta, n = mean_b - mean_a, n_a + n_b
    return mean_a + delta * n_b / n, total_a + total_b + delta**2 * n_a * n_b / n


def _mistakes(
    n_a: int, mean_a: float, total_a: float, n_b: int, mean_b: float, total_b: float
) -> dict[str, Pair]:
    """The mean and the total that result from common mistakes."""

    def moved(to: float) -> float:
        return totals + n_a * (mean_a - to) ** 2 + n_b * (mean_b - to) ** 2

    delta, n, totals = mean_b - mean_a, n_a + n_b, total_a + total_b
    mean, total = _right(n_a, mean_a, total_a, n_b, mean_b, total_b)
    halfway, crossed = (mean_a + mean_b) / 2, mean_a + delta * n_a / n
    return {
        "It gives both means the same weight. The larger part should count more.": (
            halfway,
            moved(halfway),
        ),
        "It only adds the totals. The parts have different means, which adds to the deviations.": (
            mean,
            totals,
        ),
        "It adds the squared shift of each mean once. Multiply it by the count of the part.": (
            mean,
            totals + (mean_a - mean) ** 2 + (mean_b - mean) ** 2,
        ),
        "It adds the squared distance of the means without n_a n_b / (n_a + n_b).": (
            mean,
            totals + delta**2,
        ),
        "It weights each mean by the count of the other part.": (crossed, moved(crossed)),
        "Its total is the variance. Return the sum of the squared deviations.": (mean, total / n),
        "It returns the total first. Return the mean, then the total.": (total, mean),
        "It averages the totals. They're sums: add them, and add one more term.": (
            mean,
            (n_a * total_a + n_b * total_b) / n,
        ),
    }


@checker
def check_merge(merge: Merge) -> str:
    r"""Check a function that merges the statistics of two parts of a row.

    Calls `merge(n_a, mean_a, total_a, n_b, mean_b, total_b)` for parts of several rows, one of
    them with large values, which exposes formulas prone to cancellation.

    .. math::
        \mu = \mu_a + \delta \frac{n_b}{n_a + n_b}, \qquad
        M = M_a + M_b + \delta^2 \frac{n_a n_b}{n_a + n_b}, \qquad \delta = \mu_b - \mu_a

    Source: Chan, Golub and LeVeque 1983.

    Args:
        merge: returns the mean and the sum of squared deviations of the whole row.

    Example:
        >>> check_merge(lambda n_a, mean_a, total_a, n_b, mean_b, total_b: (1.0, 2.0, 3.0))
        Not yet. What your function returns should be numbers of shape (2,), but has the shape (3,).
    """
    for part_a, part_b in PARTS:
        given = (*_statistics(part_a), *_statistics(part_b))
        pair, right = _merged(merge, given), _right(*given)
        names = [f"[{', '.join(f'{value:g}' for value in part)}]" for part in (part_a, part_b)]
        judge(
            pair,
            np.array(right),
            {text: np.array(wrong) for text, wrong in _mistakes(*given).items()},
            otherwise=f"For the parts {' and '.join(names)} the mean should be {right[0]:.6g} and "
            f"the total {right[1]:.6g}, but yours are {pair[0]:.6g} and {pair[1]:.6g}.",
            tolerance=1e-6,
        )
    given = (*_statistics(LARGE_PARTS[0]), *_statistics(LARGE_PARTS[1]))
    cancels = (
        "It's right on paper, but it suffers from cancellation. Use only the difference of the "
        "means."
    )
    judge(_merged(merge, given), np.array(_right(*given)), {}, otherwise=cancels, tolerance=1e-6)
    return "Mean and total are right, for parts of different sizes and large values."


def _merged(merge: Merge, given: tuple[float, ...]) -> Array:
    return as_array(run_answer(merge, *given, context=""), (2,), "What your function returns")


SMALLEST_SIGMA = 0.005
LEAST_SPREAD = 0.99
LARGEST_STRETCH = 2000.0
ROUNDING = 1e-6  # an answer in float32 may be this far off


@checker
def check_choose_eps(eps: Any = None) -> str:
    r"""Check an epsilon that keeps the spread of small rows and bounds the gradient.

    Rows with :math:`\sigma \ge 0.005` should come out with a standard deviation of at least 0.99,
    and no change should be stretched by a factor of more than 2000.

    Args:
        eps: one positive number.

    Example:
        >>> check_choose_eps(0.0)
        Not yet. eps must be above 0, or a constant row gives NaN.
    """
    value = float(as_array(eps, (), "Your eps"))
    if value <= 0.0:
        raise NotYet("eps must be above 0, or a constant row gives NaN.")
    variance = SMALLEST_SIGMA**2
    reached = math.sqrt(variance / (variance + value))
    stretched = 1.0 / math.sqrt(value)
    if reached < LEAST_SPREAD * (1 - ROUNDING):
        raise NotYet(
            f"A row with sigma = {SMALLEST_SIGMA} comes out with {reached:.6f} instead of at "
            f"least {LEAST_SPREAD}. Choose a smaller eps."
        )
    if stretched > LARGEST_STRETCH * (1 + ROUNDING):
        raise NotYet(
            f"Near a constant row, a change is stretched by up to {stretched:.0f}, more than "
            f"{LARGEST_STRETCH:.0f}. Choose a larger eps."
        )
    return (
        f"A row with sigma = {SMALLEST_SIGMA} comes out with {reached:.4f}, and no change is "
        f"stretched by more than {stretched:.0f}."
    )


WHICH_ROW = np.array([0.01, 0.03, 0.05, 0.07])
WHICH_EPS = 1e-3
UNDER_ROOT = WHICH_ROW.var() + WHICH_EPS
WHICH_EPS_MISTAKES: dict[str, Any] = {
    "That's the variance plus eps. Subtract the variance of the row.": UNDER_ROOT,
    "That's what the row was divided by. Square it, then subtract the variance.": (
        np.sqrt(UNDER_ROOT)
    ),
    "That eps would go outside the square root. Square the divisor before you subtract.": (
        np.sqrt(UNDER_ROOT) - WHICH_ROW.std()
    ),
    "You subtracted the unbiased variance. Divide by H = 4, not by 3.": (
        UNDER_ROOT - WHICH_ROW.var(ddof=1)
    ),
    "That's the variance of the row.": WHICH_ROW.var(),
    "That's the variance of the output.": WHICH_ROW.var() / UNDER_ROOT,
}


@checker
def check_which_eps(eps: Any = None) -> str:
    r"""Check the epsilon of a layer, given one input row and its output.

    The row is [0.01, 0.03, 0.05, 0.07]; the layer has :math:`\gamma = 1` and :math:`\beta = 0`.

    Args:
        eps: one number, to at least two digits.

    Example:
        >>> check_which_eps(0.0015)
        Not yet. That's the variance plus eps. Subtract the variance of the row.
    """
    judge(
        as_array(eps, (), "Your eps"),
        np.array(WHICH_EPS),
        WHICH_EPS_MISTAKES,
        otherwise="With this eps, the layer wouldn't give that output. Solve "
        "deviation / sqrt(variance + eps) = output for eps, for any of the four features.",
        tolerance=0.015,
        relative=True,
    )
    return "That's the default in Keras."


HALF_GAPS = np.array([2.0**-24, 2.0**-11, 2.0**-8])
REACH_MISTAKES: dict[str, Array] = {
    "you used the gap after 1. u is half of it.": (2 * HALF_GAPS) ** -0.5,
    "you doubled the gap. u is half of it.": (4 * HALF_GAPS) ** -0.5,
    "that's where the square of the mean is that large. Take the square root.": 1 / HALF_GAPS,
    "you took u itself. Solve u * mean ** 2 = 1 for the mean.": HALF_GAPS,
    "that's the square root of u. Solve u * mean ** 2 = 1 for the mean.": HALF_GAPS**0.5,
    "you swapped float16 and bfloat16. bfloat16 has fewer digits.": HALF_GAPS[[0, 2, 1]] ** -0.5,
}


@checker
def check_reach(float32: Any = None, float16: Any = None, bfloat16: Any = None) -> str:
    r"""Check the mean at which the one-pass variance has an error of 1 if the variance is 1.

    Rounding predicts a relative error of :math:`u \mu^2 / \sigma^2`, where :math:`u` is half of the
    gap between 1 and the next larger number.

    Args:
        float32: the mean in float32; 1 percent off is fine, here and below.
        float16: the mean in float16.
        bfloat16: the mean in bfloat16.

    Example:
        >>> check_reach(2**11.5, 2**5, 2**3.5)
        Not yet. float32: you used the gap after 1. u is half of it.
    """
    given = {"float32": float32, "float16": float16, "bfloat16": bfloat16}
    for place, (name, mean) in enumerate(given.items()):
        judge(
            as_array(mean, (), f"The mean in {name}"),
            HALF_GAPS[place] ** -0.5,
            {f"{name}: {text}": wrong[place] for text, wrong in REACH_MISTAKES.items()},
            otherwise=f"{name}: not right yet. Set u * mean ** 2 to 1.",
            tolerance=0.01,
            relative=True,
        )
    return "The fewer digits a format has, the closer to zero a mean has to be."
