"""The figure for the chapter on myths about LayerNorm."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator
from numpy.typing import ArrayLike

from lnbook.chapters.shared.line_labels import label_lines
from lnbook.notebook.style import WIDTH, line_styles

__all__ = ["effects"]

MOST = 3


def effects(lines: Mapping[str, ArrayLike], features: Sequence[str]) -> Figure:
    """Draw how much each feature changes the output of several normalizations.

    Args:
        lines: for each of up to three names, one positive number per feature.
        features: the label of each feature.

    Returns:
        A line with markers for each name, over the features, on a logarithmic scale.

    Raises:
        ValueError: there are no lines or more than three, a number is not positive, or a line
            doesn't have one number per feature.

    Example:
        >>> figure = effects({"LN": [0.5, 4.0], "BN": [1.0, 1.0]}, ["age", "income"])
        >>> [line.get_ydata().tolist() for line in figure.axes[0].lines]
        [[0.5, 4.0], [1.0, 1.0]]
    """
    drawn = {name: np.asarray(values, dtype=float) for name, values in lines.items()}
    shapes = [values.shape for values in drawn.values()]
    if not 0 < len(drawn) <= MOST or any(shape != (len(features),) for shape in shapes):
        raise ValueError(
            f"effects: expected one to {MOST} lines of {len(features)} numbers, "
            f"but got shapes {shapes}"
        )
    least = min(float(np.min(values)) for values in drawn.values())
    if not least > 0:
        raise ValueError(
            f"effects: expected positive numbers, since the scale is logarithmic, but got {least}"
        )
    figure = Figure(figsize=(WIDTH, 3.4))
    axes = figure.subplots()
    places = np.arange(len(features))
    styles = line_styles(drawn)
    for name, values in drawn.items():
        axes.plot(places, values, **styles[name], label=name)
    axes.set_yscale("log")
    axes.yaxis.set_minor_locator(NullLocator())
    axes.set_xticks(places, list(features))
    axes.set(xlabel="range of the feature", ylabel="change in the output")
    axes.grid(axis="y")
    label_lines(figure)
    return figure
