"""Sphinx extension: each chapter as a downloadable notebook, readable in plain Jupyter."""

from __future__ import annotations

import os
import posixpath
import zipfile
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError

from bookbuild.book import Book
from bookbuild.errors import BookError
from bookbuild.notebooks.download import how_to_install, plain_notebook
from bookbuild.notebooks.markdown_cells import PageWriter, UnknownNodeError, with_sources
from bookbuild.outputs.cache import write_notebook
from bookbuild.site.offered import ALL_NOTEBOOKS, NOTEBOOKS
from bookbuild.sphinx.repository import address

LONG_AGO = (1980, 1, 1, 0, 0, 0)  # fixed, so that identical notebooks give identical archives


def setup(app: Sphinx) -> dict[str, Any]:
    """Connect before and after the theme builds its menu, since the theme also copies files."""
    app.connect("html-page-context", _offer, priority=400)
    app.connect("html-page-context", _write, priority=900)
    app.connect("build-finished", _pack)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def notebook_of(app: Sphinx, docname: str) -> str | None:
    """The URL of a page's notebook, relative to the site's root; None if it has none."""
    executed = app.lnbook_notebooks  # type: ignore[attr-defined]
    return f"{NOTEBOOKS}/{docname}.ipynb" if docname in executed else None


def _offer(
    app: Sphinx, pagename: str, _template: str, context: dict[str, Any], _doctree: object
) -> None:
    if notebook_of(app, pagename):
        context["ipynb_source"] = f"{pagename}.ipynb"


def _write(
    app: Sphinx,
    pagename: str,
    _template: str,
    _context: dict[str, Any],
    doctree: nodes.document | None,
) -> None:
    path = notebook_of(app, pagename)
    if path is None or doctree is None:
        return
    executed = app.lnbook_notebooks[pagename]  # type: ignore[attr-defined]
    base = app.config.html_baseurl.rstrip("/")

    def link(address: str) -> str | None:
        return _link(app, pagename, base, address)

    writer = PageWriter(app.env, pagename, link)
    note = how_to_install(
        Book(Path(app.srcdir).parent),
        executed,
        address(os.environ),
        f"{base}/{app.builder.get_target_uri(pagename)}" if base else "",
    )
    try:
        blocks = list(with_sources(writer, writer.blocks(doctree)))
        notebook = plain_notebook(blocks, executed, install=note)
    except (UnknownNodeError, BookError) as error:
        raise ExtensionError(f"{pagename}: {error}") from None
    write_notebook(Path(app.outdir) / path, notebook)


def _link(app: Sphinx, pagename: str, base: str, address: str) -> str | None:
    """What one of the site's links points to in a notebook.

    This is the published site if its URL is known. Otherwise it's the other chapter's notebook,
    next to this one in the archive; pages without a notebook have no target.
    """
    parts = urlsplit(address)
    if not parts.path:
        return None  # heading anchors differ between Jupyter programs
    here = posixpath.dirname(app.builder.get_target_uri(pagename))
    target = posixpath.normpath(posixpath.join(here, parts.path))
    if base:
        return f"{base}/{target}" + (f"#{parts.fragment}" if parts.fragment else "")
    page = target.removesuffix(".html")
    if notebook_of(app, page) is None:
        return None
    return posixpath.relpath(f"{page}.ipynb", here or ".")


def _pack(app: Sphinx, error: Exception | None) -> None:
    """All notebooks in one archive, with working links between them."""
    if error is not None or app.builder.name != "html":
        return
    names = sorted(app.lnbook_notebooks)  # type: ignore[attr-defined]
    folder = Path(app.outdir) / NOTEBOOKS
    if not names or not all((folder / f"{name}.ipynb").exists() for name in names):
        return
    with zipfile.ZipFile(Path(app.outdir) / ALL_NOTEBOOKS, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in names:
            entry = zipfile.ZipInfo(f"layer-normalization/{name}.ipynb", LONG_AGO)
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, (folder / f"{name}.ipynb").read_bytes())
