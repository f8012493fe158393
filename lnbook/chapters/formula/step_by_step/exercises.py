"""The checkers of the chapter on the formula, step by step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lnbook import reference
from lnbook.chapters.shared.checker import NotYet, as_array, checker, judge, run_answer

__all__ = ["check_by_hand", "check_normalize_rows", "check_target"]

Array = NDArray[np.float64]

EPS = 1e-5
TOLERANCE = 0.011  # two decimals, rounded or cut off

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
    "You divided by the root of the unbiased variance. Use 1/H, not 1/(H - 1).": (
        DEVIATIONS / ROW.std(ddof=1)
    ),
    "You divided without subtracting the mean first.": ROW / ROW.std(),
    "These are the deviations from the mean. Divide them by the standard deviation.": DEVIATIONS,
    "Your signs are the wrong way around: subtract the mean from x.": -XHAT,
    "That is close. Give two decimals.": np.round(XHAT, 1),
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
        otherwise="Your mean is off: add the four numbers, then divide by 4.",
        tolerance=TOLERANCE,
    )
    judge(
        as_array(variance, (), "Your variance"),
        ROW.var(),
        VARIANCE_MISTAKES,
        otherwise="Your variance is off: square each deviation from the mean, then average the "
        "squares.",
        tolerance=TOLERANCE,
    )
    judge(
        as_array(normalized, ROW.shape, "Your row of normalized values"),
        XHAT,
        XHAT_MISTAKES,
        otherwise="Your normalized values are off: each is (x - mean) / sqrt(variance + eps).",
        tolerance=TOLERANCE,
    )
    return "Mean, variance and all four normalized values are right."


def _mistakes(x: Array, eps: float) -> dict[str, Array]:
    """What known mistakes make of a batch of rows."""
    mean, var = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
    centered, std = x - mean, x.std(-1, keepdims=True)
    root = np.sqrt(var + eps)
    return {
        "It normalizes each column. LayerNorm takes its statistics along each row.": (
            (x - x.mean(0)) / np.sqrt(x.var(0) + eps)
        ),
        "It takes one mean over the whole array. Every row has its own: use axis=-1.": (
            (x - x.mean()) / np.sqrt(x.var() + eps)
        ),
        "It divides by H - 1 in the variance. LayerNorm divides by H.": (
            centered / np.sqrt(x.var(-1, ddof=1, keepdims=True) + eps)
        ),
        "It adds eps outside the root. Add it to the variance, then take the root.": (
            centered / (std + eps)
        ),
        "It uses an eps of its own. Use the argument.": centered / np.sqrt(var + EPS),
        "Its variance is that of the whole array. Every row has its own.": (
            centered / np.sqrt(x.var() + eps)
        ),
        "It sums the squared deviations. Divide the sum by H.": (
            centered / np.sqrt((centered**2).sum(-1, keepdims=True) + eps)
        ),
        "It divides only the mean. Put x - mean in parentheses.": x - mean / root,
        "It leaves eps out.": centered / std,
        "It divides by the variance. Divide by the root of the variance plus eps.": (
            centered / (var + eps)
        ),
        "It does not subtract the mean.": x / root,
        "It divides by the root mean square. That is RMSNorm: subtract the mean first.": (
            x / np.sqrt((x**2).mean(-1, keepdims=True) + eps)
        ),
        "It subtracts the mean, but does not divide.": centered,
    }


@checker
def check_normalize_rows(function: Callable[[Array, float], ArrayLike]) -> str:
    r"""Check a function that normalizes each row of a batch.

    Calls `function(x, eps)` with random batches in float64, with an `eps` large enough to tell
    where it was added, and with a constant row.

    Args:
        function: takes `x` of shape `(N, H)` and `eps`, returns :math:`\hat{x}` of that shape.

    Example:
        >>> check_normalize_rows(lambda x, eps: x - x.mean(axis=-1, keepdims=True))
        Not yet. It subtracts the mean, but does not divide.
    """
    rng = np.random.default_rng(2016)
    for shape, eps in (((3, 5), 0.25), ((5, 5), EPS), ((1, 7), 0.5)):
        x = rng.normal(2.0, 1.5, shape)
        answer = _normalized(function, x, eps)
        expected = reference.layer_norm(x, shape[-1:], eps=eps)
        if 1e-9 < np.abs(answer - expected).max() < 1e-5:
            raise NotYet("That is right to 32-bit precision only: compute in float64.")
        told = f"For x of shape {shape} and eps={eps} the values differ from the reference."
        judge(answer, expected, _mistakes(x, eps), otherwise=told)
    if _normalized(function, np.full((2, 4), 3.0), EPS).any():
        raise NotYet("A constant row should become exactly 0.")
    return "Your function agrees with the reference, constant rows included."


def _normalized(function: Callable[[Array, float], ArrayLike], x: Array, eps: float) -> Array:
    answer = run_answer(function, x, eps, context=f"x had the shape {x.shape}")
    return as_array(answer, x.shape, "What your function returns")


TARGET_ROW = (4.0, 2.0, 8.0)
TARGET_MEAN = 10.0
TARGET_DEVIATION = 3.0


@checker
def check_target(weight: Any = None, bias: Any = None) -> str:
    r"""Check a gamma and a beta that give the row [4, 2, 8] the mean 10 and the deviation 3.

    Args:
        weight: :math:`\gamma`: one number, or three equal ones.
        bias: :math:`\beta`: one number, or three.

    Example:
        >>> check_target(weight=3.0, bias=0.0)
        Not yet. The output has mean 0.000 and standard deviation 3.000; asked for: 10 and 3.
    """
    gamma, beta = _one_or_three(weight, "Your gamma"), _one_or_three(bias, "Your beta")
    y = reference.layer_norm(TARGET_ROW, 3, gamma, beta, eps=EPS)
    mean, deviation = np.round([y.mean(), y.std()], 3) + 0.0  # + 0.0 turns -0.0 into 0.0
    told = f"The output has mean {mean:.3f} and standard deviation {deviation:.3f}"

    def reached(*target: float) -> bool:
        return np.allclose([mean, deviation], target, rtol=0.0, atol=5e-3)

    if reached(TARGET_MEAN, TARGET_DEVIATION):
        return f"{told} and turns the pattern upside down." if gamma[0] < 0 else f"{told}."
    hint = ""
    if reached(TARGET_DEVIATION, TARGET_MEAN):
        hint = " You swapped the two: gamma sets the spread, beta the mean."
    elif np.isclose(deviation, TARGET_DEVIATION**2, rtol=0.0, atol=5e-3):
        hint = " That gamma is the variance that was asked for. Take its root."
    raise NotYet(f"{told}; asked for: {TARGET_MEAN:.0f} and {TARGET_DEVIATION:.0f}.{hint}")


def _one_or_three(value: Any, what: str) -> Array:
    one = np.ndim(value) == 0 and value is not None and value is not ...
    return as_array(np.full(3, value) if one else value, (3,), what)
