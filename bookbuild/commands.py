"""What each command does once it needs the book itself, and with it Sphinx."""

from __future__ import annotations

import argparse
import gc
from collections.abc import Callable

from bookbuild.book import Book
from bookbuild.bugs.run import mutants
from bookbuild.checks import check_links, lint_cells
from bookbuild.environment import licenses, update_pins
from bookbuild.outputs import costs, differences, references
from bookbuild.reproduce import reproduce
from bookbuild.site import build

Command = Callable[[Book, argparse.Namespace], object]


def _build(book: Book, options: argparse.Namespace) -> None:
    # Pages are trees of many small objects: Python's default looks for cycles in them all the time.
    gc.set_threshold(200_000, 20, 100)
    build.build(book, quiet=not options.verbose)


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
