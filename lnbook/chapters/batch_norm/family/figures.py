"""Figures for the chapter on the family of norms: blocks of cells, yes/no tables and curves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from lnbook.chapters.shared.block_figures import _block
from lnbook.chapters.shared.drawing import cells
from lnbook.chapters.shared.line_labels import label_lines
from lnbook.notebook.style import WIDTH, line_styles

__all__ = ["curves", "members", "table"]


def members(panels: Mapping[str, ArrayLike], names: Sequence[str], notes: Sequence[str]) -> Figure:
    """Draw arrays as blocks of cells in two columns, and color the cells that share a mean.

    Args:
        panels: the title of each block and its boolean array with three axes, as for
            `lnbook.chapters.shared.block_figures.blocks`.
        names: the labels of the three axes.
        notes: the text below each block, one or two lines.

    Returns:
        The figure with all blocks.

    Raises:
        ValueError: `panels` is empty, an array doesn't have three axes, or the number of names
            or notes doesn't fit.

    Example:
        >>> shares = np.zeros((2, 3, 4), dtype=bool)
        >>> shares[:, 1] = True
        >>> figure = members({"BN": shares}, ["N", "C", "H, W"], ["a mean per channel"])
        >>> [text.get_text() for text in figure.axes[0].texts]
        ['N', 'C', 'H, W', 'a mean per channel']
    """
    masks = {title: np.asarray(mask, dtype=bool) for title, mask in panels.items()}
    if not masks or any(mask.ndim != 3 for mask in masks.values()):
        shapes = [mask.shape for mask in masks.values()]
        raise ValueError(f"members: expected at least one array of three axes, but got {shapes}")
    if len(names) != 3 or len(notes) != len(masks):
        raise ValueError(
            f"members: expected 3 names and {len(masks)} notes, but got {len(names)} and "
            f"{len(notes)}"
        )
    rows = -(-len(masks) // 2)
    figure = Figure(figsize=(WIDTH, 2.2 * rows))
    all_axes = figure.subplots(rows, 2, squeeze=False).ravel()
    for axes in all_axes:
        axes.axis("off")
    for axes, (title, mask), note in zip(all_axes, masks.items(), notes, strict=False):
        _block(axes, mask, names)
        axes.set_title(title)
        axes.text(-0.9, -1.35, note, va="top", fontsize=10.5, linespacing=1.15)
        axes.set(xlim=(-1.0, 8.2), ylim=(-3.1, 5.4), aspect="equal", anchor="W")
    return figure


def table(marks: ArrayLike, rows: Sequence[str], columns: Sequence[str]) -> Figure:
    """Draw a table of yes/no cells.

    Args:
        marks: True for yes, shape `(rows, columns)`.
        rows: the names of the rows.
        columns: the names of the columns.

    Returns:
        A table of cells, filled and labeled "yes", or empty and labeled "no".

    Raises:
        ValueError: the names don't fit the marks.

    Example:
        >>> figure = table([[True, False]], ["batch normalization"], ["example", "channel"])
        >>> [text.get_text() for text in figure.axes[0].texts]
        ['yes', 'no']
    """
    yes = np.asarray(marks, dtype=bool)
    if yes.shape != (len(rows), len(columns)):
        raise ValueError(
            f"table: expected marks of shape {(len(rows), len(columns))}, but got {yes.shape}"
        )
    lines = sum(row.count("\n") + 1 for row in rows)
    figure = Figure(figsize=(WIDTH, 0.75 + 0.16 * len(rows) + 0.17 * lines))
    axes = figure.subplots()
    cells(axes, yes, ("yes", "no"), width=0.92, linewidth=0.8, fontsize=10.5)
    axes.set_xticks(range(len(columns)), columns)
    axes.set_yticks(range(len(rows)), rows)
    return figure


def curves(
    panels: Mapping[str, Mapping[str, ArrayLike]],
    at: ArrayLike,
    label: str,
    *,
    logarithmic: bool = False,
) -> Figure:
    """Draw accuracy curves, with one panel for each setting.

    Args:
        panels: the title of each panel, and the name and accuracies, shape `(K,)`, of each line.
        at: where the accuracies were measured, shape `(K,)`.
        label: the label of the horizontal axis.
        logarithmic: whether the horizontal axis is logarithmic.

    Returns:
        Panels stacked vertically on a common scale.

    Raises:
        ValueError: `panels` is empty, the panels have different lines, or there are more than
            seven lines.

    Example:
        >>> lines = {"LN": [0.8, 0.9], "BN": [0.7, 0.95]}
        >>> figure = curves({"digits": lines}, at=[10, 20], label="steps")
        >>> [line.get_ydata().tolist() for line in figure.axes[0].lines]
        [[0.8, 0.9], [0.7, 0.95]]
    """
    kinds = {tuple(lines) for lines in panels.values()}
    if len(kinds) != 1 or not 0 < len(next(iter(kinds))) <= 7:
        raise ValueError(f"curves: expected panels with the same 1 to 7 lines, but got {kinds}")
    figure = Figure(figsize=(WIDTH, 2.2 * len(panels) + 0.5))
    all_axes = figure.subplots(len(panels), 1, sharex=True, sharey=True, squeeze=False)[:, 0]
    for axes, (title, lines) in zip(all_axes, panels.items(), strict=True):
        styles = line_styles(lines)
        for name, values in lines.items():
            axes.plot(at, values, **styles[name], markersize=5.5, label=name)
        axes.set(title=title, ylabel="accuracy")
        if logarithmic:
            axes.set_xscale("log", base=2)
        axes.grid()
    all_axes[-1].set_xlabel(label)
    label_lines(figure)
    return figure
