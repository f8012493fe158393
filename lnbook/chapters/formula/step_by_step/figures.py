"""Figures for "Compute LayerNorm, step by step"."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike, NDArray

from lnbook.chapters.shared.drawing import arrow, box
from lnbook.notebook.style import COLORS, INK, MUTED, WIDTH, line_style

__all__ = ["process", "rows_before_and_after", "scale_and_shift"]

MOST_ROWS = 4


@dataclass(frozen=True)
class _Box:
    """A box in the flow diagram: its position, its text, and a color for where it comes from."""

    x: float
    y: float
    formula: str
    note: str
    color: str
    width: float


def process() -> Figure:
    """Draw how LayerNorm computes its output, and where each ingredient comes from.

    Returns:
        A flow diagram with each step's formula and each result's shape. Colors show what
        comes from the row, what you choose, and what is learned.

    Example:
        >>> figure = process()
        >>> texts = [text.get_text() for text in figure.axes[0].texts]
        >>> [text for text in texts if "(N, 1)" in text]  # the statistics
        ['mean (N, 1)', 'variance (N, 1)']
    """
    main, side = 3.15, 2.85
    boxes = {
        "x": _Box(5.25, 11.2, r"$x$", "input (N, H)", INK, main),
        "mean": _Box(1.45, 9.85, r"$\mu$", "mean (N, 1)", COLORS["statistics"], side),
        "centered": _Box(5.25, 8.5, r"$x - \mu$", "centered (N, H)", INK, main),
        "variance": _Box(1.45, 7.3, r"$\sigma^2$", "variance (N, 1)", COLORS["statistics"], side),
        "eps": _Box(1.45, 5.1, "$\u03f5$", "one number", MUTED, side),
        "normalized": _Box(
            5.25, 5.9, r"$\hat{x} = \frac{x - \mu}{\sqrt{\sigma^2 + ϵ}}$", "", INK, main
        ),
        "weight": _Box(8.72, 3.3, r"$\gamma$", "scale (H,)", COLORS["learned"], 2.5),
        "scaled": _Box(5.25, 3.3, r"$\gamma \, \hat{x}$", "scaled (N, H)", INK, main),
        "bias": _Box(8.72, 0.9, r"$\beta$", "shift (H,)", COLORS["learned"], 2.5),
        "y": _Box(5.25, 0.9, r"$y = \gamma \, \hat{x} + \beta$", "output (N, H)", INK, main),
    }
    arrows = [
        ("x", "centered"),
        ("x", "mean"),
        ("mean", "centered"),
        ("centered", "normalized"),
        ("centered", "variance"),
        ("variance", "normalized"),
        ("eps", "normalized"),
        ("normalized", "scaled"),
        ("weight", "scaled"),
        ("scaled", "y"),
        ("bias", "y"),
    ]
    figure = Figure(figsize=(WIDTH, 6.0))
    axes = figure.subplots()
    axes.set(xlim=(0, 10), ylim=(-0.1, 13.1))
    axes.axis("off")
    for start, end in arrows:
        _arrow(axes, boxes[start], boxes[end])
    for item in boxes.values():
        _draw(axes, item)
    owners = (
        (0.1, "from the row", COLORS["statistics"]),
        (4.1, "chosen", MUTED),
        (7.1, "learned", COLORS["learned"]),
    )
    for x, text, color in owners:
        axes.text(x, 12.7, f"\N{BLACK SQUARE} {text}", color=color, weight="bold", va="center")
    return figure


def _draw(axes: Axes, item: _Box) -> None:
    box(axes, (item.x, item.y), item.width, 1.45, item.color)
    above = 0.28 if item.note else 0.0
    size = 14 if item.note else 16
    centered: dict[str, Any] = {"ha": "center", "va": "center"}
    axes.text(item.x, item.y + above, item.formula, fontsize=size, color=item.color, **centered)
    axes.text(item.x, item.y - 0.42, item.note, fontsize=10.5, color=INK, **centered)


def _arrow(axes: Axes, start: _Box, end: _Box) -> None:
    """Draw an arrow between the facing sides of two boxes."""
    if start.x == end.x:
        points = ((start.x, start.y - 0.75), (end.x, end.y + 0.78))
    else:
        side = 1 if end.x > start.x else -1
        points = (
            (start.x + side * start.width / 2, start.y),
            (end.x - side * (end.width / 2 + 0.04), end.y),
        )
    arrow(axes, *points)


def _mean(row: NDArray[np.float64]) -> float:
    """The mean, or 0 if it's only rounding error."""
    return round(float(row.mean()), 12)


