"""Figures for the chapter on the Jacobian."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from lnbook.chapters.shared.line_labels import label_lines
from lnbook.notebook.style import COLORS, INK, MUTED, WIDTH, line_style, line_styles

__all__ = [
    "before_and_after",
    "eigenvalues_by_spread",
    "gradient_by_layer",
    "matrix",
    "spectrum",
    "weight_norms",
]


def matrix(values: ArrayLike) -> Figure:
    """Draw a matrix as colored cells with numbers.

    Args:
        values: shape `(H, H)`, H at most 8.

    Returns:
        The matrix: positive entries blue, negative ones orange, each with its number.

    Raises:
        ValueError: if the values don't form such a matrix.

    Example:
        >>> figure = matrix([[0.75, 0.25], [0.25, 0.75]])
        >>> [text.get_text() for text in figure.axes[0].texts]
        ['0.75', '0.25', '0.25', '0.75']
    """
    array = np.asarray(values, dtype=float)
    if array.ndim != 2 or array.shape[0] != array.shape[1] or not 0 < len(array) <= 8:
        raise ValueError(f"matrix: expected shape (H, H), H at most 8, but got {array.shape}")
    size = len(array)
    ends = COLORS["negative"], "white", COLORS["positive"]
    colors = LinearSegmentedColormap.from_list("signed", ends)
    figure = Figure(figsize=(WIDTH, WIDTH * 0.86))
    axes = figure.subplots()
    limit = 1.9 * np.abs(array).max()  # pale enough to keep the numbers readable
    axes.imshow(array, cmap=colors, vmin=-limit, vmax=limit)
    for row in range(size):
        for column in range(size):
            axes.text(column, row, _signed(array[row, column]), ha="center", va="center")
    axes.set_xticks(range(size), [f"{n + 1}" for n in range(size)])
    axes.set_yticks(range(size), [f"{n + 1}" for n in range(size)])
    axes.set(xlabel="input feature $j$", ylabel="normalized feature $i$")
    axes.tick_params(length=0)
    for spine in axes.spines.values():
        spine.set_visible(False)
    return figure


def _signed(value: float) -> str:
    return f"{round(value, 2) + 0.0:.2f}".replace("-", "\N{MINUS SIGN}")


def spectrum(eigenvalues: Mapping[str, ArrayLike]) -> Figure:
    """Draw the eigenvalues of several Jacobians in panels stacked vertically.

    Args:
        eigenvalues: for each panel, its title and the eigenvalues, shape `(H,)`, smallest first.

    Returns:
        A labeled stem for each eigenvalue. All panels have the same scale.

    Raises:
        ValueError: if there are no panels.

    Example:
        >>> figure = spectrum({"a row of four": [0.0, 0.125, 0.5, 0.5]})
        >>> [text.get_text() for text in figure.axes[0].texts]
        ['0.00', '0.12', '0.50', '0.50']
    """
    if not eigenvalues:
        raise ValueError("spectrum: expected at least one set of eigenvalues, but got none")
    figure = Figure(figsize=(WIDTH, 1.9 * len(eigenvalues) + 0.3))
    panels = figure.subplots(len(eigenvalues), 1, sharex=True, sharey=True, squeeze=False)[:, 0]
    for axes, (title, values) in zip(panels, eigenvalues.items(), strict=True):
        array = np.asarray(values, dtype=float)
        order = np.arange(1, array.size + 1)
        axes.vlines(order, 0, array, color=COLORS["first"], linewidth=3)
        axes.plot(order, array, "o", color=COLORS["first"], markersize=7)
        for place, value in zip(order, array, strict=True):
            axes.annotate(
                _signed(value),
                (place, value),
                xytext=(0, 7),
                textcoords="offset points",
                ha="center",
                fontsize=10.5,
            )
        axes.set_title(title)
        axes.set_xticks(order)
        axes.set_xlim(0.4, array.size + 0.6)
        axes.plot([0.4, array.size + 0.6], [0, 0], color=INK, linewidth=0.8)
    highest = max(float(np.max(values)) for values in eigenvalues.values())
    panels[0].set_ylim(-0.05 * highest, 1.35 * highest)
    panels[-1].set_xlabel("number of the eigenvalue, smallest first")
    return figure


def eigenvalues_by_spread(spread: ArrayLike, ordinary: ArrayLike, along: ArrayLike) -> Figure:
    r"""Plot the two nonzero eigenvalues of the Jacobian against the standard deviation of the row.

    Args:
        spread: standard deviations, shape `(K,)`.
        ordinary: the eigenvalue :math:`r` of most directions, shape `(K,)`.
        along: the eigenvalue :math:`r \epsilon / (v + \epsilon)` along :math:`\hat{x}`.

    Returns:
        Two lines, with logarithmic axes.

    Example:
        >>> figure = eigenvalues_by_spread([0.1, 1.0], [10.0, 1.0], [0.01, 0.00001])
        >>> [line.get_ydata().tolist() for line in figure.axes[0].lines[:2]]
        [[10.0, 1.0], [0.01, 1e-05]]
    """
    figure = Figure(figsize=(WIDTH, 3.3))
    axes = figure.subplots()
    labels = "$r$: most directions", r"$r\,ϵ/(\sigma^2+ϵ)$: along $\hat{x}$"
    for number, (label, values) in enumerate(zip(labels, (ordinary, along), strict=True)):
        axes.plot(spread, values, **line_style(number, marker=""), label=label)
    axes.set(
        xscale="log",
        yscale="log",
        xlabel=r"standard deviation $\sigma$ of the row",
        ylabel="eigenvalue",
    )
    axes.grid()
    axes.legend(loc="lower left")
    return figure


def before_and_after(panels: Mapping[str, tuple[ArrayLike, ArrayLike]]) -> Figure:
    """Draw gradients before and after they pass through LayerNorm, with a panel for each gradient.

    Args:
        panels: for each panel, its title, the arriving gradient and the outgoing gradient, both of
            shape `(H,)`.

    Returns:
        Panels with two bars for each feature, all with the same scale.

    Raises:
        ValueError: if there are no panels.

    Example:
        >>> figure = before_and_after({"one feature": ([1.0, 0.0, 0.0], [0.5, -0.25, -0.25])})
        >>> [float(bar.get_height()) for bar in figure.axes[0].patches]
        [1.0, 0.0, 0.0, 0.5, -0.25, -0.25]
    """
    if not panels:
        raise ValueError("before_and_after: expected at least one panel, but got none")
    figure = Figure(figsize=(WIDTH, 2.1 * len(panels) + 0.3))
    all_axes = figure.subplots(len(panels), 1, sharex=True, sharey=True, squeeze=False)[:, 0]
    for axes, (title, (before, after)) in zip(all_axes, panels.items(), strict=True):
        first, second = np.asarray(before, dtype=float), np.asarray(after, dtype=float)
        features = np.arange(1, first.size + 1)
        axes.bar(features - 0.2, first, width=0.36, color=MUTED, label="arrives: $g$")
        axes.bar(
            features + 0.2,
            second,
            width=0.36,
            color=COLORS["first"],
            hatch="///",
            edgecolor="white",
            linewidth=0,
            label=r"leaves: $Jg$",
        )
        axes.plot([0.4, first.size + 0.6], [0, 0], color=INK, linewidth=0.8)
        axes.set_title(title)
        axes.set_xticks(features)
        axes.set_xlim(0.4, first.size + 0.6)
        axes.grid(axis="y")
    all_axes[0].legend(loc="upper right")
    all_axes[-1].set_xlabel("feature")
    return figure


def gradient_by_layer(panels: Mapping[str, Mapping[str, ArrayLike]]) -> Figure:
    """Draw the norm of the gradient at each layer of deep networks.

    Args:
        panels: for each panel, its title and its lines. Each line has a label and log10 of the norm
            at each layer, shape `(L,)`, first layer first.

    Returns:
        Panels with the same scale.

    Raises:
        ValueError: if there are no panels.

    Example:
        >>> lines = {"LN": [0.0, -0.5, -1.0], "none": [0.0, -3.0, -6.0]}
        >>> figure = gradient_by_layer({"gain 1": lines})
        >>> [line.get_ydata().tolist() for line in figure.axes[0].lines[:2]]
        [[0.0, -0.5, -1.0], [0.0, -3.0, -6.0]]
    """
    if not panels:
        raise ValueError("gradient_by_layer: expected at least one panel, but got none")
    figure = Figure(figsize=(WIDTH, 2.5 * len(panels) + 0.3))
    all_axes = figure.subplots(len(panels), 1, sharex=True, sharey=True, squeeze=False)[:, 0]
    for axes, (title, lines) in zip(all_axes, panels.items(), strict=True):
        styles = line_styles(lines)
        for number, (label, values) in enumerate(lines.items()):
            array = np.asarray(values, dtype=float)
            axes.plot(
                np.arange(1, array.size + 1),
                array,
                **styles[label],
                markevery=(2 * number, 7),
                markersize=6,
                label=label,
            )
        axes.set(title=title, ylabel="$\\log_{10}$ of the norm")
        axes.grid()
    all_axes[-1].set_xlabel("layer (the gradient arrives from the right)")
    label_lines(figure)
    return figure


def weight_norms(norms: Mapping[str, ArrayLike]) -> Figure:
    """Draw the norm of a weight matrix during training.

    Args:
        norms: for each line, its label and the norms, shape `(steps + 1,)`.

    Returns:
        One line per label.

    Raises:
        ValueError: if there are no lines.

    Example:
        >>> figure = weight_norms({"SGD": [1.0, 1.25, 1.5]})
        >>> figure.axes[0].lines[0].get_ydata().tolist()
        [1.0, 1.25, 1.5]
    """
    if not norms:
        raise ValueError("weight_norms: expected at least one line, but got none")
    figure = Figure(figsize=(WIDTH, 3.2))
    axes = figure.subplots()
    styles = line_styles(norms)
    for label, values in norms.items():
        array = np.asarray(values, dtype=float)
        axes.plot(array, **styles[label], markevery=max(1, array.size // 6), label=label)
    axes.set(xlabel="step", ylabel=r"$\Vert W \Vert$")
    axes.grid()
    label_lines(figure)
    return figure
