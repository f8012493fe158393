"""The boxes and arrows of diagrams."""

from __future__ import annotations

from typing import Any

from matplotlib.axes import Axes
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

from lnbook.style import GRAY

Point = tuple[float, float]


def arrow(axes: Axes, start: Point, end: Point, color: str = GRAY, **options: Any) -> None:
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
    """Draw a white box with round corners."""
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
