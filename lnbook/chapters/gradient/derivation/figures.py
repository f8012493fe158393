"""Figures of the chapter on the derivation."""

from __future__ import annotations

from matplotlib.figure import Figure

from lnbook.chapters.shared.drawing import arrow, box
from lnbook.notebook.style import COLORS, INK, WIDTH

__all__ = ["computation_graph"]

MAIN, SIDE = 7.2, 2.2
HALF_WIDTH, HALF_HEIGHT = 1.35, 0.52

NODES = {  # place of the center, formula, color
    "x": (MAIN, 11.0, r"$x$", INK),
    "mu": (SIDE, 9.4, r"$\mu$", COLORS["statistics"]),
    "c": (MAIN, 7.8, r"$c = x - \mu$", INK),
    "v": (SIDE, 6.2, r"$\sigma^2$", COLORS["statistics"]),
    "r": (SIDE, 4.2, r"$r$", COLORS["statistics"]),
    "xhat": (MAIN, 2.6, r"$\hat{x} = r\,c$", INK),
    "y": (MAIN, 0.6, r"$y = \gamma\,\hat{x} + \beta$", INK),
}

EDGES = (  # from, to, derivative of the second with respect to the first, where it is written
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
    """Draw the computation graph of LayerNorm, with the local derivative at each arrow.

    Returns:
        A graph that runs down: the row and what is computed from it in the right column, its
        statistics in the left one.

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
        axes.text(*place, label, color=COLORS["backward"], fontsize=12, va="center", ha="left")
    for x, y, formula, color in NODES.values():
        half = HALF_WIDTH * (1.35 if x == MAIN else 0.8)
        box(axes, (x, y), 2 * half, 2 * HALF_HEIGHT, color)
        axes.text(x, y, formula, ha="center", va="center", fontsize=13, color=color)
    return figure


def _ends(start: str, end: str) -> tuple[tuple[float, float], tuple[float, float]]:
    """Where an arrow leaves one box and meets another."""
    (x0, y0, *_), (x1, y1, *_) = NODES[start], NODES[end]
    if x0 == x1:
        return (x0, y0 - HALF_HEIGHT), (x1, y1 + HALF_HEIGHT + 0.03)
    side = 1 if x1 > x0 else -1
    leave = x0 + side * HALF_WIDTH * (1.35 if x0 == MAIN else 0.8)
    meet = x1 - side * (HALF_WIDTH * (1.35 if x1 == MAIN else 0.8) + 0.04)
    return (leave, y0), (meet, y1)
