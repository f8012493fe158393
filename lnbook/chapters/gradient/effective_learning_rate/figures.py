"""The chapter's figures, drawn from given numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from lnbook.notebook.style import MUTED, WIDTH, line_styles

__all__ = ["angles"]


def angles(
    steps: ArrayLike, lines: Mapping[str, ArrayLike], levels: Mapping[str, Sequence[float]]
) -> Figure:
    """Draw how far the steps turn the weights, with predicted levels.

    Args:
        steps: the step numbers, shape `(K,)`.
        lines: angles in radians, keyed by label, each of shape `(K,)`.
        levels: predicted angles, keyed by label, each as (angle, first step, last step).

    Returns:
        The lines on a logarithmic scale, and each level as a dotted line with its label above it.

    Raises:
        ValueError: a line doesn't have one angle per step.

    Example:
        >>> figure = angles([1, 2], {"factor 1": [0.1, 0.2]}, {"predicted": (0.15, 1, 2)})
        >>> [text.get_text() for text in figure.axes[0].texts]
        ['predicted']
    """
    places = np.asarray(steps, dtype=float)
    figure = Figure(figsize=(WIDTH, 3.6))
    axes = figure.subplots()
    styles = line_styles(lines, marker="")
    for label, values in lines.items():
        line = np.asarray(values, dtype=float)
        if line.shape != places.shape:
            raise ValueError(
                f"angles: expected values of shape {places.shape} for {label!r}, "
                f"but got {line.shape}"
            )
        axes.plot(places, line, **styles[label], label=label)
    for label, (level, first, last) in levels.items():
        axes.plot([first, last], [level, level], color=MUTED, linestyle=":", linewidth=1.6)
        axes.annotate(
            label, (last, level), xytext=(0, 5), textcoords="offset points", ha="right", color=MUTED
        )
    axes.set_yscale("log")
    axes.set(xlabel="step", ylabel="angle per step (radians)")
    axes.grid()
    if len(lines) > 1:
        figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=3)
    return figure