def rows_before_and_after(x: ArrayLike, normalized: ArrayLike) -> Figure:
    """Draw the features of a few rows on a number line, before and after normalization.

    Args:
        x: up to four rows, shape `(N, H)`.
        normalized: the same rows, normalized.

    Returns:
        Two panels, stacked vertically. Each row of data has its own line, color and marker.

    Raises:
        ValueError: the arrays differ in shape, or there are more than four rows.

    Example:
        >>> figure = rows_before_and_after([[1.0, 3.0], [10.0, 30.0]], [[-1.0, 1.0], [-1.0, 1.0]])
        >>> [[line.get_xdata().tolist() for line in axes.lines] for axes in figure.axes]
        [[[1.0, 3.0], [10.0, 30.0]], [[-1.0, 1.0], [-1.0, 1.0]]]
    """
    before, after = np.asarray(x, dtype=float), np.asarray(normalized, dtype=float)
    if before.shape != after.shape or before.ndim != 2 or len(before) > MOST_ROWS:
        raise ValueError(
            "rows_before_and_after: expected two arrays of the same shape (N, H), N at most "
            f"{MOST_ROWS}, but got {before.shape} and {after.shape}"
        )
    figure = Figure(figsize=(WIDTH, 3.9))
    upper, lower = figure.subplots(2, 1)
    for axes, rows in ((upper, before), (lower, after)):
        for number, row in enumerate(rows):
            style = line_style(number, linestyle="-")
            axes.plot(row, np.full(row.size, -number), **style, markersize=7)
        axes.set_yticks(-np.arange(len(rows)), [f"row {n + 1}" for n in range(len(rows))])
        axes.set_ylim(-len(rows) + 0.4, 0.6)
        axes.tick_params(axis="y", length=0)
        axes.spines["left"].set_visible(False)
        axes.grid(axis="x")
    upper.set(title="before", xlabel="$x$")
    lower.set(title="after", xlabel=r"$\hat{x}$")
    return figure


def scale_and_shift(rows: Mapping[str, ArrayLike]) -> Figure:
    """Draw how gamma and beta stretch and shift the distribution of a normalized row.

    Args:
        rows: a label for each pair of gamma and beta, and the values of one row, shape `(H,)`.

    Returns:
        Histograms on a common scale, each with a line at its mean and a bar that extends one
        standard deviation to either side.

    Raises:
        ValueError: there are no rows.

    Example:
        >>> figure = scale_and_shift({"gamma 2, beta 1": [-1.0, 3.0, 1.0]})
        >>> figure.axes[0].get_title(), float(figure.axes[0].lines[0].get_xdata()[0])  # the mean
        ('gamma 2, beta 1', 1.0)
    """
    if not rows:
        raise ValueError("scale_and_shift: expected at least one row, but got none")
    values = {label: np.asarray(row, dtype=float) for label, row in rows.items()}
    figure = Figure(figsize=(WIDTH, 1.25 * len(rows) + 0.5))
    panels = figure.subplots(len(rows), 1, sharex=True, sharey=True, squeeze=False)[:, 0]
    lowest = min(float(row.min()) for row in values.values())
    highest = max(float(row.max()) for row in values.values())
    edges = np.linspace(np.floor(lowest), np.ceil(highest), 61)
    for axes, (label, row) in zip(panels, values.items(), strict=True):
        density, _ = np.histogram(row, bins=edges, density=True)
        axes.stairs(density, edges, fill=True, color=COLORS["first"], alpha=0.45)
        mean = _mean(row)
        axes.axvline(mean, color=COLORS["second"], linewidth=1.6)
        ends = [mean - row.std(), mean + row.std()]
        axes.plot(ends, [0.03, 0.03], color=COLORS["second"], linewidth=4, solid_capstyle="butt")
        axes.set_title(label)
        axes.set_yticks([])
        axes.spines["left"].set_visible(False)
        axes.grid(axis="x")
    panels[-1].set_xlabel("$y$")
    return figure
