"""Figures for the chapter on batch sizes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator
from numpy.typing import ArrayLike, NDArray

from lnbook.chapters.shared.line_labels import label_lines
from lnbook.notebook.style import INK, WIDTH, line_styles

__all__ = ["by_rate", "by_size", "grid", "learning_curves"]

Array = NDArray[np.float64]

PLACES = {"none": -1.5, "LN": -0.5, "GN": 0.5, "BN": 1.5}  # order of the points, side by side
APART = 0.035  # distance between the points of neighboring norms, in powers of 2 and of 10
PERCENT = (1, 2, 5, 10, 20, 50, 100)


def _looks(norms: Iterable[str]) -> dict[str, dict[str, Any]]:
    for norm in norms:
        if norm not in PLACES:
            raise ValueError(f"expected norm to be one of {tuple(PLACES)}, but got {norm!r}")
    return line_styles(norms)


def _error_axis(axes: Axes) -> None:
    axes.set_yscale("log")
    axes.yaxis.set_major_locator(FixedLocator(PERCENT))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.grid(axis="y")


def _checked(panels: Mapping[str, object], name: str) -> None:
    if not panels:
        raise ValueError(f"{name}: expected at least one panel, but got none")


def by_size(panels: Mapping[str, Mapping[str, Mapping[int, ArrayLike]]]) -> Figure:
    """Plot the test error against the batch size, with a line for each norm.

    Args:
        panels: the title of each panel and, for each norm and batch size, the accuracies of the
            runs, shape `(S,)`, from 0 to 1.

    Returns:
        Panels stacked vertically, with the same scales: a small point for each run, and a line
        with markers for the means. Both axes are logarithmic; errors are in percent.

    Raises:
        ValueError: there are no panels, or a norm is unknown.

    Example:
        >>> figure = by_size({"digits": {"LN": {2: [0.875, 0.925], 8: [0.95, 0.98]}}})
        >>> figure.axes[0].lines[-1].get_ydata().round(2).tolist()  # errors in percent
        [10.0, 3.5]
    """
    _checked(panels, "by_size")
    figure = Figure(figsize=(WIDTH, 3.0 * len(panels) + 0.5))
    rows = figure.subplots(len(panels), 1, sharex=True, sharey=True, squeeze=False)[:, 0]
    for axes, (title, norms) in zip(rows, panels.items(), strict=True):
        styles = _looks(norms)
        for norm, sizes in norms.items():
            errors = [100 * (1 - np.asarray(runs, dtype=float)) for runs in sizes.values()]
            x = np.array(list(sizes), dtype=float) * 2 ** (APART * 3 * PLACES[norm])
            for one, runs in zip(x, errors, strict=True):
                points = {**styles[norm], "linestyle": "none"}
                axes.plot(np.full(runs.size, one), runs, **points, alpha=0.3, ms=4)
            axes.plot(x, [runs.mean() for runs in errors], **styles[norm], ms=7, label=norm)
        _error_axis(axes)
        axes.set(title=title, ylabel="test error, percent")
    ticks = sorted(
        {size for norms in panels.values() for sizes in norms.values() for size in sizes}
    )
    axes = rows[-1]
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(FixedLocator(ticks))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.set_xlabel("batch size")
    label_lines(figure)
    return figure


def learning_curves(
    steps: ArrayLike, panels: Mapping[str, Mapping[str, ArrayLike]], label: str
) -> Figure:
    """Draw the test error during training.

    Args:
        steps: the updates after which it was measured, shape `(K,)`.
        panels: the title of each panel and, for each norm, the accuracies, shape `(K, S)`.
        label: the label of the horizontal axis.

    Returns:
        Panels stacked vertically, with the same scales: a line for the means, and a band from the
        lowest to the highest run.

    Raises:
        ValueError: there are no panels, or a norm is unknown.

    Example:
        >>> accuracies = {"BN": [[0.5, 0.7], [0.8, 0.9]]}  # 2 times, 2 runs
        >>> figure = learning_curves([10, 20], {"batch 32": accuracies}, "updates")
        >>> figure.axes[0].lines[0].get_xydata().round(1).tolist()
        [[10.0, 40.0], [20.0, 15.0]]
    """
    _checked(panels, "learning_curves")
    figure = Figure(figsize=(WIDTH, 2.5 * len(panels) + 0.5))
    rows = figure.subplots(len(panels), 1, sharex=True, sharey=True, squeeze=False)[:, 0]
    for axes, (title, norms) in zip(rows, panels.items(), strict=True):
        styles = _looks(norms)
        for norm, values in norms.items():
            color = styles[norm]["color"]
            errors = 100 * (1 - np.asarray(values, dtype=float))
            axes.fill_between(
                np.asarray(steps), errors.min(1), errors.max(1), color=color, alpha=0.15, lw=0
            )
            axes.plot(np.asarray(steps), errors.mean(1), **styles[norm], ms=5, label=norm)
        _error_axis(axes)
        axes.set(title=title, ylabel="test error, percent")
    rows[-1].set_xlabel(label)
    label_lines(figure)
    return figure


def by_rate(panels: Mapping[str, Mapping[str, Mapping[float, ArrayLike]]]) -> Figure:
    """Plot the test error against the learning rate, with a line for each norm.

    Args:
        panels: the title of each panel and, for each norm and learning rate, the accuracies of
            the runs, shape `(S,)`.

    Returns:
        Panels in two columns, with the same scales: the means, with bars of one standard deviation.
        Both axes are logarithmic.

    Raises:
        ValueError: there are no panels, or a norm is unknown.

    Example:
        >>> figure = by_rate({"batch 4": {"LN": {0.01: [0.8, 0.9], 0.1: [0.7, 0.9]}}})
        >>> [round(error) for error in figure.axes[0].lines[0].get_ydata()]  # in percent
        [15, 20]
    """
    _checked(panels, "by_rate")
    count = -(-len(panels) // 2)
    figure = Figure(figsize=(WIDTH, 2.1 * count + 0.7))
    all_axes = figure.subplots(count, 2, sharex=True, sharey=True, squeeze=False)
    for axes, (title, norms) in zip(all_axes.flat, panels.items(), strict=False):
        styles = _looks(norms)
        for norm, rates in norms.items():
            errors = [100 * (1 - np.asarray(runs, dtype=float)) for runs in rates.values()]
            axes.errorbar(
                np.array(list(rates)) * 10 ** (APART * PLACES[norm]),
                [runs.mean() for runs in errors],
                [runs.std(ddof=1) for runs in errors],
                **styles[norm],
                linewidth=1.6,
                elinewidth=1,
                ms=5,
                label=norm,
            )
        axes.set_title(title)
        axes.set_xscale("log")
        _error_axis(axes)
    for axes in all_axes[:, 0]:
        axes.set_ylabel("error, percent")
    for axes in all_axes[-1]:
        axes.set_xlabel("learning rate")
    handles, labels = all_axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=len(labels))
    return figure


def grid(values: ArrayLike, rows: Sequence[int], columns: Sequence[int]) -> Figure:
    """Draw accuracies by the number of images in the loss and in the statistics.

    Args:
        values: mean accuracies from 0 to 1, shape `(R, C)`.
        rows: the numbers of images in the loss.
        columns: the numbers of images that share the statistics.

    Returns:
        A table of cells with the accuracies; the larger the error, the darker the cell.

    Raises:
        ValueError: the shape of `values` doesn't match `rows` and `columns`.

    Example:
        >>> figure = grid([[0.8, 0.85], [0.9, 0.95]], rows=[2, 32], columns=[2, 32])
        >>> [text.get_text() for text in figure.axes[0].texts]
        ['0.800', '0.850', '0.900', '0.950']
    """
    array = np.asarray(values, dtype=float)
    if array.shape != (len(rows), len(columns)):
        raise ValueError(
            f"grid: expected values of shape {(len(rows), len(columns))}, but got {array.shape}"
        )
    figure = Figure(figsize=(WIDTH, 0.55 * len(rows) + 1.1))
    axes = figure.subplots()
    axes.imshow(np.log10(1 - array), cmap="Oranges", vmin=-2.2, vmax=0.4, aspect="auto")
    for row in range(len(rows)):
        for column in range(len(columns)):
            value = f"{array[row, column]:.3f}"
            axes.text(column, row, value, ha="center", va="center", color=INK)
    axes.set_xticks(range(len(columns)), [f"{size}" for size in columns])
    axes.set_yticks(range(len(rows)), [f"{size}" for size in rows])
    axes.set(xlabel="images that share the statistics", ylabel="images in the loss")
    axes.tick_params(length=0)
    for spine in axes.spines.values():
        spine.set_visible(False)
    return figure
