"""The checkers of the chapter on geometry."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lnbook import reference
from lnbook.chapters.shared.checker import NotYet, as_array, checker, judge, run_answer

__all__ = ["check_center_weights", "check_same_output", "check_stands_out"]

Array = NDArray[np.float64]

ROW = np.array([4.0, 2.0, 8.0])
CENTERED = ROW - ROW.mean()
XHAT = CENTERED / ROW.std()
MEAN = 10.0
DEVIATION = 2.0
EPS = 1e-5
TOLERANCE = 0.011  # two decimals, rounded or cut off

ROW_MISTAKES: dict[str, Array] = {
    "You scaled the deviations of [4, 2, 8]. Divide them by their own deviation first.": (
        MEAN + DEVIATION * CENTERED
    ),
    "The spread is right, the mean is not: add 10.": DEVIATION * XHAT,
    "The mean is right, the standard deviation is 1: multiply by 2 before you add 10.": (
        MEAN + XHAT
    ),
    "You swapped the two: multiply by the deviation, add the mean.": MEAN * XHAT + DEVIATION,
    "That scale is the variance. Multiply by the standard deviation.": MEAN + DEVIATION**2 * XHAT,
    "Your pattern is upside down: use a positive factor.": MEAN - DEVIATION * XHAT,
    "That is [4, 2, 8] moved to mean 10, with its old deviation.": MEAN + CENTERED,
}


@checker
def check_same_output(row: Any = None) -> str:
    r"""Check a row with mean 10 and deviation 2 that has the normalized form of [4, 2, 8].

    Args:
        row: three numbers; two decimals are enough.

    Example:
        >>> check_same_output([10.0, 10.0, 10.0])
        Not yet. This row is constant: its normalized form is 0.
    """
    answer = as_array(row, ROW.shape, "Your row")
    if np.ptp(answer) == 0.0:
        raise NotYet("This row is constant: its normalized form is 0.")
    told = (
        f"Your row has mean {answer.mean():.2f}, standard deviation {answer.std():.2f} and the "
        f"normalized form {np.round((answer - answer.mean()) / answer.std(), 2)}; asked for: "
        f"{MEAN:.0f}, {DEVIATION:.0f} and {np.round(XHAT, 2)}."
    )
    judge(answer, MEAN + DEVIATION * XHAT, ROW_MISTAKES, otherwise=told, tolerance=TOLERANCE)
    return "Another row with the same normalized form."


OUTLIER_FEATURES = 5


@checker
def check_stands_out(row: Any = None) -> str:
    r"""Check a row of five features whose first normalized feature is as large as possible.

    Args:
        row: five numbers.

    Example:
        >>> check_stands_out([9.0, 1.0, 2.0, 1.0, 2.0])
        Not yet. The first normalized feature is 1.978. A larger one is possible.
    """
    answer = as_array(row, (OUTLIER_FEATURES,), "Your row")
    if np.ptp(answer) == 0.0:
        raise NotYet("This row is constant: all its normalized features are 0.")
    first = float(reference.layer_norm(answer, OUTLIER_FEATURES, eps=EPS)[0])
    largest = np.sqrt(OUTLIER_FEATURES - 1.0)
    told = f"The first normalized feature is {first:.3f}"
    if first > largest - 5e-4:
        return f"{told}, the square root of 4."
    if first < -largest + 5e-4:
        raise NotYet(f"{told}. That is as far down as possible. Turn the row around.")
    rest = answer[1:]
    if answer[0] > rest.max() and np.ptp(rest) <= 1e-9 * np.ptp(answer):
        raise NotYet(f"{told}. The pattern is right, but small next to the root of eps.")
    if answer[0] < rest.max():
        raise NotYet(f"{told}. Make the first feature the largest one.")
    raise NotYet(f"{told}. A larger one is possible.")


def _mistakes(w: Array, b: Array) -> dict[str, tuple[Array, Array]]:
    """What known mistakes make of a weight and a bias."""
    columns, rows = w.mean(axis=0), w.mean(axis=1, keepdims=True)
    centered_w, centered_b = w - columns, b - b.mean()
    return {
        "It centers each row of W, the weights of one output. Take the mean over the outputs.": (
            w - rows,
            centered_b,
        ),
        "It centers each row of W, and leaves b. Take the mean over the outputs, of both.": (
            w - rows,
            b,
        ),
        "It subtracts one mean from the whole of W. Every column has its own.": (
            w - w.mean(),
            centered_b,
        ),
        "It leaves b as it is. The mean of b is part of the mean of the output.": (centered_w, b),
        "It sets b to zero. Only the mean of b goes.": (centered_w, np.zeros_like(b)),
        "It centers b, but leaves W as it is.": (w, centered_b),
        "It changes nothing.": (w, b),
        "It also divides by the deviation. RMSNorm does that, for each input anew.": (
            centered_w / w.std(axis=0),
            centered_b / b.std(),
        ),
        "It returns the mean that should be subtracted.": (
            np.broadcast_to(columns, w.shape),
            np.full_like(b, b.mean()),
        ),
    }


def _joined(weight: Array, bias: Array) -> Array:
    return np.concatenate([weight.ravel(), bias])


@checker
def check_center_weights(function: Callable[[Array, Array], Any]) -> str:
    r"""Check a function that turns LayerNorm after a linear layer into RMSNorm.

    Calls `function(weight, bias)` with random parameters, square ones among them, and compares
    with :math:`W - \frac{1}{H} \mathbf{1} \mathbf{1}^\top W` and :math:`b - \bar{b} \mathbf{1}`.

    Args:
        function: takes a weight of shape `(H, D)` and a bias of shape `(H,)`, returns both,
            changed, so that `RMSNorm(W' x + b') = LayerNorm(W x + b)` for every x.

    Example:
        >>> check_center_weights(lambda weight, bias: (weight, bias))
        Not yet. It changes nothing.
    """
    rng = np.random.default_rng(2019)
    for shape in ((4, 6), (5, 5), (7, 3)):
        weight, bias = rng.normal(1.0, 1.0, shape), rng.normal(1.0, 1.0, shape[0])
        told = f"W had the shape {weight.shape}, b the shape {bias.shape}"
        answer = run_answer(function, weight, bias, context=told, hint="new arrays")
        if not isinstance(answer, (tuple, list)) or len(answer) != 2:
            raise NotYet("Your function should return two things: the weight and the bias.")
        new_weight = as_array(answer[0], weight.shape, "Your weight")
        new_bias = as_array(answer[1], bias.shape, "Your bias")
        judge(
            _joined(new_weight, new_bias),
            _joined(weight - weight.mean(axis=0), bias - bias.mean()),
            {text: _joined(*wrong) for text, wrong in _mistakes(weight, bias).items()},
            otherwise=f"For W of shape {shape} the outputs of RMSNorm and LayerNorm differ.",
            tolerance=1e-6,
        )
    return "RMSNorm of your layer is LayerNorm of the old one."
