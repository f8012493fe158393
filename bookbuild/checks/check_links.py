"""Asks for every address outside the book that a page links to, with Sphinx's own link check."""

from __future__ import annotations

import shutil

from bookbuild.book import Book
from bookbuild.checks import link_report
from bookbuild.errors import BookError
from bookbuild.site.build import run_jupyter_book


def check(book: Book) -> None:
    """Ask for every address; print those that moved for good, and fail for those that are broken.

    Raises:
        BookError: with a line for each address that is broken, or if not one could be reached.
    """
    folder = book.build / "linkcheck"
    shutil.rmtree(folder, ignore_errors=True)
    print("Asking for every address outside (minutes)", flush=True)
    clean = run_jupyter_book(book, "linkcheck", quiet=True)
    report = folder / "output.json"
    if not report.exists():
        raise BookError("the pages were not read: the warnings above say in which file and line")
    answers = link_report.read(report)
    kinds = ("working", "redirected", *link_report.BROKEN)
    counts = {status: link_report.count(answers, status) for status in kinds}
    print(", ".join(f"{count} {status}" for status, count in counts.items()))
    print(*link_report.moved(answers), sep="\n")
    if answers and not counts["working"] + counts["redirected"]:
        raise BookError("no address could be reached: check the network")
    found = list(link_report.problems_in(answers))
    if found:
        raise BookError(*found)
    if not clean:
        raise BookError("Sphinx warned: the warnings above say in which file and line")
