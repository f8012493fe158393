"""The figures for the chapter on sequences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from numpy.typing import ArrayLike, NDArray

from lnbook.chapters.shared.line_labels import label_lines
from lnbook.notebook.style import COLORS, INK, MUTED, WIDTH, line_styles

__all__ = ["company", "guesses", "padding", "reach", "sentences"]

Array = NDArray[np.float64]


def sentences(words: Sequence[Sequence[str]], length: int) -> Figure:
    """Draw a batch of sentences, one box per position, padded to the same length.

    Args:
        words: the words of each sentence.
        length: the number of positions in each row. Those after the words are padding.

    Returns:
        One row of boxes per sentence, with hatched padding.

    Raises:
        ValueError: `words` is empty, or a sentence is longer than `length`.

    Example:
        >>> figure = sentences([["the", "cat", "sleeps"], ["it", "rains"]], length=4)
        >>> [text.get_text() for text in figure.axes[0].texts]
        ['the', 'cat', 'sleeps', 'it', 'rains']
    """
    if not words or max(len(row) for row in words) > length:
        raise ValueError(
            f"sentences: expected sentences of at most {length} words, "
            f"but got lengths {[len(row) for row in words]}"
        )
    figure = Figure(figsize=(WIDTH, 0.46 * len(words) + 0.45))
    axes = figure.subplots()
    for number, row in enumerate(words):
        for place in range(length):
            real = place < len(row)
            axes.add_patch(
                Rectangle(
                    (place + 0.04, -number - 0.4),
                    0.92,
                    0.8,
                    facecolor=COLORS["pale"] if real else "none",
                    edgecolor=COLORS["highlight"] if real else MUTED,
                    hatch=None if real else "///",
                    linewidth=1.0,
                )
            )
            if real:
                axes.text(place + 0.5, -number, row[place], ha="center", va="center")
    axes.set(xlim=(-0.05, length + 0.05), ylim=(-len(words) + 0.45, 0.5))
    axes.set_xticks(np.arange(length) + 0.5, [str(place + 1) for place in range(length)])
    axes.set_yticks(-np.arange(len(words)), [str(number + 1) for number in range(len(words))])
    axes.set(xlabel="position $l$", ylabel="sentence $n$")
    axes.tick_params(length=0)
    for spine in axes.spines.values():
        spine.set_visible(False)
    return figure


def padding(places: ArrayLike, changes: Mapping[str, ArrayLike]) -> Figure:
    """Draw how much the outputs at real tokens change when padding is added.

    Args:
        places: how many positions were added, shape `(K,)`.
        changes: for each norm, its name and the largest change in an output, shape `(K,)`.

    Returns:
        One line per norm.

    Raises:
        ValueError: `changes` is empty.

    Example:
        >>> figure = padding([0, 4, 8], {"LN": [0.0, 0.0, 0.0], "BN": [0.0, 0.5, 0.75]})
        >>> [line.get_ydata().tolist() for line in figure.axes[0].lines]
        [[0.0, 0.0, 0.0], [0.0, 0.5, 0.75]]
    """
    if not changes:
        raise ValueError("padding: expected at least one norm, but got none")
    figure = Figure(figsize=(WIDTH, 3.0))
    axes = figure.subplots()
    styles = line_styles(changes)
    for number, (name, values) in enumerate(changes.items()):
        axes.plot(
            np.asarray(places, dtype=float),
            np.asarray(values, dtype=float),
            **styles[name] | ({"markerfacecolor": "none"} if number == 2 else {}),
            markersize=6 + 3 * (number == 2),  # the lines may overlap
            clip_on=False,
            zorder=3,
            label=name,
        )
    axes.set(xlabel="padded positions added to each row", ylabel="largest change")
    axes.set_ylim(bottom=0)
    axes.set_xlim(left=0)
    axes.grid()
    label_lines(figure)
    return figure


def company(outputs: Mapping[str, ArrayLike], constant: float) -> Figure:
    """Draw one output of a token in many batches.

    Args:
        outputs: for each batch size, its name and the output in every batch, shape `(K,)`.
        constant: the output with LayerNorm, which is the same in every batch.

    Returns:
        One row of strokes per batch size, and a line for LayerNorm.

    Raises:
        ValueError: `outputs` is empty.

    Example:
        >>> figure = company({"2 sentences": [0.4, 1.1, 0.7], "64 sentences": [0.8, 0.9, 0.8]}, 0.6)
        >>> [label.get_text() for label in figure.axes[0].get_yticklabels()]
        ['2 sentences', '64 sentences']
    """
    if not outputs:
        raise ValueError("company: expected at least one batch size, but got none")
    figure = Figure(figsize=(WIDTH, 0.42 * len(outputs) + 1.2))
    axes = figure.subplots()
    for number, values in enumerate(outputs.values()):
        array = np.asarray(values, dtype=float)
        axes.plot(
            array,
            np.full(array.size, -float(number)),
            "|",
            color=COLORS["batch_norm"],
            markersize=13,
            alpha=0.6,
            label="batch normalization" if number == 0 else None,
        )
    axes.axvline(constant, color=COLORS["layer_norm"], linewidth=2.5, label="LayerNorm")
    axes.set_yticks(-np.arange(len(outputs)), list(outputs))
    axes.set_ylim(-len(outputs) + 0.4, 0.6)
    axes.tick_params(axis="y", length=0)
    axes.set_xlabel("output of one feature of one token")
    axes.grid(axis="x")
    axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2)
    return figure


def reach(panels: Mapping[str, ArrayLike]) -> Figure:
    """Show which outputs change when one token of sentence 1 is replaced.

    Args:
        panels: for each model, its name and a boolean array of shape `(L, N, L)`, indexed by
            replaced position, sentence and position of the output, as `experiments.reach`
            returns it.

    Returns:
        One row of N grids per model, with one row of cells per replaced position. A cell that
        changed is filled and has a dot, or a cross if it's in the past or in another sentence.

    Raises:
        ValueError: `panels` is empty, or an array has a different shape.

    Example:
        >>> moved = np.zeros((3, 2, 3), dtype=bool)
        >>> moved[:, 0] = np.triu(np.ones((3, 3)))  # later places of the same sentence
        >>> figure = reach({"causal model": moved})
        >>> [len(axes.lines) for axes in figure.axes]  # dots in each sentence
        [6, 0]
    """
    arrays = {name: np.asarray(value, dtype=bool) for name, value in panels.items()}
    shapes = sorted({array.shape for array in arrays.values()})
    if len(shapes) != 1 or len(shapes[0]) != 3 or shapes[0][0] != shapes[0][2]:
        raise ValueError(f"reach: expected arrays of the same shape (L, N, L), but got {shapes}")
    length, count, _ = shapes[0]
    figure = Figure(figsize=(WIDTH, 2.05 * len(arrays)))
    all_axes = figure.subplots(len(arrays), count, squeeze=False)
    for row, (name, array) in zip(all_axes, arrays.items(), strict=True):
        for n, axes in enumerate(row):
            _grid(axes, array[:, n], allowed=n == 0)
            axes.set(xlim=(-0.05, length + 0.05), ylim=(-length - 0.05, 0.05), aspect="equal")
            if axes is not row[0]:
                axes.set_yticks([])
            axes.set_xlabel(f"output in sentence {n + 1}", fontsize=10.5)
        row[0].set_title(name)
        row[0].set_ylabel("replaced", fontsize=10.5)
    return figure


def _grid(axes: Axes, moved: NDArray[np.bool_], *, allowed: bool) -> None:
    length = len(moved)
    for changed in range(length):
        for place in range(length):
            fine = allowed and place >= changed
            meaning = ("highlight" if fine else "changed") if moved[changed, place] else "surface"
            axes.add_patch(
                Rectangle(
                    (place, -changed - 1),
                    1,
                    1,
                    facecolor=COLORS[meaning],
                    edgecolor="white",
                    linewidth=1,
                )
            )
            if moved[changed, place]:
                axes.plot(
                    [place + 0.5],
                    [-changed - 0.5],
                    marker="o" if fine else "x",
                    markersize=3.5 if fine else 5,
                    color="white",
                    linestyle="",
                )
    ticks = np.arange(length) + 0.5
    names = [str(number + 1) for number in range(length)]
    axes.set_xticks(ticks, names, fontsize=10.5)
    axes.set_yticks(-ticks, names, fontsize=10.5)
    axes.tick_params(length=0)
    for spine in axes.spines.values():
        spine.set_visible(False)


def guesses(losses: Mapping[str, ArrayLike]) -> Figure:
    """Draw how well coin flips are guessed at each position of a sequence.

    Args:
        losses: for each model, its name and its losses, shape `(runs, L)`. Pure guessing is 1.

    Returns:
        One line per model through the means of its runs, with bars from the best run to the worst,
        and a line at 1.

    Raises:
        ValueError: `losses` is empty.

    Example:
        >>> figure = guesses({"LN": [[1.0, 1.25], [0.5, 0.75]]})
        >>> figure.axes[0].lines[1].get_ydata().tolist()
        [0.75, 1.0]
    """
    if not losses:
        raise ValueError("guesses: expected at least one model, but got none")
    figure = Figure(figsize=(WIDTH, 3.5))
    axes = figure.subplots()
    axes.axhline(1.0, color=INK, linewidth=1.0)
    styles = line_styles(losses)
    for number, (name, values) in enumerate(losses.items()):
        array = np.asarray(values, dtype=float)
        mean = array.mean(axis=0)
        places = np.arange(1, mean.size + 1) + 0.06 * (number - (len(losses) - 1) / 2)
        low, high = array.min(axis=0), array.max(axis=0)
        axes.vlines(places, low, high, color=styles[name]["color"], linewidth=1.3)
        axes.plot(places, mean, **styles[name], markersize=6, label=name)
    axes.set(xlabel="position of the guess", ylabel="loss (1 is a pure guess)", ylim=(0, None))
    axes.set_xticks(np.arange(1, mean.size + 1))
    axes.grid(axis="y")
    axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2)
    return figure
