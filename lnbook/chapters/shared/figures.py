"""Figures that several chapters use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike, NDArray

from lnbook.chapters.shared.drawing import HALO
from lnbook.chapters.shared.line_labels import label_lines
from lnbook.notebook.style import COLORS, INK, WIDTH, line_styles

__all__ = ["over_steps", "seed_dots", "stages"]

Array = NDArray[np.float64]


def seed_dots(panels: Mapping[str, Mapping[str, Sequence[float]]], label: str) -> Figure:
    """Draw the results of several runs, with one point per run.

    Args:
        panels: a title for each panel, and the results of each kind of run, keyed by name.
        label: the label of the x-axis.

    Returns:
        Panels stacked vertically on a common scale. Each kind of run gets a row, with a point for
        each run and a bar at their mean.

    Raises:
        ValueError: there are no panels.

    Example:
        >>> figure = seed_dots({"digits": {"LN": [0.5, 0.75], "none": [0.25, 0.5]}}, "loss")
        >>> [label.get_text() for label in figure.axes[0].get_yticklabels()]
        ['LN', 'none']
    """
    if not panels:
        raise ValueError("seed_dots: expected at least one panel, but got none")
    most = max(len(kinds) for kinds in panels.values())
    figure = Figure(figsize=(WIDTH, (0.42 * most + 0.55) * len(panels) + 0.4))
    all_axes = figure.subplots(len(panels), 1, sharex=True, squeeze=False)[:, 0]
    for axes, (title, kinds) in zip(all_axes, panels.items(), strict=True):
        styles = line_styles(kinds, linestyle="none")
        for number, (name, results) in enumerate(kinds.items()):
            _seed_row(axes, np.asarray(results, dtype=float), -number, styles[name])
        axes.set_yticks(-np.arange(len(kinds)), list(kinds))
        axes.set_ylim(-len(kinds) + 0.4, 0.6)
        axes.tick_params(axis="y", length=0)
        axes.set_title(title)
        axes.grid(axis="x")
    all_axes[-1].set_xlabel(label)
    return figure


def _seed_row(axes: Axes, results: Array, place: float, style: dict[str, Any]) -> None:
    axes.plot(results, np.full(results.size, place), **style, alpha=0.6, markersize=6.5)
    mean = [results.mean()] * 2
    axes.plot(mean, [place - 0.3, place + 0.3], color=style["color"], linewidth=3)


def stages(values: Mapping[str, ArrayLike]) -> Figure:
    """Draw one row at several stages of a calculation.

    Args:
        values: a title for each stage, and the features' values at that stage, shape `(H,)`.

    Returns:
        Panels stacked vertically, with a labeled bar for each feature and a dashed line at the
        mean of the row. The first two panels share a scale, the next two share another, and so on.

    Raises:
        ValueError: there are no stages, or they differ in length.

    Example:
        >>> figure = stages({"input": [4.0, 2.0, 9.0], "centered": [-1.0, -3.0, 4.0]})
        >>> [[float(bar.get_height()) for bar in axes.patches] for axes in figure.axes]
        [[4.0, 2.0, 9.0], [-1.0, -3.0, 4.0]]
    """
    rows = {title: np.asarray(row, dtype=float) for title, row in values.items()}
    if not rows or len({row.shape for row in rows.values()}) != 1:
        shapes = [row.shape for row in rows.values()]
        raise ValueError(
            f"stages: expected at least one row, all of the same shape, but got {shapes}"
        )
    figure = Figure(figsize=(WIDTH, 1.5 * len(rows) + 0.4))
    panels = figure.subplots(len(rows), 1, sharex=True, squeeze=False)[:, 0]
    listed = list(rows.items())
    for number, (axes, (title, row)) in enumerate(zip(panels, listed, strict=True)):
        _bars(axes, title, row)
        start = number - number % 2
        axes.set_ylim(_limits([values for _, values in listed[start : start + 2]]))
    panels[-1].set_xlabel("feature")
    return figure


def _limits(rows: list[NDArray[np.float64]]) -> tuple[float, float]:
    """Limits that leave room for all bars, the line at zero and the numbers."""
    lowest = min(0.0, *(float(row.min()) for row in rows))
    highest = max(0.0, *(float(row.max()) for row in rows))
    space = 0.3 * (highest - lowest)
    return lowest - space, highest + space


def _bars(axes: Axes, title: str, row: NDArray[np.float64]) -> None:
    features = np.arange(1, row.size + 1)
    mean = _mean(row)
    axes.bar(features, row, width=0.55, color=COLORS["first"])
    axes.plot([0.5, row.size + 0.5], [0, 0], color=INK, linewidth=0.8)
    axes.plot(
        [0.5, row.size + 0.5], [mean] * 2, color=COLORS["second"], linewidth=1.4, linestyle="--"
    )
    for feature, value in zip(features, row, strict=True):
        above = value >= 0
        axes.annotate(
            _two_decimals(value),
            (feature, value),
            xytext=(0, 3 if above else -3),
            textcoords="offset points",
            ha="center",
            va="bottom" if above else "top",
            fontsize=10.5,
            path_effects=HALO,
        )
    axes.text(
        row.size + 0.55,
        mean,
        f"mean {_two_decimals(mean)}",
        color=COLORS["second"],
        fontsize=10.5,
        va="center",
    )
    axes.set_title(title)
    axes.set_xticks(features)
    axes.set_xlim(0.5, row.size + 1.1)


def _mean(row: NDArray[np.float64]) -> float:
    """The mean, or 0 if it's only rounding error."""
    return round(float(row.mean()), 12)


