"""Writes the lectures as pages that reveal.js shows: `make slides`, and as part of `make book`.

It uses a vendored copy of reveal.js rather than nbconvert, whose template loads it from another
host, or sphinx-revealjs, a second Sphinx builder that reads every page again and can't use our
figures.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path

from jinja2 import Environment, FileSystemLoader
from nbformat import NotebookNode

from bookbuild.book import Book
from bookbuild.errors import BookError
from bookbuild.outputs.cache import ensure
from bookbuild.site import figure_colors, figure_files, stylesheet, used_names
from bookbuild.slides.deck import Deck, read, section
from bookbuild.slides.markdown import code_colors
from bookbuild.slides.results import Results
from bookbuild.sphinx.math import Renderer

SOURCE = "_slides"  # under the folder of the pages
TARGET = "slides"  # under the site's root, and under its _static
REVEAL = "reveal"
STYLE, TEMPLATE = "slides.css", "deck.html"
COPIED = ("slides.js", "plain.css")
SHARED = ("fonts", "katex", REVEAL)  # folders in _static that the slides load from
FAVICON = "favicon.svg"


def build_alone(book: Book) -> None:
    """Write the slides into a separate folder, without building the site.

    Raises:
        BookError: if a chapter fails to run or a lecture fails its checks.
    """
    folder = book.build / "slides"
    shutil.rmtree(folder, ignore_errors=True)
    static = folder / "_static"
    for name in SHARED:
        shutil.copytree(book.source / "_static" / name, static / name)
    shutil.copy(book.source / "_static" / FAVICON, static / FAVICON)
    for deck in write(book, ensure(book), folder, static, to_static="_static/", site="../html/"):
        print(f"{folder / deck.name}.html: {len(deck.slides)} slides, {deck.minutes} minutes")


def sources(book: Book) -> list[Path]:
    """The lectures' sources, in order."""
    return sorted((book.source / SOURCE).glob("lecture-*.md"))


def decks(book: Book, executed: Mapping[str, NotebookNode], site: str) -> list[Deck]:
    """All lectures, with the chapters' results in them.

    Args:
        book: the book.
        executed: the executed chapters.
        site: the URL of the site's root, as seen from the slides.

    Raises:
        BookError: if a lecture fails its checks.
    """
    results, formulas, problems = Results(executed), Renderer(), list[str]()
    found = []
    titles = {name: _title(book.source / f"{name}.md") for name in book.pages}
    try:
        for path in sources(book):
            try:
                found.append(read(path, results, titles, site, formulas, book.show(path)))
            except BookError as error:
                problems += error.problems
    finally:
        formulas.close()
    if problems:
        raise BookError(*problems)
    return found


def write(
    book: Book,
    executed: Mapping[str, NotebookNode],
    folder: Path,
    static: Path,
    *,
    to_static: str,
    site: str,
) -> list[Deck]:
    """Write the pages of all lectures and the files that they load.

    Args:
        book: the book.
        executed: the executed chapters.
        folder: the folder for the pages.
        static: the folder with the site's fonts and scripts.
        to_static: its URL, as seen from the pages.
        site: the URL of the site's root, as seen from the pages.

    Returns:
        The lectures.

    Raises:
        BookError: if a lecture fails its checks.
    """
    shutil.rmtree(folder / figure_files.FOLDER, ignore_errors=True)
    found = decks(book, executed, site)
    own = static / TARGET
    for path in (folder, own):
        path.mkdir(parents=True, exist_ok=True)
    pages = {deck.name: _page(book, deck, to_static, site) for deck in found}
    for deck in found:
        (folder / f"{deck.name}.html").write_text(pages[deck.name], encoding="utf-8")
        for figure in deck.figures:
            figure_files.write(figure, folder / figure_files.FOLDER)
    for name in COPIED:
        shutil.copy(book.source / SOURCE / name, own / name)
    (own / STYLE).write_text(_style(book, pages.values()), encoding="utf-8")
    return found


def _page(book: Book, deck: Deck, to_static: str, site: str) -> str:
    templates = Environment(loader=FileSystemLoader(book.source / SOURCE), autoescape=True)
    sections, minute = [], 0
    for slide in deck.slides:
        sections.append(section(slide, minute, deck.minutes))
        minute += slide.minutes
    return templates.get_template(TEMPLATE).render(
        deck=deck, sections="\n".join(sections), static=to_static, site=site
    )


def _style(book: Book, pages: Iterable[str]) -> str:
    """One style sheet for all lectures, with only what they use."""
    static, own = book.source / "_static", book.source / SOURCE
    scripts = (static / REVEAL / "reveal.js", static / REVEAL / "notes.js", own / COPIED[0])
    known = used_names.of(pages, (path.read_text(encoding="utf-8") for path in scripts))
    # URLs in the result are relative to _static/slides.
    sheets = [
        ("palette", figure_colors.tokens()),
        ("../katex/katex.min.css", (static / "katex" / "katex.min.css").read_text("utf-8")),
        # Not in _static, or Jupyter Book would add it to every page.
        ("reveal.css", (own / "reveal.css").read_text("utf-8")),
        ("code", code_colors()),
        (STYLE, (own / STYLE).read_text("utf-8")),
    ]
    return stylesheet.combine(sheets, known)


def _title(page: Path) -> str:
    """A page's first heading."""
    for line in page.read_text(encoding="utf-8").splitlines():
        if line.startswith("# "):
            return line.removeprefix("# ").strip()
    return page.stem
