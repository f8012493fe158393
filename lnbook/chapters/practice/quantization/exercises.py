"""Checkers for the chapter's exercises."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lnbook.chapters.shared.checker import (
    NotYet,
    as_array,
    checker,
    judge,
    judge_letters,
    run_answer,
)

__all__ = ["check_commute", "check_move", "check_row"]

Array = NDArray[np.float64]
Three = tuple[Array, Array, Array]


@checker
def check_row(row: Any = None) -> str:
    """Check the row [2.8, -1.2, 0.9, 254] after rounding to int8 with one scale.

    Args:
        row: four numbers.

    Example:
        >>> check_row([1, -1, 0, 127])
        Not yet. Those are the integers. Multiply them by the scale.
    """
    judge(
        as_array(row, (4,), "Your row"),
        np.array([2.0, -2.0, 0.0, 254.0]),
        {
            "Those are the integers. Multiply them by the scale.": np.array([1, -1, 0, 127.0]),
            "You cut off the decimals. Round to the nearest integer.": np.array([2, 0, 0, 254.0]),
            "That's rounded to whole numbers. Divide by the scale first.": np.array(
                [3, -1, 1, 254.0]
            ),
        },
        otherwise="Divide by 2, round, and multiply by 2.",
    )
    return "Three of the four numbers are off by up to 0.9, because of the fourth."


MOVES: dict[str, Callable[[Array, Array, Array, Array], Three]] = {
    "You left beta as it was. The whole output of the norm gets smaller, beta too.": (
        lambda gamma, beta, w, s: (gamma / s, beta, w * s)
    ),
    "You went the other way: divide gamma and beta, and multiply W.": (
        lambda gamma, beta, w, s: (gamma * s, beta * s, w / s)
    ),
    "You left W as it was, so the model computes something else.": (
        lambda gamma, beta, w, s: (gamma / s, beta / s, w)
    ),
    "You divided W, too. It has to make up for what the norm loses.": (
        lambda gamma, beta, w, s: (gamma / s, beta / s, w / s)
    ),
    "You multiplied the rows of W. Feature i is read by column i.": (
        lambda gamma, beta, w, s: (gamma / s, beta / s, w * s[:, None])
    ),
}


@checker
def check_move(function: Callable[[Array, Array, Array, Array], Any]) -> str:
    r"""Check a function that moves scale from a norm into the matrix after it.

    .. math::
        W (\gamma \odot \hat{x} + \beta) = (W \operatorname{diag} s)
        (\gamma / s \odot \hat{x} + \beta / s)

    Args:
        function: takes gamma, beta, W and s, and returns the new gamma, beta and W.

    Example:
        >>> check_move(lambda gamma, beta, W, s: (gamma / s, beta, W * s))
        Not yet. You left beta as it was. The whole output of the norm gets smaller, beta too.
    """
    rng = np.random.default_rng(0)
    gamma, beta = rng.normal(size=(2, 4))
    given = gamma, beta, rng.normal(size=(4, 4)), rng.uniform(0.5, 2.0, size=4)
    answer = run_answer(function, *given, context="for a matrix of shape (4, 4)")
    if not isinstance(answer, tuple | list) or len(answer) != 3:
        raise NotYet("Return three arrays: the new gamma, beta and W.")
    shapes = (4,), (4,), (4, 4)
    names = "gamma", "beta", "W"
    parts = [
        as_array(part, shape, f"Your {name}")
        for part, shape, name in zip(answer, shapes, names, strict=True)
    ]
    judge(
        _flat(parts),
        _flat((given[0] / given[3], given[1] / given[3], given[2] * given[3])),
        {text: _flat(wrong(*given)) for text, wrong in MOVES.items()},
        otherwise="Divide gamma and beta by s, and multiply column i of W by s_i.",
    )
    return "The product stays the same, so the model does, too."


def _flat(parts: Any) -> Array:
    return np.concatenate([np.ravel(part) for part in parts])


COMMUTE = {
    "a": (True, "a: permuting features doesn't change their mean or their variance."),
    "b": (False, "b: changing one sign changes the mean of the row."),
    "c": (False, "c: a random rotation changes the mean of the row."),
    "d": (True, "d: such a rotation changes neither the mean nor the length."),
    "e": (True, "e: changing all signs changes the sign of the mean and of the deviations."),
    "f": (
        False,
        "f: the Hadamard matrix turns the row (1, ..., 1), whose deviations are zero, "
        "into a row with one large entry.",
    ),
}


@checker
def check_commute(letters: Any = None) -> str:
    """Check which matrices LayerNorm commutes with.

    Args:
        letters: as a string, such as "abc".

    Example:
        >>> check_commute("ad")
        Not yet. e: changing all signs changes the sign of the mean and of the deviations.
    """
    judge_letters(letters, COMMUTE)
    return "LayerNorm has one preferred direction, (1, ..., 1). RMSNorm has none."
