"""Runs chapters with each bug, likeliest and cheapest first, and prints which chapter caught it."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bookbuild.book import Book
from bookbuild.bugs.bug import Bug
from bookbuild.bugs.known import BUGS
from bookbuild.chapter import Chapter
from bookbuild.errors import BookError, require_known
from bookbuild.outputs.digest import modules
from bookbuild.outputs.nbval_report import Difference, Result, compare

NOT_COPIED = (".git", ".venv", "_build", "build", "node_modules", "__pycache__", ".*_cache")


@dataclass(frozen=True)
class Run:
    """One chapter run with one bug."""

    bug: Bug
    chapter: str
    result: Result

    @property
    def found(self) -> Difference | None:
        """The first cell that ran but differs from its reference, which makes the chapter fail."""
        return next((one for one in self.result.different if one.tells), None)

    def __str__(self) -> str:
        """The run as a table entry."""
        if self.found:
            return str(self.found)
        return str(next(iter(self.result.different), "same"))


def try_bugs(book: Book, names: Sequence[str] = (), *, everything: bool = False) -> None:
    """Inject one bug at a time, and print a table of the chapters that ran with it.

    Args:
        book: the book; its folder isn't changed.
        names: the bugs to inject; if empty, all of them.
        everything: whether to run every chapter that reaches the bug, or stop at the first one
            that fails.

    Raises:
        BookError: if a name doesn't match any bug, a bug doesn't fit its file, no chapter
            catches a bug, or a chapter fails even without one.
    """
    bugs = named(BUGS, names)
    imported = {chapter.name: modules(book, chapter) for chapter in book.chapters}
    chapters = [reaching(book, bug, imported) for bug in bugs]
    print(f"Trying {len(bugs)} bugs", flush=True)
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        tried = [
            pool.submit(attempt, book, bug, order, everything=everything)
            for bug, order in zip(bugs, chapters, strict=True)
        ]
        runs = [run for future in tried for run in future.result()]
    print("", *table(runs), sep="\n", flush=True)
    problems = [*unfound(bugs, runs), *red_anyway(book, runs)]
    if problems:
        raise BookError(*problems)


def named(bugs: Iterable[Bug], names: Sequence[str]) -> list[Bug]:
    """The bugs with these names, or all bugs if there are no names.

    Raises:
        BookError: if a name doesn't match any bug.
    """
    listed = list(bugs)
    require_known("bug", names, dict.fromkeys(bug.name for bug in listed))
    return [bug for bug in listed if not names or bug.name in names]


def reaching(book: Book, bug: Bug, imported: Mapping[str, Collection[str]]) -> list[Chapter]:
    """The chapters that import the changed module, likeliest and cheapest first.

    Chapters that name the changed function come first; ties go to those with fewer imports.

    Args:
        book: the book.
        bug: the bug.
        imported: the modules that each chapter imports, keyed by the chapter's name.
    """
    place = bug.place((book.root / bug.file).read_text(encoding="utf-8"))
    word = re.compile(rf"\b{place}\b")

    def order(chapter: Chapter) -> tuple[bool, int]:
        names_it = any(word.search(cell.source) for cell in chapter.code_cells)
        return not names_it, len(imported[chapter.name])

    found = (chapter for chapter in book.chapters if bug.module in imported[chapter.name])
    return sorted(found, key=order)


def attempt(book: Book, bug: Bug, chapters: Iterable[Chapter], *, everything: bool) -> list[Run]:
    """Run chapters on a copy of the book with the bug: all of them, or up to the first failure."""
    runs = []
    with copied(book) as copy:
        bug.put_into(copy.root)
        for chapter in chapters:
            run = Run(bug, chapter.name, executed(copy, chapter))
            runs.append(run)
            if run.found and not everything:
                break
    last = f"{runs[-1].chapter}: {runs[-1]}" if runs else "no chapter reaches it"
    print(f"  {bug.name}, {bug.file}: {last}", flush=True)
    return runs


@contextmanager
def copied(book: Book) -> Iterator[Book]:
    """A copy of the book in a temporary folder."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "book"
        shutil.copytree(book.root, root, ignore=shutil.ignore_patterns(*NOT_COPIED))
        yield Book(root)


def executed(copy: Book, chapter: Chapter) -> Result:
    """Compare one chapter with its reference, up to its first difference."""
    # Without PYTHONPATH, the kernel would import the installed lnbook, which has no bug.
    path = [str(copy.root), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {"PYTHONPATH": os.pathsep.join(path), "OMP_NUM_THREADS": "1"}
    reference = copy.show(copy.reference(chapter))
    results = compare(copy.root, [reference], environment, "--numprocesses=0", "--exitfirst")
    return results.get(chapter.name, Result())


def unfound(bugs: Iterable[Bug], runs: Sequence[Run]) -> list[str]:
    """One line for each bug that no chapter catches."""
    found = {run.bug for run in runs if run.found}
    return [
        f"{bug.file}: no chapter catches the bug '{bug.name}'" for bug in bugs if bug not in found
    ]


def red_anyway(book: Book, runs: Iterable[Run]) -> list[str]:
    """One line for each chapter that failed with a bug but also fails without one."""
    red = {run.chapter for run in runs if run.found}
    problems = []
    with copied(book) as copy:
        for chapter in book.chapters:
            if chapter.name in red:
                result = executed(copy, chapter)
                if result.different or not result.cells:
                    what = ", ".join(map(str, result.different)) or "has no cells"
                    problems.append(f"{chapter.name}: fails even without a bug: {what}")
    return problems


def table(runs: Iterable[Run]) -> list[str]:
    """The lines of a table: bug, file, chapter, and what the chapter showed."""
    rows = [("bug", "in", "chapter", "what it shows")]
    rows += [(run.bug.name, run.bug.file, run.chapter, str(run)) for run in runs]
    sizes = [max(len(row[column]) for row in rows) for column in range(3)]
    return [
        "  ".join([f"{cell:{size}}" for cell, size in zip(row, sizes, strict=False)] + [row[3]])
        for row in rows
    ]
