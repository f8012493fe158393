"""Checkers for the chapter's exercises."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lnbook.chapters.shared.checker import NotYet, as_array, checker, judge, judge_choice, running

__all__ = ["check_passes", "check_reproducible", "check_rms_kernel"]

Array = NDArray[np.float64]


@checker
def check_passes(formula: Any = None, kernel: Any = None) -> str:
    """Check how many arrays of the input's size the formula and the kernel move.

    The formula has seven operations: mean, subtract, square, mean, divide, multiply, add.

    Args:
        formula: arrays read plus arrays written by the seven operations.
        kernel: the same for a kernel that reads each row from memory once.

    Example:
        >>> check_passes(formula=7, kernel=2)
        Not yet. formula: each operation reads one array, but five also write one.
    """
    judge(
        as_array(formula, (), "Your count for the formula"),
        np.array(12.0),
        {
            "formula: each operation reads one array, but five also write one.": np.array(7.0),
            "formula: the two means write only one number per row.": np.array(14.0),
            "formula: that's only what is written.": np.array(5.0),
        },
        otherwise="formula: two operations read one array, five read one and write one.",
    )
    judge(
        as_array(kernel, (), "Your count for the kernel"),
        np.array(2.0),
        {
            "kernel: each row comes from memory only once, and gamma and beta don't count.": (
                np.array(4.0)
            ),
            "kernel: the output has to be written as well.": np.array(1.0),
        },
        otherwise="kernel: count the trips to memory, not those to the cache.",
    )
    return (
        "A sixth of the memory traffic, not counting what stores read. If memory is the "
        "bottleneck, the kernel can be about six times as fast."
    )


RmsKernel = Callable[[Array, Array, float, Array], Any]


def _rms(x: Array, weight: Array, eps: float) -> Array:
    y: Array = x / np.sqrt((x**2).mean(1, keepdims=True) + eps) * weight
    return y


def _centered(x: Array) -> Array:
    centered: Array = x - x.mean(1, keepdims=True)
    return centered


RMS_MISTAKES: dict[str, Callable[[Array, Array, float], Array]] = {
    "It subtracts the mean. That's LayerNorm; RMSNorm leaves the mean alone.": (
        lambda x, w, eps: _rms(_centered(x), w, eps)
    ),
    "It leaves out the weight.": lambda x, w, eps: _rms(x, np.ones_like(w), eps),
    "It adds eps outside the square root.": (
        lambda x, w, eps: x / (np.sqrt((x**2).mean(1, keepdims=True)) + eps) * w
    ),
    "It leaves out eps.": lambda x, w, eps: _rms(x, w, 0.0),
    "It divides by the square root of the sum of squares. RMSNorm divides by the square root of "
    "their mean.": (lambda x, w, eps: x / np.sqrt((x**2).sum(1, keepdims=True) + eps) * w),
    "It forgets the square root.": (
        lambda x, w, eps: x / ((x**2).mean(1, keepdims=True) + eps) * w
    ),
    "The sum of one row carries over into the next. Set it to 0 for each row.": (
        lambda x, w, eps: x / np.sqrt(np.cumsum((x**2).sum(1))[:, None] / x.shape[1] + eps) * w
    ),
}


@checker
def check_rms_kernel(kernel: RmsKernel) -> str:
    r"""Check a forward kernel for RMSNorm.

    .. math::
        y_i = \gamma_i \, x_i \Big/ \sqrt{\tfrac{1}{H} \sum_j x_j^2 + \epsilon}

    Args:
        kernel: takes `(x, weight, eps, y)`, with `x` and `y` of shape (N, H), and fills `y`.

    Example:
        >>> check_rms_kernel(lambda x, weight, eps, y: None)
        Not yet. Your kernel leaves entries of y as they were. Write every y[n, i].
    """
    if not callable(kernel):
        raise NotYet(f"Give the function itself, not {kernel!r}.")
    rng = np.random.default_rng(16)
    for shape in ((3, 5), (4, 4), (2, 7)):
        x, weight, eps = rng.normal(1.0, 1.0, shape), rng.uniform(0.5, 2.0, shape[1]), 0.3
        y, given = np.full(shape, np.nan), (x.copy(), weight.copy())
        with running("Your kernel", f"x had the shape {shape}"):
            kernel(x, weight, eps, y)
        if not (np.array_equal(x, given[0]) and np.array_equal(weight, given[1])):
            raise NotYet("Your kernel changes x or weight. Write only into y.")
        if np.isnan(y).any():
            raise NotYet("Your kernel leaves entries of y as they were. Write every y[n, i].")
        judge(
            y,
            _rms(x, weight, eps),
            {text: wrong(x, weight, eps) for text, wrong in RMS_MISTAKES.items()},
            otherwise="y is wrong. Sum the squares of a row, then scale the row.",
        )
    return "Two loops instead of three: RMSNorm doesn't subtract a mean."


CHOICES = ("wrong", "varies", "same")
RIGHT = {"a": "wrong", "b": "varies", "c": "same", "d": "varies"}
WHY = {
    "a": "Two threads can read the same old value, and then one of the two additions is lost.",
    "b": "No addition is lost. But in which order do they happen?",
    "c": "What does the order of the additions depend on? Not on who computes which block.",
    "d": "With three threads, the blocks have different sizes than with two, so different rows "
    "are added up together.",
}


@checker
def check_reproducible(**answers: Any) -> str:
    """Check which ways to sum the gradient of gamma give the same bits every time.

    Args:
        answers: for each of a, b, c and d, one of "wrong", "varies" and "same".

    Example:
        >>> check_reproducible(a="same", b="varies", c="same", d="varies")
        Not yet. a: Two threads can read the same old value, and then one of the two additions is lost.
    """  # noqa: E501
    for letter, right in RIGHT.items():
        judge_choice(answers.get(letter), letter, CHOICES, right, WHY[letter])
    return "Same blocks, same order, same bits."
