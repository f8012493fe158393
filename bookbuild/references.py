"""Renews the executed reference notebooks and shows what changed in them."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable, Iterator

from nbformat import NotebookNode

from bookbuild.book import Book
from bookbuild.chapter import Chapter, code_cells
from bookbuild.errors import BookError
from bookbuild.execute import execute_all
from bookbuild.outputs import ensure, kept, read_notebook, with_text_of, write_notebook


def renew(book: Book, names: Iterable[str] = (), *, everything: bool = False) -> None:
    """Renew the references of the chapters that changed, or of those named, or of all.

    Either all of them are renewed or, if one chapter fails, none.

    Raises:
        BookError: if a name is no chapter, or a chapter fails.
    """
    forced = _named(book, names) if not everything else list(book.chapters)
    execute_all(book, forced, lambda chapter, nb: write_notebook(kept(book, chapter), nb))
    executed = ensure(book)
    for chapter in forced:  # where the reference still holds, `ensure` has taken that one
        executed[chapter.name] = read_notebook(kept(book, chapter)) or executed[chapter.name]
    changed = 0
    for chapter in book.chapters:
        new = with_text_of(chapter, executed[chapter.name])
        changed += _replace(book, chapter, new)
    changed += _remove_orphans(book)
    print(f"{changed} of {len(book.chapters)} reference(s) renewed")
    if changed:
        print("Read the differences, then commit the references with the change that caused them.")


def _named(book: Book, names: Iterable[str]) -> list[Chapter]:
    chapters = {chapter.name: chapter for chapter in book.chapters}
    unknown = [name for name in names if name not in chapters]
    if unknown:
        raise BookError(
            f"no chapter is called {', '.join(unknown)}; there are: {', '.join(chapters)}"
        )
    return [chapters[name] for name in names]


def _replace(book: Book, chapter: Chapter, new: NotebookNode) -> bool:
    path = book.reference(chapter)
    old = read_notebook(path)
    if old == new:
        return False
    print(f"\n{chapter.name}: {'new reference' if old is None else 'reference changed'}")
    if old is not None:
        lines = list(difference(old, new))
        print("\n".join(lines) if lines else "  (text or digest only; every output is the same)")
    write_notebook(path, new)
    return True


def _remove_orphans(book: Book) -> int:
    wanted = {book.reference(chapter) for chapter in book.chapters}
    orphans = [path for path in book.references.rglob("*.ipynb") if path not in wanted]
    for path in orphans:
        path.unlink()
        print(f"\n{book.show(path)}: removed, since no chapter has this name")
    return len(orphans)


def difference(old: NotebookNode, new: NotebookNode) -> Iterator[str]:
    """The lines of outputs that differ, each cell under its number and first line."""
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
    """The outputs of a cell as lines that a person can compare."""
    for output in cell.outputs:
        if output.output_type == "stream":
            yield from output.text.splitlines()
        elif output.output_type == "error":
            yield f"{output.ename}: {output.evalue}"
        else:
            for kind, value in sorted(output.data.items()):
                yield f"[{kind}]"
                if kind == "image/svg+xml":
                    yield f"{len(value)} characters, starting {value[:60]!r}"
                elif isinstance(value, str):
                    yield from value.splitlines()
                else:
                    yield from json.dumps(value, indent=1, sort_keys=True).splitlines()
