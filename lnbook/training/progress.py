"""A bar that shows how far a long computation is, where somebody looks."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from typing import TypeVar

from lnbook._build import SILENCE

__all__ = ["progress"]

SECONDS_BEFORE_IT_SHOWS = 1.0

Item = TypeVar("Item")


def progress(items: Iterable[Item], label: str = "", total: int | None = None) -> Iterable[Item]:
    """Return `items`, with a bar in a notebook or a terminal that goes away at the end.

    Nothing is shown within the first second, into a file or a pipe, or where the environment
    variable `LNBOOK_SILENT` is 1.

    Args:
        items: what is gone through.
        label: what to write before the bar.
        total: how many items there are, if `items` has no length.

    Example:
        >>> sum(progress([1, 2, 3], "adding"))
        6
    """
    shown = os.environ.get(SILENCE) != "1" and (_in_notebook() or sys.stdout.isatty())
    if not shown:
        return items
    from tqdm.std import tqdm

    bar: Iterable[Item] = tqdm(
        items,
        desc=label,
        total=total,
        leave=False,
        delay=SECONDS_BEFORE_IT_SHOWS,
        file=sys.stdout,
        dynamic_ncols=False,
        ncols=72,
    )
    return bar


def _in_notebook() -> bool:
    from IPython.core.getipython import get_ipython

    shell = get_ipython()
    return shell is not None and hasattr(shell, "kernel")
