"""The check of a source of random numbers."""

from typing import Any

import numpy as np

__all__ = ["check_generator"]


def check_generator(rng: Any, function: str) -> None:
    """Raise TypeError unless `rng` is a NumPy generator (a seed is none)."""
    if not isinstance(rng, np.random.Generator):
        raise TypeError(
            f"{function}: expected rng to be a numpy.random.Generator, but got {type(rng).__name__}"
        )
