"""Turns a figure's SVG into a PNG with matplotlib's own renderer, which needs no other program.

It understands what matplotlib writes: groups, paths, `use` elements, images, hatches, and clipping
rectangles. Anything else is an error, so nothing is left out silently.
"""

from __future__ import annotations

import base64
import io
import re
import xml.etree.ElementTree as ET
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import numpy as np
from matplotlib.backends.backend_agg import RendererAgg
from matplotlib.colors import to_rgba
from matplotlib.path import Path
from matplotlib.transforms import Affine2D, Bbox, TransformedPath
from PIL import Image
from PIL.PngImagePlugin import PngInfo

from bookbuild.site import license as licenses
from bookbuild.site.figure_colors import SVG, XLINK

POINTS = 72  # points per inch
# The style that matplotlib's SVG starts with, and SVG's defaults.
INHERITED = {"fill": "#000000", "stroke": "none", "stroke-width": "1", "stroke-linecap": "butt"}
JOINED = {"stroke-linejoin": "round"}
NOT_DRAWN = ("defs", "metadata", "style", "clipPath", "pattern")
_COMMAND = re.compile(r"([MLQCZz])([^A-Za-z]*)")
_NUMBER = re.compile(r"-?\d*\.?\d+(?:e[-+]?\d+)?", re.IGNORECASE)
_TRANSFORM = re.compile(r"(\w+)\(([^)]*)\)")
_URL = re.compile(r"url\(#([\w.-]+)\)")
_CODES = {"M": [Path.MOVETO], "L": [Path.LINETO], "Q": [Path.CURVE3] * 2, "C": [Path.CURVE4] * 3}


@dataclass(frozen=True)
class _State:
    """What an element inherits: its transformation, its style, and how it's clipped.

    Transformations are 3 by 3 matrices: matplotlib's own are too slow to use for every letter.
    """

    transform: np.ndarray
    style: Mapping[str, str] = field(default_factory=lambda: INHERITED | JOINED)
    clip: tuple[float, float, float, float] | None = None  # left, top, right, bottom, in pixels


def png(svg: str, dpi: int, background: str) -> bytes:
    """A figure as a PNG that names its license.

    Args:
        svg: the figure, as matplotlib wrote it, in any colors.
        dpi: pixels per inch.
        background: the color of the page.

    Raises:
        ValueError: if the figure contains something that can't be drawn.
    """
    root = ET.fromstring(svg)
    drawn = _Drawing(root, dpi, background)
    info = PngInfo()
    info.add_text("Author", licenses.CREATOR)
    info.add_text("Copyright", f"{licenses.NAME}, {licenses.ADDRESS}")
    target = io.BytesIO()
    drawn.image().save(target, "PNG", pnginfo=info, dpi=(dpi, dpi))
    return target.getvalue()


