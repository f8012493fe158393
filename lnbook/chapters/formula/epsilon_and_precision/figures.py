"""Figures for "Choose epsilon, and keep your digits"."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike, NDArray

from lnbook.chapters.shared.line_labels import label_lines
from lnbook.notebook.style import MUTED, WIDTH, line_style

__all__ = ["spread", "stretch", "variance_errors"]

MOST = 4  # curves that can be told apart in one figure


def variance_errors(
    means: ArrayLike, errors: Mapping[str, ArrayLike], predicted: ArrayLike
) -> Figure:
    """Draw the error of a computed variance for rows with different means.

    Args:
        means: the means of the rows, positive, shape `(M,)`.
        errors: a label for each way to compute the variance, at most four, and its relative
            errors, positive, shape `(M,)`.
        predicted: the rounding errors predicted for the first way, shape `(M,)`.

    Returns:
        One line per way, a dotted line for the prediction, and a thin line where the error is as
        large as the variance; both scales are logarithmic.

    Raises:
        ValueError: there are no ways or more than four, or the shapes differ.

    Example:
        >>> errors = {"one pass": [1e-6, 1e-2], "two passes": [1e-7, 1e-7]}
        >>> figure = variance_errors([1.0, 100.0], errors, predicted=[1e-6, 1e-2])
        >>> [line.get_label() for line in figure.axes[0].lines[1:]]
        ['prediction', 'one pass', 'two passes']
    """
    x, curves = _curves(means, errors, "variance_errors")
    expected = np.asarray(predicted, dtype=float)
    if expected.shape != x.shape:
        raise ValueError(
            f"variance_errors: expected a prediction of shape {x.shape}, but got {expected.shape}"
        )
    figure = Figure(figsize=(WIDTH, 3.4))
    axes = figure.subplots()
    axes.axhline(1.0, color=MUTED, linewidth=0.9)
    axes.plot(x, expected, color=MUTED, linestyle=":", linewidth=1.6, label="prediction")
    for number, (label, values) in enumerate(curves.items()):
        axes.plot(x, values, **line_style(number, linestyle="-"), label=label)
    axes.set(xscale="log", yscale="log", xlabel="mean of the row (standard deviation 1)")
    axes.set_title("relative error of the variance")
    axes.grid()
    label_lines(figure)
    return figure


def spread(sigma: ArrayLike, outputs: Mapping[str, ArrayLike]) -> Figure:
    """Plot rows' standard deviations after normalization against those before it.

    Args:
        sigma: the standard deviations of the rows, positive, shape `(M,)`.
        outputs: a label for each epsilon, at most four, and the standard deviations of the
            normalized rows, shape `(M,)`.

    Returns:
        One line per epsilon on a logarithmic x-axis, and a thin line where the variance of the
        output is one half.

    Raises:
        ValueError: there are no epsilons or more than four, or the shapes differ.

    Example:
        >>> figure = spread([0.001, 1.0], {"1e-5": [0.302, 1.0]})
        >>> lines = {line.get_label(): line.get_ydata() for line in figure.axes[0].lines}
        >>> lines["1e-5"].tolist()
        [0.302, 1.0]
    """
    x, curves = _curves(sigma, outputs, "spread")
    figure = Figure(figsize=(WIDTH, 3.6))
    axes = figure.subplots()
    axes.axhline(np.sqrt(0.5), color=MUTED, linewidth=0.9)
    _lines(axes, x, curves)
    axes.set(xscale="log", xlabel=r"$\sigma$ of the row", ylim=(-0.03, 1.06))
    axes.set_title(r"standard deviation of $\hat{x}$")
    axes.grid()
    figure.legend(loc="outside lower center", ncols=2, handlelength=3.2)
    return figure


def stretch(sigma: ArrayLike, factors: Mapping[str, ArrayLike]) -> Figure:
    """Plot the largest factor by which LayerNorm stretches a small change in a row.

    Args:
        sigma: the standard deviations of the rows, positive, shape `(M,)`.
        factors: a label for each epsilon, at most four, and the factors, positive, shape
            `(M,)`.

    Returns:
        One line per epsilon; both scales are logarithmic.

    Raises:
        ValueError: there are no epsilons or more than four, or the shapes differ.

    Example:
        >>> figure = stretch([0.001, 1.0], {"1e-5": [302.0, 1.0]})
        >>> lines = {line.get_label(): line.get_ydata() for line in figure.axes[0].lines}
        >>> lines["1e-5"].tolist()
        [302.0, 1.0]
    """
    x, curves = _curves(sigma, factors, "stretch")
    figure = Figure(figsize=(WIDTH, 3.7))
    axes = figure.subplots()
    _lines(axes, x, curves)
    axes.set(xscale="log", yscale="log", xlabel=r"$\sigma$ of the row")
    axes.set_title("largest stretch of a small change")
    axes.grid()
    figure.legend(loc="outside lower center", ncols=2, handlelength=3.2)
    return figure


def _lines(axes: Axes, x: NDArray[np.float64], curves: Mapping[str, NDArray[np.float64]]) -> None:
    for number, (label, values) in enumerate(curves.items()):
        axes.plot(x, values, **line_style(number, marker=""), label=label)


def _curves(
    x: ArrayLike, curves: Mapping[str, ArrayLike], name: str
) -> tuple[NDArray[np.float64], dict[str, NDArray[np.float64]]]:
    """Read the curves of a figure and check their shapes."""
    along = np.asarray(x, dtype=float)
    read = {label: np.asarray(values, dtype=float) for label, values in curves.items()}
    shapes = [values.shape for values in read.values()]
    if along.ndim != 1 or not 0 < len(read) <= MOST or set(shapes) != {along.shape}:
        raise ValueError(
            f"{name}: expected one to {MOST} curves, all of the same shape (M,) as x, "
            f"but got {shapes} with x of shape {along.shape}"
        )
    return along, read
