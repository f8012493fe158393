"""Sphinx extension: a directive for links to download the book as a PDF or as notebooks."""

from __future__ import annotations

import os
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util.docutils import SphinxDirective

from bookbuild.site.offered import ALL_NOTEBOOKS, PDF_NAME, PDF_VARIABLE
from bookbuild.sphinx.chapter import ChapterPart, relative

MARK = "book-downloads"


def setup(app: Sphinx) -> dict[str, Any]:
    """Add the directive `book-downloads`."""
    app.setup_extension("bookbuild.sphinx.chapter")
    app.add_directive(MARK, BookDownloads)
    app.connect("env-updated", _pages)
    app.connect("doctree-resolved", _fill)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


class BookDownloads(SphinxDirective):
    """`book-downloads`: links to the PDF (if the site has one) and to all notebooks."""

    def run(self) -> list[nodes.Node]:
        """Insert a placeholder, and remember its page."""
        self.env.metadata[self.env.docname][MARK] = "yes"
        return [ChapterPart(template="book-downloads.html", values={})]


def _pages(app: Sphinx, env: BuildEnvironment) -> list[str]:
    """Rewrite these pages in every build: Sphinx doesn't know whether there is a PDF."""
    del app
    return [name for name, metadata in env.metadata.items() if MARK in metadata]


def _fill(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    here = app.builder.get_target_uri(docname)
    for part in doctree.findall(ChapterPart):
        if part["template"] == "book-downloads.html":
            part["values"] = {
                "pdf": relative(here, PDF_NAME) if os.environ.get(PDF_VARIABLE) else None,
                "notebooks": relative(here, ALL_NOTEBOOKS),
            }
