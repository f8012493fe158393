"""What each command does once it needs the book itself, and with it Sphinx."""

from __future__ import annotations

import argparse
import gc
from collections.abc import Callable

from bookbuild import (
    check_links,
    costs,
    differences,
    licenses,
    lint_cells,
    references,
    reproduce,
    site,
    update_pins,
)
from bookbuild.book import Book
from bookbuild.mutants.run import mutants

Command = Callable[[Book, argparse.Namespace], object]


def _build(book: Book, options: argparse.Namespace) -> None:
    # Pages are trees of many small objects: Python's default looks for cycles in them all the time.
    gc.set_threshold(200_000, 20, 100)
    site.build(book, quiet=not options.verbose)


COMMANDS: dict[str, Command] = {
    "book": _build,
    "pdf": _build,
    "notebooks": lambda book, o: references.renew(book, o.chapter, everything=o.all),
    "lint": lambda book, _: lint_cells.lint(book),
    "check-links": lambda book, _: check_links.check(book),
    "differences": lambda book, _: differences.show(book),
    "update-pins": lambda book, o: update_pins.update_pins(book, o.packages, o.index),
    "reproduce": lambda book, o: reproduce.reproduce(
        book, o.chapter, o.settings, only_changed=o.changed
    ),
    "mutants": lambda book, o: mutants(book, o.bug, everything=o.all),
    "costs": lambda book, _: costs.show(book),
    "licenses": lambda book, _: licenses.write(book),
}
