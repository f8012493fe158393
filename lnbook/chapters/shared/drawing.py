"""Building blocks for figures: arrows, boxes and tables."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch, Rectangle
from matplotlib.patheffects import AbstractPathEffect, withStroke
from numpy.typing import NDArray

from lnbook.notebook.style import COLORS, INK, MUTED

HALO: list[AbstractPathEffect] = [withStroke(linewidth=3.0, foreground="white")]

Point = tuple[float, float]


def arrow(axes: Axes, start: Point, end: Point, color: str = MUTED, **options: Any) -> None:
    """Draw an arrow with a filled head."""
    usual = {"mutation_scale": 11, "linewidth": 1.3, "shrinkA": 0, "shrinkB": 0}
    axes.add_patch(
        FancyArrowPatch(start, end, arrowstyle="-|>", color=color, **{**usual, **options})
    )


def box(
    axes: Axes,
    center: Point,
    width: float,
    height: float,
    color: str,
    *,
    rounding: float = 0.25,
    linewidth: float = 1.8,
    **options: Any,
) -> None:
    """Draw a white box with rounded corners."""
    corner = (center[0] - width / 2, center[1] - height / 2)
    axes.add_patch(
        FancyBboxPatch(
            corner,
            width,
            height,
            boxstyle=f"round,pad=0,rounding_size={rounding}",
            facecolor="white",
            edgecolor=color,
            linewidth=linewidth,
            **options,
        )
    )


def cells(
    axes: Axes,
    marks: NDArray[np.bool_],
    words: tuple[str, str],
    *,
    width: float,
    linewidth: float,
    fontsize: float,
) -> None:
    """Draw a cell per mark: filled with the first word if True, or else empty with the second."""
    for (row, column), mark in np.ndenumerate(marks):
        axes.add_patch(
            Rectangle(
                (column - width / 2, row - 0.42),
                width,
                0.84,
                facecolor=COLORS["highlight"] if mark else "none",
                edgecolor=COLORS["highlight"] if mark else MUTED,
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
