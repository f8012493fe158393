"""The figures for the chapter on the LSTM cell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Circle
from numpy.typing import ArrayLike

from lnbook.chapters.shared.drawing import arrow, box
from lnbook.notebook.style import COLORS, INK, MUTED, WIDTH

__all__ = ["cell", "gates"]

HALF_HEIGHT, RADIUS = 0.5, 0.38

BOXES = {  # center, formula, half the width, color
    "c0": (1.3, 11.2, r"$c_{t-1}$", 0.95, INK),
    "h0": (4.7, 11.2, r"$h_{t-1}$", 0.95, INK),
    "x": (8.4, 11.2, r"$x_t$", 0.95, INK),
    "Wh": (4.7, 9.5, r"$W_h\,h_{t-1}$", 1.35, INK),
    "Wx": (8.4, 9.5, r"$W_x\,x_t$", 1.35, INK),
    "LN1": (4.7, 7.8, "LN", 0.95, COLORS["layer_norm"]),
    "LN2": (8.4, 7.8, "LN", 0.95, COLORS["layer_norm"]),
    "f": (3.5, 4.4, r"$\sigma(f_t)$", 0.95, INK),
    "ig": (6.0, 3.1, r"$\sigma(i_t)\,\tanh(g_t)$", 1.75, INK),
    "o": (8.8, 4.4, r"$\sigma(o_t)$", 0.95, INK),
    "c1": (1.3, 1.2, r"$c_t$", 0.95, INK),
    "LN3": (3.9, 1.2, "LN", 0.95, COLORS["layer_norm"]),
    "tanh": (6.4, 1.2, r"$\tanh$", 0.95, INK),
    "h1": (8.8, -0.7, r"$h_t$", 0.95, INK),
    "b": (8.8, 6.1, r"$b$", 0.6, INK),
}
CIRCLES = {  # center, sign
    "sum": (6.55, 6.1, "+"),
    "forget": (1.3, 4.4, r"$\times$"),
    "add": (1.3, 3.1, "+"),
    "out": (8.8, 1.2, r"$\times$"),
}
ARROWS = (
    ("h0", "Wh"),
    ("x", "Wx"),
    ("Wh", "LN1"),
    ("Wx", "LN2"),
    ("LN1", "sum"),
    ("LN2", "sum"),
    ("b", "sum"),
    ("sum", "f"),
    ("sum", "ig"),
    ("sum", "o"),
    ("c0", "forget"),
    ("f", "forget"),
    ("forget", "add"),
    ("ig", "add"),
    ("add", "c1"),
    ("c1", "LN3"),
    ("LN3", "tanh"),
    ("tanh", "out"),
    ("o", "out"),
    ("out", "h1"),
)


def cell() -> Figure:
    """Draw one step of the layer-normalized LSTM of Ba, Kiros and Hinton.

    Returns:
        A flow diagram, read from top to bottom, with the cell state in the left column, the summed
        inputs of the gates in the other two, and the three norms in blue.

    Example:
        >>> figure = cell()
        >>> texts = [text.get_text() for text in figure.axes[0].texts]
        >>> texts.count("LN")
        3
    """
    figure = Figure(figsize=(WIDTH, 5.6))
    axes = figure.subplots()
    axes.set(xlim=(0, 10.1), ylim=(-1.5, 12.0))
    axes.axis("off")
    onward = ((1.3, 1.2 - HALF_HEIGHT), (1.3, 0.02))
    for ends in (*(_ends(start, end) for start, end in ARROWS), onward):
        arrow(axes, *ends)
    for x, y, formula, half, color in BOXES.values():
        line, weight = (2.4, "bold") if color == COLORS["layer_norm"] else (1.4, "normal")
        box(axes, (x, y), 2 * half, 2 * HALF_HEIGHT, color, rounding=0.22, linewidth=line)
        axes.text(
            x, y, formula, ha="center", va="center", fontsize=12.5, color=color, weight=weight
        )
    for x, y, sign in CIRCLES.values():
        axes.add_patch(Circle((x, y), RADIUS, facecolor="white", edgecolor=INK, linewidth=1.4))
        axes.text(x, y - 0.03, sign, ha="center", va="center", fontsize=14, color=INK)
    axes.text(1.3, -0.3, "carried on,", ha="center", va="center", fontsize=11, color=INK)
    axes.text(1.3, -0.9, "unchanged", ha="center", va="center", fontsize=11, color=INK)
    return figure


def _ends(start: str, end: str) -> tuple[tuple[float, float], tuple[float, float]]:
    """The two ends of a straight arrow from the edge of one shape to the edge of another."""
    (x0, y0, half0, high0), (x1, y1, half1, high1) = _shape(start), _shape(end)
    if abs(x1 - x0) < 1e-9:
        return (x0, y0 - high0), (x1, y1 + high1 + 0.04)
    if abs(y1 - y0) < 1e-9:
        side = 1 if x1 > x0 else -1
        return (x0 + side * half0, y0), (x1 - side * (half1 + 0.04), y1)
    if end in CIRCLES:  # from the box down to the side of the circle that faces it
        side = 1 if x0 > x1 else -1
        return (x0, y0 - high0), (x1 + side * 0.75 * half1, y1 + 0.75 * high1)
    side = 1 if x1 > x0 else -1
    slanted = 0.0 if abs(x1 - x0) < half1 else 0.75
    return (x0 + side * slanted * half0, y0 - (1 - slanted * 0.3) * high0), (x1, y1 + high1 + 0.04)


def _shape(name: str) -> tuple[float, float, float, float]:
    if name in CIRCLES:
        x, y, _ = CIRCLES[name]
        return x, y, RADIUS, RADIUS
    x, y, _, half, _ = BOXES[name]
    return x, y, half, HALF_HEIGHT


def gates(
    groups: Mapping[str, tuple[ArrayLike, ArrayLike]],
    names: Sequence[str] = ("input $i$", "forget $f$", "candidate $g$", "output $o$"),
) -> Figure:
    """Draw the mean and standard deviation of each gate's summed inputs, one panel per norm.

    Args:
        groups: for each panel, its title, means and standard deviations, both of shape `(4,)`.
        names: the names of the four gates.

    Returns:
        Stacked panels on the same scale, with a point at each mean and a bar of one standard
        deviation on either side.

    Raises:
        ValueError: `groups` is empty.

    Example:
        >>> figure = gates({"one norm": ([0.0, 1.0, -0.5, 0.5], [1.0, 0.5, 0.5, 1.0])})
        >>> np.asarray(figure.axes[0].lines[1].get_xdata()).tolist()  # the means
        [0.0, 1.0, -0.5, 0.5]
    """
    if not groups:
        raise ValueError("gates: expected at least one panel, but got none")
    figure = Figure(figsize=(WIDTH, 1.55 * len(groups) + 0.5))
    panels = figure.subplots(len(groups), 1, sharex=True, squeeze=False)[:, 0]
    places = np.arange(len(names), dtype=float)
    for axes, (title, (means, deviations)) in zip(panels, groups.items(), strict=True):
        axes.axvline(0.0, color=MUTED, linewidth=0.8)
        axes.errorbar(
            np.asarray(means, dtype=float),
            -places,
            xerr=np.asarray(deviations, dtype=float),
            fmt="o",
            color=COLORS["first"],
            markersize=6,
            linewidth=2.4,
            capsize=4,
        )
        axes.set_yticks(-places, names)
        axes.set_ylim(-places[-1] - 0.6, 0.6)
        axes.set_title(title)
        axes.grid(axis="x")
        axes.tick_params(axis="y", length=0)
    panels[-1].set_xlabel("summed inputs: mean ± one standard deviation")
    return figure
