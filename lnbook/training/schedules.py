"""How the learning rate changes over the steps."""

from __future__ import annotations

from collections.abc import Callable

from lnbook._check import checked_count

__all__ = ["warm_up"]


def warm_up(steps: int) -> Callable[[int], float]:
    """Return a schedule that raises the learning rate evenly over the first `steps` steps.

    Args:
        steps: how long it rises; 0 for no warm-up.

    Returns:
        A function from the step, counted from 1, to the share of the learning rate.

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
