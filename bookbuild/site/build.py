"""Builds the site and checks what was built."""

from __future__ import annotations

import contextlib
import io
import os
import sys
import time

from jupyter_book.cli.main import main as jupyter_book
from sphinx.util.console import nocolor

from bookbuild.book import Book
from bookbuild.checks.check_html import problems_of
from bookbuild.checks.check_notebooks import notebook_problems
from bookbuild.errors import BookError
from bookbuild.outputs.cache import fill_cache
from bookbuild.site import unchanged
from bookbuild.site.offered import NOTEBOOKS, PDF_NAME, PDF_VARIABLE


def build(book: Book, *, quiet: bool = True) -> None:
    """Build the site with warnings as errors, optionally print it, and check every page.

    Raises:
        BookError: if a chapter fails, Sphinx warns, or the site or the PDF fails its checks.
    """
    start = time.perf_counter()
    printing = bool(os.environ.get(PDF_VARIABLE))
    if printing:
        from bookbuild.pdf.chromium import find_chromium

        find_chromium()  # fail now, not after building the pages
    sources = unchanged.sources_digest(book.root)
    unchanged.forget(book.root)
    fill_cache(book)
    unchanged.forget_outdated(book.root)
    print("Building the pages", flush=True)
    if not run_jupyter_book(book, quiet=quiet):
        # Sphinx doesn't repeat warnings for pages that it doesn't read again.
        unchanged.forget_pages(book.root)
        raise BookError("the site was not built: see the warnings above for the file and line")
    (book.html / PDF_NAME).unlink(missing_ok=True)  # from an older build
    if printing:
        from bookbuild.pdf.build import make_pdf

        make_pdf(book)
    found = problems_of(book.html, book.build / "checked.json")
    found += notebook_problems(book.html / NOTEBOOKS)
    if found:
        raise BookError(*found)
    unchanged.remember(book.root, sources)
    print(f"Built in {time.perf_counter() - start:.1f} s: {book.html / 'index.html'}")


def run_jupyter_book(book: Book, builder: str = "html", *, quiet: bool) -> bool:
    """Run Jupyter Book in this process, which has already imported most of it."""
    options = ["--config", str(book.config), "--toc", str(book.toc)]
    options += ["--path-output", str(book.root), "-W", "-n", "--keep-going"]
    if builder != "html":  # needs a separate folder
        options += ["--builder", "custom", "--custom-builder", builder]
    if quiet:
        options.append("-q")
    if not sys.stderr.isatty():
        nocolor()
    try:
        with contextlib.redirect_stdout(io.StringIO() if quiet else sys.stdout):
            jupyter_book(["build", str(book.source), *options], standalone_mode=False)
    except (RuntimeError, SystemExit):
        return False
    return True
