"""Learning rate schedules."""

from __future__ import annotations

from collections.abc import Callable

from lnbook._check import checked_count

__all__ = ["warm_up"]


def warm_up(steps: int) -> Callable[[int], float]:
    """Return a schedule that increases the learning rate linearly over the first `steps` steps.

    Args:
        steps: number of warm-up steps; 0 for no warm-up.

    Returns:
        A function that takes the step, counted from 1, and returns a factor for the learning rate.

    Raises:
        TypeError: `steps` is not an integer.
        ValueError: `steps` is negative.

    Example:
        >>> schedule = warm_up(4)
        >>> [schedule(step) for step in (1, 2, 4, 100)]
        [0.25, 0.5, 1.0, 1.0]
    """
    checked_count(steps, "steps", "warm_up")
    return lambda step: min(1.0, step / steps) if steps else 1.0
