"""Sphinx extension: the boxes at the top and the bottom of chapters, and overviews of the course.

At the top: whether the chapter is essential, its reading time, chapters to read first, its
notebook, links to the public repository if there is one, and a checkbox "I have read this" whose
state is kept in the reader's browser. Directives add overviews to other pages: the tracks, a map of
the course, and the reader's progress.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.errors import ExtensionError
from sphinx_external_toc.parsing import parse_toc_yaml

from bookbuild.book import Book
from bookbuild.errors import BookError
from bookbuild.site.arcs import WIDTH as ARC_WIDTH
from bookbuild.site.arcs import arcs
from bookbuild.site.tracks import EVERYTHING, Course, needs
from bookbuild.sphinx.download import notebook_of
from bookbuild.sphinx.placeholder import Placeholder, add_placeholder, relative
from bookbuild.sphinx.repository import address, page_links

SCRIPTS = Path(__file__).with_name("static")


def setup(app: Sphinx) -> dict[str, Any]:
    """Add the boxes to chapters, the directives for overviews, and the script for checkboxes."""
    for name, values in OVERVIEWS.items():
        template = f"chapter-{name.partition('-')[2]}.html"
        add_placeholder(app, name, template, partial(_overview, values))
    app.connect("config-inited", _find_scripts)
    app.connect("doctree-resolved", _add)
    app.add_js_file("reading-marks.js", loading_method="defer")
    app.add_js_file("course-map.js", loading_method="defer")
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _find_scripts(_app: Sphinx, config: Config) -> None:
    config.html_static_path.append(str(SCRIPTS))


def _add(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    if app.builder.format != "html" or docname not in app.lnbook_notebooks:  # type: ignore[attr-defined]
        return
    section = next(iter(doctree.findall(nodes.section)))
    try:
        values = _head(app, _course(app), docname)
    except BookError as error:
        raise ExtensionError(str(error)) from None
    section.insert(1, Placeholder(template="chapter-head.html", values=values))
    section.append(Placeholder(template="chapter-end.html", values=values))


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
    """The parts of the book that have chapters, in table-of-contents order."""
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


Values = Callable[[Sphinx, Course, str], dict[str, Any]]
# The directives for overviews, and the functions that compute their templates' variables.
OVERVIEWS: dict[str, Values] = {
    "course-start": _chapters,
    "course-tracks": _tracks,
    "course-map": _map,
    "course-graph": _graph,
    "reading-progress": _chapters,
}


def _overview(values: Values, app: Sphinx, docname: str) -> dict[str, Any]:
    return values(app, _course(app), docname)


def _builds_on(course: Course, name: str) -> list[str]:
    """The chapters to read before a chapter, in book order."""
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
