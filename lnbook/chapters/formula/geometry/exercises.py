"""Checkers for the exercises in "See LayerNorm as geometry"."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lnbook.chapters.shared.checker import NotYet, as_array, checker, judge, run_answer

__all__ = ["check_center_weights", "check_group", "check_same_output"]

Array = NDArray[np.float64]

ROW = np.array([4.0, 2.0, 8.0])
CENTERED = ROW - ROW.mean()
XHAT = CENTERED / ROW.std()
MEAN = 10.0
DEVIATION = 2.0
TOLERANCE = 0.011  # two decimals, rounded or cut off

ROW_MISTAKES: dict[str, Array] = {
    "You scaled the deviations of [4, 2, 8]. Divide them by their standard deviation first.": (
        MEAN + DEVIATION * CENTERED
    ),
    "The standard deviation is right, but the mean isn't: add 10.": DEVIATION * XHAT,
    "The mean is right, but the standard deviation is 1: multiply by 2 before you add 10.": (
        MEAN + XHAT
    ),
    "You swapped the two: multiply by the deviation and add the mean.": MEAN * XHAT + DEVIATION,
    "You multiplied by the variance instead of its square root.": MEAN + DEVIATION**2 * XHAT,
    "Your pattern is upside down: use a positive factor.": MEAN - DEVIATION * XHAT,
    "That's [4, 2, 8] shifted to mean 10, with its old standard deviation.": MEAN + CENTERED,
}


@checker
def check_same_output(row: Any = None) -> str:
    r"""Check a row with mean 10 and deviation 2 that has the same LayerNorm output as [4, 2, 8].

    Args:
        row: three numbers; two decimals are enough.

    Example:
        >>> check_same_output([10.0, 10.0, 10.0])
        Not yet. This row is constant, so LayerNorm turns it into zeros.
    """
    answer = as_array(row, ROW.shape, "Your row")
    if np.ptp(answer) == 0.0:
        raise NotYet("This row is constant, so LayerNorm turns it into zeros.")
    told = (
        f"Your row has mean {answer.mean():.2f}, standard deviation {answer.std():.2f} and the "
        f"normalized form {np.round((answer - answer.mean()) / answer.std(), 2)}; they should be "
        f"{MEAN:.0f}, {DEVIATION:.0f} and {np.round(XHAT, 2)}."
    )
    judge(answer, MEAN + DEVIATION * XHAT, ROW_MISTAKES, otherwise=told, tolerance=TOLERANCE)
    return "LayerNorm can't tell your row from [4, 2, 8]."


SIZES = ((5, 1), (5, 2), (64, 16), (12, 11), (8, 4))

GROUP_MISTAKES: dict[str, Callable[[float, float], float]] = {
    "That's the bound for a single entry. It has to depend on k.": lambda h, k: np.sqrt(h - 1),
    "You seem to set the other entries to 0. They have to sum to -k t.": lambda h, k: np.sqrt(
        h / k
    ),
    "That's t squared. Take the square root.": lambda h, k: (h - k) / k,
    "That's the size of the *other* entries. Flip the fraction.": lambda h, k: np.sqrt(k / (h - k)),
    "There are k entries equal to t, so their squares sum to k t². You have t².": (
        lambda h, k: np.sqrt(h / (1 + k**2 / (h - k)))
    ),
    "For k = 1 that's right, but k entries share the squared length.": lambda h, k: np.sqrt(h - k),
}


def _bound(largest: Callable[[int, int], Any], h: int, k: int) -> Array:
    return as_array(run_answer(largest, h, k, context=f"H = {h}, k = {k}"), (), "Your bound")


@checker
def check_group(largest: Callable[[int, int], Any]) -> str:
    r"""Check the largest value that k of H normalized features can share.

    Compares `largest(H, k)` with :math:`\sqrt{(H - k) / k}`.

    Args:
        largest: takes two integers, H and k with 0 < k < H, and returns one number.

    Example:
        >>> check_group(lambda H, k: (H - k) / k)
        Not yet. That's t squared. Take the square root.
    """
    answer = np.array([_bound(largest, *size) for size in SIZES])
    right = np.array([np.sqrt((h - k) / k) for h, k in SIZES])
    mistakes = {
        text: np.array([wrong(*size) for size in SIZES]) for text, wrong in GROUP_MISTAKES.items()
    }
    far = int(np.abs(answer - right).argmax())
    told = (
        f"For H = {SIZES[far][0]} and k = {SIZES[far][1]} you get {answer[far]:.3f}, but the "
        f"largest possible value is {right[far]:.3f}."
    )
    judge(answer, right, mistakes, otherwise=told, tolerance=1e-6)
    return "If half of the features share the largest value, it can't exceed 1."


def _mistakes(w: Array, b: Array) -> dict[str, tuple[Array, Array]]:
    """The weight and bias that result from common mistakes."""
    columns, rows = w.mean(axis=0), w.mean(axis=1, keepdims=True)
    centered_w, centered_b = w - columns, b - b.mean()
    return {
        "It centers each row of W, the weights of one output. Take the mean over the outputs.": (
            w - rows,
            centered_b,
        ),
        "It centers each row of W, and leaves b. Take the mean over the outputs for both.": (
            w - rows,
            b,
        ),
        "It subtracts one mean from all of W. Use a separate mean for each column.": (
            w - w.mean(),
            centered_b,
        ),
        "It leaves b unchanged. The mean of b is part of the mean of the output.": (centered_w, b),
        "It sets b to zero. Only the mean of b has to go.": (centered_w, np.zeros_like(b)),
        "It centers b, but leaves W unchanged.": (w, centered_b),
        "It changes nothing.": (w, b),
        "It also divides by the standard deviation. Leave that to RMSNorm.": (
            centered_w / w.std(axis=0),
            centered_b / b.std(),
        ),
        "It returns the means instead of subtracting them.": (
            np.broadcast_to(columns, w.shape),
            np.full_like(b, b.mean()),
        ),
    }


def _joined(weight: Array, bias: Array) -> Array:
    return np.concatenate([weight.ravel(), bias])


@checker
def check_center_weights(function: Callable[[Array, Array], Any]) -> str:
    r"""Check a function that turns LayerNorm after a linear layer into RMSNorm.

    Calls `function(weight, bias)` with random parameters, including a square weight, and compares
    with :math:`W - \frac{1}{H} \mathbf{1} \mathbf{1}^\top W` and :math:`b - \bar{b} \mathbf{1}`.

    Args:
        function: takes a weight of shape `(H, D)` and a bias of shape `(H,)`, and returns new ones
            such that `RMSNorm(W' x + b') = LayerNorm(W x + b)` for every x.

    Example:
        >>> check_center_weights(lambda weight, bias: (weight, bias))
        Not yet. It changes nothing.
    """
    rng = np.random.default_rng(2019)
    for shape in ((4, 6), (5, 5), (7, 3)):
        weight, bias = rng.normal(1.0, 1.0, shape), rng.normal(1.0, 1.0, shape[0])
        told = f"W had shape {weight.shape}, b had shape {bias.shape}"
        answer = run_answer(function, weight, bias, context=told, hint="new arrays")
        if not isinstance(answer, (tuple, list)) or len(answer) != 2:
            raise NotYet("Your function should return two things: the weight and the bias.")
        new_weight = as_array(answer[0], weight.shape, "Your weight")
        new_bias = as_array(answer[1], bias.shape, "Your bias")
        judge(
            _joined(new_weight, new_bias),
            _joined(weight - weight.mean(axis=0), bias - bias.mean()),
            {text: _joined(*wrong) for text, wrong in _mistakes(weight, bias).items()},
            otherwise=f"For W of shape {shape}, the outputs of RMSNorm and LayerNorm differ.",
            tolerance=1e-6,
        )
    return "RMSNorm after your layer equals LayerNorm after the original one."
