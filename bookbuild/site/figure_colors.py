"""Turns a figure (an SVG file) into the site's two versions, one for light and one for dark mode.

Both have the same shapes, in fewer bytes. Each drawing color in `lnbook/notebook/palette.toml`
becomes the shade listed there. Any other color is an error, so no figure ends up only partly dark.
In heat maps, which are raster images, dark mode inverts the lightness and keeps the hues.
"""

from __future__ import annotations

import base64
import io
import re
import xml.etree.ElementTree as ET
from functools import cache
from typing import Literal

import numpy as np
from PIL import Image

from lnbook.notebook.style import COLORS, PALETTE

Mode = Literal["light", "dark"]

_CONCEPTS = {drawn.lower(): name for name, drawn in COLORS.items()}
# Every raster image in these figures has one hue on white, so one lightness curve works for all.
PAPER_LIGHTNESS, INK_LIGHTNESS = 0.20, 0.93  # page and ink in dark mode, in OKLab
PAPER_TINT = (-0.0023, -0.0153)  # the dark page is slightly blue, in OKLab

SVG, XLINK = "http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"
_COLOR = re.compile(r"#[0-9a-fA-F]{6}\b|#[0-9a-fA-F]{3}\b|\b(?:black|white)\b")
_AROUND_LETTER = re.compile(r"\s*([A-Za-z])\s*")  # in path data, with spaces
_NUMBER = re.compile(r"-?\d*\.\d+(?:e[-+]?\d+)?|-?\d+(?:e[-+]?\d+)?", re.IGNORECASE)
_MAY_BE_ROUNDED = (
    *("d", "x", "y", "x1", "x2", "y1", "y2", "points"),
    *("width", "height", "cx", "cy", "r"),
)
_NAMED = {"black": "#000000", "white": "#ffffff"}


def size(svg: str) -> tuple[int, int]:
    """The width and height of a figure in CSS pixels.

    Raises:
        ValueError: if the file doesn't state its size.
    """
    root = ET.fromstring(svg)
    return _pixels(root, "width"), _pixels(root, "height")


@cache
def shown(svg: str, mode: Mode) -> str:
    """A figure as shown on the site: without comments, rounded to hundredths of a point.

    Raises:
        ValueError: if a color isn't in the palette.
    """
    root = _read(svg)
    for element in root.iter():
        if element.tag == f"{{{SVG}}}image":
            if mode == "dark":
                _turn_raster(element)
            continue
        for name in ("style", "fill", "stroke", "stop-color"):
            if name in element.attrib:
                element.set(name, _COLOR.sub(lambda m: _shade(m[0], mode), element.attrib[name]))
    return _write(root)


def tokens() -> str:
    """The shades as a style sheet: `--ln-layer-norm` and so on, for light and for dark mode."""
    return "".join(
        f'html[data-theme="{mode}"]{{color-scheme:{mode};'
        + ";".join(f"{token(name)}:{shades[mode]}" for name, shades in PALETTE.items())
        + "}"
        for mode in ("light", "dark")
    )


def token(name: str) -> str:
    """The custom property with a color's shade."""
    return f"--ln-{name.replace('_', '-')}"


def _shade(text: str, mode: Mode) -> str:
    color = _NAMED.get(text.lower(), text.lower())
    if len(color) == 4:
        color = "#" + "".join(2 * digit for digit in color[1:])
    if color not in _CONCEPTS:
        raise ValueError(
            f"the color {color} is not in the palette: draw with one of "
            "lnbook.notebook.style.COLORS, or add one to lnbook/notebook/palette.toml"
        )
    return PALETTE[_CONCEPTS[color]][mode]


def _pixels(root: ET.Element, name: str) -> int:
    text = root.get(name, "")
    number = _NUMBER.match(text)
    if number is None or text.endswith("%"):
        raise ValueError(f"an SVG needs a {name} in points or pixels, not {text!r}")
    return round(float(number[0]) * (4 / 3 if text.endswith("pt") else 1))


