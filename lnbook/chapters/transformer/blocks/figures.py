"""The figures for the chapter on transformer blocks."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from numpy.typing import ArrayLike, NDArray

from lnbook.chapters.shared.drawing import arrow, box
from lnbook.chapters.shared.line_labels import label_lines
from lnbook.notebook.style import COLORS, INK, MUTED, WIDTH, line_styles

__all__ = ["attention_weights", "by_block", "post_and_pre"]

Array = NDArray[np.float64]


STREAM, BRANCH = 1.15, 3.35  # horizontal positions in a column of width 5
BRANCHES = ("attention", "feed-\nforward")
PART = 5.4  # height of one branch with its sum and norm
TOP = 2 * PART + 0.6


def post_and_pre() -> Figure:
    """Draw a Post-LN block next to a Pre-LN block.

    Returns:
        Two columns, read from top to bottom. The thick line in each is the residual stream, which
        the branches leave and rejoin. Pre-LN ends with the final norm.

    Example:
        >>> figure = post_and_pre()
        >>> texts = [text.get_text() for text in figure.axes[0].texts]
        >>> texts.count("LN")  # two per block, and the final norm of Pre-LN
        5
    """
    figure = Figure(figsize=(WIDTH, 5.9))
    axes = figure.subplots()
    axes.set(xlim=(-0.2, 9.9), ylim=(-2.1, TOP + 1.4))
    axes.axis("off")
    for left, title, pre in ((0.0, "Post-LN", False), (5.0, "Pre-LN", True)):
        axes.text(left, TOP + 0.85, title, weight="bold", fontsize=12, va="center")
        axes.text(left + STREAM, TOP + 0.15, "$x$", fontsize=14, ha="center", va="center")
        end = -1.35 if pre else -0.15
        axes.plot([left + STREAM] * 2, [TOP - 0.3, end], color=INK, linewidth=3.2)
        for number, name in enumerate(BRANCHES):
            _branch(axes, left, TOP - 0.6 - number * PART, name, pre)
        if pre:
            _box(axes, left + STREAM, -0.55, "LN", COLORS["layer_norm"], dashed=True)
            axes.text(left + STREAM + 0.95, -0.55, "final norm,\nonce per stack", va="center")
        axes.text(left + STREAM, end - 0.35, "$y$", fontsize=14, ha="center", va="center")
    return figure


def _branch(axes: Axes, left: float, top: float, name: str, pre: bool) -> None:
    """One branch, from where it leaves the stream, with its sum and norm."""
    stream, branch = left + STREAM, left + BRANCH
    places = {"LN": top - 0.75, name: top - 2.05, "dropout": top - 3.35}
    plus = top - 4.45
    if not pre:
        places = {name: top - 0.8, "dropout": top - 2.1}
        plus = top - 3.2
    below = list(places.values())
    for start, end in zip([top, *below], [*below, plus], strict=True):
        axes.plot([branch] * 2, [start, end], color=MUTED, linewidth=1.4, zorder=1)
    axes.plot([stream, branch], [top, top], color=MUTED, linewidth=1.4, zorder=1)
    arrow(axes, (branch, plus), (stream + 0.38, plus), linewidth=1.4)
    for label, height in places.items():
        color = {"LN": "layer_norm", "dropout": "muted"}.get(label, "ink")
        _box(axes, branch, height, label, COLORS[color], dashed=label == "dropout")
    axes.plot([stream], [plus], "o", color="white", markeredgecolor=INK, markersize=15, zorder=3)
    axes.text(stream, plus, "+", fontsize=14, ha="center", va="center", zorder=4)
    if not pre:
        _box(axes, stream, plus - 1.25, "LN", COLORS["layer_norm"])


def _box(axes: Axes, x: float, y: float, label: str, color: str, dashed: bool = False) -> None:
    half = 0.6 if label == "LN" else 1.25
    height = 0.62 if "\n" in label else 0.42
    dashes = "--" if dashed else "-"
    box(axes, (x, y), 2 * half, 2 * height, color, rounding=0.18, linestyle=dashes, zorder=2)
    axes.text(x, y, label, ha="center", va="center", color=color, linespacing=1.0, zorder=4)


def attention_weights(panels: Mapping[str, ArrayLike]) -> Figure:
    """Draw tables of attention weights, one per panel.

    Args:
        panels: for each panel, its title and weights of shape `(L, S)`, one row per query, with L
            and S at most 6.

    Returns:
        Two panels per row. Each cell shows its weight, and darker cells have larger weights. A
        weight of exactly 0 has no number.

    Raises:
        ValueError: `panels` is empty, or an array has a different shape.

    Example:
        >>> figure = attention_weights({"causal": [[1.0, 0.0], [0.25, 0.75]]})
        >>> [text.get_text() for text in figure.axes[0].texts]
        ['1.00', '.25', '.75']
    """
    tables = {title: np.asarray(values, dtype=float) for title, values in panels.items()}
    if not tables:
        raise ValueError("attention_weights: expected at least one panel, but got none")
    for table in tables.values():
        if table.ndim != 2 or not table.size > 0 or max(table.shape) > 6:
            raise ValueError(
                f"attention_weights: expected tables of at most 6 by 6, but got {table.shape}"
            )
    rows = (len(tables) + 1) // 2
    figure = Figure(figsize=(WIDTH, 2.55 * rows))
    all_axes = figure.subplots(rows, 2, squeeze=False).ravel()
    colors = LinearSegmentedColormap.from_list("weight", ["white", COLORS["first"]])
    for axes, (title, table) in zip(all_axes, tables.items(), strict=False):
        axes.imshow(table, cmap=colors, vmin=0.0, vmax=1.8)  # pale enough to read the numbers
        for (query, key), weight in np.ndenumerate(table):
            if weight:
                text = f"{weight:.2f}".lstrip("0")
                axes.text(key, query, text, ha="center", va="center", fontsize=10.5)
        axes.set_xticks(range(table.shape[1]), [str(n + 1) for n in range(table.shape[1])])
        axes.set_yticks(range(table.shape[0]), [str(n + 1) for n in range(table.shape[0])])
        axes.set(xlabel="key", ylabel="query")
        axes.set_title(title, fontsize=11.5)
        axes.tick_params(length=0)
    for axes in all_axes[len(tables) :]:
        axes.set_visible(False)
    return figure


def by_block(lines: Mapping[str, ArrayLike], label: str) -> Figure:
    """Draw a measurement after each block of a stack, with mean and spread over the seeds.

    Args:
        lines: for each line, its name and the runs, shape `(seeds, depth + 1)`, input first.
        label: the quantity that was measured.

    Returns:
        One line through the means per name, with a band of one standard deviation on either side.

    Raises:
        ValueError: `lines` is empty, or a line has fewer than two seeds.

    Example:
        >>> figure = by_block({"Pre-LN": [[1.0, 1.5, 2.0], [1.0, 2.5, 3.0]]}, "mean square")
        >>> figure.axes[0].lines[0].get_ydata().tolist()
        [1.0, 2.0, 2.5]
    """
    if not lines:
        raise ValueError("by_block: expected at least one line, but got none")
    figure = Figure(figsize=(WIDTH, 3.6))
    axes = figure.subplots()
    styles = line_styles(lines)
    for number, (name, runs) in enumerate(lines.items()):
        array = np.asarray(runs, dtype=float)
        if array.ndim != 2 or len(array) < 2:
            raise ValueError(
                f"by_block: expected shape (seeds, depth + 1) with two seeds or more, but got "
                f"{array.shape}"
            )
        mean, spread = array.mean(axis=0), array.std(axis=0, ddof=1)
        blocks = np.arange(mean.size)
        color = styles[name]["color"]
        axes.fill_between(blocks, mean - spread, mean + spread, color=color, alpha=0.18, lw=0)
        axes.plot(
            blocks,
            mean,
            **styles[name],
            markevery=(number, max(1, mean.size // 6)),
            markersize=6,
            label=name,
        )
    axes.set(xlabel="blocks passed", ylabel=label)
    axes.grid()
    label_lines(figure)
    return figure
