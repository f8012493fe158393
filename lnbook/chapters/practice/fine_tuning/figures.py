"""The chapter's figures, drawn from given numbers."""

from __future__ import annotations

from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from lnbook.notebook.style import line_style

__all__ = ["change_by_scale"]


def change_by_scale(scales: ArrayLike, changes: ArrayLike) -> Figure:
    """Draw how much doubling a row changes its normalized values.

    Args:
        scales: factors that the row is multiplied by first, shape `(S,)`.
        changes: the largest change at each scale, shape `(S,)`.

    Example:
        >>> change_by_scale([0.1, 1.0], [1e-2, 1e-4]).axes[0].get_xlabel()
        'scale of the row'
    """
    figure = Figure()
    axes = figure.subplots()
    axes.loglog(scales, changes, **line_style("layer_norm"))
    axes.set_xlabel("scale of the row")
    axes.set_ylabel("largest change")
    return figure
