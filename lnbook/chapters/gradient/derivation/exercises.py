"""Checkers of the chapter on the derivation."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lnbook import reference
from lnbook.chapters.shared.backward_mistakes import (
    dx_of,
    dx_with_r_without_eps,
    rms_xhat,
    row_mean,
)
from lnbook.chapters.shared.checker import NotYet, as_array, checker, judge, run_answer

__all__ = ["check_by_hand", "check_rms_norm_backward"]

Array = NDArray[np.float64]

ROW = np.array([0.0, 0.0, 4.0, 4.0])
EPS = 12.0
R = 0.25
XHAT = R * (ROW - 2.0)
WEIGHT = np.array([1.0, 2.0, 1.0, 1.0])
DY = np.array([4.0, 1.0, 0.0, -2.0])
G = WEIGHT * DY
DX, DGAMMA, _ = reference.layer_norm_backward(DY, ROW, 4, WEIGHT, eps=EPS)
BY_HAND_TOLERANCE = 0.006

BY_HAND_DX_MISTAKES: dict[str, Array] = {
    "Your dL/dx leaves gamma out. Start from g = gamma * dL/dy.": dx_of(DY, ROW, EPS),
    "Your dL/dx lacks the mean of g: subtract it from g.": dx_of(G, ROW, EPS, mean_term=0.0),
    "Your dL/dx lacks the term with xhat: subtract xhat times the mean of g times xhat.": (
        dx_of(G, ROW, EPS, xhat_term=0.0)
    ),
    "Your dL/dx has sums where the formula has means. Divide them by H = 4.": (
        dx_of(G, ROW, EPS, mean_term=4.0, xhat_term=4.0)
    ),
    "Your dL/dx adds the term with xhat. It is subtracted.": dx_of(G, ROW, EPS, xhat_term=-1.0),
    "Your dL/dx takes r without eps. Here r = (4 + 12) ** -0.5.": (
        dx_with_r_without_eps(G, ROW, EPS)
    ),
    "Your dL/dx leaves eps out, in r and in xhat. Here eps = 12.": dx_of(G, ROW, 0.0),
    "Your dL/dx lacks the factor r in front.": dx_of(G, ROW, EPS, power=0.0),
    "Your dL/dx has the factor r twice, or divides by the variance. Multiply by r once.": (
        dx_of(G, ROW, EPS, power=2.0)
    ),
    "Your signs are the wrong way around.": -DX,
    "This is r * g. The mean and the variance also depend on x: two terms are missing.": R * G,
}

BY_HAND_DGAMMA_MISTAKES: dict[str, Array] = {
    "This is g * xhat. For dL/dgamma take dL/dy itself, without gamma.": G * XHAT,
    "This is dL/dbeta. For gamma, multiply each number by its xhat.": DY,
    "You took x in place of xhat.": DY * ROW,
    "Your xhat leaves eps out. Here eps = 12.": DY * np.sign(ROW - 2.0),
    "You took x - mean in place of xhat.": DY * (ROW - 2.0),
    "Your signs are the wrong way around.": -DGAMMA,
}


@checker
def check_by_hand(dx: Any = None, dgamma: Any = None) -> str:
    r"""Check the gradients of the row [0, 0, 4, 4], worked out by hand.

    The row has :math:`\epsilon = 12`, :math:`\gamma = [1, 2, 1, 1]` and the upstream gradient
    :math:`\partial \mathcal{L} / \partial y = [4, 1, 0, -2]`.

    Args:
        dx: :math:`\partial \mathcal{L} / \partial x`, four numbers; two decimals are enough.
        dgamma: :math:`\partial \mathcal{L} / \partial \gamma`, four numbers.

    Example:
        >>> check_by_hand(dx=[0.75, 0.25, -0.25, -0.75])
        Not yet. Your dL/dx lacks the term with xhat: subtract xhat times the mean of g times xhat.
    """
    judge(
        as_array(dx, (4,), "Your dL/dx"),
        DX,
        BY_HAND_DX_MISTAKES,
        otherwise="Your dL/dx is off. Find r, xhat, g, and the two means first.",
        tolerance=BY_HAND_TOLERANCE,
    )
    judge(
        as_array(dgamma, (4,), "Your dL/dgamma"),
        DGAMMA,
        BY_HAND_DGAMMA_MISTAKES,
        otherwise="Your dL/dgamma is off: with one row, it is dL/dy times xhat, one by one.",
        tolerance=BY_HAND_TOLERANCE,
    )
    return "Both gradients are right."


def _dx_mistakes(dy: Array, x: Array, weight: Array, eps: float) -> dict[str, Array]:
    """What known mistakes return for dx."""
    g, xhat = dy * weight, rms_xhat(x, eps)
    r = (row_mean(x**2) + eps) ** -0.5
    return {
        "Its dx has the mean term of LayerNorm. RMSNorm does not center.": (
            dx_of(g, x, eps, rms=True, mean_term=1.0)
        ),
        "Its dx is that of LayerNorm. RMSNorm does not center x.": dx_of(g, x, eps),
        "Its dx lacks the term with xhat: the root also depends on x.": (
            dx_of(g, x, eps, rms=True, xhat_term=0.0)
        ),
        "Its dx leaves the weight out. Start from g = weight * dy.": dx_of(dy, x, eps, rms=True),
        "Its dx sums g * xhat. Divide the sum by H.": (
            dx_of(g, x, eps, rms=True, xhat_term=x.shape[-1])
        ),
        "Its dx adds the term with xhat. Subtract it.": (
            dx_of(g, x, eps, rms=True, xhat_term=-1.0)
        ),
        "Its dx takes r without eps.": dx_with_r_without_eps(g, x, eps, rms=True),
        "Its dx leaves eps out, in r and in xhat.": dx_of(g, x, 0.0, rms=True),
        "Its dx lacks the factor r in front.": dx_of(g, x, eps, rms=True, power=0.0),
        "Its dx has the factor r twice. Once is enough.": dx_of(g, x, eps, rms=True, power=2.0),
        "Its mean of g * xhat is taken over the whole array. Every row has its own.": (
            r * (g - xhat * (g * xhat).mean())
        ),
    }


def _leading(array: Array) -> tuple[int, ...]:
    return tuple(range(array.ndim - 1))


def _dweight_mistakes(dy: Array, x: Array, weight: Array, eps: float) -> dict[str, Array]:
    """What known mistakes return for dweight."""
    product, leading = dy * rms_xhat(x, eps), _leading(x)
    return {
        "Its dweight is not summed. All rows share the weight: "
        "sum over every axis but the last.": product,
        "Its dweight is summed over the features. "
        "Sum over the other axes, all but the last.": product.sum(-1),
        "Its dweight is summed over the first axis only. "
        "Sum over every axis but the last.": product.sum(0),
        "Its dweight is a mean over the rows. The gradient is their sum.": product.mean(leading),
        "Its dweight holds the weight. Multiply dy by xhat alone.": (
            (weight * product).sum(leading)
        ),
        "Its dweight takes x in place of xhat.": (dy * x).sum(leading),
        "Its dweight is the gradient of a bias. Multiply dy by xhat.": dy.sum(leading),
    }


@checker
def check_rms_norm_backward(
    function: Callable[[Array, Array, Array, float], tuple[ArrayLike, ArrayLike]],
) -> str:
    r"""Check a backward pass of RMSNorm, :math:`y = \gamma x / \sqrt{\frac1H \sum x^2 + \epsilon}`.

    Calls `function(dy, x, weight, eps)` in float64 with a square batch, with two leading axes,
    and with one row without any, with an `eps` that cannot be overlooked.

    Args:
        function: returns `(dx, dweight)`, of the shapes of `x` and of `weight`.

    Example:
        >>> check_rms_norm_backward(lambda dy, x, weight, eps: dy)
        Not yet. Your function should return the pair (dx, dweight).
    """
    rng = np.random.default_rng(1607)
    for shape, eps in (((5, 5), 0.25), ((2, 3, 4), 0.5), ((6,), 0.25)):
        dy, x = rng.normal(size=shape), rng.normal(1.0, 1.0, shape)
        weight = rng.normal(1.0, 0.5, shape[-1:])
        given = (dy, x, weight, eps)
        told = f"for shapes {shape}, {shape}, {weight.shape}"
        answer = run_answer(function, *given, context=told)
        if not isinstance(answer, (tuple, list)) or len(answer) != 2:
            raise NotYet("Your function should return the pair (dx, dweight).")
        judge(
            as_array(answer[0], shape, "Your dx"),
            dx_of(dy * weight, x, eps, rms=True),
            _dx_mistakes(*given),
            otherwise=f"For x of shape {shape} and eps={eps} dx differs from the right gradient.",
        )
        right, mistakes = (dy * rms_xhat(x, eps)).sum(_leading(x)), _dweight_mistakes(*given)
        _check_shape_of_dweight(answer[1], right, mistakes)
        judge(
            as_array(answer[1], right.shape, "Your dweight"),
            right,
            mistakes,
            otherwise=f"For x of shape {shape} dweight differs from the right gradient.",
        )
    return "Both gradients are right, for any number of leading axes."


def _check_shape_of_dweight(answer: Any, right: Array, mistakes: dict[str, Array]) -> None:
    """Tell the known mistakes that give another shape."""
    with suppress(TypeError, ValueError):
        given = np.asarray(answer, dtype=np.float64)
        for text, wrong in mistakes.items():
            same_shape = given.shape == wrong.shape != right.shape
            if same_shape and np.allclose(given, wrong, rtol=0.0, atol=1e-9):
                raise NotYet(text)
