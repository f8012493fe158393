"""Upgrades the pinned versions and shows what changed."""

from __future__ import annotations

from collections.abc import Sequence

from packaging.utils import canonicalize_name

from bookbuild.book import Book
from bookbuild.environment import pins
from bookbuild.environment.resolve import newest
from bookbuild.errors import BookError
from bookbuild.git import changed_files


def update_pins(book: Book, packages: Sequence[str] = (), index: str = "") -> None:
    """Write the newest compatible versions to constraints.txt and environment.yml.

    Args:
        book: the book.
        packages: upgrade only these and their dependencies; if empty, upgrade everything.
        index: the URL of an extra package index.

    Raises:
        BookError: if there are uncommitted changes, a package isn't pinned, the package index
            can't be reached, or no versions are compatible. In all these cases, nothing is written.
    """
    _refuse_changes(book)
    old = pins.read(book.constraints)
    unknown = [name for name in packages if canonicalize_name(name) not in old]
    if unknown:
        raise BookError(f"{book.show(book.constraints)} does not pin {', '.join(unknown)}")
    print("Looking for the newest compatible versions", flush=True)
    new = newest(book, packages, index)
    lines = list(pins.changes(old, new))
    if not lines:
        print("Every pin is already at the newest compatible version")
        return
    pins.write(book.constraints, new)
    pins.write_conda(book.conda, new)
    print(*(f"  {line}" for line in lines), sep="\n")
    written = f"{book.show(book.constraints)} {book.show(book.conda)}"
    print(f"{len(lines)} pin(s) changed in {written}")
    print(f"To undo: git restore {written} {book.show(book.references)} && make setup")


def _refuse_changes(book: Book) -> None:
    """Refuse uncommitted changes: they'd be mixed into the update and lost when it's undone."""
    changed = changed_files(book.root)
    if changed:
        shown = ", ".join(changed[:5]) + (", ..." if len(changed) > 5 else "")
        raise BookError(f"commit or stash your changes first: {shown}")
