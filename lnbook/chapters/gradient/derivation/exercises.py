"""Checkers of the chapter on the derivation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lnbook import reference
from lnbook.chapters.shared.backward_mistakes import (
    TOLERANCE,
    call_with_shapes,
    dx_of,
    dx_with_r_without_eps,
    rms_xhat,
    row_mean,
)
from lnbook.chapters.shared.checker import Verdict, as_array, judge

__all__ = ["check_by_hand", "check_rms_norm_backward"]

Array = NDArray[np.float64]

BY_HAND_ROW = (0.0, 0.0, 4.0, 4.0)
BY_HAND_EPS = 12.0
BY_HAND_WEIGHT = (1.0, 2.0, 1.0, 1.0)
BY_HAND_UPSTREAM = (4.0, 1.0, 0.0, -2.0)


def check_by_hand(dx: Any = None, dgamma: Any = None) -> Verdict:
    r"""Check the gradients of the row [0, 0, 4, 4], worked out by hand.

    The row has :math:`\epsilon = 12`, :math:`\gamma = [1, 2, 1, 1]` and the upstream gradient
    :math:`\partial \mathcal{L} / \partial y = [4, 1, 0, -2]`.

    Args:
        dx: :math:`\partial \mathcal{L} / \partial x`, four numbers.
        dgamma: :math:`\partial \mathcal{L} / \partial \gamma`, four numbers.

    Returns:
        The verdict; a known mistake is called by its name. Two decimals are enough.

    Example:
        >>> check_by_hand(dx=[0.75, 0.25, -0.25, -0.75])
        Not yet. Your dL/dx lacks the term with xhat: subtract xhat times the mean of g times xhat.
    """
    x, eps = np.array(BY_HAND_ROW), BY_HAND_EPS
    weight, dy = np.array(BY_HAND_WEIGHT), np.array(BY_HAND_UPSTREAM)
    right_dx, right_dgamma, _ = reference.layer_norm_backward(dy, x, 4, weight, eps=eps)
    g, xhat = weight * dy, reference.layer_norm(x, 4, eps=eps)
    r = 0.25
    tolerance = 0.006
    mistakes = {
        "Your dL/dx leaves gamma out. Start from g = gamma * dL/dy.": dx_of(dy, x, eps),
        "Your dL/dx lacks the mean of g: subtract it from g.": dx_of(g, x, eps, mean_term=0.0),
        "Your dL/dx lacks the term with xhat: subtract xhat times the mean of g times xhat.": dx_of(
            g, x, eps, xhat_term=0.0
        ),
        "Your dL/dx has sums where the formula has means. Divide them by H = 4.": dx_of(
            g, x, eps, mean_term=4.0, xhat_term=4.0
        ),
        "Your dL/dx adds the term with xhat. It is subtracted.": dx_of(g, x, eps, xhat_term=-1.0),
        "Your dL/dx takes r without eps. Here r = (4 + 12) ** -0.5.": dx_with_r_without_eps(
            g, x, eps
        ),
        "Your dL/dx leaves eps out, in r and in xhat. Here eps = 12.": dx_of(g, x, 0.0),
        "Your dL/dx lacks the factor r in front.": dx_of(g, x, eps, power=0.0),
        "Your dL/dx has the factor r twice, or divides by the variance. Multiply by r once.": dx_of(
            g, x, eps, power=2.0
        ),
        "Your signs are the wrong way around.": -right_dx,
        "This is r * g. The mean and the variance also depend on x: two terms are missing.": r * g,
    }
    answer = as_array(dx, (4,), "Your dL/dx")
    if isinstance(answer, Verdict):
        return answer
    verdict = judge(
        answer,
        right_dx,
        mistakes,
        otherwise="Your dL/dx is off. Find r, xhat, g, and the two means first.",
        tolerance=tolerance,
    )
    if verdict is not None:
        return verdict
    answer = as_array(dgamma, (4,), "Your dL/dgamma")
    if isinstance(answer, Verdict):
        return answer
    verdict = judge(
        answer,
        right_dgamma,
        {
            "This is g * xhat. For dL/dgamma take dL/dy itself, without gamma.": g * xhat,
            "This is dL/dbeta. For gamma, multiply each number by its xhat.": dy,
            "You took x in place of xhat.": dy * x,
            "Your xhat leaves eps out. Here eps = 12.": dy * np.sign(x - 2.0),
            "You took x - mean in place of xhat.": dy * (x - 2.0),
            "Your signs are the wrong way around.": -right_dgamma,
        },
        otherwise="Your dL/dgamma is off: with one row, it is dL/dy times xhat, one by one.",
        tolerance=tolerance,
    )
    return verdict or Verdict(True, "Both gradients are right.")


DX_MISTAKES: dict[str, Callable[[Array, Array, Array, float], Array]] = {
    "Its dx has the mean term of LayerNorm. RMSNorm does not center.": lambda dy, x, w, eps: (
        dx_of(dy * w, x, eps, rms=True) - (row_mean(x**2) + eps) ** -0.5 * row_mean(dy * w)
    ),
    "Its dx is that of LayerNorm. RMSNorm does not center x.": lambda dy, x, w, eps: dx_of(
        dy * w, x, eps
    ),
    "Its dx lacks the term with xhat: the root also depends on x.": lambda dy, x, w, eps: dx_of(
        dy * w, x, eps, xhat_term=0.0, rms=True
    ),
    "Its dx leaves the weight out. Start from g = weight * dy.": lambda dy, x, _w, eps: dx_of(
        dy, x, eps, rms=True
    ),
    "Its dx sums g * xhat. Divide the sum by H.": lambda dy, x, w, eps: dx_of(
        dy * w, x, eps, xhat_term=float(x.shape[-1]), rms=True
    ),
    "Its dx adds the term with xhat. Subtract it.": lambda dy, x, w, eps: dx_of(
        dy * w, x, eps, xhat_term=-1.0, rms=True
    ),
    "Its dx takes r without eps.": lambda dy, x, w, eps: dx_with_r_without_eps(
        dy * w, x, eps, rms=True
    ),
    "Its dx leaves eps out, in r and in xhat.": lambda dy, x, w, _eps: dx_of(
        dy * w, x, 0.0, rms=True
    ),
    "Its dx lacks the factor r in front.": lambda dy, x, w, eps: dx_of(
        dy * w, x, eps, power=0.0, rms=True
    ),
    "Its dx has the factor r twice. Once is enough.": lambda dy, x, w, eps: dx_of(
        dy * w, x, eps, power=2.0, rms=True
    ),
    "Its mean of g * xhat is taken over the whole array. Every row has its own.": (
        lambda dy, x, w, eps: (
            (row_mean(x**2) + eps) ** -0.5
            * (dy * w - rms_xhat(x, eps) * (dy * w * rms_xhat(x, eps)).mean())
        )
    ),
}


def _leading(array: Array) -> tuple[int, ...]:
    return tuple(range(array.ndim - 1))


DWEIGHT_MISTAKES: dict[str, Callable[[Array, Array, Array, float], Array]] = {
    "Its dweight is not summed. All rows share the weight: "
    "sum over every axis but the last.": lambda dy, x, _w, eps: dy * rms_xhat(x, eps),
    "Its dweight is summed over the features. "
    "Sum over the other axes, all but the last.": lambda dy, x, _w, eps: (
        dy * rms_xhat(x, eps)
    ).sum(-1),
    "Its dweight is summed over the first axis only. "
    "Sum over every axis but the last.": lambda dy, x, _w, eps: (dy * rms_xhat(x, eps)).sum(0),
    "Its dweight is a mean over the rows. The gradient is their sum.": lambda dy, x, _w, eps: (
        dy * rms_xhat(x, eps)
    ).mean(_leading(x)),
    "Its dweight holds the weight. Multiply dy by xhat alone.": lambda dy, x, w, eps: (
        dy * w * rms_xhat(x, eps)
    ).sum(_leading(x)),
    "Its dweight takes x in place of xhat.": lambda dy, x, _w, _eps: (dy * x).sum(_leading(x)),
    "Its dweight is the gradient of a bias. Multiply dy by xhat.": lambda dy, _x, _w, _eps: dy.sum(
        _leading(dy)
    ),
}


def check_rms_norm_backward(
    function: Callable[[Array, Array, Array, float], tuple[ArrayLike, ArrayLike]],
) -> Verdict:
    r"""Check a backward pass of RMSNorm, :math:`y = \gamma x / \sqrt{\frac1H \sum x^2 + \epsilon}`.

    Calls `function(dy, x, weight, eps)` in float64 with a square batch, with two leading axes,
    and with one row without any, with an `eps` that cannot be overlooked.

    Args:
        function: returns `(dx, dweight)`, of the shapes of `x` and of `weight`.

    Returns:
        The verdict; a known mistake is called by its name.

    Example:
        >>> check_rms_norm_backward(lambda dy, x, weight, eps: dy)
        Not yet. Your function should return the pair (dx, dweight).
    """
    rng = np.random.default_rng(1607)
    for shape, eps in (((5, 5), 0.25), ((2, 3, 4), 0.5), ((6,), 0.25)):
        dy, x = rng.normal(size=shape), rng.normal(1.0, 1.0, shape)
        weight = rng.normal(1.0, 0.5, shape[-1:])
        answer = call_with_shapes(function, (dy, x, weight), eps)
        if isinstance(answer, Verdict):
            return answer
        if not isinstance(answer, (tuple, list)) or len(answer) != 2:
            return Verdict(False, "Your function should return the pair (dx, dweight).")
        dx = as_array(answer[0], shape, "Your dx")
        if isinstance(dx, Verdict):
            return dx
        verdict = judge(
            dx,
            dx_of(dy * weight, x, eps, rms=True),
            {text: wrong(dy, x, weight, eps) for text, wrong in DX_MISTAKES.items()},
            otherwise=f"For x of shape {shape} and eps={eps} dx differs from the right gradient.",
            tolerance=TOLERANCE,
        )
        if verdict is not None:
            return verdict
        right = (dy * rms_xhat(x, eps)).sum(_leading(x))
        known = {text: wrong(dy, x, weight, eps) for text, wrong in DWEIGHT_MISTAKES.items()}
        verdict = _check_dweight(answer[1], right, known, shape)
        if verdict is not None:
            return verdict
    return Verdict(True, "Both gradients are right, for any number of leading axes.")


def _check_dweight(
    answer: Any, right: Array, known: dict[str, Array], shape: tuple[int, ...]
) -> Verdict | None:
    """Tell known mistakes first, since some of them have the wrong shape."""
    try:
        given = np.asarray(answer, dtype=np.float64)
    except (TypeError, ValueError):
        given = np.empty(0)
    if given.shape != right.shape:
        for text, wrong in known.items():
            if wrong.shape == given.shape and np.allclose(given, wrong, rtol=0.0, atol=TOLERANCE):
                return Verdict(False, text)
    dweight = as_array(answer, right.shape, "Your dweight")
    if isinstance(dweight, Verdict):
        return dweight
    return judge(
        dweight,
        right,
        known,
        otherwise=f"For x of shape {shape} dweight differs from the right gradient.",
        tolerance=TOLERANCE,
    )
