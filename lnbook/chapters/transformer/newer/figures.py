"""The chapter's figures, drawn from given numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from lnbook.chapters.shared.line_labels import label_lines
from lnbook.notebook.style import MUTED, WIDTH, line_styles

__all__ = ["curves", "differences"]


def curves(
    panels: Mapping[str, Mapping[str, tuple[ArrayLike, ArrayLike]]],
    xlabel: str,
    ylabels: Sequence[str],
    *,
    log_x: bool = False,
    log_y: Sequence[str] = (),
) -> Figure:
    """Draw quantities from several runs, with a band for their range.

    Args:
        panels: for each panel, its title and its lines: a name, the x values, of shape `(K,)`, and
            the y values, of shape `(runs, K)`.
        xlabel: the label of the horizontal axis.
        ylabels: the label of the vertical axis, for each panel.
        log_x: whether the horizontal axis is logarithmic, with a tick at each x value.
        log_y: the titles of the panels whose vertical axis is logarithmic.

    Returns:
        Stacked panels. Each line is the mean over the runs (the geometric mean on a logarithmic
        scale), and its band reaches from the smallest to the largest run.

    Raises:
        ValueError: there are no panels, or there isn't a label for each.

    Example:
        >>> figure = curves({"": {"nGPT": ([1, 2], [[3.0, 2.0], [5.0, 2.0]])}}, "step", ["loss"])
        >>> figure.axes[0].lines[0].get_ydata().tolist()
        [4.0, 2.0]
    """
    if not panels or len(ylabels) != len(panels):
        raise ValueError(
            f"curves: expected panels and a label for each, but got {len(panels)} panels and "
            f"{len(ylabels)} labels"
        )
    figure = Figure(figsize=(WIDTH, 2.5 * len(panels) + 0.4))
    rows = figure.subplots(len(panels), 1, sharex=True, squeeze=False)[:, 0]
    styles = line_styles(list(dict.fromkeys(n for lines in panels.values() for n in lines)))
    for axes, (title, lines), ylabel in zip(rows, panels.items(), ylabels, strict=True):
        for name, (places, values) in lines.items():
            x, runs = np.asarray(places, dtype=float), np.asarray(values, dtype=float)
            middle = np.exp(np.log(runs).mean(0)) if title in log_y else runs.mean(0)
            color = styles[name]["color"]
            axes.fill_between(x, runs.min(0), runs.max(0), color=color, alpha=0.2, linewidth=0)
            axes.plot(x, middle, **styles[name], markersize=5.5, label=name)
        axes.set(title=title, ylabel=ylabel)
        if title in log_y:
            axes.set_yscale("log")
        if log_x:
            axes.set_xscale("log")
            places = sorted({float(x) for line in axes.lines for x in np.asarray(line.get_xdata())})
            axes.set_xticks(places, [f"{place:g}" for place in places])
            axes.minorticks_off()
        axes.grid()
    rows[-1].set_xlabel(xlabel)
    label_lines(figure)
    return figure


def differences(rows: Mapping[str, ArrayLike], label: str) -> Figure:
    """Draw differences from a baseline, with one point per seed.

    Args:
        rows: the differences for each kind of run, keyed by name.
        label: what the differences are.

    Returns:
        A row of points for each kind, a bar at their mean, and a line at zero.

    Raises:
        ValueError: there are no rows.

    Example:
        >>> differences({"DyT": [0.5, 1.0]}, "loss").axes[0].lines[1].get_xdata().tolist()
        [0.5, 1.0]
    """
    if not rows:
        raise ValueError("differences: expected at least one row, but got none")
    figure = Figure(figsize=(WIDTH, 0.45 * len(rows) + 0.9))
    axes = figure.subplots()
    axes.axvline(0.0, color=MUTED, linewidth=1.5)
    styles = line_styles(rows, linestyle="none")
    for number, (name, values) in enumerate(rows.items()):
        found = np.asarray(values, dtype=float)
        axes.plot(found, np.full(found.size, -number), **styles[name], alpha=0.6, markersize=6.5)
        place = [-number - 0.3, -number + 0.3]
        axes.plot([found.mean()] * 2, place, color=styles[name]["color"], linewidth=3)
    axes.set_yticks(-np.arange(len(rows)), list(rows))
    axes.set_ylim(-len(rows) + 0.4, 0.6)
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="x")
    axes.set_xlabel(label)
    return figure
