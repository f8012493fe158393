"""The checkers of the part on the formula."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lnbook import reference
from lnbook.chapters.shared.checker import Verdict, as_array, called, judge

__all__ = ["check_by_hand", "check_normalize_rows", "check_target"]

Array = NDArray[np.float64]

BY_HAND_ROW = (1.0, 5.0, 6.0, 8.0)
BY_HAND_TOLERANCE = 0.011  # two decimals, rounded or cut off
EPS = 1e-5


def check_by_hand(mean: Any = None, variance: Any = None, normalized: Any = None) -> Verdict:
    r"""Check the mean, the variance and the normalized values of the row [1, 5, 6, 8].

    Args:
        mean: one number.
        variance: one number, the biased variance.
        normalized: four numbers, :math:`\hat{x}` with :math:`\epsilon = 10^{-5}`.

    Returns:
        The verdict; a known mistake is called by its name. Two decimals are enough.

    Example:
        >>> check_by_hand(mean=5.0, variance=8.67)
        Not yet. Your variance divides by H - 1. LayerNorm divides by H = 4.
    """
    row = np.array(BY_HAND_ROW)
    right = reference.layer_norm_forward(row, eps=EPS)
    mu, var = right.mean.item(), right.variance.item()
    checks: list[tuple[Any, tuple[int, ...], str, Array, dict[str, Any], str]] = [
        (
            mean,
            (),
            "Your mean",
            np.array(mu),
            {
                "This is the sum. Divide it by the number of features.": np.array(row.sum()),
                "This is the median. The mean is the sum divided by H.": np.array(np.median(row)),
            },
            "Your mean is off: add the four numbers, then divide by 4.",
        ),
        (
            variance,
            (),
            "Your variance",
            np.array(var),
            {
                "Your variance divides by H - 1. LayerNorm divides by H = 4.": np.array(
                    row.var(ddof=1)
                ),
                "This is the standard deviation. The variance is its square.": np.array(row.std()),
                "This is the sum of the squared deviations. Divide it by H.": np.array(
                    ((row - mu) ** 2).sum()
                ),
                "This is the mean of the squares. Subtract the mean before you square.": np.array(
                    (row**2).mean()
                ),
            },
            "Your variance is off: square each deviation from the mean, then average the squares.",
        ),
        (
            normalized,
            row.shape,
            "Your row of normalized values",
            right.normalized,
            {
                "You divided by the variance. Divide by its square root.": (row - mu) / var,
                "You divided by the root of the unbiased variance. Use 1/H, not 1/(H - 1).": (
                    row - mu
                )
                / row.std(ddof=1),
                "You divided without subtracting the mean first.": row / row.std(),
                "These are the deviations from the mean. Divide them by the standard deviation.": (
                    row - mu
                ),
                "Your signs are the wrong way around: subtract the mean from x.": (
                    -right.normalized
                ),
                "That is close. Give two decimals.": np.round(right.normalized, 1),
            },
            "Your normalized values are off: each is (x - mean) / sqrt(variance + eps).",
        ),
    ]
    for answer, shape, what, expected, mistakes, otherwise in checks:
        array = as_array(answer, shape, what)
        if isinstance(array, Verdict):
            return array
        verdict = judge(array, expected, mistakes, otherwise=otherwise, tolerance=BY_HAND_TOLERANCE)
        if verdict is not None:
            return verdict
    return Verdict(True, "Mean, variance and all four normalized values are right.")


def _wrong_axis(x: Array, eps: float) -> Array:
    wrong: Array = (x - x.mean(0)) / np.sqrt(x.var(0) + eps)
    return wrong


def _whole_array(x: Array, eps: float) -> Array:
    wrong: Array = (x - x.mean()) / np.sqrt(x.var() + eps)
    return wrong


def _centered(x: Array) -> Array:
    centered: Array = x - x.mean(-1, keepdims=True)
    return centered


MISTAKES: dict[str, Callable[[Array, float], Array]] = {
    "It normalizes each column. LayerNorm takes its statistics along each row.": _wrong_axis,
    "It takes one mean over the whole array. Every row has its own: use axis=-1.": _whole_array,
    "It divides by H - 1 in the variance. LayerNorm divides by H.": lambda x, eps: (
        _centered(x) / np.sqrt(x.var(-1, ddof=1, keepdims=True) + eps)
    ),
    "It adds eps outside the root. Add it to the variance, then take the root.": lambda x, eps: (
        _centered(x) / (x.std(-1, keepdims=True) + eps)
    ),
    "It uses an eps of its own. Use the argument.": lambda x, _eps: (
        _centered(x) / np.sqrt(x.var(-1, keepdims=True) + EPS)
    ),
    "Its variance is that of the whole array. Every row has its own.": lambda x, eps: (
        _centered(x) / np.sqrt(x.var() + eps)
    ),
    "It sums the squared deviations. Divide the sum by H.": lambda x, eps: (
        _centered(x) / np.sqrt((_centered(x) ** 2).sum(-1, keepdims=True) + eps)
    ),
    "It divides only the mean. Put x - mean in parentheses.": lambda x, eps: (
        x - x.mean(-1, keepdims=True) / np.sqrt(x.var(-1, keepdims=True) + eps)
    ),
    "It leaves eps out.": lambda x, _eps: _centered(x) / x.std(-1, keepdims=True),
    "It divides by the variance. Divide by the root of the variance plus eps.": lambda x, eps: (
        _centered(x) / (x.var(-1, keepdims=True) + eps)
    ),
    "It does not subtract the mean.": lambda x, eps: x / np.sqrt(x.var(-1, keepdims=True) + eps),
    "It divides by the root mean square. That is RMSNorm: subtract the mean first.": (
        lambda x, eps: x / np.sqrt((x**2).mean(-1, keepdims=True) + eps)
    ),
    "It subtracts the mean, but does not divide.": lambda x, _eps: _centered(x),
}


def check_normalize_rows(function: Callable[[Array, float], ArrayLike]) -> Verdict:
    r"""Check a function that normalizes each row of a batch.

    Calls `function(x, eps)` with random batches in float64, with an `eps` large enough to tell
    where it was added, and with a constant row.

    Args:
        function: takes `x` of shape `(N, H)` and `eps`, returns :math:`\hat{x}` of that shape.

    Returns:
        The verdict; a known mistake is called by its name.

    Example:
        >>> check_normalize_rows(lambda x, eps: x - x.mean(axis=-1, keepdims=True))
        Not yet. It subtracts the mean, but does not divide.
    """
    rng = np.random.default_rng(2016)
    for shape, eps in (((3, 5), 0.25), ((5, 5), EPS), ((1, 7), 0.5)):
        x = rng.normal(2.0, 1.5, shape)
        verdict = _check_batch(function, x, eps)
        if verdict is not None:
            return verdict
    constant = _answer(function, np.full((2, 4), 3.0), EPS)
    if isinstance(constant, Verdict):
        return constant
    if np.abs(constant).max() > 0.0:
        return Verdict(False, "A constant row should become exactly 0.")
    return Verdict(True, "Your function agrees with the reference, constant rows included.")


def _answer(function: Callable[[Array, float], ArrayLike], x: Array, eps: float) -> Array | Verdict:
    answer = called(function, x, eps, told=f"x had the shape {x.shape}")
    if isinstance(answer, Verdict):
        return answer
    return as_array(answer, x.shape, "What your function returns")


def _check_batch(
    function: Callable[[Array, float], ArrayLike], x: Array, eps: float
) -> Verdict | None:
    answer = _answer(function, x, eps)
    if isinstance(answer, Verdict):
        return answer
    expected = reference.layer_norm(x, x.shape[-1:], eps=eps)
    if np.abs(answer - expected).max() < 1e-5 and np.abs(answer - expected).max() > 1e-9:
        return Verdict(False, "That is right to 32-bit precision only: compute in float64.")
    return judge(
        answer,
        expected,
        {text: wrong(x, eps) for text, wrong in MISTAKES.items()},
        otherwise=f"For x of shape {x.shape} and eps={eps} the values differ from the reference.",
        tolerance=1e-9,
    )


TARGET_ROW = (4.0, 2.0, 8.0)
TARGET_MEAN = 10.0
TARGET_DEVIATION = 3.0


def check_target(weight: Any = None, bias: Any = None) -> Verdict:
    r"""Check a gamma and a beta that give the row [4, 2, 8] the mean 10 and the deviation 3.

    Args:
        weight: :math:`\gamma`: one number, or three equal ones.
        bias: :math:`\beta`: one number, or three.

    Returns:
        The verdict, with the mean and the standard deviation that were reached.

    Example:
        >>> check_target(weight=3.0, bias=0.0)
        Not yet. The output has mean 0.000 and standard deviation 3.000; asked for: 10 and 3.
    """
    parameters = []
    for value, what in ((weight, "gamma"), (bias, "beta")):
        if np.ndim(value) == 0 and value is not None and value is not ...:
            value = np.full(len(TARGET_ROW), value)
        array = as_array(value, (len(TARGET_ROW),), f"Your {what}")
        if isinstance(array, Verdict):
            return array
        parameters.append(array)
    y = reference.layer_norm(TARGET_ROW, (3,), parameters[0], parameters[1], eps=EPS)
    mean, deviation = np.round([y.mean(), y.std()], 3) + 0.0  # + 0.0 turns -0.0 into 0.0
    told = f"The output has mean {mean:.3f} and standard deviation {deviation:.3f}"
    if np.allclose([mean, deviation], [TARGET_MEAN, TARGET_DEVIATION], rtol=0.0, atol=5e-3):
        upside_down = " and turns the pattern upside down" if parameters[0][0] < 0 else ""
        return Verdict(True, f"{told}{upside_down}.")
    hint = ""
    if np.allclose([mean, deviation], [TARGET_DEVIATION, TARGET_MEAN], rtol=0.0, atol=5e-3):
        hint = " You swapped the two: gamma sets the spread, beta the mean."
    elif np.isclose(deviation, TARGET_DEVIATION**2, rtol=0.0, atol=5e-3):
        hint = " That gamma is the variance that was asked for. Take its root."
    asked = f"asked for: {TARGET_MEAN:.0f} and {TARGET_DEVIATION:.0f}"
    return Verdict(False, f"{told}; {asked}.{hint}")
