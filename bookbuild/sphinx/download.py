"""Sphinx extension: each chapter's notebook for download, readable in plain Jupyter."""

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

LONG_AGO = (1980, 1, 1, 0, 0, 0)  # the same notebooks make the same archive


def setup(app: Sphinx) -> dict[str, Any]:
    """Connect before the theme, which makes its menu, and after it, since it copies files too."""
    app.connect("html-page-context", _offer, priority=400)
    app.connect("html-page-context", _write, priority=900)
    app.connect("build-finished", _pack)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def notebook_of(app: Sphinx, docname: str) -> str | None:
    """The address of a page's notebook from the top of the site; None if it has none."""
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
    """Where a link of the site leads in a notebook.

    To the published site, if its address is known. If not, to the notebook of the other chapter,
    which lies beside this one in the archive of all; other pages are not there.
    """
    parts = urlsplit(address)
    if not parts.path:
        return None  # Jupyter's own names of headings differ from one program to the next
    here = posixpath.dirname(app.builder.get_target_uri(pagename))
    target = posixpath.normpath(posixpath.join(here, parts.path))
    if base:
        return f"{base}/{target}" + (f"#{parts.fragment}" if parts.fragment else "")
    page = target.removesuffix(".html")
    if notebook_of(app, page) is None:
        return None
    return posixpath.relpath(f"{page}.ipynb", here or ".")


def _pack(app: Sphinx, error: Exception | None) -> None:
    """All notebooks in one archive, in which the links between them hold."""
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
