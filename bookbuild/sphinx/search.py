"""Sphinx extension: search as you type, in place of Sphinx's own search.

`searchindex.js` holds the texts that it searches: every section, term, symbol, work, exercise and
object. `search.js` is on every page; the index, MiniSearch and `search-engine.js` are loaded when
the reader goes to the search field. All of them are classic scripts, which also work when pages are
opened as files.
"""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx_external_toc.parsing import parse_toc_yaml

from bookbuild.book import Book
from bookbuild.site import search_texts

INDEX = "searchindex.js"
SAME = "search.toml"
# The search's scripts, in the order they're loaded.
LOADED = ("_static/minisearch/minisearch.js", "_static/search-engine.js", INDEX)


def setup(app: Sphinx) -> dict[str, Any]:
    """Replace Sphinx's search: its index, its scripts and its page."""
    app.connect("config-inited", _add_page)
    app.connect("builder-inited", _replace)
    app.connect("html-page-context", _name_files)
    app.connect("build-finished", _write)
    app.add_js_file("search.js", loading_method="defer")
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _add_page(_app: Sphinx, config: Config) -> None:
    config.html_additional_pages["search"] = "search.html"


def _replace(app: Sphinx) -> None:
    if app.builder.format == "html":
        app.builder.search = False  # type: ignore[attr-defined]


def _name_files(
    app: Sphinx, _page: str, _template: str, context: dict[str, Any], _doctree: object
) -> None:
    version = app.lnbook_version  # type: ignore[attr-defined]
    files = [f"{context['pathto'](name, 1)}?v={version}" for name in LOADED]
    context["search_files"] = " ".join(files)


def _write(app: Sphinx, error: Exception | None) -> None:
    if error is None and app.builder.format == "html":
        data = json.dumps(index(app), ensure_ascii=False, separators=(",", ":"))
        # Not an object literal: browsers parse JSON faster.
        text = f"globalThis.lnSearchIndex = JSON.parse({json.dumps(data, ensure_ascii=False)});\n"
        (Path(app.outdir) / INDEX).write_text(text, encoding="utf-8")


def index(app: Sphinx) -> dict[str, Any]:
    """What `search-engine.js` reads."""
    book = Book(Path(app.srcdir).parent)
    site = search_texts.pages(
        Path(app.outdir), [name for name in book.pages if _is_built(app, name)]
    )
    same = Path(app.srcdir) / SAME
    groups = tomllib.loads(same.read_text(encoding="utf-8"))["same"] if same.exists() else []
    parts = _parts(book)
    return {
        "pages": [[page.name, page.number, page.title, parts.get(page.name, "")] for page in site],
        "rows": list(search_texts.numbered(site)),
        "same": groups,
    }


def _is_built(app: Sphinx, name: str) -> bool:
    return (Path(app.outdir) / f"{name}.html").exists()


def _parts(book: Book) -> dict[str, str]:
    """The caption of the part that each page is in."""
    trees = parse_toc_yaml(book.toc).root.subtrees
    return {str(page): tree.caption or "" for tree in trees for page in tree.items}
