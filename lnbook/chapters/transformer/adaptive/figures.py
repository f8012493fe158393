"""The chapter's figures, drawn from given numbers."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from lnbook.notebook.style import WIDTH

__all__ = ["images"]


def images(rows: Mapping[str, ArrayLike]) -> Figure:
    """Draw rows of small gray images.

    Args:
        rows: images by the label of their row, each of shape `(N, height, width)`, with pixels from
            -1 (white) to 1 (black).

    Raises:
        ValueError: there are no rows, or they differ in shape.

    Example:
        >>> figure = images({"noise": np.zeros((3, 8, 8)), "result": np.ones((3, 8, 8))})
        >>> len(figure.axes), figure.axes[3].get_ylabel()
        (6, 'result')
    """
    arrays = {label: np.asarray(row, dtype=float) for label, row in rows.items()}
    shapes = [array.shape for array in arrays.values()]
    if len(set(shapes)) != 1 or len(shapes[0]) != 3:
        raise ValueError(f"images: expected rows of one shape (N, height, width), but got {shapes}")
    columns = shapes[0][0]
    figure = Figure(figsize=(WIDTH, 0.2 + WIDTH / columns * len(arrays)))
    grid = figure.subplots(len(arrays), columns, squeeze=False)
    for line, (label, array) in zip(grid, arrays.items(), strict=True):
        for axes, image in zip(line, array, strict=True):
            axes.imshow(image, cmap="gray_r", vmin=-1.0, vmax=1.0)
            axes.set(xticks=[], yticks=[])
        line[0].set_ylabel(label)
    return figure
