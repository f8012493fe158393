"""Checkers for the chapter on batch sizes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lnbook.chapters.shared.checker import (
    NotYet,
    as_array,
    checker,
    judge,
    judge_choice,
    run_answer,
    running,
)

__all__ = ["check_large_eps", "check_pair", "check_report", "check_slope"]

Array = NDArray[np.float64]

# The exercise's two pairs.
FAR, NEAR, EPS = np.array([3.0, 7.0]), np.array([3.0, 3.002]), 1e-5


def _normalized(pair: Array, eps: float, divisor: int = 2) -> Array:
    deviations = pair - pair.mean()
    return np.asarray(deviations / np.sqrt((deviations**2).sum() / divisor + eps))


def _pair_mistakes(pair: Array, what: str) -> dict[str, Array]:
    deviations, variance = pair - pair.mean(), pair.var()
    return {
        f"{what} divides by n - 1. Batch normalization divides by n, here 2.": (
            _normalized(pair, EPS, 1)
        ),
        f"{what} has its signs reversed.": -_normalized(pair, EPS),
        f"{what} is centered, but not yet divided by the standard deviation.": deviations,
        f"{what} is divided by the variance. Divide by its square root.": deviations
        / (variance + EPS),
        f"{what} has eps outside the square root. Add it to the variance.": (
            deviations / (np.sqrt(variance) + EPS)
        ),
    }


@checker
def check_pair(far: Any = None, near: Any = None) -> str:
    """Check the output of batch normalization for one feature in a batch of two.

    Args:
        far: the two outputs for the values 3 and 7.
        near: the two outputs for the values 3 and 3.002. In both, eps is 1e-5, and two decimals
            are enough.

    Example:
        >>> check_pair([-1, 1], [-1, 1])
        Not yet. In the second pair, eps matters: the variance is 1e-6, only a tenth of it.
    """
    without_eps = "In the second pair, eps matters: the variance is 1e-6, only a tenth of it."
    for answer, pair, what, first in (
        (far, FAR, "Your first pair", {}),
        (near, NEAR, "Your second pair", {without_eps: _normalized(NEAR, 0.0)}),
    ):
        judge(
            as_array(answer, (2,), what),
            _normalized(pair, EPS),
            first | _pair_mistakes(pair, what),
            otherwise=f"{what} is off. First find the mean and the variance of the two numbers.",
            tolerance=0.006,
        )
    return "Unless two images nearly agree in a feature, only the sign of their difference is left."


SLOPE_CASES = ((0.02, 1e-3), (0.5, 0.1), (0.0, 1e-5))


def _slope(d: float, eps: float) -> float:
    return float(eps / (d**2 + eps) ** 1.5)


def _slope_mistakes(d: float, eps: float) -> dict[str, float]:
    root = float(np.sqrt(d**2 + eps))
    return {
        "You treated the square root as a constant. It depends on d, too.": 1 / root,
        "That's the second term of the product rule alone. The first is 1 over the square root.": (
            -(d**2) / root**3
        ),
        "The two terms have opposite signs: the square root grows with d.": (
            1 / root + d**2 / root**3
        ),
        "The exponent is off: the derivative of u to the power -1/2 has the exponent -3/2.": (
            eps / root**2
        ),
        "The derivative of d squared is 2d; the factor 2 cancels the 1/2.": (
            1 / root - d**2 / root**3 / 2
        ),
        "That's the output itself, not its derivative.": d / root,
    }


@checker
def check_slope(function: Callable[[float, float], Any]) -> str:
    r"""Check the derivative of :math:`d / \sqrt{d^2 + \epsilon}` with respect to :math:`d`.

    Calls `function(d, eps)` for several pairs of numbers.

    Args:
        function: returns the derivative, one number.

    Example:
        >>> check_slope(lambda d, eps: (d**2 + eps) ** -0.5)
        Not yet. You treated the square root as a constant. It depends on d, too.
    """
    for d, eps in SLOPE_CASES:
        answer = run_answer(function, d, eps, context=f"d = {d}, eps = {eps}")
        if answer is ...:
            raise NotYet("Your function returns nothing. Did you forget `return`?")
        number, right = as_array(answer, (), "What your function returns"), _slope(d, eps)
        judge(
            number,
            right,
            _slope_mistakes(d, eps),
            otherwise=f"For d = {d} and eps = {eps} it should be {right:.4f}, but it's "
            f"{float(number):.4f}.",
            relative=True,
        )
    return "At d = 0 it's 1 over the square root of eps: 316 with the default, the most it can be."


CHOICES = ("better", "worse", "about the same")


@checker
def check_large_eps(at_2: Any = None, at_32: Any = None) -> str:
    """Check what an epsilon of 10 does to batch normalization, compared with the default.

    Args:
        at_2: "better", "worse" or "about the same", at a batch size of 2 and a rate of 0.001.
        at_32: the same at a batch size of 32.

    Example:
        >>> check_large_eps("better", "worse")
        Not yet. at_2: an epsilon of 0.1 helps, but 10 is far above the variances, so hardly any \
