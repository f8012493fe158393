"""The checkers for the chapter on myths about LayerNorm."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import permutations
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lnbook import reference
from lnbook.chapters.shared.checker import (
    NotYet,
    as_array,
    checker,
    judge,
    judge_letters,
    run_answer,
)

__all__ = ["MISTAKES", "STATEMENTS", "check_order", "check_shortfall", "check_verdicts"]

Array = NDArray[np.float64]
Shortfall = Callable[[Array, float], Any]

EPS = 1e-5

# For each statement: whether it is true, and a hint for a wrong answer.
STATEMENTS: Mapping[str, tuple[bool, str]] = {
    "a": (
        True,
        "a: after centering, rows with the same normalized form point in the same direction.",
    ),
    "b": (False, "b: a bias of [1, 0, 0, 0] has an effect. Which bias has none?"),
    "c": (True, "c: what happens to the mean and the variance when all signs flip?"),
    "d": (False, "d: what is the sum of the outputs of such a LayerNorm?"),
    "e": (
        True,
        "e: adding a constant to a row changes nothing. What does that say about the gradient?",
    ),
    "f": (
        True,
        "f: all features of a row are shifted by one number and divided by one positive number.",
    ),
    "g": (False, "g: try a row with a mean of 10,000 and a standard deviation of 1."),
}


@checker
def check_verdicts(letters: Any = None) -> str:
    r"""Check which of seven statements are true.

    Args:
        letters: the letters of the true ones, such as "ab".

    Example:
        >>> check_verdicts("abcef")
        Not yet. b: a bias of [1, 0, 0, 0] has an effect. Which bias has none?
    """
    judge_letters(letters, STATEMENTS)
    return "All seven."


ORDER_FEATURES = 3


@checker
def check_order(x: Any = None, gamma: Any = None) -> str:
    r"""Check a row and a positive gamma for which LayerNorm changes the order of the features.

    Args:
        x: three numbers, the row.
        gamma: three positive numbers; beta is 0.

    Example:
        >>> check_order([1.0, 2.0, 4.0], [1.0, 1.0, 1.0])
        Not yet. All your gammas are equal. That stretches the row but keeps its order.
    """
    row = as_array(x, (ORDER_FEATURES,), "Your row")
    weight = as_array(gamma, (ORDER_FEATURES,), "Your gamma")
    if not (weight > 0).all():
        raise NotYet("Every gamma should be positive: a negative one would be too easy.")
    if np.ptp(row) == 0.0:
        raise NotYet("Your row is constant, so there is no order to change.")
    y = reference.layer_norm(row, ORDER_FEATURES, weight, eps=EPS)
    for i, j in permutations(range(ORDER_FEATURES), 2):
        if row[i] > row[j] and y[i] < y[j] - 1e-9:
            return (
                f"Feature {i + 1} is larger than feature {j + 1} in the row ({row[i]:g} > "
                f"{row[j]:g}), but smaller in the output ({y[i]:.2f} < {y[j]:.2f})."
            )
    if np.ptp(weight) == 0.0:
        raise NotYet("All your gammas are equal. That stretches the row but keeps its order.")
    off = row - row.mean()
    rounding = 1e-9 * np.ptp(row)
    if all(np.ptp(side) < rounding for side in (off[off > rounding], off[off < -rounding])):
        raise NotYet(
            "No positive gamma can change the order in this row. It needs two different features "
            "on the same side of the mean."
        )
    if all(np.ptp(weight[side]) == 0.0 for side in (off > 0, off <= 0)):
        raise NotYet(
            "Your gammas differ only between features on different sides of the mean, and "
            "their signs keep those in order. Choose two on the same side."
        )
    raise NotYet(
        f"The order is kept: the output is {np.round(y, 2)}. Make your gammas differ more, or give "
        "the larger one to the feature closer to the mean."
    )


def _rows(rng: np.random.Generator) -> Array:
    """Rows with an ordinary spread, a small spread and no spread."""
    pattern: Array = rng.normal(1.0, 1.0, size=(4, 6))
    pattern -= pattern.mean(axis=1, keepdims=True)
    pattern *= np.array([[1.0], [0.1], [3e-3], [0.0]])
    return pattern + 2.0


OVER_ROWS = "It takes the variance over the rows. Use axis=-1 to get one variance per row."
NO_EPS = "A constant row gives infinity or NaN: add eps to the variance that you divide by."

MISTAKES: Mapping[str, Shortfall] = MappingProxyType(
    {
        "It returns the variance of the normalized form. How far is that from 1?": (
            lambda x, eps: x.var(axis=-1) / (x.var(axis=-1) + eps)
        ),
        "It uses the unbiased variance. LayerNorm divides by H.": (
            lambda x, eps: eps / (x.var(axis=-1, ddof=1) + eps)
        ),
        "It adds eps to the standard deviation. Add it to the variance.": (
            lambda x, eps: 1 - (x.std(axis=-1) / (x.std(axis=-1) + eps)) ** 2
        ),
        "That is how far the standard deviation falls short. The question is about the variance.": (
            lambda x, eps: 1 - np.sqrt(x.var(axis=-1) / (x.var(axis=-1) + eps))
        ),
        OVER_ROWS: (lambda x, eps: eps / (x.var(axis=0) + eps)),
        "It takes a single variance of the whole array. Each row has its own.": (
            lambda x, eps: np.full(len(x), eps / (x.var() + eps))
        ),
        "It ignores the eps that it is given and uses its own.": (
            lambda x, _eps: EPS / (x.var(axis=-1) + EPS)
        ),
    }
)


@checker
def check_shortfall(function: Shortfall) -> str:
    r"""Check a function that computes how far the variance of a normalized row falls short of 1.

    .. math::
        1 - \frac{\sigma^2}{\sigma^2 + \epsilon} = \frac{\epsilon}{\sigma^2 + \epsilon}

    Calls `function(x, eps)` with as many rows as features and with fewer; with ordinary, almost
    constant and constant rows; and with two values of eps.

    Args:
        function: takes rows of shape `(N, H)` and eps, returns numbers of shape `(N,)`.

    Example:
        >>> check_shortfall(lambda x, eps: x.var(axis=-1) / (x.var(axis=-1) + eps))
        Not yet. It returns the variance of the normalized form. How far is that from 1?
    """
    rng = np.random.default_rng(1998)
    for eps in (1e-3, EPS):
        for x in (_rows(rng), np.concatenate([_rows(rng), _rows(rng)[:2]])):
            _check_rows(function, x, eps)
    return "It agrees with the variance of the normalized rows."


def _check_rows(function: Shortfall, x: Array, eps: float) -> None:
    context = f"x had the shape {x.shape}"
    with np.errstate(all="ignore"):
        answer = run_answer(function, x, eps, context=context, hint="new arrays")
    numbers = _numbers(answer)
    mistakes = {text: wrong(x, eps) for text, wrong in MISTAKES.items()}
    over_rows = mistakes[OVER_ROWS]
    if numbers.shape == over_rows.shape and np.allclose(numbers, over_rows):
        raise NotYet(OVER_ROWS)
    constant = np.ptp(x, axis=-1) == 0.0
    if numbers.shape == constant.shape and not np.isfinite(numbers)[constant].any():
        raise NotYet(NO_EPS)
    array = as_array(answer, (len(x),), "Your answer")
    right = 1 - reference.layer_norm(x, x.shape[-1], eps=eps).var(axis=-1)
    otherwise = f"For eps = {eps:g} it is off by up to {np.abs(array - right).max():.2g}."
    judge(array, right, mistakes, otherwise=otherwise, tolerance=1e-7)


def _numbers(answer: Any) -> Array:
    """The answer as an array of any shape, or an empty one if it is not numeric."""
    try:
        return np.asarray(answer, dtype=np.float64)
    except (TypeError, ValueError):
        return np.empty(0)
