"""Checkers of the chapter's exercises."""

from __future__ import annotations

from typing import Any

import numpy as np

from lnbook.chapters.shared.checker import as_array, checker, judge

__all__ = ["check_change", "check_sign"]


@checker
def check_change(change: Any = None) -> str:
    """Check the largest change from doubling a row, without epsilon.

    Args:
        change: one number.

    Example:
        >>> check_change(2)
        Not yet. That's how much the row grows. What is it divided by?
    """
    judge(
        as_array(change, (), "Your change"),
        np.array(0.0),
        {"That's how much the row grows. What is it divided by?": np.array(2.0)},
        otherwise="Divide both rows by their standard deviations and compare.",
    )
    return "The scale of a row doesn't matter."


@checker
def check_sign(factor: Any = None) -> str:
    """Check how flipping a row's sign affects its normalized values.

    Args:
        factor: one number.

    Example:
        >>> check_sign(1)
        Not yet. The standard deviation stays the same, but the deviations change sign.
    """
    judge(
        as_array(factor, (), "Your factor"),
        np.array(-1.0),
        {"The standard deviation stays the same, but the deviations change sign.": np.array(1.0)},
        otherwise="Normalize [1, 2, 3] and [-1, -2, -3] and compare.",
    )
    return "The pattern is flipped."
