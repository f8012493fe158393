"""Sphinx extension: the boxes at the top and the bottom of chapters, and overviews of the course.

At the top: whether the chapter is essential, its reading time, chapters to read first, its
notebook, links to the public repository if there is one, and a checkbox "I have read this" whose
state is kept in the reader's browser. Directives add overviews to other pages: the tracks, a map of
the course, and the reader's progress.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.environment import BuildEnvironment
from sphinx.errors import ExtensionError
from sphinx.util.docutils import SphinxDirective
from sphinx.writers.html5 import HTML5Translator
from sphinx_external_toc.parsing import parse_toc_yaml

from bookbuild.book import Book
from bookbuild.errors import BookError
from bookbuild.site.arcs import WIDTH as ARC_WIDTH
from bookbuild.site.arcs import arcs
from bookbuild.site.tracks import EVERYTHING, Course, needs
from bookbuild.sphinx.download import notebook_of
from bookbuild.sphinx.repository import address, page_links

SCRIPTS = Path(__file__).with_name("static")
MARK = "depends-on-all-chapters"


def setup(app: Sphinx) -> dict[str, Any]:
    """Add the boxes to chapters, the directives for overviews, and the script for checkboxes."""
    app.add_node(ChapterPart, html=(_render, None))
    for name in PARTS:
        app.add_directive(name, Overview)
    app.connect("config-inited", _find_scripts)
    app.connect("env-updated", _pages)
    app.connect("doctree-resolved", _add)
    app.add_js_file("reading-marks.js", loading_method="defer")
    app.add_js_file("course-map.js", loading_method="defer")
    return {"parallel_read_safe": True, "parallel_write_safe": True}


class ChapterPart(nodes.General, nodes.Element):  # type: ignore[misc]
    """A part of a page that a template renders; search ignores it."""


class Overview(SphinxDirective):
    """`course-start`, `course-tracks`, `course-map`, `course-graph`, or `reading-progress`."""

    def run(self) -> list[nodes.Node]:
        """Insert a placeholder: the chapters aren't known until all pages have been read."""
        self.env.metadata[self.env.docname][MARK] = "yes"
        template = f"chapter-{self.name.partition('-')[2]}.html"
        return [ChapterPart(template=template, values={}, directive=self.name)]


def _find_scripts(_app: Sphinx, config: Config) -> None:
    config.html_static_path.append(str(SCRIPTS))


def _pages(app: Sphinx, env: BuildEnvironment) -> list[str]:
    """Write these pages again whenever anything has changed."""
    del app
    return [name for name, metadata in env.metadata.items() if MARK in metadata]


def _add(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    if app.builder.format != "html":
        return
    try:
        _fill(app, doctree, docname)
    except BookError as error:
        raise ExtensionError(str(error)) from None


def _fill(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    course = _course(app)
    for part in doctree.findall(ChapterPart):
        if part.get("directive"):
            part["values"] = PARTS[part["directive"]](app, course, docname)
    if docname not in app.lnbook_notebooks:  # type: ignore[attr-defined]
        return
    section = next(iter(doctree.findall(nodes.section)))
    values = _head(app, course, docname)
    section.insert(1, ChapterPart(template="chapter-head.html", values=values))
    section.append(ChapterPart(template="chapter-end.html", values=values))


def _course(app: Sphinx) -> Course:
    """The course, whose chapters are read once per build."""
    if not hasattr(app, "lnbook_course"):
        app.lnbook_course = Course(Book(Path(app.srcdir).parent))  # type: ignore[attr-defined]
    return app.lnbook_course  # type: ignore[attr-defined, no-any-return]


def _entry(app: Sphinx, course: Course, docname: str, page: str) -> dict[str, Any]:
    """What every list of pages shows about a page."""
    numbers = app.env.toc_secnumbers.get(page, {}).get("", ())
    return {
        "name": page,
        "title": app.env.titles[page].astext(),
        "number": ".".join(map(str, numbers)),
        "address": app.builder.get_relative_uri(docname, page),
        "time": course.times[page],
        "essential": page in course.essential,
    }


def _chapters(app: Sphinx, course: Course, docname: str) -> dict[str, Any]:
    chapters = course.tracks[EVERYTHING].pages
    return {"chapters": [_entry(app, course, docname, name) for name in chapters]}


def _tracks(app: Sphinx, course: Course, docname: str) -> dict[str, Any]:
    def listed(pages: Iterable[str]) -> list[dict[str, Any]]:
        return [_entry(app, course, docname, page) for page in pages]

    return {"tracks": [(track, listed(track.pages)) for track in course.tracks.values()]}


def _map(app: Sphinx, course: Course, docname: str) -> dict[str, Any]:
    """The parts of the book that have chapters, in the order of the table of contents."""
    entries = {entry["name"]: entry for entry in _chapters(app, course, docname)["chapters"]}
    for name, entry in entries.items():
        before = [entries[page] for page in _builds_on(course, name)]
        entry["needs"] = [other["number"] for other in before if other["number"]]
    parts = [
        (tree.caption or "", [entries[page] for page in map(str, tree.items) if page in entries])
        for tree in parse_toc_yaml(course.book.toc).root.subtrees
    ]
    return {"parts": [(caption, chapters) for caption, chapters in parts if chapters]}


def _graph(app: Sphinx, course: Course, docname: str) -> dict[str, Any]:
    """All chapters in one column, with an arc from each one to those that build on it."""
    chapters = [entry for _, part in _map(app, course, docname)["parts"] for entry in part]
    rows = {entry["number"]: row for row, entry in enumerate(chapters)}
    links = [(rows[number], row) for row, entry in enumerate(chapters) for number in entry["needs"]]
    return {"chapters": chapters, "arcs": arcs(links), "width": ARC_WIDTH, "height": len(chapters)}


# The directives for overviews, and the functions that compute their templates' variables.
PARTS: dict[str, Callable[[Sphinx, Course, str], dict[str, Any]]] = {
    "course-start": _chapters,
    "course-tracks": _tracks,
    "course-map": _map,
    "course-graph": _graph,
    "reading-progress": _chapters,
}


def _builds_on(course: Course, name: str) -> list[str]:
    """The chapters to read before a chapter, in the order of the book."""
    (chapter,) = course.book.named([name])
    first = {page for pages in needs(chapter) for page in pages}
    return [page for page in course.tracks[EVERYTHING].pages if page in first]


def _head(app: Sphinx, course: Course, docname: str) -> dict[str, Any]:
    title = app.env.titles[docname].astext()
    page = Path(app.env.doc2path(docname, base=True))
    here = app.builder.get_target_uri(docname)
    before = _builds_on(course, docname)
    return {
        **_entry(app, course, docname, docname),
        "needs": [_entry(app, course, docname, name) for name in before],
        "notebook": relative(here, notebook_of(app, docname) or ""),
        "repository": page_links(address(os.environ), course.book.show(page), title),
    }


def relative(page: str, target: str) -> str:
    """A URL relative to the site's root, as a link on a page."""
    return "../" * page.count("/") + target


def _render(translator: HTML5Translator, node: ChapterPart) -> None:
    templates = translator.builder.templates
    assert templates is not None
    translator.body.append(templates.render(node["template"], node["values"]))
    raise nodes.SkipNode
