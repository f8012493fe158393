"""Checks the PDF for anything readers shouldn't see.

Chromium cuts off anything too wide for a page, and the PDF doesn't show that this happened;
bookbuild/pdf/print.js checks for it before printing.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pypdfium2
import pypdfium2.raw as pdfium

from bookbuild.pdf.print_page import PrintedBook

ALLOWED = ("https:", "http:", "mailto:")


def pdf_problems(path: Path, printed: PrintedBook) -> list[str]:
    """Every fault, one per line.

    Args:
        path: the PDF.
        printed: the page it was printed from.
    """
    document = pypdfium2.PdfDocument(path)
    try:
        return [*_outline(document, printed), *_contents(document, printed), *_pages(document)]
    finally:
        document.close()


def page_of(document: pypdfium2.PdfDocument, anchor: str) -> int | None:
    """The page number (from 1) of an id."""
    destination = pdfium.FPDF_GetNamedDestByName(document.raw, anchor.encode("utf-8"))
    if not destination:
        return None
    index: int = pdfium.FPDFDest_GetDestPageIndex(document.raw, destination)
    return index + 1 if index >= 0 else None


def bookmarks(document: pypdfium2.PdfDocument) -> list[tuple[int, str]]:
    """The depth and title of each bookmark."""
    return [(mark.level, " ".join(mark.get_title().split())) for mark in document.get_toc(15)]


def _outline(document: pypdfium2.PdfDocument, printed: PrintedBook) -> Iterator[str]:
    found = set(bookmarks(document))
    for entry in printed.entries:
        # Chromium decides how a bookmark spells a formula in a heading.
        plain = entry.title.isascii() and entry.depth <= 1
        if plain and (entry.depth, entry.title) not in found:
            yield f"has no bookmark '{entry.title}' at depth {entry.depth}"


def letters(text: str) -> str:
    """Return a text without spaces and line breaks."""
    return "".join(text.split())


def _contents(document: pypdfium2.PdfDocument, printed: PrintedBook) -> Iterator[str]:
    """Pages that are out of order: they must follow the order of the table of contents."""
    last = 0
    for entry in printed.entries:
        number = page_of(document, entry.anchor)
        if number is None or number < last:
            yield f"'{entry.title}' is on page {number}, after page {last}"
        last = number or last


def _pages(document: pypdfium2.PdfDocument) -> Iterator[str]:
    for index in range(len(document)):
        page = document[index]
        for target in _links(document, page):
            if not isinstance(target, int) and not target.startswith(ALLOWED):
                yield f"page {index + 1}: a link leads to {target or 'nowhere'}"
        page.close()


def _links(document: pypdfium2.PdfDocument, page: pypdfium2.PdfPage) -> Iterator[int | str]:
    """Where each link leads: a page number from 0, or a URL."""
    position = ctypes.c_int(0)
    link = pdfium.FPDF_LINK()
    while pdfium.FPDFLink_Enumerate(page.raw, position, link):
        destination = pdfium.FPDFLink_GetDest(document.raw, link)
        if destination:
            index: int = pdfium.FPDFDest_GetDestPageIndex(document.raw, destination)
            yield index if index >= 0 else ""
        else:
            yield _address(document, pdfium.FPDFLink_GetAction(link))


def _address(document: pypdfium2.PdfDocument, action: Any) -> str:
    length = pdfium.FPDFAction_GetURIPath(document.raw, action, None, 0) if action else 0
    if not length:
        return ""
    buffer = ctypes.create_string_buffer(length)
    pdfium.FPDFAction_GetURIPath(document.raw, action, buffer, length)
    return buffer.value.decode("utf-8", "replace")
