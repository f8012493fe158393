"""Sphinx extension: takes outputs from valid executed notebooks, and names them on the pages."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.environment import BuildEnvironment
from sphinx.errors import ExtensionError

from bookbuild.book import Book
from bookbuild.errors import BookError
from bookbuild.outputs.cache import ensure, fill_cache, for_readers
from bookbuild.site.figure_files import Figure, figures_of


def setup(app: Sphinx) -> dict[str, Any]:
    """Connect the steps: provide outputs, find outdated pages, add the provenance."""
    app.connect("config-inited", _feed)
    app.connect("env-get-outdated", _outdated)
    app.connect("html-page-context", _tell)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _feed(app: Sphinx, config: Config) -> None:
    book = Book(Path(app.srcdir).parent)
    try:
        cache = fill_cache(book)
        executed = ensure(book)
    except BookError as error:
        raise ExtensionError(str(error)) from None
    config.nb_execution_mode = "cache"
    config.nb_execution_cache_path = str(cache)
    app.lnbook_provenance = {  # type: ignore[attr-defined]
        name: notebook.metadata["lnbook"] for name, notebook in executed.items()
    }
    app.lnbook_notebooks = {  # type: ignore[attr-defined]
        chapter.name: for_readers(chapter, executed[chapter.name]) for chapter in book.chapters
    }


def figures(app: Sphinx) -> dict[str, list[Figure]]:
    """The figures of each chapter.

    Raises:
        ExtensionError: if a cell with a figure has no name or no alt text for it.
    """
    if not hasattr(app, "lnbook_figures"):
        try:
            app.lnbook_figures = {  # type: ignore[attr-defined]
                name: list(figures_of(name, notebook))
                for name, notebook in app.lnbook_notebooks.items()  # type: ignore[attr-defined]
            }
        except BookError as error:
            raise ExtensionError(str(error)) from None
    return app.lnbook_figures  # type: ignore[attr-defined, no-any-return]


def _outdated(
    app: Sphinx, env: BuildEnvironment, _added: set[str], _changed: set[str], _removed: set[str]
) -> list[str]:
    """Pages whose outputs have changed since they were read."""
    now: dict[str, Any] = app.lnbook_provenance  # type: ignore[attr-defined]
    before: dict[str, Any] = getattr(env, "lnbook_provenance", {})
    env.lnbook_provenance = now  # type: ignore[attr-defined]
    return [name for name in now if name in env.all_docs and now[name] != before.get(name)]


def _tell(
    app: Sphinx, pagename: str, _template: str, context: dict[str, Any], _doctree: object
) -> None:
    provenance: dict[str, Any] = app.lnbook_provenance  # type: ignore[attr-defined]
    context["outputs_provenance"] = provenance.get(pagename)
