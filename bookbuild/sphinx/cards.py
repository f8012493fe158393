"""Sphinx extension: a picture for each page that sites show when someone shares a link to it.

A chapter with figures has a card of its own, and all other pages share the course's. Cards need
the site's URL, so without BOOK_URL there aren't any.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sphinx.application import Sphinx
from sphinx.errors import ExtensionError

from bookbuild.site import cards
from bookbuild.sphinx.outputs import figures

FOLDER = "cards"
SHARED = "_static/social-card.png"
SHARED_ALT = (
    "four rows of numbers, before and after each is moved to mean 0 and scaled to spread 1."
)


def setup(app: Sphinx) -> dict[str, Any]:
    """Name the card in each page's head, and draw it together with the page."""
    app.connect("html-page-context", _add)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _add(app: Sphinx, page: str, _template: str, context: dict[str, Any], _doctree: object) -> None:
    base = app.config.html_baseurl
    if not base:
        return
    context["card"] = {"url": f"{base}{SHARED}", "alt": f"{app.config.html_title}: {SHARED_ALT}"}
    figure = cards.choose(figures(app).get(page, []))
    if figure is not None:
        path = Path(app.outdir) / FOLDER / f"{page}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        title = app.env.titles[page].astext()
        try:
            path.write_bytes(cards.card(title, figure))
        except ValueError as error:
            raise ExtensionError(f"{page}: {error}") from None
        context["card"] = {"url": f"{base}{FOLDER}/{page}.png", "alt": f"{title}. {figure.alt}"}
