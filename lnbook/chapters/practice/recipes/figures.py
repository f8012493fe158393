"""The figures for the recipes chapter."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from lnbook.chapters.shared.line_labels import label_lines
from lnbook.notebook.style import MUTED, WIDTH, line_style

__all__ = ["gains_over_training"]


def gains_over_training(steps: ArrayLike, gains: Mapping[str, ArrayLike]) -> Figure:
    """Draw how a network's gains change during training, for several seeds.

    Args:
        steps: the steps, shape `(T,)`.
        gains: the label and the mean gains of each training method, at most three; one row per
            seed, shape `(S, T)`.

    Returns:
        For each method, a line for the mean over the seeds and a band from the smallest to the
        largest; and a thin line at 1, where gains start.

    Raises:
        ValueError: if `gains` is empty or has more than three entries, or a shape doesn't fit.

    Example:
        >>> figure = gains_over_training([0, 50], {"decay": [[1.0, 0.8], [1.0, 0.6]]})
        >>> figure.axes[0].lines[1].get_ydata().round(2).tolist()  # the mean over the seeds
        [1.0, 0.7]
    """
    x = np.asarray(steps, dtype=float)
    if not 1 <= len(gains) <= 3:
        raise ValueError(
            f"gains_over_training: expected gains for 1 to 3 training methods, but got {len(gains)}"
        )
    figure = Figure(figsize=(WIDTH, 2.8))
    axes = figure.subplots()
    axes.axhline(1.0, color=MUTED, linewidth=0.9)
    for number, (label, values) in enumerate(gains.items()):
        rows = np.asarray(values, dtype=float)
        if rows.ndim != 2 or rows.shape[1:] != x.shape:
            raise ValueError(
                f"gains_over_training: expected {label!r} to be of shape (S, {x.size}), "
                f"but got {rows.shape}"
            )
        style = line_style(number, markersize=5, label=label)
        axes.fill_between(x, rows.min(0), rows.max(0), color=style["color"], alpha=0.2, linewidth=0)
        axes.plot(x, rows.mean(0), **style)
    axes.set(xlabel="training step", ylim=(0.0, None))
    axes.set_title("mean gain of the norms")
    axes.grid()
    label_lines(figure)
    return figure
