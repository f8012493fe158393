"""Figures for the chapter that normalizes a matrix by columns and by rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from numpy.typing import ArrayLike, NDArray

from lnbook.notebook.style import COLORS, INK, WIDTH

__all__ = ["columns_and_rows", "signs"]

NAMES = (r"$\mu$", r"$\sigma^2$")
MOST = 8  # rows or columns; more would be unreadable on a phone

Array = NDArray[np.float64]


def columns_and_rows(x: ArrayLike, of_columns: ArrayLike, of_rows: ArrayLike) -> Figure:
    """Draw a matrix twice, once with its column statistics and once with its row statistics.

    Args:
        x: the matrix, shape `(N, H)`, at most 8 by 8.
        of_columns: mean and variance of each column, shape `(2, H)`.
        of_rows: mean and variance of each row, shape `(2, N)`.

    Returns:
        Two panels stacked vertically. Color and bold type mark the first column, the first row,
        and their means and variances.

    Raises:
        ValueError: if the shapes don't match.

    Example:
        >>> x = np.array([[1.0, 3.0], [5.0, 9.0]])
        >>> of_rows = np.stack([x.mean(1), x.var(1)])
        >>> figure = columns_and_rows(x, np.stack([x.mean(0), x.var(0)]), of_rows)
        >>> [text.get_text() for text in figure.axes[1].texts[-2:]]  # the variances of the rows
        ['1.00', '4.00']
    """
    matrix = _matrix(x, "columns_and_rows")
    rows, columns = matrix.shape
    down, along = np.asarray(of_columns, float), np.asarray(of_rows, float)
    if down.shape != (2, columns) or along.shape != (2, rows):
        raise ValueError(
            f"columns_and_rows: expected statistics of shapes {(2, columns)} and {(2, rows)}, "
            f"but got {down.shape} and {along.shape}"
        )
    heights = (rows + 2.6, rows + 1.3)
    figure = Figure(figsize=(WIDTH, 0.36 * sum(heights) + 0.8))
    upper, lower = figure.subplots(2, 1, height_ratios=heights)
    for axes in (upper, lower):
        axes.set(xlim=(-1.3, columns + 2.1))
        axes.axis("off")

    _table(upper, matrix, _entries(column=0), COLORS["batch_norm"])
    for order, name in enumerate(NAMES):
        height = rows + 0.3 + order
        upper.text(-0.75, height, name, ha="right", va="center")
        for column in range(columns):
            _number(
                upper, (column, height), down[order, column], "batch_norm" if column == 0 else "ink"
            )
    upper.set_title("BatchNorm: down each column")
    upper.set_ylim(rows + 1.9, -0.7)

    _table(lower, matrix, _entries(row=0), COLORS["layer_norm"])
    for order, name in enumerate(NAMES):
        place = columns + 0.1 + 1.25 * order
        lower.text(place, -1.0, name, ha="center", va="center")
        for row in range(rows):
            _number(lower, (place, row), along[order, row], "layer_norm" if row == 0 else "ink")
    lower.set_title("LayerNorm: along each row")
    lower.set_ylim(rows - 0.4, -1.7)
    return figure


def signs(panels: Mapping[str, ArrayLike], framed: Sequence[tuple[int, int]] = ()) -> Figure:
    """Draw normalized matrices as colored cells with their values, and frame some of them.

    Args:
        panels: the title of each panel and its matrix, shape `(N, H)`, at most 8 by 8.
        framed: row and column of each cell to frame in every panel.

    Returns:
        Panels stacked vertically, with positive values in blue and negative ones in orange.

    Raises:
        ValueError: if `panels` is empty, or the matrices differ in shape.
        IndexError: if a framed cell is outside the matrix.

    Example:
        >>> figure = signs({"by column": [[0.5, 0.25]], "by row": [[1.0, 0.75]]}, framed=[(0, 0)])
        >>> [[text.get_text() for text in axes.texts] for axes in figure.axes]
        [['0.50', '0.25'], ['1.00', '0.75']]
    """
    matrices = {title: _matrix(values, "signs") for title, values in panels.items()}
    shapes = sorted({matrix.shape for matrix in matrices.values()})
    if len(shapes) != 1:
        raise ValueError(f"signs: expected matrices of the same shape, but got {shapes}")
    ((rows, columns),) = shapes
    if not all(0 <= row < rows and 0 <= column < columns for row, column in framed):
        raise IndexError(
            f"signs: expected places to frame, but got {list(framed)}, one of which lies outside "
            f"a matrix of shape {shapes[0]}"
        )
    figure = Figure(figsize=(WIDTH, (0.45 * rows + 0.55) * len(matrices)))
    all_axes = figure.subplots(len(matrices), 1, squeeze=False)[:, 0]
    largest = max(float(np.abs(matrix).max()) for matrix in matrices.values())
    for axes, (title, matrix) in zip(all_axes, matrices.items(), strict=True):
        for row in range(rows):
            for column in range(columns):
                value = matrix[row, column]
                # pale enough for the number to be legible
                strength = 0.45 * abs(value) / largest if largest else 0.0
                color = COLORS["positive" if value > 0 else "negative"]
                axes.add_patch(
                    Rectangle(
                        (column, row), 1, 1, facecolor=color, alpha=strength, edgecolor="none"
                    )
                )
                axes.text(column + 0.5, row + 0.5, _signed(value), ha="center", va="center")
        for row, column in framed:
            axes.add_patch(
                Rectangle(
                    (column + 0.04, row + 0.06),
                    0.92,
                    0.88,
                    facecolor="none",
                    edgecolor=INK,
                    linewidth=1.8,
                )
            )
        axes.set_title(title)
        axes.set(xlim=(-0.05, columns + 0.05), ylim=(rows + 0.05, -0.05))
        axes.axis("off")
    return figure


def _matrix(values: ArrayLike, function: str) -> Array:
    matrix = np.asarray(values, dtype=float)
    if matrix.ndim != 2 or not 0 < min(matrix.shape) <= max(matrix.shape) <= MOST:
        raise ValueError(
            f"{function}: expected a matrix (N, H) of at most {MOST} by {MOST}, "
            f"but got shape {matrix.shape}"
        )
    return matrix


def _entries(row: int | None = None, column: int | None = None) -> Callable[[int, int], bool]:
    return lambda i, j: i == row or j == column


def _table(axes: Axes, matrix: Array, marked: Callable[[int, int], bool], color: str) -> None:
    for (row, column), value in np.ndenumerate(matrix):
        is_marked = marked(row, column)
        axes.add_patch(
            Rectangle(
                (column - 0.5, row - 0.5),
                1,
                1,
                facecolor=color if is_marked else COLORS["surface"],
                edgecolor="white",
                linewidth=1.5,
            )
        )
        axes.text(
            column,
            row,
            f"{value:g}",
            ha="center",
            va="center",
            color="white" if is_marked else INK,
            weight="bold" if is_marked else "normal",
        )


def _number(axes: Axes, place: tuple[float, float], value: float, color: str) -> None:
    axes.text(
        *place,
        f"{value:.2f}",
        ha="center",
        va="center",
        color=COLORS[color],
        weight="normal" if color == "ink" else "bold",
    )


def _signed(value: float) -> str:
    return f"{round(value, 2) + 0.0:.2f}".replace("-", "\N{MINUS SIGN}")