normalization is left.
    """
    judge_choice(
        at_2,
        "at_2",
        CHOICES,
        "about the same",
        {
            "better": "an epsilon of 0.1 helps, but 10 is far above the variances, so hardly any "
            "normalization is left.",
            "worse": "there isn't much to lose. The default keeps only the signs; with 10, the "
            "magnitudes count again.",
        },
    )
    judge_choice(
        at_32,
        "at_32",
        CHOICES,
        "worse",
        {
            "better": "the default works well there. What would 10 add?",
            "about the same": "the default divides by a useful standard deviation. With 10, every "
            "feature is divided by nearly the same number.",
        },
    )
    return "With an epsilon far above the variances, BN centers but no longer normalizes."


def _runs() -> tuple[Array, Array]:
    """Accuracies for 4 rates and 5 seeds, with different best rates for validation and test."""
    rng = np.random.default_rng(1803)
    validation = 0.9 + 0.01 * rng.normal(size=(4, 5)) + 0.03 * np.array([[0], [2], [1], [-1]])
    test = 0.9 + 0.01 * rng.normal(size=(4, 5)) + 0.03 * np.array([[0], [1], [2], [-1]])
    validation[2, 0], test[0, 1], test[1, 2] = 0.99, 0.99, 0.985  # so the seeds disagree
    return validation, test


def _mean_mistakes(validation: Array, test: Array) -> dict[str, Array]:
    best_of_each_seed = test[validation.argmax(0), np.arange(test.shape[1])]
    return {
        "Your mean is for the rate that is best on the test images. "
        "Choose the rate that is best on the validation images.": test.mean(1).max(),
        "Your mean takes the best test result of each seed, so you chose based on the test "
        "images.": test.max(0).mean(),
        "You chose a rate for each seed. Choose one rate for all seeds, based on its mean.": (
            best_of_each_seed.mean()
        ),
        "Your mean is for the validation images. Report the test images.": (
            validation.mean(1).max()
        ),
        "Your mean is over all rates. Report only the chosen one.": test.mean(),
    }


def _spread_mistakes(best: Array, test: Array) -> dict[str, Array]:
    return {
        "Your spread divides by n. These few runs are a sample, so divide by n - 1, "
        "with ddof=1.": best.std(),
        "That's the standard error, the spread of the mean. Don't divide by the square root of "
        "n.": best.std(ddof=1) / np.sqrt(best.size),
        "That's the variance. Take its square root.": best.var(ddof=1),
        "Your spread is over all rates. Report only the chosen one.": test.std(ddof=1),
    }


@checker
def check_report(function: Callable[[Array, Array], tuple[float, float]]) -> str:
    """Check a function that chooses a learning rate and reports a result.

    Calls `function(validation, test)` with accuracies for R rates and S seeds, both of shape
    `(R, S)`.

    Args:
        function: returns the mean and the standard deviation (with n - 1) of the test accuracy
            over the seeds, at the rate with the best mean accuracy on validation images. Three
            decimals are enough.

    Example:
        >>> check_report(lambda validation, test: (test.max(0).mean(), test.max(0).std(ddof=1)))
        Not yet. Your mean takes the best test result of each seed, so you chose based on the test \
images.
    """
    validation, test = _runs()
    with running():
        answer = function(validation.copy(), test.copy())
    mean, spread = as_array(answer, (2,), "What your function returns")
    best = test[validation.mean(1).argmax()]
    judge(
        mean,
        best.mean(),
        _mean_mistakes(validation, test),
        otherwise="Your mean is off. Find the best row of validation, then take that row of test.",
        tolerance=0.0006,  # three decimals
    )
    judge(
        spread,
        best.std(ddof=1),
        _spread_mistakes(best, test),
        otherwise="Your mean is right, but the spread is off.",
        tolerance=0.02,  # three decimals, too; 0.0006 would take 0 for the variance
        relative=True,
    )
    return "You chose one rate for all seeds, without looking at the test images."
