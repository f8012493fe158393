"""The chapter's figures, drawn from given numbers."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from numpy.typing import ArrayLike

from lnbook.notebook.style import COLORS, INK, WIDTH

__all__ = ["splits"]

DEVICES = ("first", "second", "third", "fourth")


def splits(owners: Mapping[str, ArrayLike], labels: list[str]) -> Figure:
    """Show which device has which entries of a batch, with one token framed.

    Args:
        owners: for each panel, its title and the device of each entry: whole numbers from 0 to 3 of
            shape `(tokens, features)`, the same in each panel.
        labels: the name of each token.

    Returns:
        A grid per panel. Each entry has the color and the number of its device, counted from 1.
        A frame around the second token shows what LayerNorm averages over.

    Raises:
        ValueError: the shapes differ, or there are more than four devices.

    Example:
        >>> figure = splits({"batch": [[0, 0], [1, 1]]}, ["a", "b"])
        >>> [text.get_text() for text in figure.axes[0].texts]
        ['1', '1', '2', '2']
    """
    grids = {title: np.asarray(grid, dtype=int) for title, grid in owners.items()}
    shapes = {grid.shape for grid in grids.values()}
    if len(shapes) != 1 or len(shape := shapes.pop()) != 2 or shape[0] != len(labels):
        given = [grid.shape for grid in grids.values()]
        raise ValueError(
            f"splits: expected grids of shape ({len(labels)}, features), but got {given}"
        )
    if max(int(grid.max()) for grid in grids.values()) >= len(DEVICES):
        raise ValueError("splits: expected at most four devices, but got more")
    rows, columns = shape
    figure = Figure(figsize=(WIDTH, 3.1))
    panels = figure.subplots(1, len(grids), sharey=True, squeeze=False)[0]
    for axes, (title, grid) in zip(panels, grids.items(), strict=True):
        for (row, column), device in np.ndenumerate(grid):
            axes.add_patch(
                Rectangle(
                    (column - 0.5, row - 0.5),
                    1,
                    1,
                    facecolor=COLORS[DEVICES[device]],
                    edgecolor="white",
                    linewidth=1.2,
                    alpha=0.45,
                )
            )
            axes.text(column, row, f"{device + 1}", ha="center", va="center", fontsize=10)
        axes.add_patch(Rectangle((-0.5, 0.5), columns, 1, fill=False, edgecolor=INK, linewidth=2.2))
        axes.set(xlim=(-0.6, columns - 0.4), ylim=(rows - 0.4, -0.6), title=title)
        axes.set_xticks([])
        axes.set_yticks(range(rows), labels)
        axes.tick_params(length=0)
        axes.set_xlabel("features")
        for spine in axes.spines.values():
            spine.set_visible(False)
    return figure
