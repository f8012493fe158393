"""Applies a slow function to many values, on all cores."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import TypeVar

Given = TypeVar("Given")
Result = TypeVar("Result")
FEW = 16  # with fewer values, starting processes would take longer than it saves


def map_all(function: Callable[[Given], Result], values: Sequence[Given]) -> list[Result]:
    """The function's result for each value, in order.

    Args:
        function: a module-level function, since worker processes look it up by name.
        values: the values to apply it to, which are copied to the processes.

    Raises:
        Exception: whatever the function raises.
    """
    workers = min(os.cpu_count() or 1, len(values) // (FEW // 2))
    if len(values) < FEW or workers == 1:
        return [function(value) for value in values]
    # Forking isn't safe once a library has started threads, and Sphinx's imports have.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, context) as pool:
        return list(pool.map(function, values, chunksize=4))
