"""Points for a checker's verdict, as shown by the check cells of the lab sheets."""

from __future__ import annotations

from lnbook.chapters.shared.checker import Verdict

__all__ = ["award"]


def award(points: int, verdict: Verdict) -> int:
    """Print what a checker says, and return the points that the answer earns.

    A check cell ends with a sum of such numbers. That number is what `lnbook.labs.grade` and
    nbgrader read, so some parts of a cell can be right and others wrong.

    Args:
        points: the points for a right answer, more than 0.
        verdict: the checker's verdict.

    Returns:
        `points` if the answer is right, and 0 if it isn't.

    Raises:
        ValueError: `points` isn't positive.

    Example:
        >>> award(2, Verdict(True, "The mean is 2."))
        Correct. The mean is 2.
        2
        >>> award(2, Verdict(False, "Your mean is the median."))
        Not yet. Your mean is the median.
        0
    """
    if points <= 0:
        raise ValueError(f"award: expected points to be positive, but got {points}")
    print(verdict)
    return points if verdict.correct else 0
