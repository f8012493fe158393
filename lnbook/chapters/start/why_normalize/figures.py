"""Figures for "Why normalize?"."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Circle
from matplotlib.ticker import FuncFormatter, MaxNLocator, NullFormatter, NullLocator
from numpy.typing import ArrayLike, NDArray

from lnbook.chapters.shared.line_labels import label_lines
from lnbook.notebook.style import COLORS, INK, MUTED, WIDTH, concept, line_style, line_styles

__all__ = ["by_rate", "settings", "signals"]

Array = NDArray[np.float64]

LEVEL = (0, (1, 1.5))
RADIUS = 0.44  # the radius of a full disk, in cells of the grid


def settings(
    panels: Mapping[str, ArrayLike], factors: Sequence[float], rates: Sequence[float]
) -> Figure:
    """Draw how many networks learned at each setting, as a grid of disks.

    Args:
        panels: a title for each panel, which names a norm, and fractions from 0 to 1,
            shape `(F, R)`.
        factors: F sizes of the starting weights, from the smallest to the largest.
        rates: R learning rates.

    Returns:
        Panels side by side. Each setting gets a disk whose area shows its fraction, with a ring
        around it if the fraction is 1, or a cross if the fraction is 0.

    Raises:
        ValueError: there are no panels, or the fractions have the wrong shape.

    Example:
        >>> figure = settings({"no norm": [[0.0, 1.0]], "LayerNorm": [[1.0, 1.0]]}, [1.0], [0.1, 1])
        >>> [axes.get_title() for axes in figure.axes]
        ['no norm', 'LayerNorm']
    """
    if not panels:
        raise ValueError("settings: expected at least one panel, but got none")
    rows, columns = len(factors), len(rates)
    figure = Figure(figsize=(WIDTH, 0.34 * rows + 1.35))
    all_axes = figure.subplots(1, len(panels), sharey=True, squeeze=False)[0]
    for axes, (title, values) in zip(all_axes, panels.items(), strict=True):
        shares = np.asarray(values, dtype=float)
        if shares.shape != (rows, columns):
            raise ValueError(
                f"settings: expected shares of shape {(rows, columns)}, but got {shares.shape}"
            )
        color = COLORS[concept(title) or "first"]
        for (row, column), share in np.ndenumerate(shares):
            if share > 0:
                axes.add_patch(
                    Circle(
                        (column, row),
                        RADIUS * share**0.5,
                        facecolor=color,
                        edgecolor=INK if share == 1 else "none",
                        linewidth=1.6,
                    )
                )
            else:
                axes.plot([column], [row], marker="x", color=MUTED, markersize=3.5, mew=1.0)
        axes.set(
            title=title,
            xlim=(-0.6, columns - 0.4),
            ylim=(-0.6, rows - 0.4),
            aspect="equal",
            xlabel="learning rate",
        )
        axes.set_xticks(range(columns), [f"{rate:g}" for rate in rates], rotation=90)
        axes.set_yticks(range(rows), [f"{factor:g}" for factor in factors])
        axes.tick_params(length=0)
        axes.spines[:].set_visible(False)
    all_axes[0].set_ylabel("size of the starting weights")
    return figure


def signals(panels: Mapping[str, Mapping[str, ArrayLike]]) -> Figure:
    """Draw the size of the signal after each layer, on a logarithmic scale.

    Args:
        panels: a title for each panel and, for each line in it, a label and the sizes for all
            seeds, shape `(S, L + 1)`, starting with the input.

    Returns:
        Panels stacked vertically on a common scale. Each line is the geometric mean over the
        seeds, and its band reaches from the smallest to the largest.

    Raises:
        ValueError: there are no panels.

    Example:
        >>> figure = signals({"no norm": {"half": [[1.0, 0.5, 0.25]]}})
        >>> figure.axes[0].lines[0].get_ydata().round(2).tolist()
        [1.0, 0.5, 0.25]
    """
    if not panels:
        raise ValueError("signals: expected at least one panel, but got none")
    figure = Figure(figsize=(WIDTH, 2.4 * len(panels) + 0.4))
    all_axes = figure.subplots(len(panels), 1, sharex=True, sharey=True, squeeze=False)[:, 0]
    for axes, (title, lines) in zip(all_axes, panels.items(), strict=True):
        for number, (label, values) in enumerate(lines.items()):
            sizes = np.asarray(values, dtype=float)
            layers = np.arange(sizes.shape[1])
            style = line_style(number, markersize=5, markevery=(number, 6))
            axes.fill_between(
                layers, sizes.min(0), sizes.max(0), color=style["color"], alpha=0.18, linewidth=0
            )
            axes.plot(layers, np.exp(np.log(sizes).mean(0)), **style, label=label)
        axes.set(title=title, yscale="log", ylabel="size of the signal")
        axes.xaxis.set_major_locator(MaxNLocator(integer=True, steps=[1, 2, 5, 10]))
        axes.grid()
    all_axes[-1].set_xlabel("layer")
    label_lines(figure)
    return figure


def by_rate(
    panels: Mapping[str, Mapping[str, Mapping[float, Sequence[float]]]],
    levels: Mapping[str, float],
    top: float,
) -> Figure:
    """Plot the final losses of runs against their learning rates.

    Args:
        panels: a title for each panel and, for each line in it, a label and the losses of all seeds
            at each learning rate.
        levels: losses to compare with, keyed by name.
        top: losses above this, or not finite, are drawn as crosses at this height.

    Returns:
        Panels stacked vertically on a common scale, with a point for each run and a line through
        the means at the learning rates where no run is a cross.

    Raises:
        ValueError: there are no panels.

    Example:
        >>> lines = {"LayerNorm": {0.001: [2.5, 3.0]}, "no norm": {0.001: [2.5, float("inf")]}}
        >>> figure = by_rate({"small": lines}, {"guessing": 3.25}, top=4.0)
        >>> [line.get_ydata().tolist() for line in figure.axes[0].lines[:2]]
        [[2.75], [2.5, 3.0]]
    """
    if not panels:
        raise ValueError("by_rate: expected at least one panel, but got none")
    figure = Figure(figsize=(WIDTH, 2.45 * len(panels) + 0.4))
    all_axes = figure.subplots(len(panels), 1, sharex=True, sharey=True, squeeze=False)[:, 0]
    for axes, (title, lines) in zip(all_axes, panels.items(), strict=True):
        rates = sorted({rate for losses in lines.values() for rate in losses})
        styles = line_styles(lines)
        for number, (label, losses) in enumerate(lines.items()):
            shift = 1.06 ** (2 * number - len(lines) + 1)  # side by side, not overlapping
            _runs(axes, label, losses, styles[label], top, shift)
        for name, level in levels.items():
            axes.axhline(level, color=MUTED, linestyle=LEVEL, linewidth=1.6)
            axes.text(rates[0], level, name, fontsize=10.5, va="bottom", color=INK)
        axes.set(title=title, xscale="log", ylabel="test loss")
        axes.set_xticks(rates, [f"{rate:g}" for rate in rates])
        axes.xaxis.set_minor_locator(NullLocator())
        axes.xaxis.set_minor_formatter(NullFormatter())
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axes.grid()
    all_axes[0].set_ylim(top=top + 0.08)
    all_axes[-1].set_xlabel("learning rate")
    label_lines(figure)
    return figure


def _runs(
    axes: Axes,
    label: str,
    losses: Mapping[float, Sequence[float]],
    style: dict[str, Any],
    top: float,
    shift: float,
) -> None:
    runs = [(rate * shift, loss) for rate in sorted(losses) for loss in losses[rate]]
    whole = [rate for rate in sorted(losses) if max(losses[rate]) <= top]
    means = [float(np.mean(losses[rate])) for rate in whole]
    if whole:
        axes.plot([rate * shift for rate in whole], means, **style, markersize=7, label=label)
    shown = [run for run in runs if run[1] <= top]
    points = {**style, "linestyle": "none"}
    axes.plot([x for x, _ in shown], [y for _, y in shown], **points, alpha=0.45, markersize=4.5)
    gone = [x for x, loss in runs if not loss <= top]
    crosses = {"color": style["color"], "linestyle": "none", "marker": "x", "markersize": 7}
    axes.plot(gone, [top] * len(gone), **crosses, label=None if whole else label)
