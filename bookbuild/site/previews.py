"""Collects what preview cards show: terms, symbols, works, equations and figures."""

from __future__ import annotations

import copy
import posixpath
from pathlib import Path
from urllib.parse import unquote, urlsplit

from lxml import html
from lxml.html import HtmlElement

TERM, SYMBOL, WORK, EQUATION, FIGURE = "Glossary", "Symbol", "Cited work", "Equation", "Figure"
# Parts of a target that its card doesn't show.
DROPPED = "|".join(
    (
        ".//a[contains(@class,'headerlink')]",
        ".//button",
        ".//span[@class='label']",
        ".//p[@class='ln-figure-license']",
        ".//span[@class='ln-panels']",
    )
)

Snippets = dict[str, dict[str, list[str]]]


def snippets(folder: Path, names: list[str]) -> Snippets:
    """For each page, the kind and the HTML of everything on it that has a preview card.

    URLs in the HTML are relative to the site's root. Links in it become plain text, since a card is
    only for reading.
    """
    read = {
        name: html.document_fromstring((folder / f"{name}.html").read_text(encoding="utf-8"))
        for name in names
    }
    found: Snippets = {}
    for name, page in read.items():
        for target, anchor in _targets(name, page):
            there = read.get(target)
            if there is None or anchor in found.get(target, {}):
                continue
            if (snippet := _snippet(target, there, anchor)) is not None:
                found.setdefault(target, {})[anchor] = snippet
    return {name: dict(sorted(each.items())) for name, each in sorted(found.items())}


def _targets(name: str, page: HtmlElement) -> list[tuple[str, str]]:
    """The pages and ids that the links in a page's article lead to."""
    links = page.xpath("//article//a[contains(@class,'reference') and contains(@href,'#')]/@href")
    targets = []
    for link in dict.fromkeys(links):
        parts = urlsplit(str(link))
        if parts.scheme or not parts.fragment:
            continue
        path = posixpath.join(posixpath.dirname(name), unquote(parts.path)) if parts.path else name
        targets.append((posixpath.normpath(path).removesuffix(".html"), unquote(parts.fragment)))
    return targets


def _snippet(name: str, page: HtmlElement, anchor: str) -> list[str] | None:
    """The kind and the HTML of one target; None if targets of its kind have no preview card."""
    target = page.get_element_by_id(anchor, None)
    if target is None:
        return None
    classes = target.get("class", "").split()
    if target.tag == "dt" and anchor.startswith("term-"):
        title = f"<p class='ln-card-title'>{_inner(name, target)}</p>"
        meaning = target.getnext()
        while meaning is not None and meaning.tag == "dt":  # synonyms that share a definition
            meaning = meaning.getnext()
        return None if meaning is None else [TERM, title + _inner(name, meaning)]
    if target.tag == "tr" and anchor.startswith("symbol-"):
        return [SYMBOL, _symbol(name, page, target)]
    if "citation" in classes:
        return [WORK, _inner(name, target)]
    if target.tag == "div" and "math" in classes:
        return [EQUATION, f"<div class='math'>{_inner(name, target)}</div>"]
    if target.tag == "figure" and target.find(".//img") is not None:
        return [FIGURE, f"<figure>{_inner(name, target)}</figure>"]
    return None


def _symbol(name: str, page: HtmlElement, row: HtmlElement) -> str:
    """A row of the table of symbols, and the other meanings of its symbols."""
    cells = row.findall("./td")
    code = cells[1].text_content().strip()
    parts = [
        f"<p class='ln-card-title'>{_inline(name, cells[0])}</p>",
        f"<p>{_inline(name, cells[-1])}</p>",
    ]
    if code and len(cells) > 2:
        parts.append(f"<p class='ln-card-note'>In code: {_inline(name, cells[1])}</p>")
    own = set(cells[0].xpath(".//annotation/text()"))
    for other in page.xpath("//tr[starts-with(@id,'symbol-other-')]"):
        first, meaning = other.findall("./td")
        if own & set(first.xpath(".//annotation/text()")):
            parts.append(f"<p class='ln-card-note'>Elsewhere: {_inline(name, meaning)}</p>")
    return "".join(parts)


def _inline(name: str, cell: HtmlElement) -> str:
    """The content of a table's cell without its paragraph."""
    text = _inner(name, cell).strip()
    if text.startswith("<p>") and text.endswith("</p>") and text.count("<p>") == 1:
        text = text.removeprefix("<p>").removesuffix("</p>")
    return text


def _inner(name: str, element: HtmlElement) -> str:
    """The HTML inside an element, made independent of its page."""
    copied = copy.deepcopy(element)
    copied.tail = None
    for part in copied.xpath(DROPPED):
        part.drop_tree()
    for part in copied.iter("*"):
        part.attrib.pop("id", None)
        part.attrib.pop("loading", None)
        if part.tag == "a":
            part.tag = "span"
            part.attrib.clear()
        if part.tag == "img":
            part.set(
                "src", posixpath.normpath(posixpath.join(posixpath.dirname(name), part.get("src")))
            )
    inside = [html.tostring(child, encoding="unicode") for child in copied]
    text = (copied.text or "").replace("&", "&amp;").replace("<", "&lt;")
    return (text + "".join(inside)).strip()
