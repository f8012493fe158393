"""The checkers of the chapter on geometry."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lnbook import reference
from lnbook.chapters.shared.checker import Verdict, as_array, called, judge

__all__ = ["check_center_weights", "check_same_output", "check_stands_out"]

Array = NDArray[np.float64]
CenterWeights = Callable[[Array, Array], Any]

ROW = (4.0, 2.0, 8.0)
MEAN = 10.0
DEVIATION = 2.0
EPS = 1e-5
TOLERANCE = 0.011  # two decimals, rounded or cut off


def check_same_output(row: Any = None) -> Verdict:
    r"""Check a row with mean 10 and deviation 2 that has the normalized form of [4, 2, 8].

    Args:
        row: three numbers; two decimals are enough.

    Returns:
        The verdict; a known mistake is called by its name.

    Example:
        >>> check_same_output([10.0, 10.0, 10.0])
        Not yet. This row is constant: its normalized form is 0.
    """
    answer = as_array(row, (len(ROW),), "Your row")
    if isinstance(answer, Verdict):
        return answer
    given = np.array(ROW)
    xhat = (given - given.mean()) / given.std()
    if np.ptp(answer) == 0.0:
        return Verdict(False, "This row is constant: its normalized form is 0.")
    mistakes: dict[str, Array | Callable[[], Array]] = {
        "You scaled the deviations of [4, 2, 8]. Divide them by their own deviation first.": (
            MEAN + DEVIATION * (given - given.mean())
        ),
        "The spread is right, the mean is not: add 10.": DEVIATION * xhat,
        "The mean is right, the standard deviation is 1: multiply by 2 before you add 10.": (
            MEAN + xhat
        ),
        "You swapped the two: multiply by the deviation, add the mean.": MEAN * xhat + DEVIATION,
        "That scale is the variance. Multiply by the standard deviation.": (
            MEAN + DEVIATION**2 * xhat
        ),
        "Your pattern is upside down: use a positive factor.": MEAN - DEVIATION * xhat,
        "That is [4, 2, 8] moved to mean 10, with its old deviation.": MEAN + given - given.mean(),
    }
    told = (
        f"Your row has mean {answer.mean():.2f}, standard deviation {answer.std():.2f} and the "
        f"normalized form {np.round((answer - answer.mean()) / answer.std(), 2)}; asked for: "
        f"{MEAN:.0f}, {DEVIATION:.0f} and {np.round(xhat, 2)}."
    )
    verdict = judge(answer, MEAN + DEVIATION * xhat, mistakes, otherwise=told, tolerance=TOLERANCE)
    return verdict or Verdict(True, "Another row with the same normalized form.")


OUTLIER_FEATURES = 5


def check_stands_out(row: Any = None) -> Verdict:
    r"""Check a row of five features whose first normalized feature is as large as possible.

    Args:
        row: five numbers.

    Returns:
        The verdict, with the value that was reached.

    Example:
        >>> check_stands_out([9.0, 1.0, 2.0, 1.0, 2.0])
        Not yet. The first normalized feature is 1.978. A larger one is possible.
    """
    answer = as_array(row, (OUTLIER_FEATURES,), "Your row")
    if isinstance(answer, Verdict):
        return answer
    if np.ptp(answer) == 0.0:
        return Verdict(False, "This row is constant: all its normalized features are 0.")
    first = float(reference.layer_norm(answer, OUTLIER_FEATURES, eps=EPS)[0])
    largest = np.sqrt(OUTLIER_FEATURES - 1.0)
    if first > largest - 5e-4:
        return Verdict(True, f"The first normalized feature is {first:.3f}, the square root of 4.")
    told = f"The first normalized feature is {first:.3f}."
    if first < -largest + 5e-4:
        return Verdict(False, f"{told} That is as far down as possible. Turn the row around.")
    rest = answer[1:]
    if answer[0] > rest.max() and np.ptp(rest) <= 1e-9 * np.ptp(answer):
        return Verdict(False, f"{told} The pattern is right, but small next to the root of eps.")
    if answer[0] < rest.max():
        return Verdict(False, f"{told} Make the first feature the largest one.")
    return Verdict(False, f"{told} A larger one is possible.")


def _right(weight: Array, bias: Array) -> tuple[Array, Array]:
    return weight - weight.mean(axis=0), bias - bias.mean()


WEIGHT_MISTAKES: dict[str, Callable[[Array, Array], tuple[Array, Array]]] = {
    "It centers each row of W, the weights of one output. Take the mean over the outputs.": (
        lambda w, b: (w - w.mean(axis=1, keepdims=True), b - b.mean())
    ),
    "It centers each row of W, and leaves b. Take the mean over the outputs, of both.": (
        lambda w, b: (w - w.mean(axis=1, keepdims=True), b)
    ),
    "It subtracts one mean from the whole of W. Every column has its own.": (
        lambda w, b: (w - w.mean(), b - b.mean())
    ),
    "It leaves b as it is. The mean of b is part of the mean of the output.": (
        lambda w, b: (w - w.mean(axis=0), b)
    ),
    "It sets b to zero. Only the mean of b goes.": (
        lambda w, b: (w - w.mean(axis=0), np.zeros_like(b))
    ),
    "It centers b, but leaves W as it is.": lambda w, b: (w, b - b.mean()),
    "It changes nothing.": lambda w, b: (w, b),
    "It also divides by the deviation. RMSNorm does that, for each input anew.": (
        lambda w, b: ((w - w.mean(axis=0)) / w.std(axis=0), (b - b.mean()) / b.std())
    ),
    "It returns the mean that should be subtracted.": (
        lambda w, b: (np.broadcast_to(w.mean(axis=0), w.shape), np.full_like(b, b.mean()))
    ),
}


def check_center_weights(function: CenterWeights) -> Verdict:
    r"""Check a function that turns LayerNorm after a linear layer into RMSNorm.

    Calls `function(weight, bias)` with random parameters, square ones among them, and compares
    with :math:`W - \frac{1}{H} \mathbf{1} \mathbf{1}^\top W` and :math:`b - \bar{b} \mathbf{1}`.

    Args:
        function: takes a weight of shape `(H, D)` and a bias of shape `(H,)`, returns both,
            changed, so that `RMSNorm(W' x + b') = LayerNorm(W x + b)` for every x.

    Returns:
        The verdict; a known mistake is called by its name.

    Example:
        >>> check_center_weights(lambda weight, bias: (weight, bias))
        Not yet. It changes nothing.
    """
    rng = np.random.default_rng(2019)
    for shape in ((4, 6), (5, 5), (7, 3)):
        weight, bias = rng.normal(1.0, 1.0, shape), rng.normal(1.0, 1.0, shape[0])
        verdict = _check_parameters(function, weight, bias)
        if verdict is not None:
            return verdict
    return Verdict(True, "RMSNorm of your layer is LayerNorm of the old one.")


def _check_parameters(function: CenterWeights, weight: Array, bias: Array) -> Verdict | None:
    shapes = f"W had the shape {weight.shape}, b the shape {bias.shape}"
    answer = called(function, weight, bias, told=shapes, instead="new arrays")
    if isinstance(answer, Verdict):
        return answer
    if not isinstance(answer, (tuple, list)) or len(answer) != 2:
        return Verdict(False, "Your function should return two things: the weight and the bias.")
    new_weight = as_array(answer[0], weight.shape, "Your weight")
    if isinstance(new_weight, Verdict):
        return new_weight
    new_bias = as_array(answer[1], bias.shape, "Your bias")
    if isinstance(new_bias, Verdict):
        return new_bias

    def joined(pair: tuple[Array, Array]) -> Array:
        return np.concatenate([pair[0].ravel(), pair[1]])

    return judge(
        joined((new_weight, new_bias)),
        joined(_right(weight, bias)),
        {text: joined(wrong(weight, bias)) for text, wrong in WEIGHT_MISTAKES.items()},
        otherwise=f"For W of shape {weight.shape} the outputs of RMSNorm and LayerNorm differ.",
        tolerance=1e-6,
    )
