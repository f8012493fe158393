"""Figures for "See LayerNorm as geometry"."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Circle, Ellipse
from numpy.typing import ArrayLike, NDArray

from lnbook.chapters.shared.drawing import HALO, arrow, cells
from lnbook.notebook.style import COLORS, INK, MUTED, WIDTH

__all__ = ["clouds", "invariances", "plane", "space"]

Array = NDArray[np.float64]

# Three directions at right angles: two in the plane orthogonal to (1, 1, 1), and (1, 1, 1).
RIGHT = np.array([1.0, -1.0, 0.0]) / np.sqrt(2.0)
BACK = np.array([1.0, 1.0, -2.0]) / np.sqrt(6.0)
UP = np.ones(3) / np.sqrt(3.0)
TURN = np.radians(25.0)  # the drawing's viewpoint: how far it's rotated about (1, 1, 1)
TILT = np.radians(24.0)  # how far the viewpoint is above the plane
FOLLOWED = ((COLORS["first"], "o"), (COLORS["second"], "s"), (COLORS["third"], "D"))
SIZES = (9.5, 5.5, 6.5)  # different, so that you can see two markers in the same place
STARS = (18, 10, 14)
ARROW = {"linewidth": 1.5, "shrinkB": 2}  # ends just before the star that it points to


def _seen(points: Array) -> Array:
    """Project 3D points, shape `(N, 3)`, onto the page, shape `(N, 2)`."""
    right = np.cos(TURN) * RIGHT + np.sin(TURN) * BACK
    back = np.cos(TURN) * BACK - np.sin(TURN) * RIGHT
    height = points @ UP * np.cos(TILT) + points @ back * np.sin(TILT)
    return np.stack([points @ right, height], axis=-1)


def space(rows: ArrayLike, centered: ArrayLike, normalized: ArrayLike) -> Figure:
    """Draw the two steps of LayerNorm in 3D, for rows of three features.

    Args:
        rows: the rows, shape `(N, 3)`, at most three.
        centered: the same rows minus their means.
        normalized: the same rows after both steps.

    Returns:
        A drawing in which the direction (1, 1, 1) points up: the plane of the centered rows with
        the circle of radius root 3, and for each row its path down to the plane and then along it.

    Raises:
        ValueError: the arrays don't all have the same shape `(N, 3)` with N from 1 to 3.

    Example:
        >>> root = 1.5**0.5
        >>> figure = space([[1, 2, 3]], [[-1, 0, 1]], [[-root, 0, root]])
        >>> [text.get_text() for text in figure.axes[0].texts]
        ['(1, 1, 1)', '$x_1$', '$x_2$', '$x_3$', 'mean 0']
    """
    before, between, after = (np.asarray(p, dtype=float) for p in (rows, centered, normalized))
    fits = before.ndim == 2 and before.shape[1] == 3 and 0 < len(before) <= len(FOLLOWED)
    if not fits or not before.shape == between.shape == after.shape:
        raise ValueError(
            "space: expected three arrays of the same shape (N, 3), N from 1 to 3, but got "
            f"{before.shape}, {between.shape} and {after.shape}"
        )
    figure = Figure(figsize=(WIDTH, 4.5))
    axes = figure.subplots()
    axes.set_aspect("equal")
    axes.axis("off")
    reach = 3.1
    axes.add_patch(
        Ellipse(
            (0, 0),
            2 * reach,
            2 * reach * np.sin(TILT),
            facecolor=COLORS["region"],
            alpha=0.22,
            lw=0,
        )
    )
    radius = np.sqrt(3.0)
    axes.add_patch(
        Ellipse((0, 0), 2 * radius, 2 * radius * np.sin(TILT), fill=False, edgecolor=INK, lw=1.6)
    )
    top = float(max(_seen(before)[:, 1].max() + 0.4, 3.0))
    arrow(axes, (0.0, 0.0), (0.0, top), MUTED, **ARROW)
    axes.text(0.12, top, "(1, 1, 1)", color=MUTED, va="center")
    for number, unit in enumerate(1.8 * np.eye(3), start=1):
        end = _seen(unit[None])[0]
        axes.plot([0, end[0]], [0, end[1]], color=MUTED, linewidth=1.0)
        beyond = 1.14 * end
        axes.text(
            beyond[0],
            beyond[1],
            f"$x_{number}$",
            color=MUTED,
            ha="center",
            va="center",
            fontsize=11,
            path_effects=HALO,
        )
    for number, (color, marker) in enumerate(FOLLOWED[: len(before)]):
        start, middle, end = (_seen(p[number][None])[0] for p in (before, between, after))
        axes.plot(*zip(start, middle, strict=True), color=color, linestyle=":", linewidth=1.5)
        arrow(axes, middle, end, color, **ARROW)
        axes.plot(*start, color=color, marker=marker, markersize=8)
        axes.plot(
            *middle, color=color, marker=marker, markersize=SIZES[number], markerfacecolor="white"
        )
        axes.plot(*end, color=color, marker="*", markersize=STARS[number])
    axes.text(
        0.0, -reach * np.sin(TILT) - 0.12, "mean 0", color=COLORS["first"], ha="center", va="top"
    )
    axes.set(xlim=(-reach - 0.1, reach + 0.1), ylim=(-reach * np.sin(TILT) - 0.6, top + 0.2))
    return figure


def plane(panels: Mapping[str, ArrayLike]) -> Figure:
    """Draw centered rows of three features, seen from above, along (1, 1, 1).

    Args:
        panels: a title for each panel, and the rows, whose means are 0, shape `(N, 3)` with N at
            least 3.

    Returns:
        Panels side by side, each with the circle of radius root 3. The first three rows have
        large, distinct markers, so that you can follow them from panel to panel.

    Raises:
        ValueError: there are no panels, or rows have the wrong shape.

    Example:
        >>> figure = plane({"centered": [[-1, 0, 1], [2, -1, -1], [1, 1, -2]]})
        >>> [round(float(line.get_ydata()[0]), 2) for line in figure.axes[0].lines]
        [-1.22, 1.22, 2.45]
    """
    listed = {title: np.asarray(rows, dtype=float) for title, rows in panels.items()}
    shapes = [rows.shape for rows in listed.values()]
    if not shapes or any(len(s) != 2 or s[1] != 3 or s[0] < len(FOLLOWED) for s in shapes):
        raise ValueError(f"plane: expected rows of shape (N, 3), N at least 3, but got {shapes}")
    figure = Figure(figsize=(WIDTH, 0.5 + WIDTH / len(listed)))
    row_of_axes = figure.subplots(1, len(listed), sharex=True, sharey=True, squeeze=False)[0]
    for axes, (title, rows) in zip(row_of_axes, listed.items(), strict=True):
        across, along = rows @ RIGHT, rows @ BACK
        axes.add_patch(Circle((0, 0), np.sqrt(3.0), fill=False, edgecolor=INK, linewidth=1.0))
        axes.scatter(across, along, s=5, color=MUTED, alpha=0.55, linewidths=0)
        for number, (color, marker) in enumerate(FOLLOWED):
            axes.plot(across[number], along[number], color=color, marker=marker, markersize=7.5)
        axes.set_title(title)
        axes.set_aspect("equal")
        axes.set(xlim=(-2.9, 2.9), ylim=(-2.9, 2.9), xticks=[], yticks=[])
        axes.spines[:].set_visible(False)
    return figure


def invariances(table: ArrayLike, changes: Sequence[str], methods: Sequence[str]) -> Figure:
    """Show which methods ignore which changes to the weights and the data.

    Args:
        table: True where the output of a method stays the same, shape `(changes, methods)`.
        changes: the changes, one for each row.
        methods: the methods, one for each column.

    Returns:
        A table of cells: filled and "same", or empty and "changes".

    Raises:
        ValueError: the number of changes or methods doesn't match the table.

    Example:
        >>> figure = invariances([[True, False]], ["a factor on an example"], ["LN", "BN"])
        >>> [text.get_text() for text in figure.axes[0].texts]
        ['same', 'changes']
    """
    same = np.asarray(table, dtype=bool)
    if same.shape != (len(changes), len(methods)):
        raise ValueError(
            f"invariances: expected a table of shape {(len(changes), len(methods))}, "
            f"but got {same.shape}"
        )
    figure = Figure(figsize=(WIDTH, 0.55 + 0.5 * len(changes)))
    axes = figure.subplots()
    cells(axes, same, ("same", "changes"), width=0.94, linewidth=1.0, fontsize=9.5)
    axes.set_xticks(range(len(methods)), methods)
    axes.set_yticks(range(len(changes)), changes)
    return figure


def clouds(panels: Mapping[str, ArrayLike]) -> Figure:
    """Plot two features of many rows against each other.

    Args:
        panels: a title for each panel, and the two features, shape `(N, 2)`.

    Returns:
        Panels side by side, on a common scale.

    Raises:
        ValueError: there are no panels, or points have the wrong shape.

    Example:
        >>> figure = clouds({"before": [[1, 2], [3, 4]], "after": [[-1, 1], [-1, 1]]})
        >>> [axes.get_title() for axes in figure.axes]
        ['before', 'after']
    """
    listed = {title: np.asarray(points, dtype=float) for title, points in panels.items()}
    shapes = [points.shape for points in listed.values()]
    if not shapes or any(len(shape) != 2 or shape[1] != 2 for shape in shapes):
        raise ValueError(f"clouds: expected points of shape (N, 2), but got {shapes}")
    figure = Figure(figsize=(WIDTH, 0.7 + WIDTH / len(listed)))
    row_of_axes = figure.subplots(1, len(listed), sharex=True, sharey=True, squeeze=False)[0]
    for axes, (title, points) in zip(row_of_axes, listed.items(), strict=True):
        axes.scatter(
            points[:, 0], points[:, 1], s=7, color=COLORS["first"], alpha=0.6, linewidths=0
        )
        axes.set_title(title)
        axes.set_aspect("equal")
        axes.grid()
        axes.set_xlabel("feature 1")
    row_of_axes[0].set_ylabel("feature 2")
    return figure
