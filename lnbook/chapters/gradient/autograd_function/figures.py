"""Figures for the chapter on the autograd function."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from matplotlib.figure import Figure

from lnbook.notebook.style import COLORS, WIDTH

__all__ = ["memory_bars"]


def memory_bars(arrays: Mapping[str, float]) -> Figure:
    """Draw how much memory each version of a function keeps for its backward pass.

    Args:
        arrays: what each version keeps, in multiples of the size of the input.

    Returns:
        One labeled bar per version.

    Raises:
        ValueError: if there are no versions.

    Example:
        >>> figure = memory_bars({"autograd": 3.0, "by hand": 1.0})
        >>> [text.get_text() for text in figure.axes[0].texts]
        ['autograd', '3.00', 'by hand', '1.00']
    """
    if not arrays:
        raise ValueError("memory_bars: expected at least one version, but got none")
    figure = Figure(figsize=(WIDTH, 0.72 * len(arrays) + 0.6))
    axes = figure.subplots()
    places = -np.arange(len(arrays), dtype=float)
    axes.barh(places, list(arrays.values()), height=0.42, color=COLORS["first"])
    for place, (name, value) in zip(places, arrays.items(), strict=True):
        axes.text(0.03, place + 0.3, name, va="bottom", ha="left", fontsize=11)
        axes.text(value + 0.05, place, f"{value:.2f}", va="center", fontsize=11)
    axes.set(xlim=(0, 1.15 * max(arrays.values())), ylim=(places[-1] - 0.4, 0.75))
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)
    axes.set_xlabel("memory kept, in multiples of the size of $x$")
    axes.grid(axis="x")
    return figure
