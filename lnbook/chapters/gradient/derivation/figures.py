"""Figures for the chapter on the derivation."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from lnbook.chapters.shared.drawing import arrow, box
from lnbook.notebook.style import COLORS, INK, WIDTH

__all__ = ["computation_graph", "nudge"]

MAIN, SIDE = 7.2, 2.2
HALF_WIDTH, HALF_HEIGHT = 1.35, 0.52

NODES = {  # position of the center, formula, color
    "x": (MAIN, 11.0, r"$x$", INK),
    "mu": (SIDE, 9.4, r"$\mu$", COLORS["statistics"]),
    "c": (MAIN, 7.8, r"$c = x - \mu$", INK),
    "v": (SIDE, 6.2, r"$\sigma^2$", COLORS["statistics"]),
    "r": (SIDE, 4.2, r"$r$", COLORS["statistics"]),
    "xhat": (MAIN, 2.6, r"$\hat{x} = r\,c$", INK),
    "y": (MAIN, 0.6, r"$y = \gamma\,\hat{x} + \beta$", INK),
}

EDGES = (  # from, to, derivative of the second with respect to the first, position of the label
    ("x", "c", r"$1$", (7.45, 9.4)),
    ("x", "mu", r"$1/H$", (4.0, 10.72)),
    ("mu", "c", r"$-1$", (4.9, 9.05)),
    ("c", "v", r"$2c/H$", (3.75, 7.6)),
    ("v", "r", r"$-r^3/2$", (2.45, 5.2)),
    ("r", "xhat", r"$c$", (4.95, 3.75)),
    ("c", "xhat", r"$r$", (7.45, 5.2)),
    ("xhat", "y", r"$\gamma$", (7.45, 1.6)),
)


def computation_graph() -> Figure:
    """Draw the computation graph of LayerNorm, with a local derivative on each arrow.

    Returns:
        A graph that runs from top to bottom: the row and the arrays computed from it in the right
        column, its statistics in the left column.

    Example:
        >>> figure = computation_graph()
        >>> [text.get_text() for text in figure.axes[0].texts[:4]]  # local derivatives
        ['$1$', '$1/H$', '$-1$', '$2c/H$']
    """
    figure = Figure(figsize=(WIDTH, 5.2))
    axes = figure.subplots()
    axes.set(xlim=(0, 10), ylim=(-0.2, 11.8))
    axes.axis("off")
    for start, end, label, place in EDGES:
        arrow(axes, *_ends(start, end), linewidth=1.4, mutation_scale=12)
        axes.text(*place, label, color=COLORS["backward"], fontsize=13, va="center", ha="left")
    for x, y, formula, color in NODES.values():
        half = HALF_WIDTH * (1.35 if x == MAIN else 0.8)
        box(axes, (x, y), 2 * half, 2 * HALF_HEIGHT, color)
        axes.text(x, y, formula, ha="center", va="center", fontsize=14, color=color)
    return figure


def _ends(start: str, end: str) -> tuple[tuple[float, float], tuple[float, float]]:
    """Return where an arrow leaves one box and where it reaches the other."""
    (x0, y0, *_), (x1, y1, *_) = NODES[start], NODES[end]
    if x0 == x1:
        return (x0, y0 - HALF_HEIGHT), (x1, y1 + HALF_HEIGHT + 0.03)
    side = 1 if x1 > x0 else -1
    leave = x0 + side * HALF_WIDTH * (1.35 if x0 == MAIN else 0.8)
    meet = x1 - side * (HALF_WIDTH * (1.35 if x1 == MAIN else 0.8) + 0.04)
    return (leave, y0), (meet, y1)


def nudge(row: ArrayLike, slopes: ArrayLike) -> Figure:
    """Draw a row, and below it how one output changes when each input is nudged.

    Args:
        row: the inputs, shape `(H,)`.
        slopes: the derivative of one output with respect to each input, shape `(H,)`.

    Returns:
        Two panels, each on its own scale: a bar with its value for each feature.

    Raises:
        ValueError: if the two differ in shape.

    Example:
        >>> figure = nudge([1.0, 3.0], [-0.25, 0.25])
        >>> [[float(bar.get_height()) for bar in axes.patches] for axes in figure.axes]
        [[1.0, 3.0], [-0.25, 0.25]]
    """
    values, rates = np.asarray(row, dtype=float), np.asarray(slopes, dtype=float)
    if values.ndim != 1 or values.shape != rates.shape:
        raise ValueError(
            f"nudge: expected two rows of the same length, but got {values.shape}, {rates.shape}"
        )
    figure = Figure(figsize=(WIDTH, 3.6))
    panels = figure.subplots(2, 1, sharex=True)
    titles = "the row", "slopes of the last output"
    features = np.arange(1, values.size + 1)
    shown = ((values, "{:g}", "first"), (rates, "{:.2f}", "backward"))
    for axes, title, (heights, form, color) in zip(panels, titles, shown, strict=True):
        axes.bar(features, heights, width=0.55, color=COLORS[color])
        axes.plot([0.5, values.size + 0.5], [0, 0], color=INK, linewidth=0.8)
        for feature, height in zip(features, heights, strict=True):
            axes.annotate(
                form.format(height).replace("-", "\N{MINUS SIGN}"),
                (feature, height),
                xytext=(0, 3 if height >= 0 else -3),
                textcoords="offset points",
                ha="center",
                va="bottom" if height >= 0 else "top",
                fontsize=10.5,
            )
        low, high = min(0.0, heights.min()), max(0.0, heights.max())
        space = 0.35 * (high - low)
        axes.set_ylim(low - space * (low < 0), high + space)
        axes.set_title(title)
    panels[-1].set_xlabel("feature")
    panels[-1].set_xticks(features)
    return figure
