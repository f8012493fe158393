"""Checkers for the exercises in "Compute LayerNorm, step by step"."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lnbook import reference
from lnbook.chapters.shared.checker import (
    NotYet,
    as_array,
    checker,
    judge,
    judge_choice,
    run_answer,
)

__all__ = ["check_by_hand", "check_scaled_eps", "check_slip", "check_undo"]

Array = NDArray[np.float64]

EPS = 1e-5
TOLERANCE = 0.011  # two decimals, rounded or truncated

ROW = np.array([1.0, 5.0, 6.0, 8.0])
DEVIATIONS = ROW - ROW.mean()
XHAT = reference.layer_norm(ROW, 4, eps=EPS)

MEAN_MISTAKES: dict[str, Any] = {
    "This is the sum. Divide it by the number of features.": ROW.sum(),
    "This is the median. The mean is the sum divided by H.": np.median(ROW),
}

VARIANCE_MISTAKES: dict[str, Any] = {
    "Your variance divides by H - 1. LayerNorm divides by H = 4.": ROW.var(ddof=1),
    "This is the standard deviation. The variance is its square.": ROW.std(),
    "This is the sum of the squared deviations. Divide it by H.": (DEVIATIONS**2).sum(),
    "This is the mean of the squares. Subtract the mean before you square.": (ROW**2).mean(),
}

XHAT_MISTAKES: dict[str, Any] = {
    "You divided by the variance. Divide by its square root.": DEVIATIONS / ROW.var(),
    "You divided by the square root of the unbiased variance. Use 1/H, not 1/(H - 1).": (
        DEVIATIONS / ROW.std(ddof=1)
    ),
    "You divided without subtracting the mean first.": ROW / ROW.std(),
    "These are the deviations from the mean. Divide them by the standard deviation.": DEVIATIONS,
    "Your signs are flipped. Subtract the mean from x, not x from the mean.": -XHAT,
    "That's close. Give two decimals.": np.round(XHAT, 1),
}


@checker
def check_by_hand(mean: Any = None, variance: Any = None, normalized: Any = None) -> str:
    r"""Check the mean, the variance and the normalized values of the row [1, 5, 6, 8].

    Args:
        mean: one number.
        variance: one number, the biased variance.
        normalized: four numbers, :math:`\hat{x}` with :math:`\epsilon = 10^{-5}`; two decimals are
            enough.

    Example:
        >>> check_by_hand(mean=5.0, variance=8.67)
        Not yet. Your variance divides by H - 1. LayerNorm divides by H = 4.
    """
    judge(
        as_array(mean, (), "Your mean"),
        ROW.mean(),
        MEAN_MISTAKES,
        otherwise="Your mean is off. Add up the four numbers, then divide by 4.",
        tolerance=TOLERANCE,
    )
    judge(
        as_array(variance, (), "Your variance"),
        ROW.var(),
        VARIANCE_MISTAKES,
        otherwise="Your variance is off. Square each deviation from the mean, then average the "
        "squares.",
        tolerance=TOLERANCE,
    )
    judge(
        as_array(normalized, ROW.shape, "Your row of normalized values"),
        XHAT,
        XHAT_MISTAKES,
        otherwise="Your normalized values are off. Each is (x - mean) / sqrt(variance + eps).",
        tolerance=TOLERANCE,
    )
    return "Mean, variance and all four normalized values are right."


Undo = Callable[[Array, Array, Array, Array, Array, float], ArrayLike]


def _undo_mistakes(
    y: Array, mean: Array, variance: Array, gamma: Array, beta: Array, eps: float
) -> dict[str, Array]:
    """The rows that common mistakes return instead of x."""
    xhat, root = (y - beta) / gamma, np.sqrt(variance + eps)
    return {
        "It leaves eps out. LayerNorm divided by the square root of variance + eps.": (
            xhat * np.sqrt(variance) + mean
        ),
        "It adds eps outside the square root.": xhat * (np.sqrt(variance) + eps) + mean,
        "It uses a fixed eps of 1e-5. Use the argument.": xhat * np.sqrt(variance + EPS) + mean,
        "It multiplies by the variance. Take the square root of variance + eps first.": (
            xhat * (variance + eps) + mean
        ),
        "It divides by gamma before it subtracts beta. Beta was added last, so it goes first.": (
            (y / gamma - beta) * root + mean
        ),
        "It adds the mean before it multiplies by the square root. Do it the other way around.": (
            (xhat + mean) * root
        ),
        "It ignores gamma and beta.": y * root + mean,
        "It ignores beta.": y / gamma * root + mean,
        "It ignores gamma.": (y - beta) * root + mean,
        "It multiplies by gamma. LayerNorm did that already; divide.": (
            (y - beta) * gamma * root + mean
        ),
        "It doesn't add the mean back.": xhat * root,
        "It returns the normalized row. Undo steps 1 to 4 as well.": xhat,
        "It divides by the square root. LayerNorm did that already; multiply.": xhat / root + mean,
    }


@checker
def check_undo(function: Undo) -> str:
    r"""Check a function that recovers the input of LayerNorm from its output.

    Calls `function(y, mean, variance, gamma, beta, eps)` with random batches in float64 and an
    `eps` large enough to show where it was added.

    Args:
        function: takes `y` of shape `(N, H)`, `mean` and `variance` of shape `(N, 1)`, `gamma` and
            `beta` of shape `(H,)` and `eps`, and returns :math:`x` of shape `(N, H)`.

    Example:
        >>> check_undo(lambda y, mean, variance, gamma, beta, eps: (y - beta) / gamma)
        Not yet. It returns the normalized row. Undo steps 1 to 4 as well.
    """
    rng = np.random.default_rng(2016)
    for shape, eps in (((3, 5), 0.25), ((5, 5), EPS), ((1, 7), 0.5)):
        x = rng.normal(2.0, 1.5, shape)
        gamma, beta = rng.uniform(0.5, 2.0, shape[1]), rng.normal(size=shape[1])
        mean, variance = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
        y = reference.layer_norm(x, shape[1:], gamma, beta, eps=eps)
        given = (y, mean, variance, gamma, beta, eps)
        told = f"y had the shape {shape}"
        answer = as_array(run_answer(function, *given, context=told), shape, "What you return")
        if 1e-9 < np.abs(answer - x).max() < 1e-5:
            raise NotYet("That's right only to 32-bit precision. Compute in float64.")
        otherwise = f"For y of shape {shape} and eps={eps} it doesn't return x."
        judge(answer, x, _undo_mistakes(*given), otherwise=otherwise)
    return "Your function recovers every row."


SCALE = 100.0  # the row [107, 207, 307, 407] is 100 times [1, 2, 3, 4], plus 7

SCALED_EPS_MISTAKES: dict[str, float] = {
    "That would mean that the scale makes no difference. With eps, it makes a small one.": EPS,
    "You divided by a. The variance grows with the square of a.": EPS / SCALE,
    "You multiplied by the square of a. Does eps affect the large row less, or the small one?": (
        EPS * SCALE**2
    ),
    "You multiplied by a. Which row does eps affect less, the large one or the small one?": (
        EPS * SCALE
    ),
    "You divided by the square root of a. The variance grows with the square of a.": (
        EPS / SCALE**0.5
    ),
    "You divided by the square of 107. The row is a * [1, 2, 3, 4] + b. What is a?": EPS / 107**2,
    "You divided by 107. The row is a * [1, 2, 3, 4] + b. What is a?": EPS / 107,
    "With an eps of 0, the outputs would differ, if only in the tenth decimal.": 0.0,
}


@checker
def check_scaled_eps(eps: Any = None) -> str:
    r"""Check the epsilon that gives [1, 2, 3, 4] the output of [107, 207, 307, 407] with 1e-5.

    Args:
        eps: one number, :math:`\epsilon / a^2`.

    Example:
        >>> check_scaled_eps(eps=1e-7)
        Not yet. You divided by a. The variance grows with the square of a.
    """
    judge(
        as_array(eps, (), "Your epsilon"),
        EPS / SCALE**2,
        SCALED_EPS_MISTAKES,
        otherwise="Write both normalized rows as fractions, and make their denominators equal.",
        tolerance=1e-2,
        relative=True,
    )
    return "Dividing a row by 100 is the same as multiplying epsilon by 10,000."


SLIP_ROW = np.array([4.0, 2.0, 8.0])
PUBLISHED = np.array([-0.25, -1.02, 1.27])

SLIP_LINES = {
    "a": "(a) is right: 14 / 3 is about 4.67.",
    "b": "(b) is right: with the rounded mean, 0.67 ** 2 = 0.4489, and so on.",
    "d": "(d) is right, given sigma = 2.63: for example, -0.67 / 2.63 is about -0.25.",
    "e": "(e) is right, given line (d): for example, 1.5 * (-0.25) + 0.5 = 0.125.",
}
SIGMA_MISTAKES: dict[str, Any] = {
    "This is the published value. What's the average of the three squared deviations?": 2.63,
    "This is the variance. Take its square root.": SLIP_ROW.var(),
    "This divides by H - 1. LayerNorm divides by H = 3.": SLIP_ROW.std(ddof=1),
    "This is the square root of the sum. Divide the sum by 3 first.": SLIP_ROW.std() * 3**0.5,
}
MEAN_SQUARE_MISTAKES: dict[str, Any] = {
    "This is the sum of the squares. Divide it by 3.": (PUBLISHED**2).sum(),
    "This is the square root of the mean square. Leave the square root out.": (
        (PUBLISHED**2).mean() ** 0.5
    ),
    "Use the values printed in line (d), not the right ones.": 1.0,
    "This is the mean of the values. Square them first.": PUBLISHED.mean(),
}


@checker
def check_slip(
    line: Any = None, sigma: Any = None, mean_square: Any = None, expected: Any = None
) -> str:
    r"""Check where a published example goes wrong, and the test that reveals it.

    Args:
        line: the letter of the first wrong line.
        sigma: the right standard deviation of [4, 2, 8], to two decimals.
        mean_square: the mean of the squares of the published normalized values.
        expected: what that mean should be.

    Example:
        >>> check_slip(line="b")
        Not yet. line: (b) is right: with the rounded mean, 0.67 ** 2 = 0.4489, and so on.
    """
    judge_choice(line, "line", ("a", "b", "c", "d", "e"), "c", SLIP_LINES)
    judge(
        as_array(sigma, (), "Your sigma"),
        SLIP_ROW.std(),
        SIGMA_MISTAKES,
        otherwise="That's the line, but your sigma is off. Average the squared deviations, then "
        "take the square root.",
        tolerance=TOLERANCE,
    )
    judge(
        as_array(mean_square, (), "Your mean square"),
        (PUBLISHED**2).mean(),
        MEAN_SQUARE_MISTAKES,
        otherwise="Your mean square is off. Square the three values in line (d) and average them.",
        tolerance=TOLERANCE,
    )
    judge(
        as_array(expected, (), "What it should be"),
        1.0,
        {"That's the mean. The mean of the *squares* isn't 0.": 0.0},
        otherwise="A normalized row has mean 0 and variance 1. What's its mean square?",
        tolerance=1e-4,
    )
    return "The average was wrong, and a mean square of 0.91 gives it away."
