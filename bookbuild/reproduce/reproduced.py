"""Remembers which chapters gave the same outputs under which settings: tests/reproduced.json.

An entry is valid until the chapter, the modules it imports, their versions or its reference
change, so CI only runs what has changed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from bookbuild.book import Book
from bookbuild.chapter import Chapter
from bookbuild.outputs.cache import read_notebook
from bookbuild.outputs.digest import digest, outputs_digest, source_digest
from bookbuild.outputs.nbval_report import Result

SHOWN = 16  # characters of a digest to keep


def path(book: Book) -> Path:
    """The file with the results."""
    return book.root / "tests" / "reproduced.json"


def is_known(book: Book, chapter: Chapter, setting: str) -> bool:
    """Whether a chapter in its current state gave the same outputs under a setting."""
    return _read(book).get(chapter.name, {}).get(setting) == _state(book, chapter)


def keep(book: Book, found: Mapping[str, Mapping[str, Result]]) -> None:
    """Record results by setting and chapter, and drop chapters that no longer exist."""
    known = _read(book)
    chapters = {chapter.name: chapter for chapter in book.chapters}
    kept = {name: known.get(name, {}) for name in sorted(chapters)}
    for setting, results in found.items():
        for name, result in results.items():
            kept[name].pop(setting, None)
            if result.cells and not result.different:
                kept[name][setting] = _state(book, chapters[name])
    ordered = {name: dict(sorted(settings.items())) for name, settings in kept.items()}
    path(book).write_text(json.dumps(ordered, indent=1) + "\n", encoding="utf-8")


def _read(book: Book) -> dict[str, dict[str, str]]:
    if not path(book).exists():
        return {}
    known: dict[str, dict[str, str]] = json.loads(path(book).read_text(encoding="utf-8"))
    return known


def _state(book: Book, chapter: Chapter) -> str:
    """The digest of a chapter's outputs and everything they depend on."""
    reference = read_notebook(book.reference(chapter))
    outputs = None if reference is None else outputs_digest(reference)
    return digest([source_digest(book, chapter), outputs])[:SHOWN]
