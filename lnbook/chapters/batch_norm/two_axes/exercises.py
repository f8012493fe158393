"""The checkers of the chapter on the columns and rows of one matrix."""

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
    "check_numbers",
    "claimed",
]

Array = NDArray[np.float64]

PAIR = ((1.0, 7.0, 5.0), (3.0, 2.0, 5.0))
EPS = 1e-5


def _batch_of_two_mistakes(x: Array, right: Array) -> dict[str, Array]:
    centered, variance = x - x.mean(axis=0), x.var(axis=0)
    return {
        "This is LayerNorm: it works along the rows. Go down the columns.": (
            reference.layer_norm(x, x.shape[-1:], eps=EPS)
        ),
        "Your signs are the wrong way around: subtract the mean from x.": -right,
        "You divided by the root of the unbiased variance. Divide by N = 2 in it.": (
            centered / np.sqrt(x.var(axis=0, ddof=1) + EPS)
        ),
        "You divided by the variance. Divide by its square root.": centered / (variance + EPS),
        "These are the deviations from the mean. Divide them by the standard deviation.": centered,
        "The third feature is constant: its deviations are 0, and so is its output.": (
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
        Not yet. Your signs are the wrong way around: subtract the mean from x.
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
        otherwise="Take one column at a time: its mean, its deviations, their spread.",
        tolerance=0.011,
    )
    return "Each entry only says which of the two examples was larger, not by how much."


N, C, H, W = 8, 64, 28, 28
COUNTS: dict[str, tuple[str, int, dict[int, str]]] = {
    "bn_means": (
        "means that BatchNorm2d takes",
        C,
        {
            N: "That is one per image, as in LayerNorm.",
            N * C: "That is one per channel of each image, as in instance normalization.",
            N * H * W: "That is the number of values in each mean.",
        },
    ),
    "bn_values": (
        "values in each mean of BatchNorm2d",
        N * H * W,
        {
            N: "All pixels of a channel count, not only the images.",
            H * W: "All images count, not only one.",
            C * H * W: "That is the number of values in a mean of LayerNorm.",
            C: "That is the number of means.",
        },
    ),
    "bn_parameters": (
        "learned numbers of BatchNorm2d",
        2 * C,
        {
            C: "There is a gamma and a beta for each channel.",
            4 * C: "Running mean and variance are stored, but not learned.",
            2 * C * H * W: "BatchNorm has one pair for each channel, shared by its pixels.",
        },
    ),
    "ln_means": (
        "means that LayerNorm takes",
        N,
        {
            C: "That is one per channel, as in BatchNorm.",
            N * C: "The channels are in normalized_shape: they share a mean.",
            N * H * W: "That is one per pixel. Height and width are in normalized_shape.",
            C * H * W: "That is the number of values in each mean.",
            1: "Not one for all: every image has its own.",
        },
    ),
    "ln_values": (
        "values in each mean of LayerNorm",
        C * H * W,
        {
            C: "normalized_shape holds height and width as well.",
            N: "That is the number of means.",
            H * W: "All channels of an image share a mean.",
            N * H * W: "That is the number of values in a mean of BatchNorm.",
        },
    ),
    "ln_parameters": (
        "learned numbers of LayerNorm",
        2 * C * H * W,
        {
            2 * C: "That is BatchNorm2d (and GroupNorm(1, 64)). LayerNorm has one pair per entry.",
            2 * N: "A learned number cannot belong to an image of the batch.",
            C * H * W: "There is a gamma and a beta for each entry.",
        },
    ),
}


@checker
def check_numbers(
    bn_means: Any = None,
    bn_values: Any = None,
    bn_parameters: Any = None,
    ln_means: Any = None,
    ln_values: Any = None,
    ln_parameters: Any = None,
) -> str:
    """Check six numbers about two layers on an input of shape (8, 64, 28, 28).

    Args:
        bn_means: how many means `nn.BatchNorm2d(64)` takes.
        bn_values: how many values are in each of them.
        bn_parameters: how many numbers the layer learns.
        ln_means: the same three for `nn.LayerNorm((64, 28, 28))`.
        ln_values: see `ln_means`.
        ln_parameters: see `ln_means`.

    Example:
        >>> check_numbers(bn_means=8)
        Not yet. bn_means: That is one per image, as in LayerNorm.
    """
    answers = (bn_means, bn_values, bn_parameters, ln_means, ln_values, ln_parameters)
    for (name, (what, right, mistakes)), answer in zip(COUNTS.items(), answers, strict=True):
        if answer is None or answer is ...:
            raise NotYet(f"{name} is still missing: the {what}.")
        number = as_array(answer, (), name)
        if number != right:
            raise NotYet(f"{name}: {mistakes.get(int(number), f'Count again the {what}.')}")
    return "All six numbers are right."


# Column by column: what it is, and which rule it breaks (None: it may well be a BatchNorm).
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
    0: "it sums to 0 and has mean square 1, up to rounding.",
    2: "2.0 is extreme, but it sums to 0 with mean square 1.",
    4: "a constant feature becomes 0 everywhere.",
}


def claimed() -> Array:
    """Return a table of outputs, shape `(5, 6)`, of which some columns are no batch normalization.

    Example:
        >>> claimed().shape
        (5, 6)
    """
    return np.array([values for values, _ in CLAIMED]).T


