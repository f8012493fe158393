"""The chapter's figures, drawn from given numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from lnbook.notebook.style import WIDTH

__all__ = ["images"]


def images(rows: Mapping[str, ArrayLike], titles: Sequence[str]) -> Figure:
    """Draw rows of small gray images.

    Args:
        rows: images, keyed by the label of their row, each of shape `(N, height, width)`, with
            pixels from -1 (white) to 1 (black).
        titles: what to write above each of the N columns.

    Raises:
        ValueError: there are no rows, they differ in shape, or there isn't a title per column.

    Example:
        >>> figure = images({"one": np.zeros((3, 8, 8)), "two": np.ones((3, 8, 8))}, "abc")
        >>> len(figure.axes), figure.axes[3].get_ylabel(), figure.axes[2].get_title()
        (6, 'two', 'c')
    """
    arrays = {label: np.asarray(row, dtype=float) for label, row in rows.items()}
    shapes = [array.shape for array in arrays.values()]
    if len(set(shapes)) != 1 or len(shapes[0]) != 3:
        raise ValueError(
            f"images: expected rows of the same shape (N, height, width), but got {shapes}"
        )
    columns = shapes[0][0]
    if len(titles) != columns:
        raise ValueError(f"images: expected {columns} titles, but got {len(titles)}")
    figure = Figure(figsize=(WIDTH, 0.4 + WIDTH / columns * len(arrays)))
    grid = figure.subplots(len(arrays), columns, squeeze=False)
    for line, (label, array) in zip(grid, arrays.items(), strict=True):
        for axes, image in zip(line, array, strict=True):
            axes.imshow(image, cmap="gray_r", vmin=-1.0, vmax=1.0)
            axes.set(xticks=[], yticks=[])
            axes.spines[:].set_visible(False)
        line[0].set_ylabel(label)
    for axes, title in zip(grid[0], titles, strict=True):
        axes.set_title(title)
    return figure
