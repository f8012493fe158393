"""The figures for the chapter on gradients before training."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import (
    LogLocator,
    MaxNLocator,
    NullFormatter,
    NullLocator,
    StrMethodFormatter,
)
from numpy.typing import ArrayLike, NDArray

from lnbook.chapters.shared.line_labels import label_lines
from lnbook.notebook.style import INK, MUTED, WIDTH, concept, line_style, line_styles

__all__ = ["by_block", "by_depth", "growth"]

Array = NDArray[np.float64]


def _runs(values: ArrayLike, places: int, caller: str) -> Array:
    """Read runs as an array of shape `(runs, places)`."""
    array = np.asarray(values, dtype=float)
    if array.ndim != 2 or array.shape[1] != places or not len(array):
        raise ValueError(f"{caller}: expected shape (runs, {places}), but got {array.shape}")
    return array


def _line(
    axes: Axes, x: Array, runs: Array, style: dict[str, Any], label: str, every: int = 1
) -> None:
    """Draw the mean of some runs, and a band from the smallest to the largest."""
    axes.fill_between(x, runs.min(0), runs.max(0), color=style["color"], alpha=0.18, linewidth=0)
    axes.plot(x, runs.mean(0), **style, markevery=every, markersize=6, label=label)


def growth(runs: ArrayLike, low: ArrayLike, high: ArrayLike) -> Figure:
    """Draw how the stream of a Pre-LN stack grows, between two bounds.

    Args:
        runs: squared length divided by the width, before the first block and after each, shape
            `(runs, L + 1)`.
        low: the lower bound at the same positions, shape `(L + 1,)`.
        high: the upper bound.

    Returns:
        A line with a band for the runs, and a line for each bound.

    Raises:
        ValueError: the shapes don't fit.

    Example:
        >>> figure = growth([[1.0, 2.0], [1.0, 3.0]], low=[1.0, 1.5], high=[1.0, 2.5])
        >>> figure.axes[0].lines[0].get_ydata().tolist()  # the mean of the runs
        [1.0, 2.5]
    """
    lower, upper = np.asarray(low, dtype=float), np.asarray(high, dtype=float)
    if lower.ndim != 1 or lower.shape != upper.shape:
        raise ValueError(
            f"growth: expected two bounds of the same shape (L + 1,), "
            f"but got {lower.shape} and {upper.shape}"
        )
    places = np.arange(lower.size, dtype=float)
    figure = Figure(figsize=(WIDTH, 3.4))
    axes = figure.subplots()
    _line(
        axes,
        places,
        _runs(runs, lower.size, "growth"),
        line_style("pre_ln", linestyle="-"),  # the bounds are dashed
        "measured",
        every=max(1, lower.size // 8),
    )
    axes.plot(places, upper, color=MUTED, linestyle="--", label=r"upper bound, $1 + 3l/2$")
    axes.plot(places, lower, color=INK, linestyle=":", label=r"lower bound, $1 + l/2$")
    axes.set(xlabel="blocks passed, $l$", ylabel=r"$\Vert x_l \Vert^2 / d$")
    axes.grid()
    label_lines(figure)
    return figure


def by_depth(
    depths: Sequence[int], panels: Mapping[str, Mapping[str, ArrayLike]], labels: Sequence[str]
) -> Figure:
    """Draw a measurement in stacks of several depths.

    Args:
        depths: K depths, in blocks.
        panels: for each panel, its title (empty for none) and its lines: the label, and the
            results of some runs, shape `(runs, K)`.
        labels: the label of each panel's vertical axis.

    Returns:
        Stacked panels. Each line is the mean of its runs, with a band over all of them. The
        horizontal scale is logarithmic, and the vertical one starts at 0.

    Raises:
        ValueError: `panels` is empty, there isn't one label per panel, or a shape doesn't fit.

    Example:
        >>> figure = by_depth([6, 12], {"": {"Pre-LN": [[1.0, 0.5], [2.0, 1.5]]}}, ["gradient"])
        >>> figure.axes[0].lines[0].get_xydata().tolist()
        [[6.0, 1.5], [12.0, 1.0]]
    """
    if not panels or len(labels) != len(panels):
        raise ValueError(
            f"by_depth: expected at least one panel and a label for each, "
            f"but got {len(panels)} panels and {len(labels)} labels"
        )
    places = np.asarray(depths, dtype=float)
    figure = Figure(figsize=(WIDTH, 2.6 * len(panels) + 0.5))
    all_axes = figure.subplots(len(panels), 1, sharex=True, squeeze=False)[:, 0]
    for axes, (title, lines), label in zip(all_axes, panels.items(), labels, strict=True):
        styles = line_styles(lines)
        for name, runs in lines.items():
            _line(axes, places, _runs(runs, places.size, "by_depth"), styles[name], name)
        axes.set(title=title, ylabel=label, xscale="log")
        axes.set_ylim(0, 1.05 * max(float(np.max(runs)) for runs in lines.values()))
        axes.grid()
    all_axes[-1].set_xticks(places, [f"{depth}" for depth in depths])
    all_axes[-1].xaxis.set_minor_locator(NullLocator())
    all_axes[-1].set_xlabel("number of blocks, $L$")
    label_lines(figure)
    return figure


def by_block(
    panels: Mapping[str, Mapping[str, ArrayLike]],
    label: str,
    *,
    references: Mapping[str, Mapping[str, ArrayLike]] | None = None,
    scale: str = "log",
    one_scale: bool = True,
) -> Figure:
    """Draw a measurement for each block of a stack.

    Args:
        panels: for each panel, its title and its lines: the label, and the results of some runs,
            first block first, shape `(runs, L)`.
        label: the label of the vertical axes.
        references: lines of shape `(L,)` to compare with, keyed by panel title and label.
        scale: the vertical scale, "log" or "linear" (starting at 0).
        one_scale: whether all panels show the same range.

    Returns:
        Stacked panels. Each line is the mean of its runs, with a band over all of them.

    Raises:
        ValueError: `panels` is empty, or a shape doesn't fit.

    Example:
        >>> figure = by_block({"encoder": {"Pre-LN": [[4.0, 1.0], [2.0, 1.0]]}}, "gradient")
        >>> figure.axes[0].lines[0].get_ydata().tolist()
        [3.0, 1.0]
    """
    if not panels:
        raise ValueError("by_block: expected at least one panel, but got none")
    figure = Figure(figsize=(WIDTH, 2.7 * len(panels) + 0.4))
    all_axes = figure.subplots(len(panels), 1, sharex=True, sharey=one_scale, squeeze=False)[:, 0]
    for axes, (title, lines) in zip(all_axes, panels.items(), strict=True):
        # If a panel has only one line, its title may give the line's name.
        styles = line_styles([title] if len(lines) == 1 and concept(title) else lines)
        for (name, values), style in zip(lines.items(), styles.values(), strict=True):
            blocks = np.asarray(values).shape[-1] if np.ndim(values) == 2 else 0
            runs = _runs(values, blocks, "by_block")
            places = np.arange(1.0, blocks + 1)
            _line(axes, places, runs, style, name, every=max(1, blocks // 8))
        for name, values in (references or {}).get(title, {}).items():
            reference = np.asarray(values, dtype=float)
            axes.plot(
                np.arange(1.0, reference.size + 1), reference, color=INK, linestyle=":", label=name
            )
        axes.set(title=title, ylabel=label, yscale=scale)
        if scale == "log":
            axes.yaxis.set_minor_formatter(NullFormatter())
            low, high = axes.get_ylim()
            if high < 100 * low:  # just 0.1, 1 and 10 would be too few labels
                axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
                axes.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
        else:
            axes.set_ylim(bottom=0)
        axes.grid()
    all_axes[-1].xaxis.set_major_locator(MaxNLocator(integer=True))
    all_axes[-1].set_xlabel("block")
    label_lines(figure)
    return figure
