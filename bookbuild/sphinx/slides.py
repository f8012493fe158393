"""Sphinx extension: writes the lecture slides with the site, and a list of the lectures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.errors import ExtensionError

from bookbuild.book import Book
from bookbuild.errors import BookError
from bookbuild.slides import build
from bookbuild.sphinx.placeholder import add_placeholder, relative


def setup(app: Sphinx) -> dict[str, Any]:
    """Add `lecture-list`, which links to each lecture's slides; write these before the pages."""
    add_placeholder(app, "lecture-list", "lecture-list.html", _lectures)
    app.connect("env-updated", _write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _write(app: Sphinx, env: BuildEnvironment) -> None:
    del env
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


def _lectures(app: Sphinx, docname: str) -> dict[str, Any]:
    return {
        "lectures": app.lnbook_lectures,  # type: ignore[attr-defined]
        "folder": relative(app.builder.get_target_uri(docname), f"{build.TARGET}/"),
    }
