"""The figures for the chapter on GPU kernels."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.ticker import FixedLocator, NullLocator, ScalarFormatter
from numpy.typing import ArrayLike

from lnbook.chapters.shared.drawing import arrow
from lnbook.chapters.shared.line_labels import label_lines
from lnbook.notebook.style import COLORS, INK, MUTED, WIDTH, line_style

__all__ = ["bandwidth", "careless_scale", "programs", "two_stages"]

SERIES = ("first", "second", "third", "fourth", "fifth", "sixth")
HATCHES = ("", "///", "...", "\\\\\\", "xxx", "---")


def careless_scale(widths: ArrayLike, scales: ArrayLike) -> Figure:
    """Draw how large the outputs of a careless kernel are at several widths.

    Args:
        widths: the widths, shape `(W,)`.
        scales: the standard deviations of the outputs, shape `(W,)`.

    Returns:
        One panel with a logarithmic width axis, a dot per width, and a line at 1.

    Raises:
        ValueError: the shapes differ.

    Example:
        >>> figure = careless_scale([64, 96], [1.0, 0.87])
        >>> figure.axes[0].lines[1].get_ydata().tolist()
        [1.0, 0.87]
    """
    x, y = np.asarray(widths, dtype=float), np.asarray(scales, dtype=float)
    if x.shape != y.shape or x.ndim != 1:
        raise ValueError(
            f"careless_scale: expected as many widths as scales, but got {x.shape} and {y.shape}"
        )
    figure = Figure(figsize=(WIDTH, 2.7))
    axes = figure.subplots()
    axes.axhline(1.0, color=COLORS["layer_norm"], linewidth=1.5, label="LayerNorm")
    axes.plot(
        x, y, color=COLORS["changed"], marker="o", markersize=3.5, linewidth=1.0, label="careless"
    )
    axes.set(xscale="log", ylim=(0.6, 1.08))
    axes.set(xlabel="width of a row", ylabel="size of the outputs")
    powers = 2.0 ** np.arange(np.ceil(np.log2(x.min())), np.log2(x.max()) + 1)
    axes.xaxis.set_major_locator(FixedLocator(list(powers)))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(ScalarFormatter())
    axes.grid()
    label_lines(figure)
    return figure


def bandwidth(panels: Mapping[str, Mapping[str, Mapping[int, float]]]) -> Figure:
    """Draw how close each implementation comes to the bandwidth of a copy, by the width of a row.

    Args:
        panels: a title for each panel; for each implementation in it, the fraction of a copy's
            bandwidth at each width.

    Returns:
        Panels side by side. Each has one line per implementation, and a dotted line at 1.

    Raises:
        ValueError: there are no panels.

    Example:
        >>> figure = bandwidth({"forward": {"ours": {256: 0.5, 512: 0.9}}})
        >>> figure.axes[0].lines[1].get_ydata().tolist()
        [0.5, 0.9]
    """
    if not panels:
        raise ValueError("bandwidth: expected at least one panel, but got none")
    figure = Figure(figsize=(WIDTH, 3.3))
    every = figure.subplots(
        1, len(panels), sharex=True, sharey=True, squeeze=False, gridspec_kw={"wspace": 0.08}
    )[0]
    names = list(dict.fromkeys(name for lines in panels.values() for name in lines))
    for axes, (title, lines) in zip(every, panels.items(), strict=True):
        axes.axhline(1.0, color=MUTED, linewidth=1.2, linestyle=":")
        for name, fractions in lines.items():
            style = line_style(names.index(name))
            axes.plot(list(fractions), list(fractions.values()), **style, label=name)
        axes.set(title=title, xscale="log", ylim=(0.0, 1.08))
        axes.xaxis.set_major_locator(FixedLocator([256, 1024, 4096, 16384]))
        axes.xaxis.set_minor_locator(NullLocator())
        axes.xaxis.set_major_formatter(ScalarFormatter())
        axes.grid()
    every[0].set_ylabel("fraction of a copy's bandwidth")
    figure.supxlabel("width of a row", fontsize=11)
    figure.legend(*every[0].get_legend_handles_labels(), loc="outside upper center", ncols=3)
    return figure


def programs(rows: int, width: int, block: int) -> Figure:
    """Show which program works on which elements of a matrix.

    Args:
        rows: number of rows, one per program.
        width: elements in a row.
        block: elements in a program's block, at least `width`.

    Returns:
        A grid with a row per program. Cells beyond the width are empty and crossed out.

    Raises:
        ValueError: the block is smaller than the width.

    Example:
        >>> figure = programs(2, 3, 4)
        >>> len(figure.axes[0].patches)
        8
    """
    if block < width:
        raise ValueError(f"programs: expected a block of at least {width}, but got {block}")
    figure = Figure(figsize=(WIDTH, 0.4 * rows + 0.95))
    axes = figure.subplots()
    for row in range(rows):
        for column in range(block):
            _cell(axes, column, row, SERIES[row % len(SERIES)] if column < width else None)
        axes.text(-0.2, row + 0.5, f"program {row}", ha="right", va="center")
    for column in range(block):
        axes.text(column + 0.5, -0.25, str(column), ha="center", va="bottom", color=MUTED)
    axes.text(width / 2, rows + 0.2, f"width {width}", ha="center", va="top")
    if block > width:
        axes.text((width + block) / 2, rows + 0.2, "masked", ha="center", va="top", color=MUTED)
    axes.set(xlim=(-2.6, block + 0.1), ylim=(rows + 0.9, -0.9))
    axes.axis("off")
    return figure


def two_stages(rows: int, width: int, count: int, tile: int) -> Figure:
    """Show which program adds up what in the two stages of the parameter gradients.

    Args:
        rows: number of rows of gradients, which the programs in the first stage process in turn.
        width: elements in a row.
        count: how many programs the first stage has.
        tile: how many columns a program in the second stage adds up.

    Returns:
        Three grids, one below the other: the rows, one row of sums per program, and the result.

    Raises:
        ValueError: there are more programs than rows or styles, or the tiles don't divide the row.

    Example:
        >>> figure = two_stages(4, 6, 2, 3)
        >>> len([p for p in figure.axes[0].patches if isinstance(p, Rectangle)])  # 24 + 12 + 6
        42
    """
    if not 1 <= count <= min(rows, len(SERIES)):
        raise ValueError(
            f"two_stages: expected 1 to {min(rows, len(SERIES))} programs, but got {count}"
        )
    if tile < 1 or width % tile:
        raise ValueError(f"two_stages: expected tiles that divide {width}, but got {tile}")
    figure = Figure(figsize=(WIDTH, 0.3 * (rows + count) + 2.3))
    axes = figure.subplots()
    for row in range(rows):
        for column in range(width):
            _cell(axes, column, row, SERIES[row % count], HATCHES[row % count])
        axes.text(-0.2, row + 0.5, f"row {row}, program {row % count}", ha="right", va="center")
    top = rows + 1.6
    for program in range(count):
        for column in range(width):
            _cell(axes, column, top + program, SERIES[program], HATCHES[program])
        name = f"sum of program {program}"
        axes.text(-0.2, top + program + 0.5, name, ha="right", va="center")
    bottom = top + count + 1.6
    for column in range(width):
        _cell(axes, column, bottom, "seventh")
    axes.text(-0.2, bottom + 0.5, "gradient", ha="right", va="center")
    for first in range(0, width, tile):
        place = first + tile / 2
        arrow(axes, (place, top + count + 0.15), (place, bottom - 0.1))
        axes.plot([first + 0.15, first + tile - 0.15], [top + count + 0.12] * 2, color=INK)
    arrow(axes, (width / 2, rows + 0.15), (width / 2, top - 0.1))
    axes.text(width / 2 + 0.3, rows + 0.8, "first stage: by rows", va="center")
    axes.text(-0.2, bottom - 0.75, "second stage: by columns", ha="right", va="center")
    axes.set(xlim=(-8.2, width + 0.1), ylim=(bottom + 1.1, -0.2))
    axes.axis("off")
    return figure


def _cell(axes: Axes, column: float, row: float, series: str | None, hatch: str = "") -> None:
    if series is None:
        axes.plot(
            [column + 0.25, column + 0.75], [row + 0.75, row + 0.25], color=MUTED, linewidth=1.0
        )
    axes.add_patch(
        Rectangle(
            (column + 0.05, row + 0.08),
            0.9,
            0.84,
            facecolor="none" if series is None else COLORS[series],
            edgecolor=MUTED if series is None else "white",
            hatch=hatch or None,
            linewidth=0.8,
        )
    )
