"""Sphinx extension: adds dark variants of figures, and their sizes, so that pages don't jump.

Panels that are stacked, as a phone needs them, are shown side by side on a wide screen. The
extension warns about figures without alt text.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from html import escape
from pathlib import Path, PurePosixPath
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util import logging

from bookbuild.site import figure_colors, figure_panels
from bookbuild.site.license import in_file
from bookbuild.site.short_paths import shortened
from lnbook.notebook.style import PALETTE

SHORTEST_ALT = 20  # characters
FILE_NAME = re.compile(r"^\S*\.\w{2,4}$")  # MyST-NB's default alt text

logger = logging.getLogger(__name__)


def setup(app: Sphinx) -> dict[str, Any]:
    """Take over writing SVG images, and make dark variants after all images are copied."""
    app.add_node(nodes.image, override=True, html=(_visit_image, _depart_image))
    app.add_config_value("lnbook_palette", PALETTE, "env")  # if it changes, read all pages again
    app.connect("build-finished", _finish)
    return {"parallel_read_safe": True, "parallel_write_safe": False}


def twin(address: str) -> str:
    """The URL of an image's dark variant."""
    return str(PurePosixPath(address).with_suffix(".dark.svg"))


def _visit_image(writer: Any, node: nodes.image) -> None:
    builder, uri = writer.builder, node["uri"]
    _check_alt(node)
    if not uri.endswith(".svg") or uri not in builder.images:
        type(writer).visit_image(writer, node)
        return
    svg = Path(builder.srcdir, uri).read_text(encoding="utf-8")
    try:
        width, height = figure_colors.size(svg)
        figure_colors.shown(svg, "dark")
    except ValueError as error:
        logger.warning("%s", error, location=_with_line(node))
        type(writer).visit_image(writer, node)
        return
    address = f"{builder.imgpath}/{builder.images[uri]}"
    # A figure at the top of the page is needed immediately; its hidden variant isn't.
    eager = "eager" in node["classes"]
    classes = [name for name in node["classes"] if name != "eager"]
    for mode, source, wait in (("light", address, not eager), ("dark", twin(address), True)):
        attributes = {
            # `dark-light` keeps the theme from dimming an image in dark mode.
            "class": " ".join([f"ln-{mode}", "dark-light", *classes]),
            "src": source,
            "alt": node.get("alt", ""),
            "width": width,
            "height": height,
            "decoding": "async",
        }
        if wait:
            attributes["loading"] = "lazy"
        text = " ".join(f'{name}="{escape(str(value))}"' for name, value in attributes.items())
        writer.body.append(f"<img {text}>")
    writer.body.append(_side_by_side(svg, address) + "\n")


def _side_by_side(svg: str, address: str) -> str:
    """The panels of a figure in columns; the style sheet shows them if there's room.

    Each image is the whole figure, of which its box shows one strip, so that a browser loads one
    file. Screen readers read the alt text of the whole figure.
    """
    columns = figure_panels.columns(svg)
    if not columns:
        return ""
    whole = figure_panels.size(ET.fromstring(svg))
    spans = "".join(
        f"<span>{''.join(_strip(address, span, whole) for span in strips)}</span>"
        for strips in columns
    )
    return f'<span class="ln-panels" aria-hidden="true">{spans}</span>'


def _strip(address: str, span: figure_panels.Span, whole: tuple[float, float]) -> str:
    """An image, for each mode, of what's between two heights of a figure."""
    width, height = whole
    tall = span[1] - span[0]
    place = 100 * span[0] / (height - tall)
    size = f'width="{width / 0.75:.0f}" height="{tall / 0.75:.0f}"'  # in CSS pixels
    style = f"aspect-ratio:{width:.0f}/{tall:.0f};object-position:0 {place:.1f}%"
    return "".join(
        f'<img class="ln-{mode}" src="{source}" alt="" {size} style="{style}" loading="lazy">'
        for mode, source in (("light", address), ("dark", twin(address)))
    )


def _check_alt(node: nodes.image) -> None:
    alt = str(node.get("alt") or "").strip()
    if len(alt) < SHORTEST_ALT or FILE_NAME.match(alt):
        given = "none" if not alt or FILE_NAME.match(alt) else repr(alt)
        logger.warning(
            "an image needs an alt text of %d or more characters saying what it shows; it has %s",
            SHORTEST_ALT,
            given,
            location=_with_line(node),
        )


def _with_line(node: nodes.Node) -> nodes.Node:
    """A node, or its closest ancestor whose line in the source is known."""
    around = node
    while not around.line and around.parent is not None:
        around = around.parent
    return around


def _depart_image(_writer: Any, _node: nodes.image) -> None:
    """Nothing to do: `visit` has written everything."""


def _finish(app: Sphinx, error: Exception | None) -> None:
    """Write a compact version of each figure from this run, and its dark variant next to it."""
    if error is not None or app.builder.format != "html":
        return
    folder = Path(app.outdir, app.builder.imagedir)
    for source, name in app.builder.images.items():
        if not name.endswith(".svg"):
            continue
        svg = Path(app.srcdir, source).read_text(encoding="utf-8")
        try:
            for mode, target in (("light", name), ("dark", twin(name))):
                _write(folder / target, in_file(shortened(figure_colors.shown(svg, mode))))
        except ValueError:
            continue  # already reported at the figure


def _write(path: Path, text: str) -> None:
    """Write a file that may be a link into another folder."""
    if path.is_symlink():
        path.unlink()
    path.write_text(text, encoding="utf-8")
