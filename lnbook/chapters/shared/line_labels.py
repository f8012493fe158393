"""Labels at the ends of lines, so that readers needn't look up colors in a legend."""

from __future__ import annotations

from textwrap import fill
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.container import ErrorbarContainer
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.text import Annotation, Text
from numpy.typing import NDArray
from sklearn.isotonic import isotonic_regression

SIZE = 11.0  # of the letters, in points
GAP = 9.0  # points from the last point of a line to its label
APART = 1.0  # points between labels
INSET = 3.0  # points from the right edge of the axes to labels that are outside of them
NEAR = 60.0  # points: labels that begin this close to each other, or to the edge, form a column
LONG = 14  # letters: longer labels are broken

Array = NDArray[np.float64]


def label_lines(figure: Figure) -> None:
    """Write the label of each line to the right of its last visible point.

    Call this last: labels that would overlap are moved apart, and how far depends on the height
    of the axes.

    Args:
        figure: any number of axes, with lines that have labels.

    Example:
        >>> figure = Figure()
        >>> axes = figure.subplots()
        >>> _ = axes.plot([1, 2], [3, 4], label="LN"), axes.plot([1, 2], [3, 3], label="none")
        >>> label_lines(figure)
        >>> [text.get_text() for text in axes.texts]
        ['LN', 'none']
    """
    labels = {
        axes: [_write(axes, label, points[-1], line) for label, line, points in _visible(axes)]
        for axes in figure.axes
    }
    figure.draw_without_rendering()  # lays out the axes
    for axes, written in labels.items():
        if written:
            _move_apart(axes, written)
    figure.draw_without_rendering()  # makes room for labels that were moved


def _visible(axes: Axes) -> list[tuple[str, Line2D, Array]]:
    """Each line that a legend would list, with its label and the points inside the axes, if any."""
    handles, labels = axes.get_legend_handles_labels()
    low, high = sorted(axes.get_ylim())
    found = []
    for handle, label in zip(handles, labels, strict=True):
        line: Any = handle.lines[0] if isinstance(handle, ErrorbarContainer) else handle
        points: Array = np.array(line.get_xydata(), dtype=float)  # a copy
        if line.get_transform() == axes.get_yaxis_transform(which="grid"):  # drawn by `axhline`
            points[:, 0] = max(axes.get_xlim())
        inside = points[(points[:, 1] >= low) & (points[:, 1] <= high)]
        if len(inside):
            found.append((label, line, inside))
    return found


def _write(axes: Axes, label: str, end: Array, line: Line2D) -> Annotation:
    """Write a label to the right of the end of its line, and connect them."""
    color = line.get_color()
    return axes.annotate(
        _broken(label),
        (float(end[0]), float(end[1])),
        xytext=(GAP, 0.0),
        textcoords="offset points",
        va="center",
        fontsize=SIZE,
        linespacing=1.0,
        color=color,
        annotation_clip=False,
        arrowprops={
            "arrowstyle": "-",
            "color": color,
            "linewidth": 0.9,
            "shrinkA": 0,
            "shrinkB": 0,
            "relpos": (0.0, 0.5),
        },
    )


def _broken(label: str) -> str:
    """Break a long label after commas, and what is still long, between words."""
    parts = label.replace(", ", ",\n").split("\n") if len(label) > LONG else [label]
    return "\n".join(part if "$" in part else fill(part, LONG) for part in parts)


def _move_apart(axes: Axes, labels: list[Annotation]) -> None:
    """Move labels, by whole points, into columns in which they don't overlap."""
    points = 72.0 / axes.figure.dpi
    ends = axes.transData.transform([label.xy for label in labels]) * points
    heights = np.array([Text.get_window_extent(label).height for label in labels]) * points
    bottom, top, edge = (side * points for side in (axes.bbox.y0, axes.bbox.y1, axes.bbox.x1))
    for column in _columns(ends[:, 0]):
        x, y = ends[column].T
        start = x.max() + GAP
        if edge - start < NEAR:  # leave the grid
            start = max(start, edge + INSET)
        up = _apart(y, heights[column] + APART, bottom, top) - y
        for number, right, above in zip(column, start - x, up, strict=True):
            labels[number].xyann = (round(right) + 0.0, round(above) + 0.0)


def _columns(x: Array) -> list[NDArray[np.intp]]:
    """Which labels begin so close to each other horizontally that they form a column."""
    order = np.argsort(x, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(x[order]) > NEAR) + 1)


def _apart(y: Array, heights: Array, bottom: float, top: float) -> Array:
    """Move labels as little as possible, in the sense of least squares, so that none overlap.

    If there's room, they stay within the axes.
    """
    order = np.argsort(y.round(3), kind="stable")  # rounding noise doesn't swap equal ones
    tall = heights[order]
    least = np.concatenate([[0.0], np.cumsum((tall[1:] + tall[:-1]) / 2)])
    low = bottom + tall[0] / 2
    high = max(low, top - tall[-1] / 2 - least[-1])
    moved = np.empty_like(y)
    moved[order] = isotonic_regression(y[order] - least, y_min=low, y_max=high) + least
    return moved
