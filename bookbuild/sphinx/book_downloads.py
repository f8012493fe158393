"""Sphinx extension: a directive for links to download the book as a PDF or as notebooks."""

from __future__ import annotations

import os
from typing import Any

from sphinx.application import Sphinx

from bookbuild.site.offered import ALL_NOTEBOOKS, PDF_NAME, PDF_VARIABLE
from bookbuild.sphinx.placeholder import add_placeholder, relative


def setup(app: Sphinx) -> dict[str, Any]:
    """Add `book-downloads`: links to the PDF (if the site has one) and to all notebooks."""
    add_placeholder(app, "book-downloads", "book-downloads.html", _links)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _links(app: Sphinx, docname: str) -> dict[str, Any]:
    here = app.builder.get_target_uri(docname)
    return {
        "pdf": relative(here, PDF_NAME) if os.environ.get(PDF_VARIABLE) else None,
        "notebooks": relative(here, ALL_NOTEBOOKS),
    }
