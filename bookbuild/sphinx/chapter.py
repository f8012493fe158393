"""Sphinx extension: what each chapter offers, at its head and its end, and what a reader has read.

Reading time, the notebook, links to the public repository where there is one, and a mark "I have
read this" that stays in the reader's browser.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.util.docutils import SphinxDirective
from sphinx.writers.html5 import HTML5Translator

from bookbuild.site.reading_time import reading_time
from bookbuild.sphinx.download import notebook_of
from bookbuild.sphinx.repository import address, page_links

SCRIPTS = Path(__file__).with_name("static")


def setup(app: Sphinx) -> dict[str, Any]:
    """Add head and end to chapters, the directive `reading-progress`, and the script of marks."""
    app.add_node(ChapterPart, html=(_render, None))
    app.add_directive("reading-progress", ReadingProgress)
    app.connect("config-inited", _find_scripts)
    app.connect("doctree-resolved", _add)
    app.add_js_file("reading-marks.js", loading_method="defer")
    return {"parallel_read_safe": True, "parallel_write_safe": True}


class ChapterPart(nodes.General, nodes.Element):  # type: ignore[misc]
    """A part of a page that a template renders; search does not see it."""


class ReadingProgress(SphinxDirective):
    """`reading-progress`: how many chapters the reader has marked as read."""

    def run(self) -> list[nodes.Node]:
        """Leave a place: which chapters there are is known when all pages are read."""
        return [ChapterPart(template="chapter-progress.html", values={})]


def _find_scripts(_app: Sphinx, config: Config) -> None:
    config.html_static_path.append(str(SCRIPTS))


def _add(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    if app.builder.format != "html":
        return
    notebooks = app.lnbook_notebooks  # type: ignore[attr-defined]
    for part in doctree.findall(ChapterPart):
        if part["template"] == "chapter-progress.html":
            entries = [_entry(app, docname, name) for name in notebooks]
            part["values"] = {"chapters": entries}
    if docname not in notebooks:
        return
    section = next(iter(doctree.findall(nodes.section)))
    values = _values(app, doctree, docname)
    section.insert(1, ChapterPart(template="chapter-head.html", values=values))
    section.append(ChapterPart(template="chapter-end.html", values=values))


def _entry(app: Sphinx, docname: str, chapter: str) -> dict[str, str]:
    return {
        "name": chapter,
        "title": app.env.titles[chapter].astext(),
        "address": app.builder.get_relative_uri(docname, chapter),
    }


def _values(app: Sphinx, doctree: nodes.document, docname: str) -> dict[str, Any]:
    root = Path(app.srcdir).parent
    title = app.env.titles[docname].astext()
    page = app.env.doc2path(docname, base=True)
    here = app.builder.get_target_uri(docname)
    return {
        "name": docname,
        "time": reading_time(doctree),
        "notebook": relative(here, notebook_of(app, docname) or ""),
        "repository": page_links(
            address(os.environ), Path(page).relative_to(root).as_posix(), title
        ),
    }


def relative(page: str, target: str) -> str:
    """An address from the top of the site, as a link on a page."""
    return "../" * page.count("/") + target


def _render(translator: HTML5Translator, node: ChapterPart) -> None:
    templates = translator.builder.templates
    assert templates is not None
    translator.body.append(templates.render(node["template"], node["values"]))
    raise nodes.SkipNode
