"""Builds the site, checks what was built, and serves it on this machine."""

from __future__ import annotations

import contextlib
import functools
import http.server
import io
import shutil
import sys
import time

from jupyter_book.cli.main import main as jupyter_book
from sphinx.util.console import nocolor

from bookbuild.book import Book
from bookbuild.check_html import problems_of
from bookbuild.errors import BookError
from bookbuild.outputs import fill_cache


def build(book: Book, *, quiet: bool = True) -> None:
    """Build the site with warnings as errors, then check every page.

    Raises:
        BookError: if a chapter fails, Sphinx warns, or a built page has a fault.
    """
    start = time.perf_counter()
    fill_cache(book)
    print("Building the pages", flush=True)
    if not _run_jupyter_book(book, quiet=quiet):
        # Sphinx repeats no warning for a page that it does not read again.
        shutil.rmtree(book.build / ".doctrees", ignore_errors=True)
        raise BookError("the site was not built: the warnings above say in which file and line")
    found = problems_of(book.html)
    if found:
        raise BookError(*found)
    print(f"Built in {time.perf_counter() - start:.1f} s: {book.html / 'index.html'}")


def _run_jupyter_book(book: Book, *, quiet: bool) -> bool:
    """Run Jupyter Book in this process, which has imported most of it already."""
    options = ["--config", str(book.config), "--toc", str(book.toc)]
    options += ["--path-output", str(book.root), "-W", "-n", "--keep-going"]
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


def serve(book: Book, port: int) -> None:
    """Serve the built site on the loopback address until interrupted.

    Raises:
        BookError: if there is no site or the port is taken.
    """
    if not (book.html / "index.html").exists():
        raise BookError("there is no site yet: run 'make book'")
    handler = functools.partial(_QuietHandler, directory=str(book.html))
    try:
        server = http.server.ThreadingHTTPServer(("127.0.0.1", port), handler)
    except OSError as error:
        raise BookError(
            f"port {port} cannot be used ({error.strerror}): try 'make serve PORT={port + 1}'"
        ) from None
    print(f"The book is at http://127.0.0.1:{server.server_port}/ (Ctrl+C ends)", flush=True)
    with server:
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            print()


class _QuietHandler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_args: object) -> None:
        """Say nothing of each request."""
