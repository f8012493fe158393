"""Sphinx extension: lab sheets and exam questions to download.

The `lab-sheets` directive lists the labs with their parts, minutes and points, and links to two
notebooks for each: a starter without solutions, and the same with solutions and outputs. The
`exam-bank` directive says how many exam questions there are, and links to two Markdown files. The
`class-costs` directive shows how much memory the labs and chapters need, as the tests measured it.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx
from sphinx.errors import ExtensionError

from bookbuild.book import Book
from bookbuild.chapter import Chapter
from bookbuild.errors import BookError
from bookbuild.labs import exam
from bookbuild.labs.sheet import parts, starter, title, with_solutions
from bookbuild.outputs import costs
from bookbuild.outputs.cache import ensure, for_readers, write_notebook
from bookbuild.site.offered import NOTEBOOKS
from bookbuild.sphinx.placeholder import add_placeholder, relative
from bookbuild.sphinx.repository import address

BANK = Path("teach/exam.toml")  # in the folder with the pages
QUESTIONS, SOLUTIONS = f"{NOTEBOOKS}/exam-questions.md", f"{NOTEBOOKS}/exam-solutions.md"


def setup(app: Sphinx) -> dict[str, Any]:
    """Add the directives; write the files at the end."""
    for name, values in (("lab-sheets", _labs), ("exam-bank", _exam), ("class-costs", _costs)):
        add_placeholder(app, name, f"{name}.html", values)
    app.connect("build-finished", _write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _book(app: Sphinx) -> Book:
    return Book(Path(app.srcdir).parent)


def _labs(app: Sphinx, docname: str) -> dict[str, Any]:
    here = app.builder.get_target_uri(docname)
    return {"labs": [_sheet(lab, here) for lab in _book(app).labs]}


def _sheet(lab: Chapter, here: str) -> dict[str, Any]:
    return {
        "title": title(lab),
        "parts": parts(lab),
        "starter": relative(here, f"{NOTEBOOKS}/{lab.name}.ipynb"),
        "solutions": relative(here, f"{NOTEBOOKS}/{lab.name}-solutions.ipynb"),
    }


def _exam(app: Sphinx, docname: str) -> dict[str, Any]:
    here = app.builder.get_target_uri(docname)
    return {
        "rows": exam.overview(_bank(app)),
        "questions": relative(here, QUESTIONS),
        "solutions": relative(here, SOLUTIONS),
    }


def _costs(app: Sphinx, docname: str) -> dict[str, Any]:
    """The recorded peaks: one per lab, and the median and the maximum for the chapters."""
    del docname
    book = _book(app)
    peaks = costs.recorded(book)
    labs = [(title(lab), peaks[lab.name]) for lab in book.labs if lab.name in peaks]
    chapters = sorted(peaks[one.name] for one in book.chapters if one.name in peaks)
    return {"labs": labs, "chapters": chapters}


def _bank(app: Sphinx) -> tuple[exam.ExamQuestion, ...]:
    path = Path(app.srcdir) / BANK
    return exam.read(path, BANK.as_posix()) if path.exists() else ()


def _write(app: Sphinx, error: Exception | None) -> None:
    if error is not None or app.builder.name != "html":
        return
    book, folder = _book(app), Path(app.outdir) / NOTEBOOKS
    try:
        if bank := _bank(app):
            for name, solved in ((QUESTIONS, False), (SOLUTIONS, True)):
                text = exam.as_markdown(bank, solutions=solved)
                (Path(app.outdir) / name).write_text(text, encoding="utf-8")
        executed = ensure(book, book.labs)
        for lab in book.labs:
            repository = address(os.environ)
            done = for_readers(lab, executed[lab.name])
            write_notebook(folder / f"{lab.name}.ipynb", starter(book, lab, repository))
            write_notebook(
                folder / f"{lab.name}-solutions.ipynb", with_solutions(book, lab, done, repository)
            )
    except BookError as fault:
        raise ExtensionError(str(fault)) from None
