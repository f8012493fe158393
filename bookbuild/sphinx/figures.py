"""Sphinx extension: every figure has a twin for dark mode, and keeps its place while it loads.

A figure without alt text is a warning.
"""

from __future__ import annotations

import re
from html import escape
from pathlib import Path, PurePosixPath
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util import logging

from bookbuild.site import figure_colors
from lnbook.notebook.style import PALETTE

SHORTEST_ALT = 20  # letters
FILE_NAME = re.compile(r"^\S*\.\w{2,4}$")  # what MyST-NB writes where a chapter says nothing

logger = logging.getLogger(__name__)


def setup(app: Sphinx) -> dict[str, Any]:
    """Take over the writing of SVG images, and make the twins when all images are in place."""
    app.add_node(nodes.image, override=True, html=(_visit_image, _depart_image))
    app.add_config_value("lnbook_palette", PALETTE, "env")  # read all pages anew if it changes
    app.connect("build-finished", _finish)
    return {"parallel_read_safe": True, "parallel_write_safe": False}


def twin(address: str) -> str:
    """The address of the dark twin of an image."""
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
    # A figure at the top of the page is needed at once; its hidden variant never is.
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
    writer.body.append("\n")


def _check_alt(node: nodes.image) -> None:
    alt = str(node.get("alt") or "").strip()
    if len(alt) < SHORTEST_ALT or FILE_NAME.match(alt):
        given = "none" if not alt or FILE_NAME.match(alt) else repr(alt)
        logger.warning(
            "an image needs an alt text of %d letters or more that says what it shows, and has %s",
            SHORTEST_ALT,
            given,
            location=_with_line(node),
        )


def _with_line(node: nodes.Node) -> nodes.Node:
    """A node, or the first around it that knows its line in the source."""
    around = node
    while not around.line and around.parent is not None:
        around = around.parent
    return around


def _depart_image(_writer: Any, _node: nodes.image) -> None:
    """Everything was written on the way in."""


def _finish(app: Sphinx, error: Exception | None) -> None:
    """Write each figure of this run small, with its twin beside it."""
    if error is not None or app.builder.format != "html":
        return
    folder = Path(app.outdir, app.builder.imagedir)
    for source, name in app.builder.images.items():
        if not name.endswith(".svg"):
            continue
        svg = Path(app.srcdir, source).read_text(encoding="utf-8")
        try:
            _write(folder / twin(name), figure_colors.shown(svg, "dark"))
            _write(folder / name, figure_colors.shown(svg, "light"))
        except ValueError:
            continue  # already reported at the figure


def _write(path: Path, text: str) -> None:
    """Write a file that may be a link to one in another folder."""
    if path.is_symlink():
        path.unlink()
    path.write_text(text, encoding="utf-8")
