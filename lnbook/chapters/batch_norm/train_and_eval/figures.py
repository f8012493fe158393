"""Figures for the chapter on training and evaluation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FormatStrFormatter, LogLocator, NullLocator
from numpy.typing import ArrayLike, NDArray

from lnbook.chapters.shared.line_labels import label_lines
from lnbook.notebook.style import INK, MUTED, WIDTH, line_style, line_styles

__all__ = [
    "accuracy_by_batch",
    "accuracy_by_shift",
    "accuracy_over_steps",
    "companions",
    "errors",
    "running",
]

Array = NDArray[np.float64]
Spread = tuple[ArrayLike, ArrayLike]


def companions(sizes: Sequence[int], layer: ArrayLike, batch: ArrayLike) -> Figure:
    """Draw one output of one example, for several batch sizes and sets of companions.

    Args:
        sizes: K batch sizes.
        layer: the output of LayerNorm, shape `(K, draws)`.
        batch: the output of batch normalization, shape `(K, draws)`, with a row of NaN where
            there's no output.

    Returns:
        Two panels with the same scale, with a point for each draw.

    Raises:
        ValueError: the shapes don't match.

    Example:
        >>> figure = companions([1, 4], [[0.5, 0.5], [0.5, 0.5]], [[np.nan, np.nan], [0.2, 0.9]])
        >>> [axes.get_title() for axes in figure.axes]
        ['BatchNorm, training mode', 'LayerNorm']
    """
    values = [np.asarray(layer, dtype=float), np.asarray(batch, dtype=float)]
    for array in values:
        if array.ndim != 2 or len(array) != len(sizes):
            raise ValueError(
                f"companions: expected shape ({len(sizes)}, draws), but got {array.shape}"
            )
    figure = Figure(figsize=(WIDTH, 4.2))
    panels = figure.subplots(2, 1, sharex=True, sharey=True)
    titles = ("BatchNorm, training mode", "LayerNorm")
    styles = line_styles(titles, linestyle="none")
    for axes, title, array in zip(panels, titles, values[::-1], strict=True):
        places = np.arange(len(sizes), dtype=float)
        spread = np.linspace(-0.22, 0.22, array.shape[1])
        axes.plot(
            (places[:, None] + spread).ravel(),
            array.ravel(),
            **styles[title],
            alpha=0.6,
            markersize=4.5,
        )
        for place, row in zip(places, array, strict=True):
            if np.isnan(row).all():
                axes.text(place, 0, "error", ha="center", va="center", color=styles[title]["color"])
        axes.set_xticks(places, [str(size) for size in sizes])
        axes.set(title=title, ylabel="output")
        axes.grid(axis="y")
    panels[-1].set_xlabel("batch size")
    return figure


def running(lines: Mapping[str, ArrayLike], batches: ArrayLike, truth: float) -> Figure:
    """Plot running means against the number of updates.

    Args:
        lines: the label of each line and the running mean after each update, shape `(T,)`.
        batches: the mean of each batch, shape `(T,)`.
        truth: the mean of the data.

    Returns:
        The lines, points for the batches, and a line at the mean of the data.

    Raises:
        ValueError: there are no lines.

    Example:
        >>> figure = running({"m = 0.5": [0.5, 1.25]}, batches=[1.0, 2.0], truth=1.5)
        >>> [(line.get_label(), line.get_ydata().tolist()) for line in figure.axes[0].lines]
        [('data mean', [1.5, 1.5]), ('m = 0.5', [0.5, 1.25]), ('batch means', [1.0, 2.0])]
    """
    _check_lines(lines, "running")
    figure = Figure(figsize=(WIDTH, 3.4))
    axes = figure.subplots()
    means = np.asarray(batches, dtype=float)
    updates = np.arange(1, means.size + 1)
    axes.plot([1, means.size], [truth, truth], color=INK, linewidth=1, label="data mean")
    for number, (label, values) in enumerate(lines.items()):
        style = line_style(number, marker="")
        width = 2.0 if number < len(lines) - 1 else 1.0  # the last one varies most, so keep it thin
        axes.plot(updates, np.asarray(values, dtype=float), label=label, linewidth=width, **style)
    axes.plot(updates, means, ".", color=MUTED, markersize=5, label="batch means")
    axes.set(xlabel="update", ylabel="running mean", ylim=(0, None))
    axes.grid()
    label_lines(figure)
    return figure


def errors(formula: Mapping[str, ArrayLike], measured: Mapping[str, ArrayLike]) -> Figure:
    """Plot the error of running means against the number of updates, predicted and measured.

    Args:
        formula: for each label, the predicted error after each update, positive, shape `(T,)`.
        measured: for the same labels, the error of simulated layers, shape `(T,)`.

    Returns:
        Lines for the formula and markers for the measurements, with logarithmic axes.

    Raises:
        ValueError: there are no lines, or the labels differ.

    Example:
        >>> figure = errors({"m = 0.1": [0.9, 0.81]}, {"m = 0.1": [0.91, 0.8]})
        >>> [line.get_ydata().tolist() for line in figure.axes[0].lines]
        [[0.9, 0.81], [0.91, 0.8]]
    """
    _check_lines(formula, "errors")
    if list(formula) != list(measured):
        raise ValueError(
            f"errors: expected the same labels, but got {list(formula)} and {list(measured)}"
        )
    figure = Figure(figsize=(WIDTH, 3.6))
    axes = figure.subplots()
    for number, label in enumerate(formula):
        line, points = (np.asarray(x[label], dtype=float) for x in (formula, measured))
        updates = np.arange(1, line.size + 1)
        chosen = np.unique(np.geomspace(1, line.size, 12).round().astype(int)) - 1
        style = line_style(number)
        axes.plot(updates, line, label=label, **style | {"marker": ""})
        axes.plot(
            updates[chosen],
            points[chosen],
            style["marker"],
            color=style["color"],
            markersize=5.5,
        )
    axes.set(xscale="log", yscale="log", xlabel="update", ylabel="error of the running mean")
    for axis, marks in ((axes.xaxis, (1.0,)), (axes.yaxis, (1.0, 2.0, 5.0))):
        axis.set_major_locator(LogLocator(subs=marks))
        axis.set_major_formatter(FormatStrFormatter("%g"))
        axis.set_minor_locator(NullLocator())
    axes.grid()
    label_lines(figure)
    return figure


def accuracy_by_batch(
    sizes: Sequence[int], lines: Mapping[str, Spread], levels: Mapping[str, float]
) -> Figure:
    """Plot test accuracy against the size of the test batches.

    Args:
        sizes: K batch sizes.
        lines: the label of each line, and its mean and standard deviation over seeds, shape `(K,)`.
        levels: the label and the accuracy of each horizontal line.

    Returns:
        Lines with error bars of one standard deviation in each direction; the sizes are on a
        logarithmic axis.

    Raises:
        ValueError: there are no lines.

    Example:
        >>> figure = accuracy_by_batch([2, 32], {"BN": ([0.6, 0.9], [0.05, 0.01])}, {"LN": 0.95})
        >>> [line.get_label() for line in figure.axes[0].lines]
        ['BN', 'LN']
    """
    _check_lines(lines, "accuracy_by_batch")
    figure = Figure(figsize=(WIDTH, 3.4))
    axes = figure.subplots()
    styles = line_styles([*lines, *levels])
    _with_spread(axes, sizes, lines, styles)
    for label, level in levels.items():
        style = {**styles[label], "marker": ""}
        axes.plot([sizes[0], sizes[-1]], [level, level], **style, label=label)
    axes.set(xscale="log", xlabel="test images per batch", ylabel="test accuracy")
    axes.set_xticks(sizes, [str(size) for size in sizes])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_ylim(None, 1.02)
    axes.grid()
    label_lines(figure)
    return figure


def accuracy_by_shift(shifts: Sequence[float], lines: Mapping[str, Spread]) -> Figure:
    """Plot test accuracy against how much brighter the test images are.

    Args:
        shifts: K numbers that are added to every pixel.
        lines: the label of each line, and its mean and standard deviation over seeds, shape `(K,)`.

    Returns:
        Lines with error bars of one standard deviation in each direction.

    Raises:
        ValueError: there are no lines.

    Example:
        >>> figure = accuracy_by_shift([0.0, 0.5], {"BN": ([0.9, 0.6], [0.01, 0.05])})
        >>> figure.axes[0].lines[0].get_xydata().tolist()
        [[0.0, 0.9], [0.5, 0.6]]
    """
    _check_lines(lines, "accuracy_by_shift")
    figure = Figure(figsize=(WIDTH, 3.4))
    axes = figure.subplots()
    _with_spread(axes, shifts, lines, line_styles(lines))
    axes.set(xlabel="added to every pixel of the test images", ylabel="test accuracy")
    axes.set_ylim(0, 1.05)
    axes.grid()
    label_lines(figure)
    return figure


def accuracy_over_steps(steps: ArrayLike, lines: Mapping[str, ArrayLike]) -> Figure:
    """Draw test accuracy during training.

    Args:
        steps: the steps, shape `(K,)`.
        lines: the label of each line and its accuracies, shape `(K,)`.

    Returns:
        The lines.

    Raises:
        ValueError: there are no lines.

    Example:
        >>> figure = accuracy_over_steps([10, 20], {"LN": [0.6, 0.8], "BN": [0.5, 0.9]})
        >>> [line.get_ydata().tolist() for line in figure.axes[0].lines]
        [[0.6, 0.8], [0.5, 0.9]]
    """
    _check_lines(lines, "accuracy_over_steps")
    figure = Figure(figsize=(WIDTH, 3.6))
    axes = figure.subplots()
    for number, (label, values) in enumerate(lines.items()):
        axes.plot(
            np.asarray(steps),
            np.asarray(values, dtype=float),
            **line_style(number),
            markevery=(number, 5),
            markersize=5.5,
            label=label,
        )
    axes.set(xlabel="training step", ylabel="test accuracy", ylim=(0, 1.02))
    axes.grid()
    label_lines(figure)
    return figure


def _with_spread(
    axes: Axes,
    x: Sequence[float],
    lines: Mapping[str, Spread],
    styles: Mapping[str, dict[str, Any]],
) -> None:
    for label, (mean, spread) in lines.items():
        middle, half = np.asarray(mean, dtype=float), np.asarray(spread, dtype=float)
        axes.plot(x, middle, label=label, **styles[label])
        axes.vlines(x, middle - half, middle + half, color=styles[label]["color"], linewidth=1.2)


def _check_lines(lines: Mapping[str, Any], name: str) -> None:
    if not lines:
        raise ValueError(f"{name}: expected at least one line, but got none")
