"""Sphinx extension: a page where readers can download every figure that the chapters draw.

The `figure-gallery` directive makes a section for each part of the book. When all pages are
written, the figures and their captions are taken from the built chapters, so nothing is listed by
hand. All chapters except the first are folded, and images load when a reader unfolds them.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from docutils import nodes
from lxml import etree, html
from lxml.html import HtmlElement
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.errors import ExtensionError
from sphinx.util.docutils import SphinxDirective
from sphinx_external_toc.parsing import parse_toc_yaml

from bookbuild.book import Book
from bookbuild.site import figure_files
from bookbuild.site import license as licenses
from bookbuild.site.figure_files import Figure
from bookbuild.sphinx.outputs import figures as figures_of

MARK = "figure-gallery"
MEMORY = "figures.json"  # under _build
FOLD = '<details class="ln-gallery">'
KINDS = ("svg", "png")


def setup(app: Sphinx) -> dict[str, Any]:
    """Add the `figure-gallery` directive, and fill it in before the search index is written."""
    app.add_node(Part, html=(_visit, None))
    app.add_directive(MARK, Gallery)
    app.connect("env-get-outdated", _outdated)
    app.connect("build-finished", _fill, priority=300)
    return {"parallel_read_safe": True, "parallel_write_safe": False}


class Part(nodes.General, nodes.Element):  # type: ignore[misc]
    """A placeholder for the figures of some chapters.

    Attributes:
        chapters: the names of the chapters.
    """


class Gallery(SphinxDirective):
    """`figure-gallery`: every figure in the chapters, part by part."""

    def run(self) -> list[nodes.Node]:
        """Make a section for each part of the book that has figures."""
        self.env.metadata[self.env.docname][MARK] = "yes"
        found = figures_of(self.env.app)
        sections: list[nodes.Node] = []
        for tree in parse_toc_yaml(Book(Path(self.env.srcdir).parent).toc).root.subtrees:
            chapters = [str(name) for name in tree.items if found.get(str(name))]
            if chapters:
                title = tree.caption or "Figures"
                section = nodes.section(ids=[nodes.make_id(f"figures {title}")])
                section += [nodes.title("", title), Part(chapters=chapters)]
                sections.append(section)
        if not sections:
            raise self.error("figure-gallery: no chapter draws a figure")
        return sections


def _outdated(
    _app: Sphinx, env: BuildEnvironment, _added: set[str], _changed: set[str], _removed: set[str]
) -> list[str]:
    """Read the page again in every build: it depends on all chapters."""
    return [name for name, metadata in env.metadata.items() if MARK in metadata]


def _place(chapters: list[str]) -> str:
    return f'<div class="{MARK}">{" ".join(chapters)}</div>'


def _visit(translator: Any, node: Part) -> None:
    translator.body.append(_place(node["chapters"]))
    raise nodes.SkipNode


def _fill(app: Sphinx, error: Exception | None) -> None:
    """Write the files of all figures, and put the figures on the page."""
    pages = [name for name, metadata in app.env.metadata.items() if MARK in metadata]
    if error is not None or app.builder.format != "html" or not pages:
        return
    out, found = Path(app.outdir), figures_of(app)
    try:
        every = [figure for figures in found.values() for figure in figures]
        memory = Path(app.srcdir).parent / "_build" / MEMORY
        figure_files.write_all(every, out / figure_files.FOLDER, memory)
    except ValueError as problem:
        raise ExtensionError(str(problem)) from None
    shown = {name: _chapter(out, name, figures) for name, figures in found.items() if figures}
    for page in pages:
        path = out / f"{page}.html"
        text = path.read_text(encoding="utf-8")
        for part in app.env.get_doctree(page).findall(Part):
            chapters = part["chapters"]
            text = text.replace(_place(chapters), "".join(shown[name] for name in chapters))
        text = text.replace(FOLD, FOLD.replace(">", " open>"), 1)
        path.write_text(text, encoding="utf-8")


def _chapter(out: Path, name: str, figures: list[Figure]) -> str:
    """A chapter's figures as HTML, with their captions from its page."""
    page = html.parse(str(out / f"{name}.html"), html.HTMLParser(encoding="utf-8")).getroot()
    title = " ".join(page.find(".//h1").text_content().removesuffix("#").split())
    count = "1 figure" if len(figures) == 1 else f"{len(figures)} figures"
    items = "".join(_item(page, figure) for figure in figures)
    return (
        f"{FOLD}<summary>{escape(title)} <span>{count}</span></summary><div>{items}</div></details>"
    )


def _item(page: HtmlElement, figure: Figure) -> str:
    address = f"{figure.chapter}.html#{figure.name}"
    shown = page.get_element_by_id(figure.name, None)
    if shown is None or shown.tag != "figure":
        raise ExtensionError(f"{figure.chapter}: its page shows no figure '{figure.name}'")
    number = shown.find_class("caption-number")[0].text_content().strip()
    width, height = figure.size
    folder, title = figure_files.FOLDER, figure.title
    images = "".join(
        f'<img class="ln-{mode} dark-light" src="{folder}/{figure.file(mode)}" '
        f'alt="{escape(figure.alt)}" width="{width}" height="{height}" '
        'loading="lazy" decoding="async">'
        for mode in figure_files.MODES
    )
    files = " ".join(
        f"<span>{mode}: "
        + " ".join(
            f'<a href="{folder}/{figure.file(mode, kind)}" download '
            f'aria-label="{kind.upper()}, {mode}, {title}">{kind.upper()}</a>'
            for kind in KINDS
        )
        + "</span>"
        for mode in figure_files.MODES
    )
    return (
        f'<figure id="figure-{title}">{images}<figcaption>'
        f'<p><strong>{title}</strong> (<a href="{address}">{number}</a>)</p>'
        f"<p>{''.join(_caption(shown, figure.chapter))}</p>"
        f'<p class="ln-gallery-files">{files} '
        f'<a rel="license noopener" href="{licenses.ADDRESS}">{licenses.NAME}</a></p>'
        "</figcaption></figure>"
    )


def _caption(figure: HtmlElement, chapter: str) -> Iterator[str]:
    """The caption's HTML, with its links as seen from the site's root."""
    (caption,) = figure.find_class("caption-text")
    for link in caption.iter("a"):
        parts = urlsplit(link.get("href", ""))
        if not parts.scheme:
            folder = posixpath.dirname(chapter)
            path = posixpath.normpath(posixpath.join(folder, parts.path)) if parts.path else ""
            fragment = f"#{parts.fragment}" if parts.fragment else ""
            link.set("href", f"{path or f'{chapter}.html'}{fragment}")
    yield escape(caption.text or "")
    for child in caption:
        yield etree.tostring(child, encoding="unicode", method="html")