@checker
def check_impossible(columns: Any = None) -> str:
    """Check which columns of `claimed()` cannot be a batch normalization.

    Args:
        columns: their indices, counted from 0: a list, tuple, set or array.

    Example:
        >>> check_impossible([1, 2])
        Not yet. Column 2 is possible: 2.0 is extreme, but it sums to 0 with mean square 1.
    """
    if columns is None or columns is ...:
        raise NotYet("Your columns are still missing.")
    given = _indices(columns)
    wrong, missed = given - IMPOSSIBLE, IMPOSSIBLE - given
    if wrong:
        raise NotYet(f"Column {min(wrong)} is possible: {POSSIBLE[min(wrong)]}")
    if missed:  # The rule is told; the column is left to find.
        raise NotYet(f"One that you did not name {CLAIMED[min(missed)][1]}.")
    return "These three break a rule; the others may be what they claim to be."


def _indices(columns: Any) -> set[int]:
    try:
        found = {operator.index(column) for column in columns}
    except TypeError:
        found = None
    if found is None or not found <= set(range(len(CLAIMED))):
        wanted = f"indices of columns, 0 to {len(CLAIMED) - 1}, such as [0, 2]"
        raise NotYet(f"Your answer should be {wanted}, but is {columns!r}.")
    return found


Applied = Callable[[nn.BatchNorm1d, Tensor], Tensor]

AS_IT_IS = (
    "It gives x to the layer as it is. Axis 1 of x is the position, not the channel.\n"
    "Move the channels to axis 1."
)
NOT_BACK = "It moves the channels to axis 1, but not back."


def _read_anew(x: Tensor) -> Tensor:
    return x.reshape(x.shape[0], x.shape[2], x.shape[1])


def _normalized(layer: nn.BatchNorm1d, x: Tensor) -> Tensor:
    flat = x.reshape(-1, x.shape[-1])
    normalized = (flat - flat.mean(0)) / (flat.var(0, correction=0) + layer.eps).sqrt()
    return normalized.reshape(x.shape)


MISTAKES: dict[str, Applied] = {
    "`reshape` does not move an axis: it reads the same numbers in the same order into another "
    "shape.\nUse `transpose(1, 2)`.": lambda layer, x: layer(_read_anew(x)).reshape(x.shape),
    "It moves the channels with `transpose`, but comes back with `reshape`, which mixes the "
    "numbers up.\nCome back with `transpose(1, 2)`, too.": lambda layer, x: layer(
        x.transpose(1, 2)
    ).reshape(x.shape),
    "It moves the channels with `reshape`, which mixes the numbers up.\n"
    "Use `transpose(1, 2)` there, too.": lambda layer, x: layer(_read_anew(x)).transpose(1, 2),
    "That is LayerNorm with the parameters of the layer. Call the layer.": lambda layer, x: (
        layer_norm(x, x.shape[-1:], layer.weight, layer.bias, layer.eps)
    ),
    "It normalizes, but without gamma and beta. Call the layer.": _normalized,
    "It uses the running statistics. Leave the layer in training mode.": lambda layer, x: (
        layer.eval()(x.transpose(1, 2)).transpose(1, 2)
    ),
}
# Where length and channels are equal, `reshape` changes nothing, and only these two are left.
MISTAKES_ON_SQUARES: dict[str, Applied] = {
    AS_IT_IS: lambda layer, x: layer(x),
    NOT_BACK: lambda layer, x: layer(x.transpose(1, 2)),
}


@checker
def check_channels_last(function: Applied) -> str:
    """Check a function that applies a `BatchNorm1d` to sequences with the channels at the end.

    Calls `function(layer, x)` for a layer in training with random parameters: once where length
    and channels differ, and once where they are equal, so that the layer accepts the wrong axis.

    Args:
        function: takes `layer` and `x` of shape `(N, L, C)`, float64, and returns the output in
            the shape of `x`, each channel normalized over all positions of all sequences.

    Example:
        >>> check_channels_last(lambda layer, x: layer(x.transpose(1, 2)))
        Not yet. It moves the channels to axis 1, but not back.
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

    def apply(x: Tensor) -> Any:
        try:
            return function(_layer(weight, bias), x)
        except RuntimeError as error:
            if "running_mean should contain" in str(error):
                raise NotYet(f"The layer refuses x of shape {shape}. {AS_IT_IS}") from error
            raise

    answer = run_answer(apply, x, context=f"x had the shape {shape}", hint="a new tensor")
    if answer is ...:
        raise NotYet("Your function returns nothing. Did you forget `return`?")
    if isinstance(answer, Tensor):
        answer = answer.detach()
    if length != channels and np.shape(answer) == (count, channels, length):
        raise NotYet(NOT_BACK)
    expected = reference.batch_norm_forward(
        np.moveaxis(x.numpy(), -1, 1), weight=weight, bias=bias
    ).y
    mistakes = MISTAKES if length != channels else MISTAKES_ON_SQUARES
    judge(
        as_array(answer, shape, "What your function returns"),
        np.moveaxis(expected, 1, -1),
        {text: wrong(_layer(weight, bias), x).detach().numpy() for text, wrong in mistakes.items()},
        otherwise=f"For x of shape {shape} the values differ from the reference.",
    )
