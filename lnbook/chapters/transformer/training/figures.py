"""The figures for the chapter on training transformers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullFormatter, NullLocator
from numpy.typing import ArrayLike, NDArray

from lnbook.chapters.shared.line_labels import label_lines
from lnbook.notebook.style import INK, MUTED, WIDTH, line_style, line_styles

__all__ = ["by_block", "by_depth", "by_rate", "curves", "finals"]

LEVEL = (0, (1, 1.5))

Array = NDArray[np.float64]


def curves(
    panels: Mapping[str, Mapping[str, tuple[ArrayLike, ArrayLike]]], levels: Mapping[str, float]
) -> Figure:
    """Draw test losses over the training steps: the mean, and the range over the seeds.

    Args:
        panels: for each panel, its title; for each line in it, its label, the steps `(T,)` and the
            losses `(S, T)` of all seeds.
        levels: losses to compare with, keyed by name, drawn across all panels.

    Returns:
        Stacked panels on the same scale.

    Raises:
        ValueError: `panels` is empty.

    Example:
        >>> lines = {"Pre-LN": ([10, 20], [[3.0, 2.0], [3.5, 2.5]])}
        >>> figure = curves({"with warm-up": lines}, {"unigram": 3.25})
        >>> figure.axes[0].lines[0].get_ydata().tolist()
        [3.25, 2.25]
    """
    _some(panels, "curves")
    figure = Figure(figsize=(WIDTH, 2.5 * len(panels) + 0.5))
    all_axes = figure.subplots(len(panels), 1, sharex=True, sharey=True, squeeze=False)[:, 0]
    for axes, (title, lines) in zip(all_axes, panels.items(), strict=True):
        styles = line_styles(lines, markersize=6)
        for label, (steps, losses) in lines.items():
            x, y = np.asarray(steps, dtype=float), np.asarray(losses, dtype=float)
            color = styles[label]["color"]
            axes.fill_between(x, y.min(axis=0), y.max(axis=0), color=color, alpha=0.18, linewidth=0)
            axes.plot(x, y.mean(axis=0), **styles[label], label=label)
        _levels(axes, levels)
        axes.set(title=title, ylabel="test loss")
        axes.grid()
    all_axes[-1].set_xlabel("step")
    label_lines(figure)
    return figure


def by_rate(
    lines: Mapping[str, Mapping[float, Sequence[float]]], levels: Mapping[str, float]
) -> Figure:
    """Draw the final losses of runs against their learning rate.

    Args:
        lines: for each line, its label, and for each learning rate, the losses of all seeds.
        levels: losses to compare with, keyed by name.

    Returns:
        A line through the means, and a point for each seed.

    Raises:
        ValueError: `lines` is empty.

    Example:
        >>> figure = by_rate({"Post-LN": {0.001: [2.5, 3.0], 0.002: [3.0, 3.5]}}, {"unigram": 3.25})
        >>> figure.axes[0].lines[0].get_ydata().tolist()
        [2.75, 3.25]
    """
    _some(lines, "by_rate")
    figure = Figure(figsize=(WIDTH, 4.0))
    axes = figure.subplots()
    axes.set_xscale("log")
    rates = sorted({rate for losses in lines.values() for rate in losses})
    styles = line_styles(lines)
    for label, losses in lines.items():
        known = sorted(losses)
        means = [np.mean(losses[rate]) for rate in known]
        axes.plot(known, means, **styles[label], markersize=7, label=label)
        x = [rate for rate in known for _ in losses[rate]]
        y = [loss for rate in known for loss in losses[rate]]
        points = {**styles[label], "linestyle": "none"}
        axes.plot(x, y, **points, alpha=0.45, markersize=4.5)
    _levels(axes, levels)
    axes.set(xlabel="learning rate", ylabel="test loss at the end")
    axes.set_xticks(rates, [f"{rate:g}" for rate in rates])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.grid()
    label_lines(figure)
    return figure


def by_block(
    panels: Mapping[str, Mapping[str, ArrayLike]], label: str, *, log: bool = False
) -> Figure:
    """Draw a quantity for each block of a model, at several points in training.

    Args:
        panels: for each panel, its title; for each line in it, its name and the values
            `(L,)`.
        label: the quantity.
        log: whether the vertical scale is logarithmic.

    Returns:
        Stacked panels on the same scale.

    Raises:
        ValueError: `panels` is empty.

    Example:
        >>> figure = by_block({"Pre-LN": {"start": [1.0, 0.5], "end": [0.5, 0.25]}}, "gradient")
        >>> [line.get_ydata().tolist() for line in figure.axes[0].lines]
        [[1.0, 0.5], [0.5, 0.25]]
    """
    _some(panels, "by_block")
    figure = Figure(figsize=(WIDTH, 2.2 * len(panels) + 0.5))
    all_axes = figure.subplots(len(panels), 1, sharex=True, sharey=True, squeeze=False)[:, 0]
    for axes, (title, moments) in zip(all_axes, panels.items(), strict=True):
        for number, (name, values) in enumerate(moments.items()):
            y = np.asarray(values, dtype=float)
            axes.plot(np.arange(1, y.size + 1), y, **line_style(number, markersize=6), label=name)
            axes.set_xticks(np.arange(1, y.size + 1))
        axes.set(title=title, ylabel=label)
        if log:
            axes.set_yscale("log")
        axes.grid()
    all_axes[-1].set_xlabel("block")
    label_lines(figure)
    return figure


def by_depth(depths: Sequence[int], lines: Mapping[str, ArrayLike], label: str) -> Figure:
    """Draw a quantity against the number of blocks, both on logarithmic scales.

    Args:
        depths: K depths, in blocks.
        lines: for each line, its label and the values `(S, K)` of all seeds.
        label: the quantity.

    Returns:
        A line through the means, and the range over the seeds.

    Raises:
        ValueError: `lines` is empty.

    Example:
        >>> figure = by_depth([6, 12], {"Pre-LN": [[1.0, 0.5], [2.0, 1.5]]}, "change in the output")
        >>> figure.axes[0].lines[0].get_ydata().tolist()
        [1.5, 1.0]
    """
    _some(lines, "by_depth")
    figure = Figure(figsize=(WIDTH, 3.5))
    axes = figure.subplots()
    styles = line_styles(lines, markersize=7)
    for name, values in lines.items():
        y = np.asarray(values, dtype=float)
        color = styles[name]["color"]
        axes.fill_between(
            depths, y.min(axis=0), y.max(axis=0), color=color, alpha=0.18, linewidth=0
        )
        axes.plot(depths, y.mean(axis=0), **styles[name], label=name)
    axes.set(xscale="log", yscale="log", xlabel="number of blocks", ylabel=label)
    axes.set_xticks(list(depths), [str(depth) for depth in depths])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.yaxis.set_minor_formatter(NullFormatter())
    axes.grid()
    label_lines(figure)
    return figure


def finals(rows: Mapping[str, Sequence[float]], levels: Mapping[str, float]) -> Figure:
    """Draw the final losses of runs, one row per kind.

    Args:
        rows: for each row, its name and the losses of all seeds.
        levels: losses to compare with, keyed by name, drawn from top to bottom.

    Returns:
        A point for each run, and a bar at the mean.

    Raises:
        ValueError: `rows` is empty.

    Example:
        >>> figure = finals({"Pre-LN": [2.0, 2.25], "Post-LN": [2.5, 3.0]}, {"unigram": 3.25})
        >>> [text.get_text() for text in figure.axes[0].texts]
        ['Pre-LN', 'Post-LN', 'unigram']
    """
    _some(rows, "finals")
    figure = Figure(figsize=(WIDTH, 0.62 * len(rows) + 1.2))
    axes = figure.subplots()
    styles = line_styles(rows, linestyle="none")
    for number, (name, losses) in enumerate(rows.items()):
        values = np.asarray(losses, dtype=float)
        axes.plot(values, np.full(values.size, -number), **styles[name], alpha=0.6)
        mean = [values.mean()] * 2
        color = styles[name]["color"]
        axes.plot(mean, [-number - 0.25, -number + 0.25], color=color, linewidth=3)
        axes.annotate(
            name,
            (0.09, -number + 0.3),
            xycoords=("axes fraction", "data"),
            fontsize=11,
            va="bottom",
        )
    for name, level in levels.items():
        axes.plot([level] * 2, [-len(rows) + 0.6, 0.8], color=MUTED, linestyle=LEVEL)
        axes.text(level, 0.85, name, color=INK, fontsize=10.5, ha="center", va="bottom")
    axes.margins(x=0.09)
    axes.set(ylim=(-len(rows) + 0.5, 1.2), xlabel="test loss at the end")
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)
    axes.grid(axis="x")
    return figure


def _some(items: Mapping[str, object], owner: str) -> None:
    if not items:
        raise ValueError(f"{owner}: expected something to draw, but got nothing")


def _levels(axes: Axes, levels: Mapping[str, float]) -> None:
    left, right = axes.get_xlim()
    for name, level in levels.items():
        axes.axhline(level, color=MUTED, linestyle=LEVEL, linewidth=1.6, label=name)
    axes.set_xlim(left, right)
