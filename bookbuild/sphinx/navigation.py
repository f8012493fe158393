"""Sphinx extension: the table of contents, with buttons that say what they unfold.

Chapter numbers are in a separate column, so that a second line starts below the first.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from bs4 import BeautifulSoup, Tag
from docutils import nodes
from sphinx.application import Sphinx


def setup(app: Sphinx) -> dict[str, Any]:
    """Wrap the theme's function for the table of contents, once the theme has set it."""
    app.connect("html-page-context", _wrap, priority=950)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _wrap(
    _app: Sphinx, _page: str, _template: str, context: dict[str, Any], _tree: nodes.document | None
) -> None:
    make: Callable[..., Any] = context["generate_toctree_html"]

    def labeled(*arguments: Any, **options: Any) -> str:
        return label(str(make(*arguments, **options)))

    context["generate_toctree_html"] = labeled


def label(html: str) -> str:
    """The same table of contents, with a label on each button that shows or hides pages."""
    soup = BeautifulSoup(html, "html.parser")
    for summary in soup.select("li > details > summary"):
        link = summary.find_parent("li").find("a")  # type: ignore[union-attr]
        summary["aria-label"] = f"Pages of: {' '.join(link.get_text().split())}"  # type: ignore[union-attr]
        for mark in summary.find_all("span"):
            del mark["role"]
            mark["aria-hidden"] = "true"
    for link in soup.select("li > a"):
        _set_number_apart(soup, link)
    return str(soup)


def _set_number_apart(soup: BeautifulSoup, link: Tag) -> None:
    text = link.find(string=re.compile(r"^\d+\. "))
    if text is None:
        return
    number, _, title = str(text).partition(" ")
    span = soup.new_tag("span", attrs={"class": "ln-number"})
    span.string = number
    text.replace_with(span, f" {title}")
