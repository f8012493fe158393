"""Describes what a figure shows in numbers and words, so that two figures can be compared.

Drawings of the same data differ in their last digits from one processor to another, but what they
show doesn't. So this module records what they show, to as many digits as are reproducible, and
comparisons use that instead of the drawing. Colors are identified by their names in the palette.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.axes._base import _AxesBase
from matplotlib.axis import Axis
from matplotlib.collections import Collection
from matplotlib.colors import to_hex, to_rgba, to_rgba_array
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.lines import Line2D
from matplotlib.patches import FancyArrowPatch, Patch
from matplotlib.text import Annotation, Text
from matplotlib.ticker import FixedFormatter, FuncFormatter
from matplotlib.transforms import Transform
from matplotlib.typing import ColorType
from numpy.typing import ArrayLike, NDArray

from lnbook.notebook.style import COLORS

__all__ = ["describe"]

DIGITS = 5  # for numbers that aren't on an axis
FINEST = 4  # digits relative to an axis's length: less than a tenth of a pixel in the drawing
# A mean of recorded numbers can be halfway between two positions, up to a rounding error.
# Rounding it to this many digits first makes sure that it's rounded the same way on every machine.
SETTLED = 10
NAMES = {drawn.lower(): name for name, drawn in COLORS.items()}


def describe(figure: Figure) -> dict[str, Any]:
    """List everything that a figure shows.

    Args:
        figure: a matplotlib figure.

    Returns:
        A JSON object: the size in inches, the figure's texts, and for each of its axes the labels,
        scales, limits, lines, shapes, points, images and texts. A color is given by its name in
        `lnbook.notebook.style.COLORS`, or in hexadecimal if it has none. A position on an axis is
        rounded to a ten-thousandth of the axis, or to four digits if the axis is logarithmic; other
        numbers are rounded to five digits relative to the largest in their array. Further digits
        are invisible and can differ between processors.

    Example:
        >>> figure = Figure()
        >>> lines = figure.subplots().plot([1, 2], [3.0, 4.0], color=COLORS["layer_norm"])
        >>> describe(figure)["axes"][0]["lines"][0]
        {'x': [1.0, 2.0], 'y': [3.0, 4.0], 'style': ['layer_norm', '-', 'None']}
    """
    return {
        "size in inches": rounded(figure.get_size_inches()),
        "title": figure.get_suptitle(),
        "texts": _texts(figure.texts),
        "shapes": [_shape(patch) for patch in figure.patches],
        "lines": [_line(line) for line in figure.lines],
        "axes": [_axes(axes) for axes in figure.axes],
    }


def rounded(values: ArrayLike) -> list[Any]:
    """Round an array to five digits relative to its largest value, and return nested lists.

    Args:
        values: real numbers of any shape, possibly masked; masked values count as NaN.

    Returns:
        Nested lists of floats; NaN and infinities become their names, since JSON doesn't have them.
    """
    array: NDArray[np.float64] = np.ma.filled(np.ma.asarray(values, dtype=float), np.nan)
    finite = np.abs(array[np.isfinite(array)])
    largest = float(finite.max()) if finite.size else 0.0
    decimals = DIGITS - 1 - math.floor(math.log10(largest)) if largest else 0
    nearest = np.round(array, decimals) + 0.0  # + 0.0 turns -0.0 into 0.0
    listed: list[Any] = _json(nearest.tolist())
    return listed


def placed(values: ArrayLike, axis: Axis) -> list[Any]:
    """Round positions on an axis to as many digits as are visible, as nested lists.

    Args:
        values: real numbers of any shape, possibly masked; masked values count as NaN.
        axis: the axis along which they are drawn.

    Returns:
        Nested lists of floats, rounded to a ten-thousandth of the axis; on a logarithmic axis, to
        four digits each. NaN and infinities become their names.
    """
    array: NDArray[np.float64] = np.ma.filled(np.ma.asarray(values, dtype=float), np.nan)
    if axis.get_scale() == "log":
        nearest = _to_digits(_to_digits(array, SETTLED), FINEST)
    else:
        start, end = axis.get_view_interval()
        places = FINEST - math.floor(math.log10(abs(end - start)))
        nearest = np.round(np.round(array, places + SETTLED - FINEST), places)
    listed: list[Any] = _json((nearest + 0.0).tolist())  # + 0.0 turns -0.0 into 0.0
    return listed


def _to_digits(array: NDArray[np.float64], digits: int) -> NDArray[np.float64]:
    round_one = np.vectorize(lambda value: float(f"{value:.{digits}g}"), otypes=[float])
    return np.asarray(round_one(array))


def _json(value: Any) -> Any:
    if isinstance(value, list):
        return [_json(item) for item in value]
    return value if math.isfinite(value) else str(value)


def _points_on(axes: _AxesBase | None, points: ArrayLike, transform: Transform) -> list[Any]:
    """Round an array of points; coordinates on an axis keep only the digits that are visible."""
    array: NDArray[np.float64] = np.ma.filled(np.ma.asarray(points, dtype=float), np.nan).reshape(
        -1, 2
    )
    if axes is None:
        return rounded(array)
    on_axes = transform.contains_branch_seperately(axes.transData)
    columns = [
        placed(column, axis) if on_axis else rounded(column)
        for column, axis, on_axis in zip(array.T, (axes.xaxis, axes.yaxis), on_axes, strict=True)
    ]
    return [list(point) for point in zip(*columns, strict=True)]


def _axes(axes: Axes) -> dict[str, Any]:
    legend = axes.get_legend()
    shown: dict[str, Any] = {
        "title": "".join(axes.get_title(loc) for loc in ("left", "center", "right")),
        "x": [axes.get_xlabel(), axes.get_xscale(), *placed(axes.get_xlim(), axes.xaxis)],
        "y": [axes.get_ylabel(), axes.get_yscale(), *placed(axes.get_ylim(), axes.yaxis)],
        "words on x": _words(axes.xaxis),
        "words on y": _words(axes.yaxis),
        "lines": [_line(line) for line in axes.lines],
        "shapes": [_shape(patch) for patch in axes.patches],
        "points": [_points(collection) for collection in axes.collections],
        "images": [_image(image) for image in axes.images],
        "texts": _texts(axes.texts),
        "legend": [text.get_text() for text in legend.get_texts()] if legend else [],
    }
    return {key: value for key, value in shown.items() if value not in ([], "")}


def _words(axis: Axis) -> list[Any]:
    """The tick labels that were given as words, with their positions."""
    formatter = axis.get_major_formatter()
    if not isinstance(formatter, (FixedFormatter, FuncFormatter)):
        return []
    places = axis.get_majorticklocs()
    return [formatter.format_ticks(places.tolist()), placed(places, axis)]


def _texts(texts: Iterable[Text]) -> list[list[Any]]:
    return [
        [text.get_text(), *_points_on(text.axes, text.get_position(), _text_transform(text))[0]]
        for text in texts
        if text.get_text() and text.get_visible()
    ]


def _text_transform(text: Text) -> Transform:
    """The coordinate system of a text's position, which annotations set only while being drawn."""
    if isinstance(text, Annotation) and text.axes and text.anncoords == "data":
        return text.axes.transData
    return text.get_transform()


