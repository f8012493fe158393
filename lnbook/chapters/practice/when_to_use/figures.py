"""The figures for the chapter on when to use LayerNorm."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch
from numpy.typing import ArrayLike

from lnbook.chapters.shared.drawing import arrow
from lnbook.chapters.shared.line_labels import label_lines
from lnbook.notebook.style import COLORS, INK, WIDTH, line_styles

__all__ = ["by_distance", "decision", "shares"]

LINE, GAP, PAD = 0.19, 0.3, 0.2  # inches: a line of text, between two boxes, inside a box
LEFT, MIDDLE, RIGHT = (0.03, 1.95), 2.42, (2.45, 4.57)  # inches from the left edge

MOST = 4  # lines


def decision(steps: Sequence[tuple[str, str]], otherwise: str) -> Figure:
    """Draw a decision guide: questions from top to bottom, each with advice on its right.

    Args:
        steps: for each question, its text and the advice if the answer is yes. Lines break only
            where the texts have line breaks.
        otherwise: the advice if every answer is no.

    Returns:
        Questions in boxes in the left column, numbered from 1, each with a "yes" arrow to its
        advice and a "no" arrow to the next question.

    Raises:
        ValueError: if there is no question.

    Example:
        >>> figure = decision([("Is it recurrent?", "Use LayerNorm.")], "Measure.")
        >>> [text.get_text() for text in figure.axes[0].texts][:2]
        ['1. Is it recurrent?', 'Use LayerNorm.']
    """
    if not steps:
        raise ValueError("decision: expected at least one question, but got none")
    heights = [LINE * (1 + max(q.count("\n"), a.count("\n"))) + PAD for q, a in steps]
    last = LINE * (1 + otherwise.count("\n")) + PAD
    total = sum(heights) + last + GAP * len(steps) + 0.06
    figure = Figure(figsize=(WIDTH, total))
    figure.set_layout_engine("none")  # positions are in inches
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(0, WIDTH), ylim=(0, total))
    axes.axis("off")
    top = total - 0.03

    def box(edges: tuple[float, float], upper: float, height: float, text: str, color: str) -> None:
        left, right = edges
        axes.add_patch(
            FancyBboxPatch(
                (left, upper - height),
                right - left,
                height,
                boxstyle="round,pad=0,rounding_size=0.07",
                facecolor="none",
                edgecolor=color,
                linewidth=1.6,
            )
        )
        axes.text(
            left + 0.08,
            upper - height / 2,
            text,
            va="center",
            ha="left",
            fontsize=10.5,
            linespacing=1.05,
            color=INK,
        )

    def answer(start: tuple[float, float], end: tuple[float, float], word: str) -> None:
        arrow(axes, start, end, linewidth=1.4, mutation_scale=10)
        down = start[0] == end[0]
        x, y = (start[0] + end[0]) / 2, (start[1] + end[1]) / 2
        axes.text(
            x + 0.07 if down else x - 0.02,
            y if down else y + 0.04,
            word,
            fontsize=10.5,
            color=INK,
            va="center" if down else "bottom",
            ha="left" if down else "center",
        )

    for number, ((question, advice), height) in enumerate(zip(steps, heights, strict=True), 1):
        box(LEFT, top, height, f"{number}. {question}", COLORS["first"])
        box(RIGHT, top, height, advice, COLORS["third"])
        answer((LEFT[1], top - height / 2), (MIDDLE, top - height / 2), "yes")
        middle = sum(LEFT) / 2
        answer((middle, top - height), (middle, top - height - GAP + 0.02), "no")
        top -= height + GAP
    box((LEFT[0], RIGHT[1]), top, last, otherwise, COLORS["third"])
    return figure


def shares(percent: Mapping[str, float]) -> Figure:
    """Draw several percentages as bars on a logarithmic scale.

    Args:
        percent: for each bar, its label and the percentage, more than 0 and at most 100.

    Returns:
        A labeled bar for each percentage.

    Raises:
        ValueError: if there is no bar, or a percentage is out of range.

    Example:
        >>> figure = shares({"parameters": 0.04, "memory": 10.0})
        >>> [round(float(bar.get_x() + bar.get_width()), 2) for bar in figure.axes[0].patches]
        [0.04, 10.0]
    """
    if not percent or not all(0 < value <= 100 for value in percent.values()):
        raise ValueError(f"shares: expected numbers above 0 and up to 100, but got {dict(percent)}")
    figure = Figure(figsize=(WIDTH, 0.62 * len(percent) + 0.75))
    axes = figure.subplots()
    least = 10.0 ** np.floor(np.log10(min(percent.values())))
    places = -np.arange(len(percent), dtype=float)
    for place, (label, value) in zip(places, percent.items(), strict=True):
        axes.barh(place, value - least, left=least, height=0.34, color=COLORS["first"])
        axes.text(least * 1.05, place + 0.22, label, va="bottom", ha="left", fontsize=11)
        axes.text(value * 1.12, place, f"{value:.2g} %", va="center", ha="left", fontsize=11)
    axes.set(xscale="log", xlim=(least, 130), ylim=(places[-1] - 0.35, 0.62))
    axes.set_xticks([10.0**k for k in range(int(np.log10(least)), 3)])
    axes.set_xticklabels([f"{10.0**k:g}" for k in range(int(np.log10(least)), 3)])
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)
    axes.set_xlabel("norms, in percent of the total (log scale)")
    axes.grid(axis="x")
    return figure


def by_distance(lines: Mapping[str, ArrayLike], distances: Sequence[float], label: str) -> Figure:
    """Draw positive values against the distance of the inputs, both on logarithmic scales.

    Args:
        lines: for each line, its label and its values, shape `(S, K)`, one row per run.
        distances: K factors that the inputs are multiplied by.
        label: the label of the vertical axis.

    Returns:
        For each, a line through the means, with a band from the smallest to the largest run.

    Raises:
        ValueError: if there are no lines or more than four, or a shape doesn't fit.

    Example:
        >>> figure = by_distance({"plain": [[1.0, 10.0], [3.0, 30.0]]}, [1, 10], "value")
        >>> figure.axes[0].lines[0].get_ydata().tolist()
        [2.0, 20.0]
    """
    arrays = {name: np.asarray(values, dtype=float) for name, values in lines.items()}
    wrong = [a.shape for a in arrays.values() if a.ndim != 2 or a.shape[1] != len(distances)]
    if not 0 < len(arrays) <= MOST or wrong:
        raise ValueError(
            f"by_distance: expected 1 to {MOST} lines of shape (S, {len(distances)}), "
            f"but got {[a.shape for a in arrays.values()]}"
        )
    figure = Figure(figsize=(WIDTH, 2.9))
    axes = figure.subplots()
    styles = line_styles(arrays)
    for name, values in arrays.items():
        color = styles[name]["color"]
        axes.fill_between(distances, values.min(0), values.max(0), color=color, alpha=0.18, lw=0)
        axes.plot(distances, values.mean(0), **styles[name], label=name)
    axes.set(xscale="log", yscale="log", xlabel="factor applied to the inputs", ylabel=label)
    axes.grid()
    label_lines(figure)
    return figure
