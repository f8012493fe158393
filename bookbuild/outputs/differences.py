"""Shows how the outputs of two executions differ, cell by cell."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator

import nbformat
from nbformat import NotebookNode

from bookbuild.book import Book
from bookbuild.chapter import code_cells
from bookbuild.errors import BookError
from bookbuild.git import committed
from bookbuild.outputs.cache import read_notebook


def show(book: Book) -> None:
    """Print how the outputs of every reference differ from those of the last commit.

    Raises:
        BookError: if there is no commit, or a reference can't be read.
    """
    changed = 0
    for chapter in book.notebooks:
        path = book.reference(chapter)
        now = read_notebook(path)
        if now is None:
            raise BookError(f"{book.show(path)}: cannot be read: run 'make notebooks'")
        text = committed(book.root, path)
        if text is None:
            print(f"\n{chapter.name}: a new reference")
            changed += 1
            continue
        lines = list(difference(nbformat.reads(text, as_version=4), now))
        if lines:
            print("", chapter.name, *lines, sep="\n")
            changed += 1
    print(
        f"\nThe outputs of {changed} of {len(book.notebooks)} chapter(s) differ from "
        "the last commit"
    )


def difference(old: NotebookNode, new: NotebookNode) -> Iterator[str]:
    """The output lines that differ, below each cell's number and first line."""
    before, after = code_cells(old), code_cells(new)
    for number in range(max(len(before), len(after))):
        was = list(shown(before[number])) if number < len(before) else []
        now = list(shown(after[number])) if number < len(after) else []
        if was != now:
            cell = (after if number < len(after) else before)[number]
            yield f"  code cell {number}: {(cell.source.splitlines() or [''])[0]}"
            for line in difflib.unified_diff(was, now, lineterm="", n=1):
                if not line.startswith(("---", "+++")):
                    yield f"    {line}"


def shown(cell: NotebookNode) -> Iterator[str]:
    """A cell's outputs as lines that are easy to compare."""
    for output in cell.outputs:
        if output.output_type == "stream":
            yield from output.text.splitlines()
        elif output.output_type == "error":
            yield f"{output.ename}: {output.evalue}"
        else:
            for kind, value in sorted(output.data.items()):
                yield f"[{kind}]"
                if kind.startswith("image/"):
                    yield f"{len(value)} characters, starting {value[:60]!r}"
                elif isinstance(value, str):
                    yield from value.splitlines()
                else:
                    yield from json.dumps(value, indent=1, sort_keys=True).splitlines()
