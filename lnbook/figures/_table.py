"""Tables of yes and no."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle
from numpy.typing import NDArray

from lnbook.style import BLUE, GRAY, INK


def cells(
    axes: Axes,
    marks: NDArray[np.bool_],
    words: tuple[str, str],
    *,
    width: float,
    linewidth: float,
    fontsize: float,
) -> None:
    """Draw a cell for each mark: filled with the first word, or empty with the second."""
    for (row, column), mark in np.ndenumerate(marks):
        axes.add_patch(
            Rectangle(
                (column - width / 2, row - 0.42),
                width,
                0.84,
                facecolor=BLUE if mark else "none",
                edgecolor=BLUE if mark else GRAY,
                linewidth=linewidth,
            )
        )
        axes.text(
            column,
            row,
            words[0] if mark else words[1],
            ha="center",
            va="center",
            fontsize=fontsize,
            color="white" if mark else INK,
            weight="bold" if mark else "normal",
        )
    rows, columns = marks.shape
    axes.set(xlim=(-0.55, columns - 0.45), ylim=(rows - 0.5, -0.5))
    axes.xaxis.tick_top()
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
