"""Sphinx extension: lab sheets and exam questions to download.

The directive `lab-sheets` lists the labs with their parts, minutes and points, and links to two
notebooks for each: a starter without solutions, and the same with solutions and outputs. The
directive `exam-bank` says how many exam questions there are, and links to two Markdown files. The
directive `class-costs` shows how much memory the labs and chapters need, as the tests measured it.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.errors import ExtensionError
from sphinx.util.docutils import SphinxDirective

from bookbuild.book import Book
from bookbuild.chapter import Chapter
from bookbuild.errors import BookError
from bookbuild.labs import exam
from bookbuild.labs.sheet import parts, starter, title, with_solutions
from bookbuild.outputs import costs
from bookbuild.outputs.cache import ensure, for_readers, write_notebook
from bookbuild.site.offered import NOTEBOOKS
from bookbuild.sphinx.chapter import ChapterPart, relative
from bookbuild.sphinx.repository import address

MARK = "lab-sheets"
EXAM, COSTS = "exam-bank", "class-costs"
BANK = Path("teach/exam.toml")  # in the folder with the pages
QUESTIONS, SOLUTIONS = f"{NOTEBOOKS}/exam-questions.md", f"{NOTEBOOKS}/exam-solutions.md"


def setup(app: Sphinx) -> dict[str, Any]:
    """Add the directives; write the files at the end."""
    app.setup_extension("bookbuild.sphinx.chapter")
    for name in (MARK, EXAM, COSTS):
        app.add_directive(name, Downloads)
    app.connect("env-updated", _pages)
    app.connect("doctree-resolved", _fill)
    app.connect("build-finished", _write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


class Downloads(SphinxDirective):
    """`lab-sheets`, `exam-bank` or `class-costs`: lists what's available."""

    def run(self) -> list[nodes.Node]:
        """Insert a placeholder, and remember its page."""
        self.env.metadata[self.env.docname][MARK] = "yes"
        return [ChapterPart(template=f"{self.name}.html", values={})]


def _pages(app: Sphinx, env: BuildEnvironment) -> list[str]:
    """Rewrite these pages in every build: Sphinx doesn't know which labs they depend on."""
    del app
    return [name for name, metadata in env.metadata.items() if MARK in metadata]


def _book(app: Sphinx) -> Book:
    return Book(Path(app.srcdir).parent)


def _fill(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    here = app.builder.get_target_uri(docname)
    try:
        for part in doctree.findall(ChapterPart):
            if part["template"] == f"{MARK}.html":
                part["values"] = {"labs": [_sheet(lab, here) for lab in _book(app).labs]}
            elif part["template"] == f"{EXAM}.html":
                part["values"] = {
                    "rows": exam.overview(_bank(app)),
                    "questions": relative(here, QUESTIONS),
                    "solutions": relative(here, SOLUTIONS),
                }
            elif part["template"] == f"{COSTS}.html":
                part["values"] = _costs(_book(app))
    except BookError as error:
        raise ExtensionError(str(error)) from None


def _sheet(lab: Chapter, here: str) -> dict[str, Any]:
    return {
        "title": title(lab),
        "parts": parts(lab),
        "starter": relative(here, f"{NOTEBOOKS}/{lab.name}.ipynb"),
        "solutions": relative(here, f"{NOTEBOOKS}/{lab.name}-solutions.ipynb"),
    }


def _costs(book: Book) -> dict[str, Any]:
    """The recorded peaks: one per lab, and the median and the maximum of the chapters."""
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
