"""The chapter's figures, drawn from given numbers."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from lnbook.chapters.shared.drawing import arrow
from lnbook.notebook.style import COLORS, INK, MUTED, WIDTH

__all__ = ["partial_sums", "steps"]

PARTS = ("first", "second", "third", "fourth")


def steps(panels: Mapping[str, Mapping[str, tuple[float, float, float]]]) -> Figure:
    """Draw how long each version took, relative to PyTorch's kernel.

    Args:
        panels: a title for each panel and, for each version in it, the median ratio and the ends of
            its range.

    Returns:
        Panels side by side with a point and a range per version, on a logarithmic scale; a line
        marks 1.

    Raises:
        ValueError: there are no panels, or they hold different versions.

    Example:
        >>> figure = steps({"forward": {"loops": (3.0, 2.5, 3.5), "copy": (0.7, 0.6, 0.8)}})
        >>> [label.get_text() for label in figure.axes[0].get_yticklabels()]
        ['loops', 'copy']
    """
    names = {tuple(rows) for rows in panels.values()}
    if len(names) != 1:
        raise ValueError(f"steps: expected panels with the same versions, but got {len(names)}")
    versions = names.pop()
    figure = Figure(figsize=(WIDTH, 0.42 * len(versions) + 1.1))
    every = figure.subplots(1, len(panels), sharex=True, sharey=True, squeeze=False)[0]
    for axes, (title, rows) in zip(every, panels.items(), strict=True):
        axes.axvline(1.0, color=MUTED, linewidth=1.2, linestyle=":")
        for number, (ratio, low, high) in enumerate(rows.values()):
            axes.plot([low, high], [-number] * 2, color=COLORS["first"], linewidth=2.4, alpha=0.5)
            axes.plot([ratio], [-number], "o", color=COLORS["first"], markersize=6)
        axes.set(title=title, xscale="log", ylim=(-len(versions) + 0.5, 0.5))
        axes.set_yticks(-np.arange(len(versions)), versions)
        axes.set_xticks([0.5, 1, 2, 5, 10], ["0.5", "1", "2", "5", "10"])
        axes.minorticks_off()
        axes.tick_params(axis="y", length=0)
        axes.grid(axis="x")
    figure.supxlabel("time, relative to nn.LayerNorm", fontsize=11)
    return figure


def partial_sums(blocks: int, height: int, features: int) -> Figure:
    """Draw how each block of rows adds up its own part of the gradient of gamma.

    Args:
        blocks: number of blocks, from 2 to 4.
        height: rows per block.
        features: columns.

    Returns:
        On the left the rows, colored by block; then a row of partial sums per block; on the right
        their total.

    Raises:
        ValueError: `blocks` is out of range.

    Example:
        >>> [text.get_text() for text in partial_sums(2, 3, 4).axes[0].texts]
        ['rows', 'partial sums', 'gradient of gamma']
    """
    if not 2 <= blocks <= len(PARTS):
        raise ValueError(f"partial_sums: expected 2 to {len(PARTS)} blocks, but got {blocks}")
    figure = Figure(figsize=(WIDTH, 2.9))
    axes = figure.subplots()
    rows, gap = blocks * height, 2.2
    second, third = features + gap, 2 * (features + gap)

    def cell(column: float, row: float, color: str) -> None:
        square = Rectangle((column, row), 1, 1, facecolor=color, edgecolor="white", alpha=0.5)
        axes.add_patch(square)

    middle = (rows - 1) / 2
    for block in range(blocks):
        color = COLORS[PARTS[block]]
        center = block * height + (height - 1) / 2
        for column in range(features):
            for row in range(height):
                cell(column, block * height + row, color)
            cell(second + column, center, color)
        arrow(axes, (features + 0.3, center + 0.5), (second - 0.3, center + 0.5))
        arrow(axes, (second + features + 0.3, center + 0.5), (third - 0.3, middle + 0.5))
    for column in range(features):
        cell(third + column, middle, INK)
    for place, word in ((0, "rows"), (second, "partial sums"), (third, "gradient of gamma")):
        axes.text(place + features / 2, -0.5, word, ha="center", va="bottom")
    axes.set(xlim=(-0.2, third + features + 0.2), ylim=(rows + 0.2, -1.8))
    axes.set_axis_off()
    return figure
