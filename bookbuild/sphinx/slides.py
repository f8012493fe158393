"""Sphinx extension: writes the lecture slides with the site, and a list of the lectures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.errors import ExtensionError
from sphinx.util.docutils import SphinxDirective

from bookbuild.book import Book
from bookbuild.errors import BookError
from bookbuild.slides import build
from bookbuild.sphinx.chapter import ChapterPart, relative

MARK, TEMPLATE = "lecture-list", "lecture-list.html"


def setup(app: Sphinx) -> dict[str, Any]:
    """Add the directive `lecture-list`, and write the slides before the pages."""
    app.setup_extension("bookbuild.sphinx.chapter")
    app.add_directive(MARK, LectureList)
    app.connect("env-updated", _write)
    app.connect("doctree-resolved", _fill)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


class LectureList(SphinxDirective):
    """`lecture-list`: each lecture's title, length and contents, with links to its slides."""

    def run(self) -> list[nodes.Node]:
        """Insert a placeholder, and remember its page."""
        self.env.metadata[self.env.docname][MARK] = "yes"
        return [ChapterPart(template=TEMPLATE, values={})]


def _write(app: Sphinx, env: BuildEnvironment) -> list[str]:
    """Write the slides; return the pages that list them, which are written in every build."""
    book, out = Book(Path(app.srcdir).parent), Path(app.outdir)
    app.lnbook_lectures = []  # type: ignore[attr-defined]
    if app.builder.format == "html" and build.sources(book):
        try:
            app.lnbook_lectures = build.write(  # type: ignore[attr-defined]
                book,
                app.lnbook_notebooks,  # type: ignore[attr-defined]
                out / build.TARGET,
                out / "_static",
                to_static="../_static/",
                site="../",
            )
        except (BookError, ValueError) as error:
            raise ExtensionError(str(error)) from None
    return [name for name, metadata in env.metadata.items() if MARK in metadata]


def _fill(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    here = app.builder.get_target_uri(docname)
    for part in doctree.findall(ChapterPart):
        if part["template"] == TEMPLATE:
            part["values"] = {
                "lectures": app.lnbook_lectures,  # type: ignore[attr-defined]
                "folder": relative(here, f"{build.TARGET}/"),
            }
