"""Runs chapters on each bug, the likely and the cheap ones first, and prints which one finds it."""

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
from bookbuild.errors import BookError
from bookbuild.outputs.digest import modules
from bookbuild.outputs.nbval_report import Difference, Result, compare

NOT_COPIED = (".git", ".venv", "_build", "build", "node_modules", "__pycache__", ".*_cache")


@dataclass(frozen=True)
class Run:
    """One chapter on one bug."""

    bug: Bug
    chapter: str
    result: Result

    @property
    def found(self) -> Difference | None:
        """The first cell that ran and is not as its reference says: what makes a chapter red."""
        return next((one for one in self.result.different if one.tells), None)

    def __str__(self) -> str:
        """As an entry of the table."""
        if self.found:
            return str(self.found)
        return str(next(iter(self.result.different), "same"))


def try_bugs(book: Book, names: Sequence[str] = (), *, everything: bool = False) -> None:
    """Put in one bug at a time, and print a table of the chapters that ran on it.

    Args:
        book: the book; nothing in its folder is changed.
        names: which bugs; all of them if empty.
        everything: whether all chapters run that reach the bug, or those up to the first red one.

    Raises:
        BookError: if there is no bug of a name, a bug does not fit its file, no chapter finds a
            bug, or a chapter is red without one.
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
    """The bugs with these names; all of them without names.

    Raises:
        BookError: if a name is no bug's.
    """
    listed = list(bugs)
    known = dict.fromkeys(bug.name for bug in listed)
    unknown = [name for name in names if name not in known]
    if unknown:
        raise BookError(f"no bug is called {', '.join(unknown)}; there are: {', '.join(known)}")
    return [bug for bug in listed if not names or bug.name in names]


def reaching(book: Book, bug: Bug, imported: Mapping[str, Collection[str]]) -> list[Chapter]:
    """The chapters that import the changed module, the likely and the cheap ones first.

    Those come first that name the changed function, then those that import the fewest modules.

    Args:
        book: the book.
        bug: what is changed.
        imported: the modules that each chapter imports, by the name of the chapter.
    """
    place = bug.place((book.root / bug.file).read_text(encoding="utf-8"))
    word = re.compile(rf"\b{place}\b")

    def order(chapter: Chapter) -> tuple[bool, int]:
        names_it = any(word.search(cell.source) for cell in chapter.code_cells)
        return not names_it, len(imported[chapter.name])

    found = (chapter for chapter in book.chapters if bug.module in imported[chapter.name])
    return sorted(found, key=order)


def attempt(book: Book, bug: Bug, chapters: Iterable[Chapter], *, everything: bool) -> list[Run]:
    """Run chapters on a copy of the book with the bug, up to the first red one or all."""
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
    # PYTHONPATH: else the kernel would import the installed lnbook, which has no bug.
    environment = {"PYTHONPATH": str(copy.root), "OMP_NUM_THREADS": "1"}
    path = copy.show(copy.reference(chapter))
    results = compare(copy.root, [path], environment, "--numprocesses=0", "--exitfirst")
    return results.get(chapter.name, Result())


def unfound(bugs: Iterable[Bug], runs: Sequence[Run]) -> list[str]:
    """A line for each bug that no chapter finds."""
    found = {run.bug for run in runs if run.found}
    return [
        f"{bug.file}: no chapter finds the bug '{bug.name}'" for bug in bugs if bug not in found
    ]


def red_anyway(book: Book, runs: Iterable[Run]) -> list[str]:
    """A line for each chapter that a bug turned red and that is red without a bug, too."""
    red = {run.chapter for run in runs if run.found}
    problems = []
    with copied(book) as copy:
        for chapter in book.chapters:
            if chapter.name in red:
                result = executed(copy, chapter)
                if result.different or not result.cells:
                    what = ", ".join(map(str, result.different)) or "has no cells"
                    problems.append(f"{chapter.name}: is red without a bug: {what}")
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
