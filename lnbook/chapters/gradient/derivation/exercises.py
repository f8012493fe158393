"""Checkers for the chapter on the derivation."""

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
from lnbook.chapters.shared.checker import (
    NotYet,
    as_array,
    checker,
    judge,
    judge_choice,
    run_answer,
)

__all__ = ["check_by_hand", "check_left_along", "check_rms_norm_backward", "check_why"]

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
    "Your dL/dx is missing the mean of g: subtract it from g.": dx_of(G, ROW, EPS, mean_term=0.0),
    "Your dL/dx is missing the xhat term: subtract xhat times the mean of g * xhat.": (
        dx_of(G, ROW, EPS, xhat_term=0.0)
    ),
    "Your dL/dx uses sums where the formula has means. Divide them by H = 4.": (
        dx_of(G, ROW, EPS, mean_term=4.0, xhat_term=4.0)
    ),
    "Your dL/dx adds the xhat term. It should be subtracted.": dx_of(G, ROW, EPS, xhat_term=-1.0),
    "Your dL/dx uses an r without eps. Here r = (4 + 12) ** -0.5.": (
        dx_with_r_without_eps(G, ROW, EPS)
    ),
    "Your dL/dx leaves eps out of both r and xhat. Here eps = 12.": dx_of(G, ROW, 0.0),
    "Your dL/dx is missing the factor r in front.": dx_of(G, ROW, EPS, power=0.0),
    "Your dL/dx has the factor r twice, or divides by the variance. Multiply by r once.": (
        dx_of(G, ROW, EPS, power=2.0)
    ),
    "Your signs are flipped.": -DX,
    "This is r * g. The mean and the variance depend on x too: two terms are missing.": R * G,
}

BY_HAND_DGAMMA_MISTAKES: dict[str, Array] = {
    "This is g * xhat. For dL/dgamma, use dL/dy itself, without gamma.": G * XHAT,
    "This is dL/dbeta. For gamma, multiply each number by its xhat.": DY,
    "You used x instead of xhat.": DY * ROW,
    "Your xhat leaves eps out. Here eps = 12.": DY * np.sign(ROW - 2.0),
    "You used x - mean instead of xhat.": DY * (ROW - 2.0),
    "Your signs are flipped.": -DGAMMA,
}


@checker
def check_by_hand(dx: Any = None, dgamma: Any = None) -> str:
    r"""Check the gradients for the row [0, 0, 4, 4], worked out by hand.

    The row has :math:`\epsilon = 12`, :math:`\gamma = [1, 2, 1, 1]` and the upstream gradient
    :math:`\partial \mathcal{L} / \partial y = [4, 1, 0, -2]`.

    Args:
        dx: :math:`\partial \mathcal{L} / \partial x`, four numbers; two decimals are enough.
        dgamma: :math:`\partial \mathcal{L} / \partial \gamma`, four numbers.

    Example:
        >>> check_by_hand(dx=[0.75, 0.25, -0.25, -0.75])
        Not yet. Your dL/dx is missing the xhat term: subtract xhat times the mean of g * xhat.
    """
    judge(
        as_array(dx, (4,), "Your dL/dx"),
        DX,
        BY_HAND_DX_MISTAKES,
        otherwise="Your dL/dx isn't right yet. Find r, xhat, g and the two means first.",
        tolerance=BY_HAND_TOLERANCE,
    )
    judge(
        as_array(dgamma, (4,), "Your dL/dgamma"),
        DGAMMA,
        BY_HAND_DGAMMA_MISTAKES,
        otherwise="Your dL/dgamma isn't right yet. With one row, it's dL/dy * xhat, one by one.",
        tolerance=BY_HAND_TOLERANCE,
    )
    return "Both gradients are right."


WHY: dict[str, dict[str, str]] = {
    "first": {
        "a": "The upstream gradient can sum to anything. In the example, it sums to 15.",
        "b": "",
        "c": "It sums to zero for every eps, however large.",
    },
    "second": {
        "a": "",
        "b": "Noise has nothing to do with it: leaving out the sum gives a wrong derivative.",
        "c": "That's true, but it isn't the reason. How many rows does one gamma affect?",
    },
    "third": {
        "a": "The size of eps doesn't matter: the two terms are missing for eps = 0, too.",
        "b": "They don't cancel: each of them changes the gradient.",
        "c": "",
    },
}


@checker
def check_why(first: Any = None, second: Any = None, third: Any = None) -> str:
    """Check the answers to the three "why" questions.

    Args:
        first: "a", "b" or "c": why the gradient with respect to x sums to zero over a row.
        second: why the gradient with respect to gamma is summed over the rows.
        third: why constant statistics go unnoticed in the outputs.

    Example:
        >>> check_why("c", "a", "c")
        Not yet. first: It sums to zero for every eps, however large.
    """
    for name, answer in {"first": first, "second": second, "third": third}.items():
        right = next(letter for letter, reply in WHY[name].items() if not reply)
        judge_choice(answer, name, tuple(WHY[name]), right, WHY[name])
    return "All three: you know what the formula says, and why."


