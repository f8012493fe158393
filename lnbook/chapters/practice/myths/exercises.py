"""The checkers of the chapter on what is said about LayerNorm."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lnbook import reference
from lnbook.chapters.shared.checker import Verdict, as_array, called, judge

__all__ = ["MISTAKES", "STATEMENTS", "check_order", "check_shortfall", "check_verdicts"]

Array = NDArray[np.float64]
Shortfall = Callable[[Array, float], Any]

EPS = 1e-5

# For each statement whether it is true, and what to think about if the answer is wrong.
STATEMENTS: Mapping[str, tuple[bool, str]] = MappingProxyType(
    {
        "a": (True, "equal normalized forms are one direction after centering"),
        "b": (False, "a bias [1, 0, 0, 0] has an effect; which bias has none?"),
        "c": (True, "what becomes of the mean and of the variance if all signs flip?"),
        "d": (False, "what do the outputs of such a LayerNorm sum to?"),
        "e": (True, "adding one number to a row changes nothing, so the gradient has no such part"),
        "f": (True, "all features of a row are shifted by one number and divided by one, above 0"),
        "g": (False, "try a row with a mean of 10,000 and a standard deviation of 1"),
    }
)


def check_verdicts(**answers: Any) -> Verdict:
    r"""Check which of seven statements are true.

    Args:
        answers: True or False for each letter from a to g.

    Returns:
        The verdict; for each statement that is misjudged it says what to think about.

    Example:
        >>> check_verdicts(a=True, b=True, c=True, d=False, e=True, f=True, g=False)
        Not yet. 6 of 7 are right. b: a bias [1, 0, 0, 0] has an effect; which bias has none?
    """
    unknown = sorted(set(answers) - set(STATEMENTS))
    if unknown:
        return Verdict(False, f"There is no statement {', '.join(unknown)}; they go from a to g.")
    missing = [name for name in STATEMENTS if answers.get(name, ...) in (..., None)]
    if missing:
        return Verdict(False, f"Your answer to {', '.join(missing)} is still missing.")
    odd = [name for name in STATEMENTS if not isinstance(answers[name], (bool, np.bool_))]
    if odd:
        name = odd[0]
        return Verdict(False, f"{name} should be True or False, but is {answers[name]!r}.")
    wrong = [name for name, (truth, _) in STATEMENTS.items() if bool(answers[name]) != truth]
    if not wrong:
        return Verdict(True, "All seven.")
    hints = "; ".join(f"{name}: {STATEMENTS[name][1]}" for name in wrong)
    return Verdict(False, f"{len(STATEMENTS) - len(wrong)} of {len(STATEMENTS)} are right. {hints}")


ORDER_FEATURES = 3


def check_order(x: Any = None, gamma: Any = None) -> Verdict:
    r"""Check a row and a positive gamma with which LayerNorm changes the order of features.

    Args:
        x: three numbers, the row.
        gamma: three positive numbers; beta is 0.

    Returns:
        The verdict; it names the pair of features that changed its order, or says why none did.

    Example:
        >>> check_order([1.0, 2.0, 4.0], [1.0, 1.0, 1.0])
        Not yet. All your gammas are equal: that stretches the row, and keeps its order.
    """
    row = as_array(x, (ORDER_FEATURES,), "Your row")
    if isinstance(row, Verdict):
        return row
    weight = as_array(gamma, (ORDER_FEATURES,), "Your gamma")
    if isinstance(weight, Verdict):
        return weight
    if not (weight > 0).all():
        return Verdict(False, "Every gamma should be positive: a negative one is too easy.")
    if np.ptp(row) == 0.0:
        return Verdict(False, "Your row is constant, so it has no order.")
    y = reference.layer_norm(row, ORDER_FEATURES, weight, eps=EPS)
    for i in range(ORDER_FEATURES):
        for j in range(ORDER_FEATURES):
            if row[i] > row[j] and y[i] < y[j] - 1e-9:
                told = f"Feature {i + 1} is larger than feature {j + 1} in the row ({row[i]:g} > "
                told += f"{row[j]:g}), and smaller in the output ({y[i]:.2f} < {y[j]:.2f})."
                return Verdict(True, told)
    if np.ptp(weight) == 0.0:
        told = "All your gammas are equal: that stretches the row, and keeps its order."
        return Verdict(False, told)
    above = row > row.mean()
    if all(np.ptp(weight[side]) == 0.0 for side in (above, ~above)):
        told = "Your gammas differ only between features on different sides of the mean, whose "
        return Verdict(False, f"{told}signs keep them apart. Take two on the same side.")
    told = f"The order is kept: the output is {np.round(y, 2)}. Make your gammas differ more"
    return Verdict(False, f"{told}, or give the larger one to the feature nearer to the mean.")


def _rows(rng: np.random.Generator) -> Array:
    """Rows of ordinary, small and no spread."""
    pattern: Array = rng.normal(1.0, 1.0, size=(4, 6))
    pattern -= pattern.mean(axis=1, keepdims=True)
    pattern *= np.array([[1.0], [0.1], [3e-3], [0.0]])
    return pattern + 2.0


OVER_ROWS = "It takes the variance over the rows. Use axis=-1, one variance for each row."
NO_EPS = "A constant row gives infinity or NaN: add eps to the variance that you divide by."

MISTAKES: Mapping[str, Shortfall] = MappingProxyType(
    {
        "It returns the variance of the normalized form. How much is missing to 1?": (
            lambda x, eps: x.var(axis=-1) / (x.var(axis=-1) + eps)
        ),
        "It uses the unbiased variance. LayerNorm divides by H.": (
            lambda x, eps: eps / (x.var(axis=-1, ddof=1) + eps)
        ),
        "It adds eps to the standard deviation. It belongs to the variance.": (
            lambda x, eps: 1 - (x.std(axis=-1) / (x.std(axis=-1) + eps)) ** 2
        ),
        "That is how much the standard deviation misses 1. Asked for is the variance.": (
            lambda x, eps: 1 - np.sqrt(x.var(axis=-1) / (x.var(axis=-1) + eps))
        ),
        OVER_ROWS: (lambda x, eps: eps / (x.var(axis=0) + eps)),
        "It takes one variance of the whole array. Each row has its own.": (
            lambda x, eps: np.full(len(x), eps / (x.var() + eps))
        ),
        "It has an eps of its own. Use the one that it is given.": (
            lambda x, _eps: EPS / (x.var(axis=-1) + EPS)
        ),
    }
)


def check_shortfall(function: Shortfall) -> Verdict:
    r"""Check a function that says by how much the variance of a normalized row misses 1.

    .. math::
        1 - \frac{\sigma^2}{\sigma^2 + \epsilon} = \frac{\epsilon}{\sigma^2 + \epsilon}

    Calls `function(x, eps)` with as many rows as features and with fewer, with ordinary, almost
    constant and constant rows, and with two values of eps.

    Args:
        function: takes rows of shape `(N, H)` and eps, returns numbers of shape `(N,)`.

    Returns:
        The verdict; a known mistake is called by its name.

    Example:
        >>> check_shortfall(lambda x, eps: x.var(axis=-1) / (x.var(axis=-1) + eps))
        Not yet. It returns the variance of the normalized form. How much is missing to 1?
    """
    rng = np.random.default_rng(1998)
    for eps in (1e-3, EPS):
        for x in (_rows(rng), np.concatenate([_rows(rng), _rows(rng)[:2]])):
            verdict = _check_rows(function, x, eps)
            if verdict is not None:
                return verdict
    return Verdict(True, "It agrees with the variance of the normalized rows.")


def _check_rows(function: Shortfall, x: Array, eps: float) -> Verdict | None:
    with np.errstate(all="ignore"):
        told = f"x had the shape {x.shape}"
        answer = called(function, x, eps, told=told, instead="new arrays")
    if isinstance(answer, Verdict):
        return answer
    if len(x) != x.shape[1]:
        columns = as_array(answer, x.shape[1:], "Your answer")
        over_rows = MISTAKES[OVER_ROWS](x, eps)
        if not isinstance(columns, Verdict) and np.allclose(columns, over_rows):
            return Verdict(False, OVER_ROWS)
    if _blows_up(answer, np.ptp(x, axis=-1) == 0.0):
        return Verdict(False, NO_EPS)
    array = as_array(answer, (len(x),), "Your answer")
    if isinstance(array, Verdict):
        return array
    right = 1 - reference.layer_norm(x, x.shape[-1], eps=eps).var(axis=-1)
    listed = {text: wrong(x, eps) for text, wrong in MISTAKES.items()}
    otherwise = f"For eps = {eps:g} it is off by up to {np.abs(array - right).max():.2g}."
    return judge(array, right, listed, otherwise=otherwise, tolerance=1e-7)


def _blows_up(answer: Any, constant: NDArray[np.bool_]) -> bool:
    """Whether an answer has no finite number for the constant rows."""
    try:
        values = np.asarray(answer, dtype=float)
    except (TypeError, ValueError):
        return False
    return values.shape == constant.shape and not np.isfinite(values)[constant].any()
