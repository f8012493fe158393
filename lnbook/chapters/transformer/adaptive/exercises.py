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
    judge_choice,
    run_answer,
)

__all__ = ["check_fold", "check_modulate", "check_starts"]

Array = NDArray[np.float64]
Pair = tuple[Array, Array]


@checker
def check_modulate(y: Any = None) -> str:
    r"""Check the row [2, 4], normalized without epsilon and modulated.

    .. math::
        y = \hat{x} \odot (1 + \mathrm{scale}) + \mathrm{shift}

    with shift [1, 1] and scale [0.5, -1].

    Args:
        y: two numbers.

    Example:
        >>> check_modulate([0.5, 0.0])
        Not yet. You multiplied by the scale. Multiply by 1 + scale.
    """
    judge(
        as_array(y, (2,), "Your row"),
        np.array([-0.5, 1.0]),
        {
            "You multiplied by the scale. Multiply by 1 + scale.": np.array([0.5, 0.0]),
            "You swapped shift and scale.": np.array([-1.5, 1.0]),
            "You modulated the row itself. Normalize it first.": np.array([4.0, 1.0]),
            "You shifted first and then scaled.": np.array([0.0, 0.0]),
            "That's the row before the modulation.": np.array([-1.0, 1.0]),
        },
        otherwise="The normalized row is [-1, 1]. Multiply by 1.5 and 0, then add 1.",
    )
    return "A scale of -1 switches a feature off, whatever its input."


FOLDS: dict[str, Callable[[Array, Array, Array, Array], Pair]] = {
    "Your scale leaves out the 1: gamma multiplies 1 + scale, not only the scale.": (
        lambda scale, shift, gamma, beta: (gamma * scale, beta * (1 + scale) + shift)
    ),
    "Your scale is the whole factor. Subtract the 1 that the layer adds.": (
        lambda scale, shift, gamma, beta: (gamma * (1 + scale), beta * (1 + scale) + shift)
    ),
    "Your shift adds beta as it is. The modulation scales it, too.": (
        lambda scale, shift, gamma, beta: (gamma * (1 + scale) - 1, beta + shift)
    ),
    "Your shift multiplies beta by the scale. Multiply it by 1 + scale.": (
        lambda scale, shift, gamma, beta: (gamma * (1 + scale) - 1, beta * scale + shift)
    ),
    "Your pair is in the wrong order: return scale, then shift.": (
        lambda scale, shift, gamma, beta: (beta * (1 + scale) + shift, gamma * (1 + scale) - 1)
    ),
}


def _fold(scale: Array, shift: Array, gamma: Array, beta: Array) -> Pair:
    return gamma * (1 + scale) - 1, beta * (1 + scale) + shift


@checker
def check_fold(function: Callable[[Array, Array, Array, Array], Any]) -> str:
    r"""Check a function that moves gamma and beta of the inner norm into scale and shift.

    .. math::
        (\gamma \hat{x} + \beta)(1 + \mathrm{scale}) + \mathrm{shift}
        = \hat{x} (1 + \mathrm{scale}') + \mathrm{shift}'

    Args:
        function: takes scale, shift, gamma and beta, and returns the new scale and the new shift.

    Example:
        >>> def fold(scale, shift, gamma, beta):
        ...     return gamma * scale, beta * (1 + scale) + shift
        >>> check_fold(fold)
        Not yet. Your scale leaves out the 1: gamma multiplies 1 + scale, not only the scale.
    """
    given = np.random.default_rng(0).normal(size=(4, 5))
    answer = run_answer(function, *(row.copy() for row in given), context="for random rows")
    if not isinstance(answer, tuple | list) or len(answer) != 2:
        raise NotYet("Return two arrays: the new scale, then the new shift.")
    found = np.stack([as_array(part, (5,), "What your function returns") for part in answer])
    judge(
        found,
        np.stack(_fold(*given)),
        {text: np.stack(wrong(*given)) for text, wrong in FOLDS.items()},
        otherwise="Multiply out (gamma * x + beta) * (1 + scale) + shift, and collect what "
        "multiplies x.",
    )
    return "So gamma and beta inside the norm add parameters, but no new functions."


STARTS = {
    "a": (
        "learns",
        "at the start, the gate gets a gradient, since the branch itself isn't zero.",
    ),
    "b": (
        "stuck",
        "the gate's gradient is proportional to what the branch writes, and the branch's "
        "gradient is proportional to the gate. Both are zero.",
    ),
    "c": (
        "learns",
        "the branch writes zeros at first, and its last layer gets a gradient, since nothing "
        "closes the branch.",
    ),
    "d": ("differs", "a gate of 1 leaves the branch open."),
}


@checker
def check_starts(a: Any = None, b: Any = None, c: Any = None, d: Any = None) -> str:
    """Check how four blocks start.

    Args:
        a: "learns", "stuck" or "differs", as for the others.
        b: adaLN-Zero, with the last layer of each branch at zero as well.
        c: no gates, and the last layer of each branch at zero.
        d: the modulation's weights at zero, and its biases for the gates at 1.

    Example:
        >>> check_starts(a="learns", b="learns", c="learns", d="differs")  # doctest: +ELLIPSIS
        Not yet. b: the gate's gradient is proportional to what the branch writes...
    """
    for (letter, (right, why)), answer in zip(STARTS.items(), (a, b, c, d), strict=True):
        judge_choice(answer, letter, ("learns", "stuck", "differs"), right, why)
    return "One zero on the way through a branch closes it. Two lock it."
