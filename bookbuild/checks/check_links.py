"""Checks every external link with Sphinx's link checker."""

from __future__ import annotations

import shutil

from bookbuild.book import Book
from bookbuild.checks import link_report
from bookbuild.errors import BookError
from bookbuild.site.build import run_jupyter_book


def check(book: Book) -> None:
    """Check every external link; print permanent redirects, and fail on broken links.

    Raises:
        BookError: with one line per broken link, or if no address could be reached.
    """
    folder = book.build / "linkcheck"
    shutil.rmtree(folder, ignore_errors=True)
    print("Checking every external link (takes minutes)", flush=True)
    clean = run_jupyter_book(book, "linkcheck", quiet=True)
    report = folder / "output.json"
    if not report.exists():
        raise BookError("Sphinx could not read the pages: see the warnings above")
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
        raise BookError("Sphinx warned: see the warnings above for the file and line")