def _read(svg: str) -> ET.Element:
    root = ET.fromstring(svg)  # drops comments
    for metadata in root.findall(f"{{{SVG}}}metadata"):
        root.remove(metadata)
    for parent in list(root.iter()):
        for child in [child for child in parent if _is_invisible(child)]:
            parent.remove(child)
    for element in root.iter():
        for name in _MAY_BE_ROUNDED:
            if name in element.attrib and element is not root:
                element.set(name, _rounded(element.attrib[name], 2))
        if "transform" in element.attrib:
            element.set("transform", _rounded(element.attrib["transform"], 6))
        if "style" in element.attrib:
            element.set("style", element.attrib["style"].replace(": ", ":").replace("; ", ";"))
        for place in ("text", "tail"):
            if not (getattr(element, place) or "").strip():
                setattr(element, place, None)
    return root


def _is_invisible(element: ET.Element) -> bool:
    """Whether it's an invisible line that only carries an annotation."""
    return (
        "stroke-opacity: 0;" in element.get("style", "")
        and len(_NUMBER.findall(element.get("d", ""))) == 2
    )


def _rounded(text: str, digits: int) -> str:
    def short(match: re.Match[str]) -> str:
        number = f"{float(match[0]):.{digits}f}".rstrip("0").rstrip(".")
        return "0" if number == "-0" else number

    return _AROUND_LETTER.sub(r"\1", _NUMBER.sub(short, text))


def _write(root: ET.Element) -> str:
    _drop_unused_ids(root)
    ET.register_namespace("", SVG)
    ET.register_namespace("xlink", XLINK)
    return ET.tostring(root, encoding="unicode")


def _drop_unused_ids(root: ET.Element) -> None:
    used = set(re.findall(r"#([\w.-]+)", ET.tostring(root, encoding="unicode")))
    for element in root.iter():
        if element.get("id") not in used:
            element.attrib.pop("id", None)


def _turn_raster(element: ET.Element) -> None:
    for name in (f"{{{XLINK}}}href", "href"):
        kind, _, data = element.get(name, "").partition("base64,")
        if data:
            image = Image.open(io.BytesIO(base64.b64decode(data))).convert("RGBA")
            turned = io.BytesIO()
            Image.fromarray(_turned(np.asarray(image))).save(turned, "PNG", optimize=True)
            element.set(name, f"{kind}base64,{base64.b64encode(turned.getvalue()).decode()}")


_TO_LMS = np.array(
    [
        [0.4122214708, 0.5363325363, 0.0514459929],
        [0.2119034982, 0.6806995451, 0.1073969566],
        [0.0883024619, 0.2817188376, 0.6299787005],
    ]
)
_TO_LAB = np.array(
    [
        [0.2104542553, 0.7936177850, -0.0040720468],
        [1.9779984951, -2.4285922050, 0.4505937099],
        [0.0259040371, 0.7827717662, -0.8086757660],
    ]
)


def _turned(rgba: np.ndarray) -> np.ndarray:
    """Pixels with their OKLab lightness inverted between page and ink."""
    rgb = rgba[..., :3] / 255
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    lab = np.cbrt(linear @ _TO_LMS.T) @ _TO_LAB.T
    lab[..., 1:] += lab[..., :1] * np.array(PAPER_TINT)
    lab[..., 0] = PAPER_LIGHTNESS + (1 - lab[..., 0]) * (INK_LIGHTNESS - PAPER_LIGHTNESS)
    back = ((lab @ np.linalg.inv(_TO_LAB).T) ** 3) @ np.linalg.inv(_TO_LMS).T
    back = np.clip(back, 0, 1)
    rgb = np.where(back <= 0.0031308, 12.92 * back, 1.055 * back ** (1 / 2.4) - 0.055)
    return np.dstack([np.round(rgb * 255).astype(np.uint8), rgba[..., 3]])
