"""Setup for the first cell of every chapter, so that outputs are the same everywhere."""

from __future__ import annotations

import os
import random
from typing import Any

import numpy as np
import torch
from IPython.core.getipython import get_ipython
from IPython.core.pylabtools import select_figure_formats
from matplotlib.figure import Figure

from lnbook._build import FIGURE_SNAPSHOT
from lnbook.notebook.figure_snapshot import describe
from lnbook.notebook.results import checks, table
from lnbook.notebook.style import use_style

__all__ = ["THREADS", "checks", "set_up", "table"]

THREADS = "LNBOOK_THREADS"  # set to 2 to check that no output depends on it
LARGEST_SEED = 2**32 - 1
DIGITS = 10  # shown in outputs and glued text, because the sixteenth differs between processors


def set_up(seed: int = 0) -> np.random.Generator:
    """Make a notebook reproducible: set seeds, threads, number formatting and figure style.

    Seeds Python's, NumPy's and torch's global generators, and makes torch use one thread (or as
    many as the environment variable `LNBOOK_THREADS` specifies). Arrays and tensors print with four
    digits, and single numbers are shown with ten. Figures become SVG drawings without a date, in
    the book's style, each with a snapshot of its contents (`lnbook.notebook.figure_snapshot`).
    Outside a notebook, figures and single numbers are shown as usual.

    Args:
        seed: seed for all generators, from 0 to 2**32 - 1.

    Returns:
        A NumPy generator whose numbers are the same on every processor. Use it for demonstration
        data, since the numbers from `torch.randn` differ between processors.

    Raises:
        TypeError: `seed` is not an integer.
        ValueError: `seed` is out of range, or `LNBOOK_THREADS` is not a positive whole number.

    Example:
        >>> rng = set_up(seed=7)
        >>> rng.integers(10, size=3)
        array([9, 6, 6])
    """
    _check_seed(seed)
    threads = _threads()
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)
    torch.set_num_threads(threads)
    # legacy="1.25": a single number prints as 0.5, not as np.float64(0.5).
    np.set_printoptions(precision=4, suppress=True, linewidth=88, legacy="1.25")
    torch.set_printoptions(precision=4, sci_mode=False, linewidth=88)
    use_style()
    shell = get_ipython()
    if shell is not None:
        _show_figures_as_drawings(shell)
        _show_numbers_with_few_digits(shell)
    return np.random.default_rng(seed)


def _check_seed(seed: Any) -> None:
    if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)):
        raise TypeError(f"set_up: expected seed to be an integer, but got {seed!r}")
    if not 0 <= seed <= LARGEST_SEED:
        raise ValueError(f"set_up: expected seed to be from 0 to {LARGEST_SEED}, but got {seed}")


def _threads() -> int:
    text = os.environ.get(THREADS, "1")
    if not (text.isdecimal() and int(text)):
        raise ValueError(f"set_up: expected {THREADS} to be a number of threads, but got {text!r}")
    return int(text)


def _show_figures_as_drawings(shell: Any) -> None:
    select_figure_formats(shell, {"svg"}, bbox_inches=None, metadata={"Date": None})
    shell.display_formatter.mimebundle_formatter.for_type(Figure, _record)


def _show_numbers_with_few_digits(shell: Any) -> None:
    for kind in (float, np.float64):
        shell.display_formatter.formatters["text/plain"].for_type(kind, _show_number)


def _show_number(number: float, printer: Any, cycle: bool) -> None:
    del cycle  # IPython passes it, but numbers don't need it
    printer.text(repr(float(f"{number:.{DIGITS}g}")))


def _record(figure: Figure, include: Any = None, exclude: Any = None) -> dict[str, Any]:
    del include, exclude  # IPython passes both; the record is always shown
    return {FIGURE_SNAPSHOT: describe(figure)}
