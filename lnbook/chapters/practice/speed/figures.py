"""The figures for the chapter on speed."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from lnbook.notebook.style import COLORS, INK, MUTED, WIDTH, line_style

__all__ = ["counted_and_measured", "ratios", "roofline"]

TICKS = (0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500)

# A ratio, and the two values that bound the middle half of the rounds.
Spread = tuple[float, float, float]


def roofline(bandwidth: float, peak: float, points: Mapping[str, tuple[float, float]]) -> Figure:
    """Draw a roofline (the limits of memory and arithmetic) and the speeds reached under it.

    Args:
        bandwidth: how fast memory moves data, in 1e9 bytes per second.
        peak: the processor's top speed, in 1e9 operations per second.
        points: for each point, its label, the operations per byte, and the speed it reached, in
            1e9 operations per second.

    Returns:
        One panel with two logarithmic scales.

    Raises:
        ValueError: a number is not positive, or there are no points.

    Example:
        >>> figure = roofline(50.0, 200.0, {"LayerNorm": (1.0, 40.0)})
        >>> figure.axes[0].lines[0].get_xydata()[1].tolist()  # the corner of the roof
        [4.0, 200.0]
    """
    if not points:
        raise ValueError("roofline: expected at least one point, but got none")
    numbers = [bandwidth, peak, *(number for point in points.values() for number in point)]
    if min(numbers) <= 0:
        raise ValueError(f"roofline: expected positive numbers, but got {min(numbers)}")
    figure = Figure(figsize=(WIDTH, 4.4))
    axes = figure.subplots()
    ridge = peak / bandwidth
    left = min(intensity for intensity, _ in points.values()) / 2.5
    right = max(ridge, *(intensity for intensity, _ in points.values())) * 2.5
    axes.plot([left, ridge, right], [left * bandwidth, peak, peak], color=INK, label="the roof")
    axes.plot(
        [ridge, ridge], [left * bandwidth / 4, peak], color=MUTED, linestyle=":", linewidth=1.2
    )
    for number, (label, point) in enumerate(points.items()):
        axes.plot(
            *point,
            **line_style(number, linestyle="none"),
            markersize=7.5,
            label=label,
        )
    axes.set(xscale="log", yscale="log", xlim=(left, right))
    axes.set(xlabel="operations per byte", ylabel="10⁹ operations per second")
    axes.grid()
    _plain_ticks(axes, "xy")
    figure.legend(loc="outside lower center", ncols=1)
    return figure


def counted_and_measured(rows: Mapping[str, tuple[float, float]], unit: str) -> Figure:
    """Draw what was counted and what was measured for several versions, in the same unit.

    Args:
        rows: for each version, its name, the count and the measurement.
        unit: what the counts and measurements are multiples of.

    Returns:
        A row for each version, on a logarithmic scale: an open circle for the count, a filled
        square for the measurement, and a line from one to the other.

    Raises:
        ValueError: there are no rows.

    Example:
        >>> figure = counted_and_measured({"plain": (4.0, 4.5), "native": (1.0, 2.5)}, "copies")
        >>> [line.get_xdata().tolist() for line in figure.axes[0].lines]
        [[4.0, 1.0], [4.5, 2.5]]
    """
    if not rows:
        raise ValueError("counted_and_measured: expected at least one row, but got none")
    figure = Figure(figsize=(WIDTH, 0.42 * len(rows) + 1.2))
    axes = figure.subplots()
    places = -np.arange(len(rows), dtype=float)
    counted, measured = np.array(list(rows.values()), dtype=float).T
    axes.hlines(places, counted, measured, color=MUTED, linewidth=1.5)
    for values, marker, color, fill, label in (
        (counted, "o", COLORS["first"], "white", "counted"),
        (measured, "s", COLORS["second"], COLORS["second"], "measured"),
    ):
        axes.plot(
            values,
            places,
            linestyle="none",
            marker=marker,
            color=color,
            markerfacecolor=fill,
            markersize=8,
            label=label,
        )
    axes.set_yticks(places, list(rows))
    axes.set_ylim(-len(rows) + 0.4, 0.6)
    axes.tick_params(axis="y", length=0)
    axes.set(xscale="log", xlabel=unit)
    axes.grid(axis="x")
    _plain_ticks(axes, "x")
    figure.legend(loc="outside upper center", ncols=2)
    return figure


def ratios(panels: Mapping[str, Mapping[str, Mapping[str, Spread]]], unit: str) -> Figure:
    """Draw ratios with their spread: one row per version, one marker per setting.

    Args:
        panels: the panels, keyed by title. Each contains settings, keyed by name, and each setting
            contains versions, keyed by name, with a ratio and the ends of its spread. All settings
            in a panel have the same versions.
        unit: what the ratios are multiples of.

    Returns:
        Panels stacked vertically on a common logarithmic scale, with a line at 1.

    Raises:
        ValueError: there are no panels, or the settings of a panel have different versions.

    Example:
        >>> forms = {"native": (1.0, 1.0, 1.0), "compiled": (0.8, 0.75, 0.9)}
        >>> figure = ratios({"forward": {"float32": forms}}, "of native")
        >>> figure.axes[0].lines[0].get_xdata().tolist()
        [1.0, 0.8]
    """
    if not panels:
        raise ValueError("ratios: expected at least one panel, but got none")
    for title, settings in panels.items():
        kinds = sorted({tuple(forms) for forms in settings.values()})
        if len(kinds) != 1:
            raise ValueError(
                f"ratios: expected the same forms for all settings of {title!r}, but got {kinds}"
            )
    heights = [0.46 * len(next(iter(settings.values()))) + 0.5 for settings in panels.values()]
    figure = Figure(figsize=(WIDTH, sum(heights) + 0.8))
    all_axes = figure.subplots(
        len(panels), 1, sharex=True, squeeze=False, gridspec_kw={"height_ratios": heights}
    )[:, 0]
    for axes, (title, settings) in zip(all_axes, panels.items(), strict=True):
        for number, forms in enumerate(settings.values()):
            shift = 0.22 * ((len(settings) - 1) / 2 - number)
            _ratio_rows(axes, forms, shift, number)
        names = list(next(iter(settings.values())))
        axes.set_yticks(-np.arange(len(names)), names)
        axes.set_ylim(-len(names) + 0.4, 0.6)
        axes.tick_params(axis="y", length=0)
        axes.set_title(title)
        axes.set_xscale("log")
        axes.axvline(1.0, color=INK, linewidth=0.9)
        axes.grid(axis="x")
        _plain_ticks(axes, "x")
    all_axes[-1].set_xlabel(unit)
    labels = list(next(iter(panels.values())))
    handles = all_axes[0].get_lines()[: len(labels)]
    figure.legend(handles, labels, loc="outside upper center", ncols=min(len(labels), 3))
    return figure


def _ratio_rows(axes: Axes, forms: Mapping[str, Spread], shift: float, number: int) -> None:
    middle, low, high = np.array(list(forms.values()), dtype=float).T
    places = shift - np.arange(len(forms))
    style = line_style(number, linestyle="none")
    axes.plot(middle, places, **style, markersize=6.5)
    axes.hlines(places, low, high, color=style["color"], linewidth=2.5)


def _plain_ticks(axes: Axes, which: str) -> None:
    """Label the ticks 1, 2, 5, 10 and so on, without exponents."""
    for name in which:
        axis = axes.xaxis if name == "x" else axes.yaxis
        axis.set_major_locator(FixedLocator(TICKS))
        axis.set_minor_locator(NullLocator())
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
