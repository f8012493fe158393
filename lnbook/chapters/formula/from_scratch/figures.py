"""The figure for "Write LayerNorm from scratch, and test it well"."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from numpy.typing import ArrayLike

from lnbook.notebook.style import COLORS, MUTED, WIDTH

__all__ = ["caught"]


def caught(results: ArrayLike, modules: Sequence[str], tests: Sequence[str]) -> Figure:
    """Show which test catches which module.

    Args:
        results: booleans, a row for each module and a column for each test: True if the test
            catches the module.
        modules: the labels of the rows.
        tests: the labels of the columns.

    Returns:
        A grid, with a filled cell and a cross wherever a test catches a module.

    Raises:
        ValueError: the shape of `results` doesn't match the labels, or there are no labels.

    Example:
        >>> figure = caught([[True, False]], ["unbiased variance"], ["values", "shape"])
        >>> len(figure.axes[0].texts)  # crosses
        1
    """
    grid = np.asarray(results, dtype=bool)
    if grid.shape != (len(modules), len(tests)) or grid.size == 0:
        raise ValueError(
            f"caught: expected results of shape {(len(modules), len(tests))}, at least one of "
            f"each, but got {grid.shape}"
        )
    figure = Figure(figsize=(WIDTH, 0.29 * len(modules) + 1.75))
    axes = figure.subplots()
    for row, column in np.ndindex(grid.shape):
        is_caught = bool(grid[row, column])
        axes.add_patch(
            Rectangle(
                (column, row),
                0.92,
                0.88,
                facecolor=COLORS["highlight" if is_caught else "surface"],
                edgecolor=MUTED,
                linewidth=0.6,
            )
        )
        if is_caught:
            axes.text(
                column + 0.46,
                row + 0.46,
                "\N{MULTIPLICATION SIGN}",
                color="white",
                ha="center",
                va="center",
                fontsize=12,
            )
    axes.set(xlim=(-0.05, len(tests)), ylim=(len(modules), -0.05))
    axes.xaxis.tick_top()
    axes.set_xticks(
        np.arange(len(tests)) + 0.6, tests, rotation=50, ha="left", rotation_mode="anchor"
    )
    axes.set_yticks(np.arange(len(modules)) + 0.45, modules)
    axes.tick_params(length=0)
    axes.spines[["left", "bottom"]].set_visible(False)
    return figure