class _Drawing:
    """A figure that's being drawn on a canvas."""

    def __init__(self, root: ET.Element, dpi: int, background: str) -> None:
        _, _, width, height = _numbers(root.get("viewBox", ""))
        scale = dpi / POINTS
        self._size = round(width * scale), round(height * scale)
        self._renderer: Any = RendererAgg(*self._size, dpi)  # type: ignore[no-untyped-call]
        self._named = {element.get("id"): element for element in root.iter() if element.get("id")}
        self._pixels = np.asarray(self._renderer.buffer_rgba())  # type: ignore[no-untyped-call]
        self._pixels[:] = np.round(255 * np.array(to_rgba(background)))
        self._children(root, _State(_scaled(scale, scale)))

    def image(self) -> Image.Image:
        """What has been drawn."""
        return Image.fromarray(self._pixels[..., :3].copy())

    def _children(self, element: ET.Element, state: _State) -> None:
        for child in element:
            self._draw(child, state)

    def _draw(self, element: ET.Element, state: _State) -> None:
        name = element.tag.removeprefix(f"{{{SVG}}}")
        if name in NOT_DRAWN:
            return
        state = self._inside(element, state)
        if name == "g":
            self._children(element, state)
        elif name == "path":
            self._path(element, state)
        elif name == "use":
            place = state.transform @ _moved(_number(element, "x"), _number(element, "y"))
            used = self._named[(element.get(f"{{{XLINK}}}href") or "#").removeprefix("#")]
            self._draw(used, replace(state, transform=place))
        elif name == "image":
            self._image(element, state)
        else:
            raise ValueError(f"can't draw <{name}>")

    def _inside(self, element: ET.Element, state: _State) -> _State:
        """The state for an element's content."""
        style, clip, transform = state.style, state.clip, state.transform
        if given := element.get("style"):
            style = {**style, **_style(given)}
        if named := _URL.match(element.get("clip-path", "")):
            (rectangle,) = self._named[named[1]]
            clip = self._rectangle(rectangle, state.transform, clip)
        if given := element.get("transform"):
            transform = transform @ _transform(given)
        return _State(transform, style, clip)

    def _rectangle(
        self,
        element: ET.Element,
        transform: np.ndarray,
        inside: tuple[float, float, float, float] | None,
    ) -> tuple[float, float, float, float]:
        if element.tag != f"{{{SVG}}}rect":
            raise ValueError(f"can't clip with <{element.tag}>")
        x, y, width, height = (_number(element, name) for name in ("x", "y", "width", "height"))
        (left, top), (right, bottom) = _at(transform, [(x, y), (x + width, y + height)])
        if inside is None:
            return left, top, right, bottom
        return (
            max(left, inside[0]),
            max(top, inside[1]),
            min(right, inside[2]),
            min(bottom, inside[3]),
        )

    def _path(self, element: ET.Element, state: _State) -> None:
        path = _path(element.get("d", ""))
        if hatch := _URL.match(state.style["fill"]):
            where = TransformedPath(path, self._upright(state.transform))
            self._hatch(self._named[hatch[1]], where, state)
            state = replace(state, style={**state.style, "fill": "none"})
        self._paint(path, state)

    def _paint(self, path: Path, state: _State, inside: TransformedPath | None = None) -> None:
        """Fill and stroke a path."""
        style, context = state.style, self._context(state)
        if inside is not None:
            context.set_clip_path(inside)
        if style["stroke"] == "none":
            context.set_linewidth(0)
            context.set_snap(False)  # snapping would make a letter's thin bars vanish
        fill = style["fill"]
        face = None if fill == "none" else to_rgba(fill, _opacity(style, "fill"))
        self._renderer.draw_path(context, path, self._upright(state.transform), face)

    def _hatch(self, pattern: ET.Element, where: TransformedPath, state: _State) -> None:
        """Repeat a pattern inside a path."""
        x, y, width, height = (_number(pattern, name) for name in ("x", "y", "width", "height"))
        low, high = _at(np.linalg.inv(state.transform), [(0, 0), self._size])
        for column in range(int((low[0] - x) // width), int((high[0] - x) // width) + 1):
            for row in range(int((low[1] - y) // height), int((high[1] - y) // height) + 1):
                place = state.transform @ _moved(x + column * width, y + row * height)
                tile = _State(place, clip=state.clip)
                for part in pattern:
                    if part.tag == f"{{{SVG}}}rect":
                        style = {**tile.style, "fill": part.get("fill", "none")}
                        box = replace(tile, transform=place @ _scaled(width, height), style=style)
                        self._paint(Path.unit_rectangle(), box, where)
                    else:
                        self._paint(_path(part.get("d", "")), self._inside(part, tile), where)

    def _context(self, state: _State) -> Any:
        """How to draw a line: the renderer's units are points."""
        style, context = state.style, self._renderer.new_gc()
        (a, c, _), (b, d, _), _ = state.transform.tolist()
        stretch = abs(a * d - b * c) ** 0.5
        scale = stretch / (self._renderer.dpi / POINTS)
        context.set_linewidth(scale * float(style["stroke-width"]))
        context.set_joinstyle(style["stroke-linejoin"])
        cap = style["stroke-linecap"]
        context.set_capstyle("projecting" if cap == "square" else cap)
        if style["stroke"] != "none":
            rgba = to_rgba(style["stroke"], _opacity(style, "stroke"))
            context.set_foreground(rgba, isRGBA=True)
        dashes = _numbers(style.get("stroke-dasharray", ""))
        if dashes:
            offset = float(style.get("stroke-dashoffset", 0))
            context.set_dashes(scale * offset, [scale * dash for dash in dashes])
        if state.clip is not None:
            left, top, right, bottom = state.clip
            height = self._size[1]
            context.set_clip_rectangle(
                Bbox.from_extents(left, height - bottom, right, height - top)
            )
        return context

    def _upright(self, transform: np.ndarray) -> Affine2D:
        """A transformation for the renderer, which counts pixels from the bottom."""
        return Affine2D(_moved(0, self._size[1]) @ _scaled(1, -1) @ transform)

    def _image(self, element: ET.Element, state: _State) -> None:
        data = (element.get(f"{{{XLINK}}}href") or "").partition("base64,")[2]
        image = Image.open(io.BytesIO(base64.b64decode(data))).convert("RGBA")
        x, y, width, height = (_number(element, name) for name in ("x", "y", "width", "height"))
        corners = _at(state.transform, [(x, y), (x + width, y + height)])
        (left, top), (right, bottom) = corners.min(axis=0), corners.max(axis=0)
        if corners[0, 1] > corners[1, 1]:
            image = image.transpose(Image.Transpose.FLIP_TOP_BOTTOM)
        box = [round(value) for value in (left, top, right, bottom)]
        size = max(box[2] - box[0], 1), max(box[3] - box[1], 1)
        rgba = np.asarray(image.resize(size, Image.Resampling.BILINEAR), dtype=float)
        left, top, right, bottom = state.clip or (0, 0, *self._size)
        rows = slice(max(round(top), box[1], 0), min(round(bottom), box[3], self._size[1]))
        columns = slice(max(round(left), box[0], 0), min(round(right), box[2], self._size[0]))
        seen = rgba[rows.start - box[1] : rows.stop - box[1],
                    columns.start - box[0] : columns.stop - box[0]]  # fmt: skip
        share = seen[..., 3:] / 255 * _opacity(state.style, "")
        below = self._pixels[rows, columns, :3]
        below[:] = np.round(share * seen[..., :3] + (1 - share) * below)


@cache
def _path(text: str) -> Path:
    vertices: list[tuple[float, float]] = []
    codes: list[np.uint8] = []
    if text and _COMMAND.sub("", text).strip():
        raise ValueError(f"can't draw the path {text[:40]!r}")
    for command, numbers in _COMMAND.findall(text):
        if command in "Zz":
            vertices.append((0.0, 0.0))
            codes.append(Path.CLOSEPOLY)
            continue
        points = _numbers(numbers)
        vertices += zip(points[::2], points[1::2], strict=True)
        pattern = _CODES[command]
        codes += pattern * (len(points) // 2 // len(pattern))
    return Path(np.array(vertices).reshape(-1, 2), codes)


@cache
def _style(text: str) -> dict[str, str]:
    parts = (part.split(":", 1) for part in text.split(";") if part)
    return {name.strip(): value.strip() for name, value in parts}


def _transform(text: str) -> np.ndarray:
    """The matrix for a `transform` attribute, whose last transformation applies first."""
    whole = np.eye(3)
    for name, given in _TRANSFORM.findall(text):
        numbers = _numbers(given)
        if name == "translate":
            whole = whole @ _moved(*(*numbers, 0.0)[:2])
        elif name == "scale":
            whole = whole @ _scaled(numbers[0], numbers[-1])
        elif name == "rotate" and len(numbers) == 1:
            whole = whole @ Affine2D().rotate_deg(*numbers).get_matrix()
        else:
            raise ValueError(f"can't apply {name}({given})")
    return whole


def _moved(x: float, y: float) -> np.ndarray:
    return np.array([[1.0, 0.0, x], [0.0, 1.0, y], [0.0, 0.0, 1.0]])


def _scaled(x: float, y: float) -> np.ndarray:
    return np.array([[x, 0.0, 0.0], [0.0, y, 0.0], [0.0, 0.0, 1.0]])


def _at(transform: np.ndarray, points: Sequence[tuple[float, float]]) -> np.ndarray:
    """The points, moved by a transformation."""
    moved: np.ndarray = np.array(points) @ transform[:2, :2].T + transform[:2, 2]
    return moved


def _opacity(style: Mapping[str, str], kind: str) -> float:
    part = float(style.get(f"{kind}-opacity", 1)) if kind else 1.0
    return part * float(style.get("opacity", 1))


def _numbers(text: str) -> list[float]:
    return [float(number) for number in _NUMBER.findall(text)]


def _number(element: ET.Element, name: str) -> float:
    return float(element.get(name, 0))
