"""Checkers for lab 1: the formula by hand and in NumPy, and the axes of the statistics."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor, nn

from lnbook import reference
from lnbook.chapters.shared.checker import (
    NotYet,
    as_array,
    as_count,
    checker,
    judge,
    judge_letters,
    run_answer,
)
from lnbook.layers import RMSNorm

__all__ = [
    "check_axes",
    "check_batch_letters",
    "check_changed",
    "check_counts",
    "check_depends_on_batch",
    "check_layer_norm",
    "check_leading_axes",
    "check_mean",
    "check_normalized",
    "check_variance",
    "layer_p",
    "layer_q",
    "layer_r",
]

Array = NDArray[np.float64]
Function = Callable[[Array, Array, Array, float], ArrayLike]
Layer = Callable[[Array], Array]

ROW = np.array([2.0, 4.0, 4.0, 10.0])
EPS = 16.0
CENTERED = ROW - 5.0


@checker
def check_mean(mean: Any = None) -> str:
    """Check the mean of the row (2, 4, 4, 10).

    Args:
        mean: one number.

    Example:
        >>> check_mean(4)
        Not yet. That's the median, the middle of the row. Add the numbers up and divide by 4.
    """
    judge(
        as_array(mean, (), "Your mean"),
        5.0,
        {
            "That's the median, the middle of the row. Add the numbers up and divide by 4.": 4.0,
            "That's the sum. Divide it by 4.": 20.0,
            "That's the midpoint between the smallest and largest numbers.": 6.0,
        },
        otherwise="Add up the four numbers and divide by 4.",
    )
    return "The mean is 5."


@checker
def check_variance(variance: Any = None) -> str:
    """Check the variance that LayerNorm computes for the row (2, 4, 4, 10).

    Args:
        variance: one number.

    Example:
        >>> check_variance(12)
        Not yet. That's the unbiased variance, divided by 3. LayerNorm divides by 4.
    """
    judge(
        as_array(variance, (), "Your variance"),
        9.0,
        {
            "That's the unbiased variance, divided by 3. LayerNorm divides by 4.": 12.0,
            "That's the standard deviation. Its square is the variance.": 3.0,
            "That's the sum of the squared deviations. Divide it by 4.": 36.0,
            "That's the mean of the squares. Subtract the mean from each number first.": 34.0,
        },
        otherwise="Square the four deviations from the mean, and average the squares.",
    )
    return "The variance is 9, so the standard deviation is 3."


@checker
def check_normalized(normalized: Any = None, eps: float = 0.0) -> str:
    """Check the row (2, 4, 4, 10) after normalization.

    Args:
        normalized: four numbers; three correct decimal places are enough.
        eps: epsilon, 0 or 16.

    Raises:
        ValueError: `eps` is any other number.

    Example:
        >>> check_normalized([-3, -1, -1, 5])
        Not yet. You subtracted the mean. Now divide by the square root of variance plus epsilon, 3.
    """
    if eps not in (0.0, EPS):
        raise ValueError(f"check_normalized: expected eps to be 0 or 16, but got {eps}")
    root = (9.0 + eps) ** 0.5
    mistakes = {
        "You subtracted the mean. Now divide by the square root of variance plus epsilon, "
        f"{root:g}.": CENTERED,
        "You divided by variance plus epsilon. Take the square root first.": CENTERED / (9.0 + eps),
        "You divided the row itself. Subtract the mean first.": ROW / root,
    }
    if eps:
        mistakes |= {
            "You added epsilon outside the square root.": CENTERED / (3.0 + eps),
            "You left out epsilon.": CENTERED / 3.0,
        }
    judge(
        as_array(normalized, (4,), "Your normalized row"),
        CENTERED / root,
        mistakes,
        otherwise="Subtract the mean from each number, then divide by the square root.",
        tolerance=6e-4,
    )
    return f"Each deviation is divided by {root:g}."


def _formula(x: Array, gamma: Array, beta: Array, eps: float) -> Array:
    return reference.layer_norm(x, x.shape[-1], weight=gamma, bias=beta, eps=eps)


def _wrong(x: Array, gamma: Array, beta: Array, eps: float, *, axis: int = -1) -> dict[str, Array]:
    """The outputs that common mistakes produce for an input."""
    centered = x - x.mean(axis, keepdims=True)
    variance = x.var(axis, keepdims=True)
    unbiased = x.var(axis, ddof=1, keepdims=True)
    xhat = centered / np.sqrt(variance + eps)
    return {
        "It divides the squares by H - 1. LayerNorm divides by H.": gamma
        * centered
        / np.sqrt(unbiased + eps)
        + beta,
        "It adds epsilon outside the square root.": gamma * centered / (np.sqrt(variance) + eps)
        + beta,
        "It leaves out epsilon.": gamma * centered / np.sqrt(variance) + beta,
        "It divides by the variance. Take the square root of variance plus epsilon.": gamma
        * centered
        / (variance + eps)
        + beta,
        "It leaves out gamma and beta.": xhat,
        "It leaves out gamma.": xhat + beta,
        "It leaves out beta.": gamma * xhat,
        "It multiplies beta by gamma, too. Add beta last.": gamma * (xhat + beta),
        "It doesn't subtract the mean.": gamma * x / np.sqrt(variance + eps) + beta,
    }


def _unaligned(x: Array, gamma: Array, beta: Array, eps: float) -> Iterator[Array]:
    """The results for a square matrix if a mean or a variance has lost its axis."""
    mean, variance = x.mean(-1), x.var(-1)
    yield gamma * (x - mean) / np.sqrt(variance + eps) + beta
    yield gamma * (x - mean) / np.sqrt(variance[:, None] + eps) + beta
    yield gamma * (x - mean[:, None]) / np.sqrt(variance + eps) + beta
    spread = ((x - mean) ** 2).mean(-1)
    yield gamma * (x - mean) / np.sqrt(spread + eps) + beta
    yield gamma * (x - mean) / np.sqrt(spread[:, None] + eps) + beta


def _check_formula(function: Function, shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(1607)
    x = rng.normal(1.0, 2.0, shape)
    gamma, beta = rng.normal(1.0, 0.5, shape[-1]), rng.normal(size=shape[-1])
    context = f"x had the shape {shape}"
    answer = run_answer(function, x, gamma, beta, 0.25, context=context)
    given = as_array(answer, shape, "What your function returns")
    mistakes: dict[str, Array] = _wrong(x, gamma, beta, 0.25)
    if len(shape) > 1:
        whole = (x - x.mean()) / np.sqrt(x.var() + 0.25)
        mistakes["It takes one mean of the whole array. Use the last axis."] = gamma * whole + beta
    if len(shape) == 2 and shape[0] == shape[1]:
        if any(np.allclose(given, wrong) for wrong in _unaligned(x, gamma, beta, 0.25)):
            told = "Your means or variances line up with the columns, not the rows."
            raise NotYet(f"{told} Keep the axis with keepdims=True.")
        columns = (x - x.mean(0)) / np.sqrt(x.var(0) + 0.25)
        mistakes["It takes the mean of each column. Use the last axis."] = gamma * columns + beta
    judge(
        given,
        _formula(x, gamma, beta, 0.25),
        mistakes,
        otherwise=f"The numbers are wrong ({context}).",
    )


@checker
def check_layer_norm(function: Function) -> str:
    """Check LayerNorm in NumPy on a matrix, one row per example.

    Args:
        function: takes x of shape `(N, H)`, gamma and beta of shape `(H,)`, and epsilon.

    Example:
        >>> check_layer_norm(lambda x, gamma, beta, eps: None)
        Not yet. Your function returns nothing. Did you forget `return`?
    """
    _check_formula(function, (5, 5))
    _check_formula(function, (3, 8))
    return "Your function computes LayerNorm of every row."


@checker
def check_leading_axes(function: Function) -> str:
    """Check that LayerNorm in NumPy works along the last axis of any array.

    Args:
        function: as for `check_layer_norm`, but x may have one, three or four axes.

    Example:
        >>> check_leading_axes(lambda x, gamma, beta, eps: x[:0])
        Not yet. What your function returns should be numbers of shape (6,), but has the shape (0,).
    """
    for shape in ((6,), (2, 3, 4), (2, 2, 3, 5)):
        _check_formula(function, shape)
    return "One function fits vectors, sequences and images with the channels last."


def _over(x: ArrayLike, axes: tuple[int, ...]) -> Array:
    array = np.asarray(x, dtype=np.float64)
    if array.ndim != 3:
        raise ValueError(f"expected an array of shape (N, L, D), but got {array.shape}")
    centered = array - array.mean(axes, keepdims=True)
    normalized: Array = centered / np.sqrt((centered**2).mean(axes, keepdims=True) + 1e-5)
    return normalized


AXES = {"P": (0, 1), "Q": (2,), "R": (1, 2)}


def layer_p(x: ArrayLike) -> Array:
    """Normalize `x` of shape `(N, L, D)` over some of its axes; lab 1 asks which ones.

    Raises:
        ValueError: `x` doesn't have three axes.

    Example:
        >>> layer_p(np.zeros((2, 3, 4))).shape
        (2, 3, 4)
    """
    return _over(x, AXES["P"])


def layer_q(x: ArrayLike) -> Array:
    """Normalize `x` of shape `(N, L, D)` over some of its axes; lab 1 asks which ones.

    Raises:
        ValueError: `x` doesn't have three axes.

    Example:
        >>> layer_q(np.zeros((2, 3, 4))).shape
        (2, 3, 4)
    """
    return _over(x, AXES["Q"])


def layer_r(x: ArrayLike) -> Array:
    """Normalize `x` of shape `(N, L, D)` over some of its axes; lab 1 asks which ones.

    Raises:
        ValueError: `x` doesn't have three axes.

    Example:
        >>> layer_r(np.zeros((2, 3, 4))).shape
        (2, 3, 4)
    """
    return _over(x, AXES["R"])


@checker
def check_changed(function: Callable[[Layer, Array, tuple[int, int, int]], ArrayLike]) -> str:
    """Check a function that finds which outputs of a layer change if one entry of its input does.

    Args:
        function: takes a layer, its input and the index of the entry; returns a boolean array of
            the input's shape.

    Example:
        >>> check_changed(lambda layer, x, place: x == x)
        Not yet. Some entries that you mark as changed don't change: only some outputs share the \
entry's mean.
    """
    rng = np.random.default_rng(3)
    for place in ((0, 1, 2), (1, 2, 0)):
        for axes in (*AXES.values(), (1,)):
            x = rng.normal(size=(2, 3, 4))
            given = run_answer(
                lambda x, axes=axes, place=place: function(lambda v: _over(v, axes), x, place),
                x,
                context="x had the shape (2, 3, 4)",
            )
            marked = as_array(given, x.shape, "What your function returns") != 0
            shared = np.zeros(x.shape, dtype=bool)
            shared[tuple(slice(None) if n in axes else i for n, i in enumerate(place))] = True
            if not marked.any():
                told = "You mark no output as changed. Change a copy of x, and compare two outputs."
                raise NotYet(told)
            if (marked & ~shared).any():
                raise NotYet(
                    "Some entries that you mark as changed don't change: only some outputs share "
                    "the entry's mean."
                )
            if (shared & ~marked).any():
                raise NotYet("You miss some outputs that change.")
    return "You can now find the axes of a normalization layer."


@checker
def check_axes(layer: str, axes: Any = None) -> str:
    """Check which axes a layer in lab 1 computes its mean and variance over.

    Args:
        layer: its name, "P", "Q" or "R".
        axes: the letters of the axes, from N, L and D in any order.

    Raises:
        KeyError: there's no such layer.

    Example:
        >>> check_axes("P", "X")
        Not yet. Layer P: name axes by the letters N, L and D.
    """
    right = {"NLD"[axis] for axis in AXES[layer]}
    named = axes if isinstance(axes, (str, list, tuple, set)) else ""
    given = {letter for letter in "".join(map(str, named)).upper() if letter.isalpha()}
    if not given or given - set("NLD"):
        raise NotYet(f"Layer {layer}: name axes by the letters N, L and D.")
    if missing := sorted(right - given):
        raise NotYet(f"Layer {layer}: outputs at other positions along {missing[0]} change too.")
    if extra := sorted(given - right):
        raise NotYet(f"Layer {layer}: no output elsewhere along {extra[0]} changes.")
    return f"Layer {layer} averages over {', '.join(sorted(right, key='NLD'.index))}."


COUNTS = {
    "tokens": ("nn.LayerNorm(256) on (4, 128, 256)", 4 * 128, 2 * 256),
    "groups": ("nn.GroupNorm(8, 64) on (10, 64, 14, 14)", 10 * 8, 2 * 64),
    "batch": ("nn.BatchNorm1d(256) on (4, 256, 128)", 256, 2 * 256),
}


@checker
def check_counts(name: str, means: Any = None, parameters: Any = None) -> str:
    """Check how many means a layer computes, and how many parameters it has.

    Args:
        name: "tokens", "groups" or "batch".
        means: how many means the layer computes for this input, in training mode.
        parameters: how many numbers it learns.

    Raises:
        KeyError: there's no such layer.

    Example:
        >>> check_counts("tokens", 4, 512)
        Not yet. nn.LayerNorm(256) on (4, 128, 256): 4 isn't the number of means. Divide the \
number of entries by the number that share one mean.
    """
    layer, wanted, learned = COUNTS[name]
    given = as_count(means, f"The number of means of {layer}")
    if given != wanted:
        raise NotYet(
            f"{layer}: {given} isn't the number of means. Divide the number of entries by the "
            "number that share one mean."
        )
    given = as_count(parameters, f"The number of parameters of {layer}")
    if given != learned:
        half = " Count gamma and beta." if 2 * given == learned else ""
        raise NotYet(f"{layer}: {given} isn't the number of parameters.{half}")
    return f"{layer}: {wanted} means, {learned} parameters."


def _batch_cases() -> dict[str, tuple[nn.Module, bool]]:
    trained = nn.BatchNorm1d(6, dtype=torch.float64)
    trained(torch.tensor(np.random.default_rng(5).normal(2.0, 3.0, (32, 6))))
    return {
        "LayerNorm": (nn.LayerNorm(6, dtype=torch.float64), False),
        "BatchNorm in training mode": (nn.BatchNorm1d(6, dtype=torch.float64).train(), True),
        "BatchNorm in evaluation mode": (trained.eval(), False),
        "RMSNorm": (RMSNorm(6, dtype=torch.float64), False),
    }


@checker
def check_depends_on_batch(function: Callable[[nn.Module, Tensor, Tensor], Any]) -> str:
    """Check a function that finds whether an example's output depends on the rest of its batch.

    Args:
        function: takes a layer, an example of shape `(H,)` and two lists of other examples as one
            tensor of shape `(2, N, H)`; returns True or False.

    Example:
        >>> check_depends_on_batch(lambda layer, example, others: True)
        Not yet. For LayerNorm, the answer is False, but your function says True.
    """
    rng = np.random.default_rng(7)
    for name, (layer, right) in _batch_cases().items():
        example, others = torch.tensor(rng.normal(size=6)), torch.tensor(rng.normal(size=(2, 4, 6)))
        answer = run_answer(
            lambda example, others, layer=layer: function(layer, example, others),
            example,
            others,
            context=f"the layer was {name}",
            hint="new tensors",
        )
        if not isinstance(answer, bool | np.bool_) and not (
            isinstance(answer, Tensor) and answer.dtype == torch.bool and answer.ndim == 0
        ):
            raise NotYet(f"Your function should return True or False, but returns {answer!r}.")
        if bool(answer) != right:
            told = f"For {name}, the answer is {right}, but your function says {bool(answer)}."
            raise NotYet(told)
    return "Only BatchNorm in training mode looks at the other examples."


LETTERS = {
    "a": (
        True,
        "(a) is true: in evaluation mode, it uses the running statistics, not those of the batch.",
    ),
    "b": (
        False,
        "(b) is false: LayerNorm has no running statistics, and computes the same in both modes.",
    ),
    "c": (
        True,
        "(c) is true: each feature minus its own mean would be 0, so PyTorch raises an error "
        "instead.",
    ),
    "d": (
        False,
        "(d) is false: in training mode, the output for one image depends on the other images.",
    ),
}


@checker
def check_batch_letters(letters: Any = None) -> str:
    """Check which statements about LayerNorm and BatchNorm in lab 1 are true.

    Args:
        letters: the letters of the true statements, such as "bd".

    Example:
        >>> check_batch_letters("ad")
        Not yet. (c) is true: each feature minus its own mean would be 0, so PyTorch raises an \
error instead.
    """
    judge_letters(letters, LETTERS)
    return "Two of them are true."