@checker
def check_left_along(function: Callable[[float, float, float], float]) -> str:
    r"""Check a formula for the mean of :math:`\hat{x} \, \partial \mathcal{L} / \partial x`.

    Args:
        function: takes the variance, epsilon and the mean of :math:`g \hat{x}`; returns a number.

    Example:
        >>> check_left_along(lambda variance, eps, mean_gxhat: 0.0)
        Not yet. That's only true for eps = 0: the mean of xhat ** 2 is less than 1.
    """
    for v, eps, m in ((7.0, 2.0, 1.6), (4.0, 12.0, -1.0), (0.5, 0.5, 2.0)):
        context = f"for variance={v}, eps={eps}, mean_gxhat={m}"
        answer = run_answer(function, v, eps, m, context=context)
        r = (v + eps) ** -0.5
        judge(
            as_array(answer, (), "The value of your formula"),
            r * m * eps / (v + eps),
            {
                "That's only true for eps = 0: the mean of xhat ** 2 is less than 1.": 0.0,
                "That's the part that gets subtracted. What's left of the mean of g * xhat?": (
                    r * m * v / (v + eps)
                ),
                "The factor r is missing.": m * eps / (v + eps),
                "That's the first term only. Subtract xhat times the mean of g * xhat.": r * m,
                "Multiply by r, don't divide by it.": m * eps / (v + eps) / r,
                "The sign is flipped.": -r * m * eps / (v + eps),
            },
            otherwise=f"The formula is wrong {context}. What's the mean of xhat ** 2?",
        )
    return "Epsilon leaves a little of it; for eps = 0, nothing is left."


def _dx_mistakes(dy: Array, x: Array, weight: Array, eps: float) -> dict[str, Array]:
    """Return the dx that results from each known mistake."""
    g, xhat = dy * weight, rms_xhat(x, eps)
    r = (row_mean(x**2) + eps) ** -0.5
    return {
        "Your dx contains the mean term of LayerNorm. RMSNorm doesn't center.": (
            dx_of(g, x, eps, rms=True, mean_term=1.0)
        ),
        "Your dx is LayerNorm's. RMSNorm doesn't center x.": dx_of(g, x, eps),
        "Your dx is missing the xhat term: the square root depends on x too.": (
            dx_of(g, x, eps, rms=True, xhat_term=0.0)
        ),
        "Your dx leaves the weight out. Start from g = weight * dy.": dx_of(dy, x, eps, rms=True),
        "Your dx sums g * xhat. Divide the sum by H.": (
            dx_of(g, x, eps, rms=True, xhat_term=x.shape[-1])
        ),
        "Your dx adds the xhat term. Subtract it.": (dx_of(g, x, eps, rms=True, xhat_term=-1.0)),
        "Your dx uses an r without eps.": dx_with_r_without_eps(g, x, eps, rms=True),
        "Your dx leaves eps out of both r and xhat.": dx_of(g, x, 0.0, rms=True),
        "Your dx is missing the factor r in front.": dx_of(g, x, eps, rms=True, power=0.0),
        "Your dx has the factor r twice. Once is enough.": dx_of(g, x, eps, rms=True, power=2.0),
        "You take the mean of g * xhat over the whole array. Take one mean per row.": (
            r * (g - xhat * (g * xhat).mean())
        ),
    }


def _leading(array: Array) -> tuple[int, ...]:
    return tuple(range(array.ndim - 1))


def _dweight_mistakes(dy: Array, x: Array, weight: Array, eps: float) -> dict[str, Array]:
    """Return the dweight that results from each known mistake."""
    product, leading = dy * rms_xhat(x, eps), _leading(x)
    return {
        "Your dweight isn't summed. All rows share the weight: "
        "sum over every axis but the last.": product,
        "Your dweight is summed over the features. "
        "Sum over the other axes, all but the last.": product.sum(-1),
        "Your dweight is summed over the first axis only. "
        "Sum over every axis but the last.": product.sum(0),
        "Your dweight is a mean over the rows. The gradient is a sum.": product.mean(leading),
        "Your dweight contains the weight. Multiply dy by xhat alone.": (
            (weight * product).sum(leading)
        ),
        "Your dweight uses x instead of xhat.": (dy * x).sum(leading),
        "Your dweight is the gradient of a bias. Multiply dy by xhat.": dy.sum(leading),
    }


@checker
def check_rms_norm_backward(
    function: Callable[[Array, Array, Array, float], tuple[ArrayLike, ArrayLike]],
) -> str:
    r"""Check a backward pass of RMSNorm, :math:`y = \gamma x / \sqrt{\frac1H \sum x^2 + \epsilon}`.

    Calls `function(dy, x, weight, eps)` in float64 with a square batch, with two leading axes, and
    with a single row, each time with an `eps` that's too large to overlook.

    Args:
        function: returns `(dx, dweight)`, with the shapes of `x` and `weight`.

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
            otherwise=f"For x of shape {shape} and eps={eps}, your dx isn't the right gradient.",
        )
        right, mistakes = (dy * rms_xhat(x, eps)).sum(_leading(x)), _dweight_mistakes(*given)
        _check_shape_of_dweight(answer[1], right, mistakes)
        judge(
            as_array(answer[1], right.shape, "Your dweight"),
            right,
            mistakes,
            otherwise=f"For x of shape {shape}, your dweight isn't the right gradient.",
        )
    return "Both gradients are right, for any number of leading axes."


def _check_shape_of_dweight(answer: Any, right: Array, mistakes: dict[str, Array]) -> None:
    """Recognize known mistakes that change the shape."""
    with suppress(TypeError, ValueError):
        given = np.asarray(answer, dtype=np.float64)
        for text, wrong in mistakes.items():
            same_shape = given.shape == wrong.shape != right.shape
            if same_shape and np.allclose(given, wrong, rtol=0.0, atol=1e-9):
                raise NotYet(text)
