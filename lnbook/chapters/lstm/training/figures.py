"""The figures for the chapter on training LSTMs."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter, NullLocator
from numpy.typing import ArrayLike

from lnbook.chapters.shared.line_labels import label_lines
from lnbook.notebook.style import INK, WIDTH, line_styles

__all__ = ["by_rate", "curves"]

LINES = ("none", "ba", "per-gate", "carried", "ba, gain 0.1")
APART = 0.025  # horizontal offset between lines, in units of log10


def _looks(names: Iterable[str]) -> dict[str, dict[str, Any]]:
    for name in names:
        if name not in LINES:
            raise ValueError(f"expected one of the lines {LINES}, but got {name!r}")
    return line_styles(names)


def curves(
    panels: Mapping[str, Mapping[str, tuple[ArrayLike, ArrayLike]]],
    *,
    label: str,
    log: bool = False,
    level: float | None = None,
) -> Figure:
    """Draw how scores change over the updates.

    Args:
        panels: for each panel, its title; for each line in it, its name, the updates `(T,)` and the
            scores `(S, T)` of all seeds.
        label: the name of the score.
        log: whether the score axis is logarithmic.
        level: a score to compare with, drawn as a line across all panels.

    Returns:
        Stacked panels on the same scale, with a line at the mean over the seeds and a band from
        the lowest to the highest.

    Raises:
        ValueError: `panels` is empty, or a line has an unknown name.

    Example:
        >>> lines = {"ba": ([10, 20], [[0.5, 0.7], [0.3, 0.9]])}  # two seeds
        >>> figure = curves({"digits": lines}, label="accuracy")
        >>> figure.axes[0].lines[0].get_ydata().round(2).tolist()
        [0.4, 0.8]
    """
    if not panels:
        raise ValueError("curves: expected at least one panel, but got none")
    figure = Figure(figsize=(WIDTH, 2.7 * len(panels) + 0.4))
    rows = figure.subplots(len(panels), 1, sharex=True, sharey=True, squeeze=False)[:, 0]
    for axes, (title, lines) in zip(rows, panels.items(), strict=True):
        styles = _looks(lines)
        for number, (name, (steps, scores)) in enumerate(lines.items()):
            color = styles[name]["color"]
            x, y = np.asarray(steps, dtype=float), np.asarray(scores, dtype=float)
            axes.fill_between(x, y.min(0), y.max(0), color=color, alpha=0.16, linewidth=0)
            every = (number % 2, 2)
            axes.plot(x, y.mean(0), **styles[name], markersize=6, markevery=every, label=name)
        if level is not None:
            axes.axhline(level, color=INK, linewidth=1.2)
        axes.set(title=title, ylabel=label)
        if log:
            _log_axis(axes)
        axes.grid()
    rows[-1].set_xlabel("updates")
    label_lines(figure)
    return figure


def by_rate(
    panels: Mapping[str, Mapping[str, Mapping[float, ArrayLike]]], *, log: Collection[str] = ()
) -> Figure:
    """Plot scores against the learning rate.

    Args:
        panels: for each panel, the name of its score; for each line in it, its name and the scores
            of all seeds, `(S,)`, keyed by learning rate.
        log: the panels that show scores on a logarithmic scale.

    Returns:
        Stacked panels, with lines through the means and a faint point for each run.

    Raises:
        ValueError: `panels` is empty, or a line has an unknown name.

    Example:
        >>> figure = by_rate({"accuracy": {"ba": {0.01: [0.6, 0.8], 0.03: [0.7, 0.7]}}})
        >>> figure.axes[0].lines[-1].get_ydata().round(2).tolist()
        [0.7, 0.7]
    """
    if not panels:
        raise ValueError("by_rate: expected at least one panel, but got none")
    figure = Figure(figsize=(WIDTH, 3.0 * len(panels) + 0.4))
    rows = figure.subplots(len(panels), 1, sharex=True, squeeze=False)[:, 0]
    for axes, (title, lines) in zip(rows, panels.items(), strict=True):
        rates = sorted({rate for runs in lines.values() for rate in runs})
        styles = _looks(lines)
        for number, (name, runs) in enumerate(lines.items()):
            points = {**styles[name], "linestyle": "none"}
            known = sorted(runs)
            places = np.array(known) * 10 ** (APART * (number - (len(lines) - 1) / 2))
            scores = [np.asarray(runs[rate], dtype=float) for rate in known]
            for place, values in zip(places, scores, strict=True):
                axes.plot(np.full(values.size, place), values, **points, alpha=0.35, ms=4.5)
            means = [values.mean() for values in scores]
            axes.plot(places, means, **styles[name], ms=7, label=name)
        axes.set_xscale("log")
        axes.set_xticks(rates, [f"{rate:g}" for rate in rates])
        axes.xaxis.set_minor_locator(NullLocator())
        axes.set_title(title)
        if title in log:
            _log_axis(axes)
        axes.grid()
    rows[-1].set_xlabel("learning rate")
    label_lines(figure)
    return figure


def _log_axis(axes: Axes) -> None:
    axes.set_yscale("log")
    low, high = axes.get_ylim()
    ticks = [tick for tick in (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0) if low <= tick <= high]
    axes.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.yaxis.set_minor_formatter(NullFormatter())
    axes.yaxis.set_minor_locator(NullLocator())
