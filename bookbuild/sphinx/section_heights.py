"""Sphinx extension: estimates how tall each section is, for as long as it isn't laid out.

The style sheet tells browsers to lay out sections only when they come near the window. Until then,
a section takes up the space that its page reserves for it. If that's too little, what the section
contains overlaps the next one for everything that looks at the whole page (search in the page,
accessibility tools), and the scroll bar's handle shrinks as one reads. So the estimate is for a
phone, where sections are tallest, and on the safe side.
"""

from __future__ import annotations

import re
from typing import Any

from lxml import html
from lxml.html import HtmlElement
from sphinx.application import Sphinx

# Heights in rem on a phone 360 px wide, fitted to the sections of the course (least squares).
LINE = 1.3  # of code
BLOCK = 3.8  # around code: padding and margins
CHARACTER = 0.037  # of text
PARAGRAPH = 1.6
FORMULA, FORMULA_LINE = 4.2, 2.1
ROW, CELL_CHARACTER = 2.5, 0.025
CONTROL = 3.8
PIXEL = 1 / 27  # images come in pairs, for light and dark mode, and shrink to fit
RESERVE = 1.4  # with it, every section fits into its estimate (tests/site/test_pages.py)

TEXT = ("p", "dt", "h1", "h2", "h3", "h4", "h5", "summary", "figcaption")
CONTROLS = ("button", "input", "select")
SKIPPED = ("script", "style", "svg", "template")
OPENING = re.compile(r'<section id="([^"]*)">')


def setup(app: Sphinx) -> dict[str, Any]:
    """Write the estimates after all other changes to a page."""
    app.connect("html-page-context", _write, priority=960)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def with_heights(body: str) -> str:
    """A page's body with an estimate in each section inside another one.

    Example:
        >>> with_heights('<section id="a"><section id="b"><p>Text</p></section></section>')
        '<section id="a"><section id="b" style="--ln-height:2rem"><p>Text</p></section></section>'
    """
    inner = html.fragment_fromstring(body, create_parent=True).xpath("//section//section")
    heights = {section.get("id"): round(RESERVE * height(section)) for section in inner}

    def write(found: re.Match[str]) -> str:
        if found[1] not in heights:
            return found[0]
        return f'<section id="{found[1]}" style="--ln-height:{heights[found[1]]}rem">'

    return OPENING.sub(write, body)


def height(element: HtmlElement) -> float:
    """The height of an element on a phone, in rem, estimated from its contents."""
    tag, classes = element.tag, (element.get("class") or "").split()
    if not isinstance(tag, str) or tag in SKIPPED:
        return 0
    if tag == "pre":
        return BLOCK + LINE * (1 + str(element.text_content()).rstrip("\n").count("\n"))
    if tag == "img":
        return PIXEL * float(element.get("height", 0))
    if tag == "table":
        return sum(map(_row, element.iter("tr")))
    if tag == "div" and "math" in classes:
        return FORMULA + FORMULA_LINE * max(1, sum(1 for _ in element.iter("mtr")))
    if tag in TEXT:
        return PARAGRAPH + CHARACTER * len(element.text_content())
    inside = list(element)
    if tag == "details" and "open" not in element.attrib:
        inside = inside[:1]  # the summary
    own = CONTROL * (tag in CONTROLS) + PARAGRAPH * (tag == "li")
    return own + sum(map(height, inside))


def _row(row: HtmlElement) -> float:
    cells = [len(cell.text_content()) for cell in row]
    return ROW + CELL_CHARACTER * len(cells) * max(cells, default=0)


def _write(app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: object) -> None:
    del app, page, template, doctree
    if "<section" in context.get("body", ""):
        context["body"] = with_heights(context["body"])
