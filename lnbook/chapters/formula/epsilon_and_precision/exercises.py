"""The checkers of the chapter on epsilon and precision."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lnbook.chapters.shared.checker import Verdict, as_array, judge

__all__ = ["check_choose_eps", "check_merge", "check_which_eps"]

Array = NDArray[np.float64]
Pair = tuple[float, float]
Merge = Callable[[int, float, float, int, float, float], Pair]

PARTS: tuple[tuple[tuple[float, ...], tuple[float, ...]], ...] = (
    ((3.0, 5.0, 10.0), (4.0, 1.0)),
    ((-2.5, 0.5, 4.0, 4.0), (7.25,)),
    ((1e8 + 4.0, 1e8 + 7.0), (1e8 + 13.0, 1e8 + 16.0, 1e8 + 10.0)),
)


def _statistics(part: tuple[float, ...]) -> tuple[int, float, float]:
    values = np.array(part)
    mean = float(values.mean())
    return len(part), mean, float(((values - mean) ** 2).sum())


def _merged_mean(n_a: int, mean_a: float, n_b: int, mean_b: float) -> float:
    return mean_a + (mean_b - mean_a) * n_b / (n_a + n_b)


def _right(
    n_a: int, mean_a: float, total_a: float, n_b: int, mean_b: float, total_b: float
) -> Pair:
    between = (mean_b - mean_a) ** 2 * n_a * n_b / (n_a + n_b)
    return _merged_mean(n_a, mean_a, n_b, mean_b), total_a + total_b + between


def _plain_average(
    n_a: int, mean_a: float, total_a: float, n_b: int, mean_b: float, total_b: float
) -> Pair:
    mean = (mean_a + mean_b) / 2
    moved = n_a * (mean_a - mean) ** 2 + n_b * (mean_b - mean) ** 2
    return mean, total_a + total_b + moved


def _only_added(
    n_a: int, mean_a: float, total_a: float, n_b: int, mean_b: float, total_b: float
) -> Pair:
    return _merged_mean(n_a, mean_a, n_b, mean_b), total_a + total_b


def _no_counts(
    n_a: int, mean_a: float, total_a: float, n_b: int, mean_b: float, total_b: float
) -> Pair:
    mean = _merged_mean(n_a, mean_a, n_b, mean_b)
    return mean, total_a + total_b + (mean_a - mean) ** 2 + (mean_b - mean) ** 2


def _whole_delta(
    n_a: int, mean_a: float, total_a: float, n_b: int, mean_b: float, total_b: float
) -> Pair:
    mean = _merged_mean(n_a, mean_a, n_b, mean_b)
    return mean, total_a + total_b + (mean_b - mean_a) ** 2


def _swapped_weights(
    n_a: int, mean_a: float, total_a: float, n_b: int, mean_b: float, total_b: float
) -> Pair:
    mean = _merged_mean(n_b, mean_a, n_a, mean_b)
    moved = n_a * (mean_a - mean) ** 2 + n_b * (mean_b - mean) ** 2
    return mean, total_a + total_b + moved


def _as_variance(
    n_a: int, mean_a: float, total_a: float, n_b: int, mean_b: float, total_b: float
) -> Pair:
    mean, total = _right(n_a, mean_a, total_a, n_b, mean_b, total_b)
    return mean, total / (n_a + n_b)


def _swapped(
    n_a: int, mean_a: float, total_a: float, n_b: int, mean_b: float, total_b: float
) -> Pair:
    mean, total = _right(n_a, mean_a, total_a, n_b, mean_b, total_b)
    return total, mean


def _weighted_totals(
    n_a: int, mean_a: float, total_a: float, n_b: int, mean_b: float, total_b: float
) -> Pair:
    mean = _merged_mean(n_a, mean_a, n_b, mean_b)
    return mean, (n_a * total_a + n_b * total_b) / (n_a + n_b)


MISTAKES: dict[str, Merge] = {
    "It gives both means the same weight. The larger part counts more.": _plain_average,
    "It only adds the totals. The parts have different means: that adds to the spread.": (
        _only_added
    ),
    "It moves each total once. Every value of a part deviates more: multiply by its count.": (
        _no_counts
    ),
    "It adds the squared distance of the means without n_a n_b / (n_a + n_b).": _whole_delta,
    "It weights each mean with the count of the other part.": _swapped_weights,
    "Its total is the variance. Return the sum of the squared deviations.": _as_variance,
    "It returns the total first. Return the mean, then the total.": _swapped,
    "It averages the totals. They are sums: the parts' totals add up, and more comes in.": (
        _weighted_totals
    ),
}


def check_merge(merge: Merge) -> Verdict:
    r"""Check a function that merges the statistics of two parts of a row.

    Calls `merge(n_a, mean_a, total_a, n_b, mean_b, total_b)` for parts of several rows, one of
    them with large values, which tells a formula that cancels.

    .. math::
        \mu = \mu_a + \delta \frac{n_b}{n_a + n_b}, \qquad
        M = M_a + M_b + \delta^2 \frac{n_a n_b}{n_a + n_b}, \qquad \delta = \mu_b - \mu_a

    Source: Chan, Golub and LeVeque 1983.

    Args:
        merge: returns the mean and the sum of squared deviations of the whole, as two numbers.

    Returns:
        The verdict; a known mistake is called by its name.

    Example:
        >>> check_merge(lambda n_a, mean_a, total_a, n_b, mean_b, total_b: (1.0, 2.0, 3.0))
        Not yet. What your function returns should be numbers of shape (2,), but has the shape (3,).
    """
    for part_a, part_b in PARTS:
        given = (*_statistics(part_a), *_statistics(part_b))
        try:
            answer = merge(*given)
        except Exception as error:
            return Verdict(False, f"Your function raised {type(error).__name__}: {error}.")
        if answer is None:
            return Verdict(False, "Your function returns nothing. Did you forget `return`?")
        pair = as_array(answer, (2,), "What your function returns")
        if isinstance(pair, Verdict):
            return pair
        right = np.array(_right(*given))
        names = [f"[{', '.join(f'{value:g}' for value in part)}]" for part in (part_a, part_b)]
        verdict = judge(
            pair,
            right,
            {text: np.array(mistake(*given)) for text, mistake in MISTAKES.items()},
            otherwise=f"For the parts {' and '.join(names)} the mean should be {right[0]:.6g} and "
            f"the total {right[1]:.6g}, but yours are {pair[0]:.6g} and {pair[1]:.6g}.",
            tolerance=1e-6,
        )
        if verdict is not None and max(map(abs, part_a)) > 1e6:
            return Verdict(
                False, "It is right on paper, but cancels: use differences of the means only."
            )
        if verdict is not None:
            return verdict
    return Verdict(True, "Mean and total are right, for parts of different sizes and large values.")


SMALLEST_SIGMA = 0.05
LEAST_SPREAD = 0.99
LARGEST_STRETCH = 1000.0


def check_choose_eps(eps: Any = None) -> Verdict:
    r"""Check an epsilon that keeps the spread of small rows and bounds the gradient.

    Asked for: rows with :math:`\sigma \ge 0.05` come out with a standard deviation of at least
    0.99, and no change is stretched by more than 1000.

    Args:
        eps: one positive number.

    Returns:
        The verdict, with the spread and the stretch that were reached.

    Example:
        >>> check_choose_eps(0.0)
        Not yet. eps must be above 0: otherwise a constant row gives NaN.
    """
    answer = as_array(eps, (), "Your eps")
    if isinstance(answer, Verdict):
        return answer
    value = float(answer)
    if value <= 0.0:
        return Verdict(False, "eps must be above 0: otherwise a constant row gives NaN.")
    variance = SMALLEST_SIGMA**2
    reached = math.sqrt(variance / (variance + value))
    stretched = 1.0 / math.sqrt(value)
    if reached < LEAST_SPREAD:
        return Verdict(
            False,
            f"A row with sigma = {SMALLEST_SIGMA} comes out with {reached:.3f} instead of at "
            f"least {LEAST_SPREAD}: choose a smaller eps.",
        )
    if stretched > LARGEST_STRETCH * (1 + 1e-9):
        return Verdict(
            False,
            f"Near a constant row a change is stretched by up to {stretched:.0f}, more than "
            f"{LARGEST_STRETCH:.0f}: choose a larger eps.",
        )
    return Verdict(
        True,
        f"A row with sigma = {SMALLEST_SIGMA} comes out with {reached:.4f}, and no change is "
        f"stretched by more than {stretched:.0f}.",
    )


WHICH_ROW = (0.01, 0.03, 0.05, 0.07)
WHICH_EPS = 1e-3


def check_which_eps(eps: Any = None) -> Verdict:
    r"""Check the epsilon of a layer of which one input row and its output are known.

    The row is [0.01, 0.03, 0.05, 0.07]; the layer has :math:`\gamma = 1` and :math:`\beta = 0`.

    Args:
        eps: one number, to two digits or more.

    Returns:
        The verdict; a known mistake is called by its name.

    Example:
        >>> check_which_eps(0.0015)
        Not yet. This is the variance plus eps. Subtract the variance of the row.
    """
    answer = as_array(eps, (), "Your eps")
    if isinstance(answer, Verdict):
        return answer
    row = np.array(WHICH_ROW)
    under = row.var() + WHICH_EPS
    mistakes = {
        "This is the variance plus eps. Subtract the variance of the row.": np.array(under),
        "This is what the row was divided by. Square it, then subtract the variance.": np.array(
            np.sqrt(under)
        ),
        "That eps would stand outside the root. Square the divisor before you subtract.": np.array(
            np.sqrt(under) - row.std()
        ),
        "You subtracted the unbiased variance. Divide by H = 4, not by 3.": np.array(
            under - row.var(ddof=1)
        ),
        "This is the variance of the row.": np.array(row.var()),
        "This is the variance of the output.": np.array(row.var() / under),
    }
    verdict = judge(
        answer,
        np.array(WHICH_EPS),
        {
            text: answer if np.isclose(answer, wrong, rtol=0.005) else wrong
            for text, wrong in mistakes.items()
        },
        otherwise="With this eps the layer would not give that output: solve "
        "deviation / sqrt(variance + eps) = output for eps, for any of the four features.",
        tolerance=0.015 * WHICH_EPS,
    )
    return verdict or Verdict(True, "That is the default of Keras.")
