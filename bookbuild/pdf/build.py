"""The whole book as one PDF: the built site's pages, joined into one and printed by Chromium."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pypdfium2
import yaml
from playwright.sync_api import Page

from bookbuild.book import Book
from bookbuild.checks.check_pdf import letters, page_of, pdf_problems
from bookbuild.errors import BookError
from bookbuild.pdf.chromium import open_page
from bookbuild.pdf.print_page import WEB, Entry, printed_book
from bookbuild.site.offered import PDF_NAME

HEADINGS = """[...document.querySelectorAll("h1, h2, h3, h4, h5, h6")].map(
    (heading) => heading.textContent.trim().replace(/\\s+/g, " ")
)"""


def make_pdf(book: Book) -> Path:
    """Print the built site, and check the result.

    Raises:
        BookError: if Chromium is missing or the PDF fails its checks.
    """
    start = time.perf_counter()
    print("Printing the book as PDF", flush=True)
    folder = book.build / "pdf"
    folder.mkdir(parents=True, exist_ok=True)
    settings = yaml.safe_load(book.config.read_text(encoding="utf-8"))
    printed = printed_book(book, settings["title"], settings["author"], folder)
    source, part, packed = (folder / name for name in ("book.html", "part.pdf", "packed.pdf"))
    source.write_text(printed.html, encoding="utf-8")
    with open_page(source) as page:
        problems = page.evaluate((WEB / "print.js").read_text(encoding="utf-8"))
        if problems:
            raise BookError(*(f"{PDF_NAME}: {problem}" for problem in problems))
        # The page numbers are known only now, so print again with them in the contents.
        print_page(page, part, complete=False)
        page.evaluate(_set_page_numbers(_page_numbers(part, printed.entries)))
        print_page(page, part)
        headings = page.evaluate(HEADINGS)
    _pack(part, packed, settings["author"], headings)
    found = pdf_problems(packed, printed)
    if found:
        raise BookError(*(f"{PDF_NAME}: {problem}" for problem in found))
    target = book.html / PDF_NAME
    packed.replace(target)
    pages = len(pypdfium2.PdfDocument(target))
    size = target.stat().st_size / 1e6
    seconds = time.perf_counter() - start
    print(f"Printed in {seconds:.1f} s: {target} ({pages} pages, {size:.1f} MB)")
    return target


def print_page(page: Page, path: Path, *, complete: bool = True) -> None:
    """Print a page according to its style sheet; add bookmarks and tags if `complete`."""
    page.pdf(
        path=path,
        prefer_css_page_size=True,
        print_background=True,
        outline=complete,
        tagged=complete,
    )


def _pack(source: Path, target: Path, authors: str, headings: Iterable[str]) -> None:
    """Write the PDF with its many small objects compressed, which at least halves its size.

    If a heading takes two lines, Chromium leaves a space out of its bookmark. Put it back.
    """
    logging.getLogger("pikepdf").setLevel(logging.WARNING)  # it logs a greeting when imported
    import pikepdf

    with pikepdf.open(source) as document:
        document.docinfo["/Author"] = authors
        titles = {letters(heading): heading for heading in headings}
        for mark in _bookmarks(document.Root.Outlines):
            mark.Title = titles.get(letters(str(mark.Title)), str(mark.Title))
        packed = pikepdf.ObjectStreamMode.generate
        document.save(target, object_stream_mode=packed)


def _bookmarks(parent: Any) -> Iterator[Any]:
    mark = parent.get("/First")
    while mark is not None:
        yield mark
        yield from _bookmarks(mark)
        mark = mark.get("/Next")


def _page_numbers(path: Path, entries: tuple[Entry, ...]) -> list[int]:
    document = pypdfium2.PdfDocument(path)
    numbers = [page_of(document, entry.anchor) for entry in entries]
    document.close()
    missing = [e.title for e, n in zip(entries, numbers, strict=True) if n is None]
    if missing:
        raise BookError(*(f"{PDF_NAME}: '{title}' has no page" for title in missing))
    return [number for number in numbers if number is not None]


def _set_page_numbers(numbers: list[int]) -> str:
    return (
        f"{json.dumps(numbers)}.forEach((number, place) => "
        "document.querySelectorAll('.contents .page')[place].textContent = number)"
    )
