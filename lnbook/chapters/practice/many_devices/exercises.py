"""Checkers for the chapter's exercises."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lnbook.chapters.shared.checker import as_array, checker, judge, judge_choice, run_answer

__all__ = ["check_merge", "check_reductions", "check_two_halves"]

Array = NDArray[np.float64]


@checker
def check_two_halves(mean: Any = None, variance: Any = None) -> str:
    r"""Check the mean and variance of a row whose halves are on two devices.

    The halves are [1, 3] and [5, 7].

    Args:
        mean: the mean of the whole row.
        variance: the biased variance of the whole row.

    Example:
        >>> check_two_halves(mean=4, variance=1)
        Not yet. That's the mean of the two variances. The halves' means differ, too.
    """
    judge(
        as_array(mean, (), "Your mean"),
        np.array(4.0),
        {"That's the sum of the two means. Divide by 2.": np.array(8.0)},
        otherwise="Each device sends its mean. The halves have the same size.",
    )
    judge(
        as_array(variance, (), "Your variance"),
        np.array(5.0),
        {
            "That's the mean of the two variances. The halves' means differ, too.": np.array(1.0),
            "That's the sum of the squared deviations. Divide by the number of entries.": (
                np.array(20.0)
            ),
            "That's the unbiased variance. LayerNorm divides by H, not by H - 1.": (
                np.array(20 / 3)
            ),
            "That's the standard deviation.": np.array(5.0**0.5),
        },
        otherwise="Take the squared deviations from the mean of the whole row.",
        tolerance=0.006,
    )
    return "Within the halves the variance is 1, and between their means it's 4."


def _merge(means: Array, variances: Array) -> Array:
    return np.array([means.mean(), variances.mean() + means.var()])


MERGE_MISTAKES: dict[str, Callable[[Array, Array], Array]] = {
    "It averages the variances. The means of the parts differ as well.": (
        lambda means, variances: np.array([means.mean(), variances.mean()])
    ),
    "It sums the variances.": lambda m, v: np.array([m.mean(), v.sum() + m.var()]),
    "It sums the squared deviations of the means. Divide by the number of parts.": (
        lambda m, v: np.array([m.mean(), v.mean() + m.size * m.var()])
    ),
    "It leaves out the variances within the parts.": lambda m, v: np.array([m.mean(), m.var()]),
    "It uses the unbiased variance of the means. Divide by the number of parts, not by one less.": (
        lambda m, v: np.array([m.mean(), v.mean() + m.var(ddof=1)])
    ),
    "It subtracts the variance of the means.": (
        lambda m, v: np.array([m.mean(), v.mean() - m.var()])
    ),
}


@checker
def check_merge(function: Callable[[Array, Array], Any]) -> str:
    r"""Check a function that merges the means and variances of equal parts of a row.

    .. math::
        \mu = \overline{\mu_k}, \qquad v = \overline{v_k} + \overline{(\mu_k - \mu)^2}

    Source: Chan, Golub and LeVeque 1983, for parts of equal size.

    Args:
        function: takes the parts' means and biased variances, arrays of shape (K,), and returns the
            mean and the biased variance of the whole row.

    Example:
        >>> check_merge(lambda means, variances: (means.mean(), variances.mean()))
        Not yet. It averages the variances. The means of the parts differ as well.
    """
    rng = np.random.default_rng(8)
    for parts in (4, 2, 8):
        rows = rng.normal(rng.normal(size=(parts, 1)), 0.5, size=(parts, 6))
        means, variances = rows.mean(1), rows.var(1)
        answer = run_answer(function, means, variances, context=f"with {parts} parts")
        judge(
            as_array(answer, (2,), "What your function returns"),
            np.array([rows.mean(), rows.var()]),
            {text: wrong(means, variances) for text, wrong in MERGE_MISTAKES.items()},
            otherwise=f"The result is wrong for {parts} parts. "
            "Total variance is the variance within the parts plus the variance of their means.",
        )
    return "Two numbers per part are enough."


WHAT = ("nothing", "sum", "average")
RIGHT = {"a": "average", "b": "sum", "c": "nothing", "d": "nothing"}
WHY = {
    "a": "Each device's loss is a mean over its own images, not over all of the images.",
    "b": "Each device has only its own tokens' gradients, but the loss sums over all tokens.",
    "c": "Every device has computed the norm of all tokens and has the whole gradient already.",
    "d": "Each device owns its own part of gamma, and no other device has that part.",
}


@checker
def check_reductions(**answers: Any) -> str:
    """Check what to do with the gradient of gamma for four ways to split a model.

    Args:
        answers: for each of a, b, c and d, one of "nothing", "sum" or "average".

    Example:
        >>> check_reductions(a="sum", b="sum", c="nothing", d="nothing")
        Not yet. a: Each device's loss is a mean over its own images, not over all of the images.
    """
    for letter, right in RIGHT.items():
        judge_choice(answers.get(letter), letter, WHAT, right, WHY[letter])
    return "The rule: if each device has only a part, add the parts up, once."
