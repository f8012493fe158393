"""The figures for the chapter on variants of the normalized transformer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Circle
from numpy.typing import ArrayLike, NDArray

from lnbook.chapters.shared.line_labels import label_lines
from lnbook.notebook.style import COLORS, INK, MUTED, WIDTH, line_styles

__all__ = ["by_block", "keys", "losses", "xor"]

Array = NDArray[np.float64]


def by_block(
    panels: Mapping[str, Mapping[str, ArrayLike]],
    label: str,
    *,
    first: int = 0,
    top: float | None = None,
) -> Figure:
    """Draw a quantity at each block of a stack, on a logarithmic scale.

    Args:
        panels: for each panel, its title and its lines, each with a name and positive values of
            shape `(K,)`.
        label: the quantity.
        first: the block that the first value belongs to.
        top: the upper end of the scale. Larger values are outside the panel.

    Returns:
        Stacked panels with a common scale.

    Raises:
        ValueError: `panels` is empty.

    Example:
        >>> lines = {"Pre-LN": [1.0, 2.0], "Post-LN": [1.0, 1.0]}
        >>> figure = by_block({"stream": lines}, "mean square")
        >>> [line.get_ydata().tolist() for line in figure.axes[0].lines]
        [[1.0, 2.0], [1.0, 1.0]]
    """
    if not panels:
        raise ValueError("by_block: expected at least one panel, but got none")
    figure = Figure(figsize=(WIDTH, 2.6 * len(panels) + 0.3))
    all_axes = figure.subplots(len(panels), 1, sharex=True, sharey=True, squeeze=False)[:, 0]
    for axes, (title, lines) in zip(all_axes, panels.items(), strict=True):
        styles = line_styles(lines)
        for number, (name, values) in enumerate(lines.items()):
            array = np.asarray(values, dtype=float)
            axes.plot(
                np.arange(first, first + array.size),
                array,
                **styles[name],
                markevery=(2 * number, 7),
                markersize=6,
                label=name,
            )
        axes.set(title=title, ylabel=label, yscale="log")
        axes.grid()
    if top is not None:
        all_axes[0].set_ylim(top=top)  # the scale is shared
    all_axes[-1].set_xlabel("block")
    label_lines(figure)
    return figure


def keys(
    panels: Mapping[str, tuple[ArrayLike, ArrayLike]], *, circle: float | None = None
) -> Figure:
    """Draw keys in the plane, and show which of them can be selected.

    Args:
        panels: for each panel, its title, the keys, shape `(n, 2)`, and which of them can't be
            selected, shape `(n,)`.
        circle: the radius of a circle to draw in the last panel.

    Returns:
        Stacked panels. A line joins the keys that can be selected, in the order of their angles.

    Raises:
        ValueError: `panels` is empty.

    Example:
        >>> square = [[0, 0], [2, 0], [0, 2], [2, 2], [1, 1]]
        >>> figure = keys({"raw": (square, [False, False, False, False, True])})
        >>> line = figure.axes[0].lines[2]
        >>> line.get_label(), line.get_xdata().tolist(), line.get_ydata().tolist()
        ('unselectable', [1.0], [1.0])
    """
    if not panels:
        raise ValueError("keys: expected at least one panel, but got none")
    figure = Figure(figsize=(WIDTH, 0.92 * WIDTH * len(panels)))
    all_axes = figure.subplots(len(panels), 1, squeeze=False)[:, 0]
    for axes, (title, (places, hidden)) in zip(all_axes, panels.items(), strict=True):
        k, inside = np.asarray(places, dtype=float), np.asarray(hidden, dtype=bool)
        hull = k[~inside]
        hull = hull[np.argsort(np.arctan2(*(hull - k.mean(0)).T[::-1]))]
        closed = np.vstack([hull, hull[:1]])
        axes.plot(*closed.T, color=MUTED, linewidth=1.2, linestyle="--")
        axes.plot(*hull.T, "o", color=COLORS["first"], markersize=7.5, label="selectable")
        if inside.any():
            axes.plot(
                *k[inside].T,
                "X",
                color=COLORS["changed"],
                markersize=8,
                linestyle="none",
                label="unselectable",
            )
        axes.plot(0, 0, "+", color=INK, markersize=9)
        axes.set(title=title, aspect="equal", xlabel="feature 1", ylabel="feature 2")
        axes.grid()
    all_axes[0].legend(loc="lower center", bbox_to_anchor=(0.5, 1.1), ncols=2)
    if circle is not None:
        all_axes[-1].add_patch(Circle((0, 0), circle, fill=False, color=MUTED, linewidth=1.0))
    return figure


def losses(
    panels: Mapping[str, Mapping[str, Sequence[float]]], *, worst: float, label: str
) -> Figure:
    """Draw the losses of several runs of each variant, one point per run.

    Args:
        panels: for each panel, its title and the losses of each variant, infinite for a run that
            diverged.
        worst: the upper end of the scale. Larger losses are drawn there, as crosses.
        label: what the losses are.

    Returns:
        Stacked panels with a common scale and one row per variant.

    Raises:
        ValueError: `panels` is empty.

    Example:
        >>> figure = losses({"rate 0.001": {"Pre-LN": [2.0, 2.25]}}, worst=4.0, label="loss")
        >>> figure.axes[0].lines[0].get_xdata().tolist()
        [2.0, 2.25]
    """
    if not panels:
        raise ValueError("losses: expected at least one panel, but got none")
    rows = max(len(runs) for runs in panels.values())
    figure = Figure(figsize=(WIDTH, (0.3 * rows + 0.6) * len(panels) + 0.3))
    all_axes = figure.subplots(len(panels), 1, sharex=True, squeeze=False)[:, 0]
    for axes, (title, runs) in zip(all_axes, panels.items(), strict=True):
        for number, values in enumerate(runs.values()):
            _loss_row(axes, np.asarray(values, dtype=float), -number, worst)
        axes.set_yticks(-np.arange(len(runs)), list(runs))
        axes.set_ylim(-len(runs) + 0.4, 0.6)
        axes.tick_params(axis="y", length=0)
        axes.set_title(title)
        axes.grid(axis="x")
    all_axes[-1].set_xlabel(label)
    return figure


def _loss_row(axes: Axes, values: Array, place: float, worst: float) -> None:
    fits = values < worst
    shown, broken = values[fits], np.full(int((~fits).sum()), worst)
    axes.plot(
        shown, np.full(shown.size, place), "o", color=COLORS["first"], alpha=0.6, markersize=6
    )
    axes.plot(broken, np.full(broken.size, place), "X", color=COLORS["changed"], markersize=8)
    if shown.size == values.size:
        axes.plot([shown.mean()] * 2, [place - 0.3, place + 0.3], color=INK, linewidth=2.5)


def xor(centered: ArrayLike, normalized: ArrayLike, threshold: float, radius: float) -> Figure:
    """Draw how LayerNorm bends a line so that one straight cut separates XOR.

    Args:
        centered: the three distinct centered rows, in the coordinates of their plane, shape
            `(3, 2)`. The middle one is in class 1.
        normalized: the same rows after LayerNorm, shape `(3, 2)`.
        threshold: the height of the cut.
        radius: the radius of the circle of normalized rows.

    Returns:
        The line of the centered rows, the circle, and the cut.

    Example:
        >>> figure = xor([[-2, -1], [0, 1], [2, -1]], [[-0.9, -0.4], [0, 1], [0.9, -0.4]], 0.3, 1.0)
        >>> figure.axes[0].lines[0].get_ydata().tolist()
        [-1.0, 1.0, -1.0]
    """
    before, after = np.asarray(centered, dtype=float), np.asarray(normalized, dtype=float)
    figure = Figure(figsize=(WIDTH, 4.3))
    axes = figure.subplots()
    axes.add_patch(Circle((0, 0), radius, fill=False, color=MUTED, linewidth=1.2))
    axes.plot(*before.T, color=MUTED, linewidth=1.2)
    for start, end in zip(before, after, strict=True):
        axes.plot([0, start[0]], [0, start[1]], color=MUTED, linewidth=0.9, linestyle=":")
        axes.plot(*end, alpha=0)  # keeps the point within the limits
    outer, middle = [0, 2], [1]
    for rows, marker, color, name in (
        (outer, "s", COLORS["second"], "class 0"),
        (middle, "o", COLORS["first"], "class 1"),
    ):
        axes.plot(
            *before[rows].T,
            marker,
            color=color,
            markersize=8,
            markerfacecolor="white",
            markeredgewidth=1.8,
            linestyle="none",
            label=f"{name}, centered",
        )
        axes.plot(
            *after[rows].T,
            marker,
            color=color,
            markersize=8,
            linestyle="none",
            label=f"{name}, normalized",
        )
    axes.axhline(threshold, color=INK, linewidth=1.8, linestyle="--")
    axes.plot(0, 0, "+", color=INK, markersize=9)
    axes.set(aspect="equal", ylim=(-radius - 0.15, before[:, 1].max() + 0.35))
    axes.set(xlabel="along $(1, -1, 0)$", ylabel="along $(1, 1, -2)$")
    axes.legend(loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=2)
    axes.grid()
    return figure
