"""The chapter's figures, drawn from given numbers."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from lnbook.chapters.shared.line_labels import label_lines
from lnbook.notebook.style import COLORS, MUTED, WIDTH, line_style, line_styles

__all__ = ["rounding", "stream"]


def stream(largest: ArrayLike, limit: float) -> Figure:
    """Draw how the largest number in a residual stream grows beyond what float16 can represent.

    Args:
        largest: the largest magnitude after each block, positive, shape `(B,)`.
        limit: the largest float16 number.

    Returns:
        A line on a logarithmic scale, and a second one at the limit. Crosses mark blocks beyond it.

    Raises:
        ValueError: `largest` isn't one-dimensional.

    Example:
        >>> figure = stream([10.0, 1e5], 65504.0)
        >>> [line.get_label() for line in figure.axes[0].lines]
        ['float32', 'largest float16', 'inf in float16']
    """
    values = np.asarray(largest, dtype=float)
    if values.ndim != 1:
        raise ValueError(f"stream: expected values of shape (B,), but got {values.shape}")
    blocks = np.arange(1, len(values) + 1)
    beyond = values > limit
    figure = Figure(figsize=(WIDTH, 3.4))
    axes = figure.subplots()
    axes.plot(blocks, values, **line_style("layer_norm"), label="float32")
    axes.axhline(limit, color=MUTED, linestyle=":", linewidth=1.6, label="largest float16")
    axes.plot(
        blocks[beyond],
        values[beyond],
        color=COLORS["changed"],
        marker="x",
        markersize=13,
        markeredgewidth=2.5,
        linestyle="",
        label="inf in float16",
    )
    axes.set_yscale("log")
    axes.set(xlabel="block", xticks=blocks)
    axes.set_title("largest number in the residual stream")
    axes.grid()
    figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=3)
    return figure


def rounding(
    lengths: ArrayLike, errors: Mapping[str, ArrayLike], bounds: Mapping[str, ArrayLike]
) -> Figure:
    """Draw the rounding errors of sums, with bounds.

    Args:
        lengths: how many numbers are added, shape `(K,)`.
        errors: for each order of addition, its errors in units of the unit roundoff, shape `(K,)`.
        bounds: for each bound, its values, shape `(K,)`.

    Returns:
        A line per order and a dotted line per bound, with the bound's name at its right end; both
        scales are logarithmic.

    Raises:
        ValueError: a line doesn't have one value per length.

    Example:
        >>> figure = rounding([4, 16], {"pairs": [1.0, 2.0]}, {"n": [4, 16]})
        >>> [text.get_text() for text in figure.axes[0].texts]
        ['n', 'pairs']
    """
    places = np.asarray(lengths, dtype=float)
    lines = {label: np.asarray(values, dtype=float) for label, values in errors.items()}
    dotted = {label: np.asarray(values, dtype=float) for label, values in bounds.items()}
    for label, values in {**lines, **dotted}.items():
        if values.shape != places.shape:
            raise ValueError(
                f"rounding: expected values of shape {places.shape} for {label!r}, "
                f"but got {values.shape}"
            )
    figure = Figure(figsize=(WIDTH, 3.4))
    axes = figure.subplots()
    for label, values in dotted.items():
        axes.plot(places, values, color=MUTED, linestyle=":", linewidth=1.6, label=label)
    styles = line_styles(lines)
    for label, values in lines.items():
        axes.plot(places, values, **styles[label], label=label)
    axes.set(xscale="log", yscale="log", xlabel="numbers in the sum, n")
    axes.set_title("largest error of 200 sums, in units of u")
    axes.grid()
    label_lines(figure)
    return figure