def _line(line: Line2D) -> dict[str, Any]:
    points = _points_on(line.axes, np.ma.column_stack(line.get_data()), line.get_transform())
    return {
        "x": [x for x, _ in points],
        "y": [y for _, y in points],
        "style": [_color(line.get_color()), line.get_linestyle(), str(line.get_marker())],
        **_label(line),
    }


def _shape(patch: Patch) -> dict[str, Any]:
    if isinstance(patch, FancyArrowPatch):
        ends = np.array(patch._posA_posB)  # type: ignore[attr-defined]
        return {"kind": "arrow", "from and to": _points_on(patch.axes, ends, patch.get_transform())}
    corners = patch.get_patch_transform().transform(patch.get_path().vertices)
    return {
        "kind": type(patch).__name__,
        "corners": _points_on(patch.axes, corners, patch.get_data_transform()),
        "color": _color(patch.get_facecolor()),
        **_label(patch),
    }


def _points(collection: Collection) -> dict[str, Any]:
    values = collection.get_array()
    axes, to_offset = collection.axes, collection.get_offset_transform()
    return {
        "kind": type(collection).__name__,
        "at": _points_on(axes, collection.get_offsets(), to_offset),
        "paths": [
            _points_on(axes, path.vertices, collection.get_transform())
            for path in collection.get_paths()
        ],
        "colors": [_color(tuple(color)) for color in to_rgba_array(collection.get_facecolor())],
        **({} if values is None else {"values": rounded(values)}),
        **_label(collection),
    }


def _image(image: AxesImage) -> dict[str, Any]:
    values = image.get_array()
    return {
        "values": [] if values is None else rounded(values),
        "extent": rounded(image.get_extent()),
    }


def _color(color: ColorType) -> str:
    """The name of a color, or its hexadecimal digits, and its opacity if it is translucent."""
    text, opacity = to_hex(color), to_rgba(color)[3]
    name = NAMES.get(text, text) if opacity else "none"
    return name if opacity in (0, 1) else f"{name} {opacity:.2g}"


def _label(artist: Artist) -> dict[str, str]:
    label = str(artist.get_label())
    return {} if label.startswith("_") or not label else {"label": label}
