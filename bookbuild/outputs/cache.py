"""Finds outputs that are still valid for a chapter, and computes those that aren't.

Outputs come from the reference notebook, or from an earlier execution in `_build/executed`. They
are valid if their digests show that their inputs haven't changed and that nobody has edited them.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any

import nbformat
from jupyter_cache import get_cache
from jupyter_cache.base import CacheBundleIn
from nbformat import NotebookNode

from bookbuild.book import Book
from bookbuild.chapter import Chapter, code_cells
from bookbuild.outputs.digest import digest, outputs_digest, source_digest
from bookbuild.outputs.execute import execute_all
from lnbook._build import FIGURE_SNAPSHOT


def cache_path(book: Book, chapter: Chapter) -> Path:
    """Where to store an execution that isn't a reference (yet)."""
    return book.build / "executed" / f"{chapter.name}.ipynb"


def read_notebook(path: Path) -> NotebookNode | None:
    """Read an executed notebook; None if it doesn't exist or isn't one."""
    try:
        notebook: NotebookNode = nbformat.read(path, as_version=4)
        nbformat.validate(notebook)
    except (FileNotFoundError, ValueError, nbformat.ValidationError):
        return None
    return notebook


def write_notebook(path: Path, notebook: NotebookNode) -> None:
    """Write a notebook atomically."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(".part")
    part.write_text(nbformat.writes(notebook) + "\n", encoding="utf-8")
    part.replace(path)


def stale_reason(book: Book, chapter: Chapter, notebook: NotebookNode) -> str | None:
    """Why outputs aren't valid for a chapter; None if they are."""
    stored = notebook.metadata.get("lnbook", {})
    if [cell.source for cell in code_cells(notebook)] != [
        cell.source for cell in chapter.code_cells
    ]:
        return "its code differs from the chapter's code"
    if stored.get("source") != source_digest(book, chapter):
        return "lnbook or a pinned version has changed since it was executed"
    if stored.get("outputs") != outputs_digest(notebook):
        return "its outputs were edited by hand"
    return None


def find(book: Book, chapter: Chapter) -> NotebookNode | None:
    """The executed notebook with valid outputs for a chapter, if there is one."""
    for path in (book.reference(chapter), cache_path(book, chapter)):
        notebook = read_notebook(path)
        if notebook is not None and stale_reason(book, chapter, notebook) is None:
            return notebook
    return None


def with_text_of(chapter: Chapter, executed: NotebookNode) -> NotebookNode:
    """The chapter's current text, with the outputs of an earlier execution of its code."""
    notebook = deepcopy(chapter.notebook)
    for cell, done in zip(code_cells(notebook), code_cells(executed), strict=True):
        cell.execution_count, cell.outputs = done.execution_count, done.outputs
    for key in ("language_info", "lnbook"):
        notebook.metadata[key] = executed.metadata[key]
    return notebook


def for_readers(chapter: Chapter, executed: NotebookNode) -> NotebookNode:
    """The executed chapter without the data that only tests read."""
    notebook = with_text_of(chapter, executed)
    for key in ("language_info", "lnbook"):
        del notebook.metadata[key]
    for cell in code_cells(notebook):
        for output in cell.outputs:
            output.get("data", {}).pop(FIGURE_SNAPSHOT, None)
    return notebook


def ensure(book: Book, chapters: Sequence[Chapter] | None = None) -> dict[str, NotebookNode]:
    """An executed notebook for every chapter; chapters without valid outputs are executed now.

    Args:
        book: the book.
        chapters: the chapters and labs; None for all chapters.

    Raises:
        BookError: if the book is inconsistent or a chapter fails.
    """
    chapters = book.chapters if chapters is None else chapters
    found = {chapter.name: find(book, chapter) for chapter in chapters}
    missing = [chapter for chapter in chapters if found[chapter.name] is None]

    def keep(chapter: Chapter, notebook: NotebookNode) -> None:
        write_notebook(cache_path(book, chapter), notebook)
        found[chapter.name] = notebook

    execute_all(book, missing, keep)
    return {name: notebook for name, notebook in found.items() if notebook is not None}


def fill_cache(book: Book) -> Path:
    """A jupyter-cache with the outputs of every chapter and nothing else.

    A cache is never modified: if it's outdated, it's replaced. Its path stays the same, since a
    new path would make Sphinx read every page again.
    """
    executed = ensure(book)
    notebooks = [for_readers(chapter, executed[chapter.name]) for chapter in book.chapters]
    wanted = digest(
        [
            [chapter.name, executed[chapter.name].metadata["lnbook"], _matched(notebook)]
            for chapter, notebook in zip(book.chapters, notebooks, strict=True)
        ]
    )
    path = book.build / "cache"
    stamp = path / "filled-from.txt"
    if stamp.exists() and stamp.read_text(encoding="utf-8") == wanted:
        return path
    shutil.rmtree(path, ignore_errors=True)
    cache = get_cache(path)
    for chapter, notebook in zip(book.chapters, notebooks, strict=True):
        cache.cache_notebook_bundle(
            CacheBundleIn(notebook, str(chapter.path)), check_validity=True, overwrite=True
        )
    cache.db.dispose()
    stamp.write_text(wanted, encoding="utf-8")  # comes last: a cache without a stamp is ignored
    return path


def _matched(notebook: NotebookNode) -> list[Any]:
    """What jupyter-cache compares besides the code: if it differs, the notebook isn't found.

    MyST-NB would then silently execute the chapter itself, and no digest would vouch for its
    outputs.
    """
    return [notebook.metadata.kernelspec, [cell.metadata for cell in code_cells(notebook)]]
