"""Checkers for the chapter that normalizes a matrix by columns and by rows."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.functional import layer_norm

from lnbook import reference
from lnbook.chapters.shared.checker import NotYet, as_array, checker, judge, run_answer

__all__ = [
    "check_batch_of_two",
    "check_channels_last",
    "check_impossible",
    "check_rare_feature",
    "claimed",
]

Array = NDArray[np.float64]

PAIR = ((1.0, 7.0, 5.0), (3.0, 2.0, 5.0))
EPS = 1e-5


def _batch_of_two_mistakes(x: Array, right: Array) -> dict[str, Array]:
    centered, variance = x - x.mean(axis=0), x.var(axis=0)
    return {
        "This is LayerNorm, which works along the rows. Go down the columns.": (
            reference.layer_norm(x, x.shape[-1:], eps=EPS)
        ),
        "Your signs are reversed. Subtract the mean from x, not x from the mean.": -right,
        "You used the unbiased variance. Divide the sum of squares by N = 2, not by N - 1.": (
            centered / np.sqrt(x.var(axis=0, ddof=1) + EPS)
        ),
        "You divided by the variance. Divide by its square root.": centered / (variance + EPS),
        "These are the deviations from the mean. Divide them by the standard deviation.": centered,
        "The third feature is constant. Its deviations are 0, so its output is 0, too.": (
            np.where(variance > 0, right, 1.0)
        ),
        "You normalized the whole array. Each column has its own mean and variance.": (
            (x - x.mean()) / np.sqrt(x.var() + EPS)
        ),
    }


@checker
def check_batch_of_two(output: Any = None) -> str:
    r"""Check the batch normalization of the rows [1, 7, 5] and [3, 2, 5].

    Args:
        output: numbers of shape `(2, 3)`: training mode, without gamma and beta,
            :math:`\epsilon = 10^{-5}`. Two decimals are enough.

    Example:
        >>> check_batch_of_two([[1, -1, 0], [-1, 1, 0]])
        Not yet. Your signs are reversed. Subtract the mean from x, not x from the mean.
    """
    if isinstance(output, (list, tuple)) and any(
        isinstance(row, (list, tuple)) and ... in row for row in output
    ):
        raise NotYet("Your output still has a '...' in it.")
    x = np.array(PAIR)
    right = reference.batch_norm_forward(x, eps=EPS).y
    judge(
        as_array(output, x.shape, "Your output"),
        right,
        _batch_of_two_mistakes(x, right),
        otherwise="Take one column at a time: its mean, its deviations, its standard deviation.",
        tolerance=0.011,
    )
    return "Each entry tells you which example had the larger value, but not by how much."


RARE_CASES = ((10, 3), (64, 60), (4, 1))


def _of_ones(count: int, ones: int) -> float:
    return float(np.sqrt((count - ones) / ones))


def _rare_feature_mistakes(count: int, ones: int) -> dict[str, float]:
    p = ones / count
    variance = p * (1 - p)
    return {
        "This is the output for the zeros, without the sign. The ones deviate from the mean by "
        "1 - k/N.": float(np.sqrt(ones / (count - ones))),
        "This is the output for the zeros. The ones are above the mean.": (
            -float(np.sqrt(ones / (count - ones)))
        ),
        "The ones are above the mean, so their output is positive.": -_of_ones(count, ones),
        "You divided by the variance. Divide by its square root.": (1 - p) / variance,
        "You divided by the square root of the unbiased variance. BatchNorm divides the sum of "
        "squares by N, not by N - 1.": _of_ones(count, ones) * float(np.sqrt((count - 1) / count)),
        "This is the deviation from the mean. Divide it by the standard deviation.": 1 - p,
        "You didn't subtract the mean.": 1 / float(np.sqrt(variance)),
        "You used p as the variance, but it's the mean of the squares. Subtract the square of "
        "the mean.": (1 - p) / float(np.sqrt(p)),
        "The square root is missing.": (count - ones) / ones,
    }


@checker
def check_rare_feature(function: Callable[[int, int], Any]) -> str:
    r"""Check what batch normalization outputs for the ones in a feature of zeros and ones.

    Calls `function(N, k)` for several batches, with :math:`\epsilon = 0`.

    Args:
        function: takes the number of examples and the number of ones, and returns one number.

    Example:
        >>> check_rare_feature(lambda N, k: 1 - k / N)
        Not yet. This is the deviation from the mean. Divide it by the standard deviation.
    """
    for count, ones in RARE_CASES:
        answer = run_answer(function, count, ones, context=f"N = {count}, k = {ones}")
        if answer is ...:
            raise NotYet("Your function returns nothing. Did you forget `return`?")
        judge(
            as_array(answer, (), "What your function returns"),
            _of_ones(count, ones),
            _rare_feature_mistakes(count, ones),
            otherwise=f"For N = {count} and k = {ones} it should be {_of_ones(count, ones):.4f}, "
            f"but it's {float(as_array(answer, (), 'What your function returns')):.4f}.",
        )
    return "With k = 1 it's the square root of N - 1, the most that rule 3 allows."


# For each column, its values and the rule that it breaks (None if BatchNorm could output it).
CLAIMED: tuple[tuple[tuple[float, ...], str | None], ...] = (
    ((-1.37, -0.72, 1.04, -0.17, 1.22), None),
    ((0.35, 1.10, -1.50, 1.20, -0.10), "does not sum to 0"),
    ((-0.5, -0.5, 2.0, -0.5, -0.5), None),
    ((-0.62, 0.29, 0.76, -1.41, 0.98), "has a mean square well below 1"),
    ((0.0, 0.0, 0.0, 0.0, 0.0), None),
    ((-0.60, 2.10, -0.30, -0.70, -0.50), "has a mean square above 1"),
)
IMPOSSIBLE = frozenset(column for column, (_, fault) in enumerate(CLAIMED) if fault)
POSSIBLE = {
    0: "it sums to 0 and has a mean square of 1, up to rounding.",
    2: "it's extreme, but sums to 0 and has a mean square of 1.",
    4: "a constant feature becomes 0 everywhere.",
}


def claimed() -> Array:
    """Return a table, shape `(5, 6)`, with columns that batch normalization can't have produced.

    Example:
        >>> claimed().shape
        (5, 6)
    """
    return np.array([values for values, _ in CLAIMED]).T


@checker
def check_impossible(columns: Any = None) -> str:
    """Check which columns of `claimed()` can't be the output of a batch normalization.

    Args:
        columns: their indices, counted from 0, in a list, tuple, set or array.

    Example:
        >>> check_impossible([1, 2])
        Not yet. Column 2 is possible: it's extreme, but sums to 0 and has a mean square of 1.
    """
    if columns is None or columns is ...:
        raise NotYet("Your columns are still missing.")
    given = _indices(columns)
    wrong, missed = given - IMPOSSIBLE, IMPOSSIBLE - given
    if wrong:
        raise NotYet(f"Column {min(wrong)} is possible: {POSSIBLE[min(wrong)]}")
    if missed:  # Name the rule and let the reader find the column.
        raise NotYet(f"A column that you didn't list {CLAIMED[min(missed)][1]}.")
    return "These three break a rule. The others could be outputs of BatchNorm."


def _indices(columns: Any) -> set[int]:
    try:
        found = {operator.index(column) for column in columns}
    except TypeError:
        found = None
    if found is None or not found <= set(range(len(CLAIMED))):
        wanted = f"indices of columns, 0 to {len(CLAIMED) - 1}, such as [0, 2]"
        raise NotYet(f"Your answer should be {wanted}, but it's {columns!r}.")
    return found


Applied = Callable[[nn.BatchNorm1d, Tensor], Tensor]

AS_IT_IS = (
    "Your function passes x to the layer unchanged. Axis 1 of x holds the positions, not the "
    "channels.\nMove the channels to axis 1."
)
NOT_BACK = "Your function moves the channels to axis 1, but not back."
RESHAPED = (
    "`reshape` doesn't move an axis. It puts the same numbers, in the same order, into a different "
    "shape.\nUse `transpose(1, 2)`."
)
NOT_CALLED = (
    "The numbers are right, but your function doesn't call the layer.\n"
    "Call it, so that it also updates its running statistics."
)


def _read_anew(x: Tensor) -> Tensor:
    return x.reshape(x.shape[0], x.shape[2], x.shape[1])


def _normalized(layer: nn.BatchNorm1d, x: Tensor) -> Tensor:
    flat = x.reshape(-1, x.shape[-1])
    normalized = (flat - flat.mean(0)) / (flat.var(0, correction=0) + layer.eps).sqrt()
    return normalized.reshape(x.shape)


MISTAKES: dict[str, Applied] = {
    RESHAPED: lambda layer, x: layer(_read_anew(x)).reshape(x.shape),
    "You moved the channels with `transpose` but came back with `reshape`, which scrambles the "
    "numbers.\nUse `transpose(1, 2)` both times.": lambda layer, x: layer(
        x.transpose(1, 2)
    ).reshape(x.shape),
    "You moved the channels with `reshape`, which scrambles the numbers.\n"
    "Use `transpose(1, 2)` both times.": lambda layer, x: layer(_read_anew(x)).transpose(1, 2),
    "That's LayerNorm with the layer's parameters. Call the layer itself.": lambda layer, x: (
        layer_norm(x, x.shape[-1:], layer.weight, layer.bias, layer.eps)
    ),
    "Gamma and beta are missing. Call the layer instead of normalizing yourself.": _normalized,
    "That used the running statistics. Leave the layer in training mode.": lambda layer, x: (
        layer.eval()(x.transpose(1, 2)).transpose(1, 2)
    ),
}
# With as many positions as channels, `reshape` changes nothing, so only these two are left.
MISTAKES_ON_SQUARES: dict[str, Applied] = {
    AS_IT_IS: lambda layer, x: layer(x),
    NOT_BACK: lambda layer, x: layer(x.transpose(1, 2)),
}


@checker
def check_channels_last(function: Applied) -> str:
    """Check a function that applies `BatchNorm1d` to sequences with the channels on the last axis.

    Calls `function(layer, x)` with a layer in training mode and random parameters, first with
    different numbers of positions and channels, then with equal ones, where the layer accepts
    the wrong axis.

    Args:
        function: takes `layer` and `x` of shape `(N, L, C)`, float64, and returns the output in
            the shape of `x`, each channel normalized over all positions of all sequences.

    Example:
        >>> check_channels_last(lambda layer, x: layer(x.transpose(1, 2)))
        Not yet. Your function moves the channels to axis 1, but not back.
    """
    for shape in ((2, 5, 3), (3, 4, 4)):
        _check_sequences(function, shape)
    return "Each channel is normalized over all positions of all sequences."


def _layer(weight: Array, bias: Array) -> nn.BatchNorm1d:
    layer = nn.BatchNorm1d(weight.size, dtype=torch.float64)
    layer.state_dict()["weight"].copy_(torch.from_numpy(weight))
    layer.state_dict()["bias"].copy_(torch.from_numpy(bias))
    return layer


def _check_sequences(function: Applied, shape: tuple[int, int, int]) -> None:
    count, length, channels = shape
    rng = np.random.default_rng(2015)
    x = torch.from_numpy(rng.normal(2.0, 1.5, shape))
    weight, bias = rng.normal(size=(2, channels))
    layer = _layer(weight, bias)

    def apply(x: Tensor) -> Any:
        try:
            return function(layer, x)
        except RuntimeError as error:
            if "running_mean should contain" in str(error):
                told = f"For x of shape {shape}, the layer rejects its input."
                raise NotYet(f"{told}\nAxis 1 must hold the {channels} channels.") from error
            raise

    answer = run_answer(apply, x, context=f"x had the shape {shape}", hint="a new tensor")
    if answer is ...:
        raise NotYet("Your function returns nothing. Did you forget `return`?")
    if isinstance(answer, Tensor):
        answer = answer.detach()
    if length != channels and np.shape(answer) == (count, channels, length):
        reshaped = _layer(weight, bias)(_read_anew(x)).detach().numpy()
        given = as_array(answer, reshaped.shape, "What your function returns")
        raise NotYet(RESHAPED if np.allclose(given, reshaped) else NOT_BACK)
    expected = reference.batch_norm_forward(
        np.moveaxis(x.numpy(), -1, 1), weight=weight, bias=bias
    ).y
    mistakes = MISTAKES if length != channels else MISTAKES_ON_SQUARES
    judge(
        as_array(answer, shape, "What your function returns"),
        np.moveaxis(expected, 1, -1),
        {text: wrong(_layer(weight, bias), x).detach().numpy() for text, wrong in mistakes.items()},
        otherwise=f"For x of shape {shape}, the values differ from the reference.",
    )
    if layer.num_batches_tracked == 0:
        raise NotYet(NOT_CALLED)
