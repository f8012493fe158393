"""The whole book as one PDF: the built site's pages, joined into one and printed by Chromium."""

from __future__ import annotations

import json
import logging
import time
from pathlib import Path

import pypdfium2
import yaml
from playwright.sync_api import Page

from bookbuild.book import Book
from bookbuild.checks.check_pdf import page_of, pdf_problems
from bookbuild.errors import BookError
from bookbuild.pdf.chromium import open_page
from bookbuild.pdf.print_page import WEB, Entry, printed_book
from bookbuild.site.offered import PDF_NAME


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
    source, part = folder / "book.html", folder / "part.pdf"
    source.write_text(printed.html, encoding="utf-8")
    with open_page(source) as page:
        problems = page.evaluate((WEB / "print.js").read_text(encoding="utf-8"))
        if problems:
            raise BookError(*(f"{PDF_NAME}: {problem}" for problem in problems))
        # The page numbers are known only now, so print again with them in the contents.
        print_page(page, part, complete=False)
        page.evaluate(_set_page_numbers(_page_numbers(part, printed.entries)))
        print_page(page, part)
    found = pdf_problems(part, printed)
    if found:
        raise BookError(*(f"{PDF_NAME}: {problem}" for problem in found))
    target = book.html / PDF_NAME
    _pack(part, target, settings["author"])
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


def _pack(source: Path, target: Path, authors: str) -> None:
    """Write the PDF with its many small objects compressed, which at least halves its size."""
    logging.getLogger("pikepdf").setLevel(logging.WARNING)  # it logs a greeting when imported
    import pikepdf

    with pikepdf.open(source) as document:
        document.docinfo["/Author"] = authors
        packed = pikepdf.ObjectStreamMode.generate
        document.save(target, object_stream_mode=packed)


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
