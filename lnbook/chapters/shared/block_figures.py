"""Figures that show which entries share a mean: blocks of cells, and outputs that changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Polygon, Rectangle
from numpy.typing import ArrayLike, NDArray

from lnbook.notebook.style import COLORS, INK, MUTED, WIDTH

__all__ = ["blocks", "moved"]

DEPTH = np.array([0.48, 0.4])  # one step toward the back goes this far right and up


def blocks(
    panels: Mapping[str, ArrayLike],
    names: Sequence[str],
    notes: Sequence[str] | None = None,
) -> Figure:
    """Draw an array as a block of cells, and color the cells that share one mean.

    Args:
        panels: a title and a boolean array for each panel. The three axes of the array go from
            front to back, top to bottom and left to right; only the front, top and right faces
            are visible. An array with four axes is drawn as blocks side by side, one for each
            index of the first axis. All panels need the same number of axes.
        names: the labels of the three axes. For four axes, the first name labels the blocks, and
            each block's number is appended.
        notes: text for each panel, next to a single block or below several.

    Returns:
        The panels, stacked vertically. Colored cells are hatched, too.

    Raises:
        ValueError: there are no panels, an array has the wrong number of axes, or the number of
            names or notes doesn't match.

    Example:
        >>> shares = np.zeros((2, 3, 4), dtype=bool)
        >>> shares[0, 1] = True  # the features of one token
        >>> figure = blocks({"LayerNorm": shares}, ["batch", "length", "features"])
        >>> [text.get_text() for text in figure.axes[0].texts[:3]]
        ['batch', 'length', 'features']
    """
    masks = {title: np.asarray(mask, dtype=bool) for title, mask in panels.items()}
    notes = [""] * len(masks) if notes is None else list(notes)
    dimensions = {mask.ndim for mask in masks.values()}
    if dimensions not in ({3}, {4}):
        shapes = [mask.shape for mask in masks.values()]
        raise ValueError(
            f"blocks: expected at least one array of three axes, or of four, but got {shapes}"
        )
    (wanted,) = dimensions
    if len(names) != wanted or len(notes) != len(masks):
        raise ValueError(
            f"blocks: expected {wanted} names and {len(masks)} notes, but got {len(names)} and "
            f"{len(notes)}"
        )
    figure = Figure(figsize=(WIDTH, (1.95 if wanted == 3 else 2.2) * len(masks)))
    all_axes = figure.subplots(len(masks), 1, squeeze=False)[:, 0]
    for axes, (title, mask), note in zip(all_axes, masks.items(), notes, strict=True):
        if wanted == 3:
            _block(axes, mask, names)
            axes.text(8.6, mask.shape[1] / 2 + 0.5, note, va="center", linespacing=1.6)
            axes.set(xlim=(-0.9, 17.5), ylim=(-0.9, 5.9))
        else:
            _blocks_side_by_side(axes, mask, names, note)
        axes.set(aspect="equal")
        axes.set_title(title)
        axes.axis("off")
    return figure


def _blocks_side_by_side(
    axes: Axes, mask: NDArray[np.bool_], names: Sequence[str], note: str
) -> None:
    first, *others = names
    step = 7.4
    for number, block in enumerate(mask):
        _block(axes, block, others, left=step * number)
        axes.text(step * number + 2.5, -1.5, f"{first} {number + 1}", ha="center", va="top")
    axes.text(-0.9, -3.1, note, va="top", linespacing=1.5)
    axes.set(xlim=(-0.9, step * len(mask)), ylim=(-4.4, 5.4))


def _block(axes: Axes, mask: NDArray[np.bool_], names: Sequence[str], left: float = 0.0) -> None:
    back, down, right = mask.shape
    width = 5.0 / right  # every block has the same width, no matter how many cells it has
    height = 4.0 / down
    depth = DEPTH * 3.0 / back
    top = np.array([left, 4.0])

    def point(n: float, row: float, column: float) -> NDArray[np.float64]:
        corner: NDArray[np.float64] = top + n * depth + np.array([column * width, -row * height])
        return corner

    for row in range(down):
        for column in range(right):
            corners = [point(0, row + a, column + b) for a, b in ((0, 0), (0, 1), (1, 1), (1, 0))]
            _face(axes, corners, colored=bool(mask[0, row, column]))
    for n in range(back):
        for column in range(right):
            corners = [point(n + a, 0, column + b) for a, b in ((0, 0), (0, 1), (1, 1), (1, 0))]
            _face(axes, corners, colored=bool(mask[n, 0, column]))
        for row in range(down):
            corners = [point(n + a, row + b, right) for a, b in ((0, 0), (1, 0), (1, 1), (0, 1))]
            _face(axes, corners, colored=bool(mask[n, row, right - 1]))
    first, second, third = names
    x, y = point(back / 2, down, right)
    axes.text(x + 0.3, y - 0.25, first, ha="left", va="top")
    axes.text(left - 0.3, 2.0, second, ha="right", va="center")
    axes.text(left + 2.5, -0.2, third, ha="center", va="top")


def _face(axes: Axes, corners: Sequence[NDArray[np.float64]], *, colored: bool) -> None:
    axes.add_patch(
        Polygon(
            np.array(corners),
            facecolor=COLORS["highlight" if colored else "surface"],
            edgecolor="white" if colored else MUTED,
            hatch="///" if colored else None,
            linewidth=0.6,
        )
    )


def moved(panels: Mapping[str, ArrayLike], changed: tuple[int, int, int]) -> Figure:
    """Show which outputs of a layer changed when one entry of its input changed.

    Args:
        panels: a title and a boolean array of shape `(N, L, D)` for each panel, drawn as N grids
            side by side with L rows and D columns each.
        changed: the index of the entry that changed, marked with a frame.

    Returns:
        The panels, stacked vertically. Outputs that changed are filled and have a dot.

    Raises:
        ValueError: there are no panels, or the arrays differ in shape or don't have three axes.
        IndexError: `changed` is outside the arrays.

    Example:
        >>> outputs = np.zeros((2, 3, 4), dtype=bool)
        >>> outputs[0, 1] = True  # the features of one token
        >>> figure = moved({"LayerNorm": outputs}, changed=(0, 1, 2))
        >>> len(figure.axes[0].lines)  # dots
        4
    """
    masks = {title: np.asarray(mask, dtype=bool) for title, mask in panels.items()}
    shapes = sorted({mask.shape for mask in masks.values()})
    if len(shapes) != 1 or len(shapes[0]) != 3:
        raise ValueError(f"moved: expected arrays of the same shape (N, L, D), but got {shapes}")
    sequences, tokens, features = shapes[0]
    if not all(0 <= i < size for i, size in zip(changed, shapes[0], strict=True)):
        raise IndexError(
            f"moved: expected changed to be a place, but got {changed}, which lies outside an "
            f"array of shape {shapes[0]}"
        )
    figure = Figure(figsize=(WIDTH, 1.42 * len(masks)))
    all_axes = figure.subplots(len(masks), 1, squeeze=False)[:, 0]
    for axes, (title, mask) in zip(all_axes, masks.items(), strict=True):
        for n in range(sequences):
            left = n * (features + 1.0)
            for token in range(tokens):
                for feature in range(features):
                    _entry(axes, left + feature, tokens - 1 - token, bool(mask[n, token, feature]))
            axes.text(
                left + features / 2, -0.2, f"sequence {n + 1}", ha="center", va="top", fontsize=10.5
            )
        n, token, feature = changed
        corner = (n * (features + 1.0) + feature, tokens - 1 - token)
        axes.add_patch(Rectangle(corner, 1, 1, facecolor="none", edgecolor=INK, linewidth=2.4))
        axes.set_title(title)
        axes.set(
            xlim=(-0.2, sequences * (features + 1.0) - 0.8),
            ylim=(-1.2, tokens + 0.1),
            aspect="equal",
        )
        axes.axis("off")
    return figure


def _entry(axes: Axes, x: float, y: float, has_moved: bool) -> None:
    face = COLORS["changed" if has_moved else "surface"]
    axes.add_patch(Rectangle((x, y), 1, 1, facecolor=face, edgecolor=MUTED, linewidth=0.6))
    if has_moved:
        axes.plot([x + 0.5], [y + 0.5], marker="o", markersize=2.5, color="white", linestyle="")
