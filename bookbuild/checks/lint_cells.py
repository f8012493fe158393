"""Checks chapters' code cells with ruff, passing each chapter as a notebook."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import nbformat

from bookbuild.book import Book
from bookbuild.chapter import Chapter
from bookbuild.errors import BookError


def lint(book: Book) -> None:
    """Check every chapter against the rules that pyproject.toml sets for `book/**`.

    Raises:
        BookError: with one line per finding, each with its location in the chapter.
    """
    found = [problem for chapter in book.notebooks for problem in problems_of(book, chapter)]
    if found:
        raise BookError(*found)
    print(f"The code cells of {len(book.notebooks)} chapter(s) are clean")


def problems_of(book: Book, chapter: Chapter) -> Iterator[str]:
    """What ruff finds in one chapter.

    Raises:
        BookError: if ruff itself fails.
    """
    # The file name tells ruff the language and which rules apply.
    command = [sys.executable, "-m", "ruff", "check", "--no-cache", "--output-format=json"]
    command += ["--stdin-filename", str(chapter.path.with_suffix(".ipynb")), "-"]
    done = subprocess.run(
        command,
        input=nbformat.writes(chapter.notebook),
        cwd=book.root,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode not in (0, 1):
        raise BookError(f"{chapter.shown}: ruff failed: {done.stderr.strip()}")
    for finding in json.loads(done.stdout):
        yield f"{_place(chapter, finding)}: {finding['code']} {finding['message']}"


def _place(chapter: Chapter, finding: dict[str, Any]) -> str:
    """A finding's file and line; ruff counts lines from the top of the cell."""
    cell, row = finding["cell"] - 1, finding["location"]["row"]
    source = chapter.notebook.cells[cell].source.splitlines()
    lines = chapter.path.read_text(encoding="utf-8").splitlines()
    # A cell starts after its fence, with its options (if any) or its code.
    start = next(
        number
        for number in range(chapter.lines[cell] - 1, len(lines))
        if lines[number : number + len(source)] == source
    )
    return f"{chapter.shown}:{start + row}"
