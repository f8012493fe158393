"""A progress bar for long computations, shown only if someone is watching."""

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
    """Return `items` with a progress bar (in notebooks and terminals) that disappears at the end.

    Nothing is shown in the first second, when writing to a file or a pipe, or if the environment
    variable `LNBOOK_SILENT` is 1.

    Args:
        items: the items to iterate over.
        label: text before the bar.
        total: number of items, if `items` has no length.

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
