"""Raises the pinned versions, and shows from what to what."""

from __future__ import annotations

from collections.abc import Sequence

from packaging.utils import canonicalize_name

from bookbuild.book import Book
from bookbuild.environment import pins
from bookbuild.environment.resolve import newest
from bookbuild.errors import BookError
from bookbuild.git import changed_files


def update_pins(book: Book, packages: Sequence[str] = (), index: str = "") -> None:
    """Write the newest versions that fit into constraints.txt and environment.yml.

    Args:
        book: the book.
        packages: raise only these, and what they need; without any, raise all.
        index: the address of an extra package index.

    Raises:
        BookError: before anything is written, if files are changed but not committed, if a package
            is not pinned, if the package index cannot be reached, or if no versions fit.
    """
    _refuse_changes(book)
    old = pins.read(book.constraints)
    unknown = [name for name in packages if canonicalize_name(name) not in old]
    if unknown:
        raise BookError(f"{book.show(book.constraints)} pins no {', '.join(unknown)}")
    print("Looking for the newest versions that fit together", flush=True)
    new = newest(book, packages, index)
    lines = list(pins.changes(old, new))
    if not lines:
        print("Every pin is at the newest version that fits")
        return
    pins.write(book.constraints, new)
    pins.write_conda(book.conda, new)
    print(*(f"  {line}" for line in lines), sep="\n")
    written = f"{book.show(book.constraints)} {book.show(book.conda)}"
    print(f"{len(lines)} pin(s) changed in {written}")
    print(f"To undo: git restore {written} {book.show(book.references)} && make setup")


def _refuse_changes(book: Book) -> None:
    """What is not committed could be neither told from the update nor kept when that is undone."""
    changed = changed_files(book.root)
    if changed:
        shown = ", ".join(changed[:5]) + (", ..." if len(changed) > 5 else "")
        raise BookError(f"commit or stash your changes first: {shown}")