def _two_decimals(value: float) -> str:
    text = f"{round(value, 2) + 0.0:.2f}"  # + 0.0 turns -0.0 into 0.0
    return text.replace("-", "\N{MINUS SIGN}")


def over_steps(
    panels: Mapping[str, Mapping[str, ArrayLike]],
    *,
    log: Sequence[str] = (),
    xlabel: str = "step",
    first: int = 0,
) -> Figure:
    """Draw quantities over the steps of a sequence, with a band for the range over runs.

    Args:
        panels: a title for each panel, and its values of shape `(runs, steps)`, keyed by name.
        log: the titles of the panels with a logarithmic scale.
        xlabel: the label of the x-axis.
        first: the number of the first step.

    Returns:
        Panels stacked vertically. Each line is the mean over the runs (the geometric mean on a
        logarithmic scale), and its band reaches from the smallest to the largest run. If there
        are several lines, each has its label at its end.

    Raises:
        ValueError: there are no panels, or values have the wrong shape.

    Example:
        >>> figure = over_steps({"cell state": {"Ba": [[1.0, 2.0, 3.0], [1.0, 4.0, 5.0]]}})
        >>> figure.axes[0].lines[0].get_ydata().tolist()
        [1.0, 3.0, 4.0]
    """
    if not panels:
        raise ValueError("over_steps: expected at least one panel, but got none")
    figure = Figure(figsize=(WIDTH, 2.35 * len(panels) + 0.4))
    rows = figure.subplots(len(panels), 1, sharex=True, squeeze=False)[:, 0]
    for axes, (title, lines) in zip(rows, panels.items(), strict=True):
        styles = line_styles(lines)
        for number, (name, values) in enumerate(lines.items()):
            runs = np.asarray(values, dtype=float)
            if runs.ndim != 2:
                raise ValueError(
                    f"over_steps: expected values of shape (runs, steps), but got {runs.shape}"
                )
            steps = np.arange(first, first + runs.shape[1])
            middle = np.exp(np.log(runs).mean(0)) if title in log else runs.mean(0)
            style = styles[name] if len(lines) > 1 else {**styles[name], "marker": ""}
            axes.fill_between(
                steps, runs.min(0), runs.max(0), color=style["color"], alpha=0.2, linewidth=0
            )
            axes.plot(
                steps,
                middle,
                **style,
                markersize=5,
                markevery=(number * 4, max(1, len(steps) // 8)),
                label=name,
            )
        if title in log:
            axes.set_yscale("log")
        axes.set_title(title)
        axes.grid()
    rows[-1].set_xlabel(xlabel)
    if len(next(iter(panels.values()))) > 1:
        label_lines(figure)
    return figure
