"""Updates the executed reference notebooks and shows what changed in them."""

from __future__ import annotations

from collections.abc import Sequence

from nbformat import NotebookNode

from bookbuild.book import Book
from bookbuild.chapter import Chapter
from bookbuild.outputs.cache import cache_path, ensure, read_notebook, with_text_of, write_notebook
from bookbuild.outputs.differences import difference
from bookbuild.outputs.execute import execute_all


def renew(book: Book, names: Sequence[str] = (), *, everything: bool = False) -> None:
    """Update the references of the named chapters, of all chapters, or of those that changed.

    Named chapters are executed even if nothing has changed. If a chapter fails, no reference is
    updated.

    Raises:
        BookError: if a name doesn't match any chapter, or a chapter fails.
    """
    forced = book.named(names) if not everything else list(book.notebooks)
    execute_all(book, forced, lambda chapter, nb: write_notebook(cache_path(book, chapter), nb))
    chapters = forced or book.notebooks
    executed = {} if forced else ensure(book, book.notebooks)
    changed = 0
    for chapter in chapters:
        found = executed.get(chapter.name) or read_notebook(cache_path(book, chapter))
        assert found is not None, "executed above"
        changed += _replace(book, chapter, with_text_of(chapter, found))
    changed += _remove_orphans(book)
    print(f"{changed} of {len(chapters)} reference(s) updated")
    if changed:
        print("Check the differences, then commit the references with the change that caused them.")


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
    wanted = {book.reference(chapter) for chapter in book.notebooks}
    orphans = [path for path in book.references.rglob("*.ipynb") if path not in wanted]
    for path in orphans:
        path.unlink()
        print(f"\n{book.show(path)}: removed: no chapter has this name")
    return len(orphans)
