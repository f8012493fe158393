"""Runs every reference under several numbers of threads and vector widths, and prints a table."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from bookbuild.book import Book
from bookbuild.chapter import Chapter
from bookbuild.comparing import Difference, Result, compare
from bookbuild.errors import BookError

THREADS = "LNBOOK_THREADS"  # what lnbook.notebook.set_up reads
# Narrow to wide, by the names that torch reads in ATEN_CPU_CAPABILITY.
WIDTHS = ("default", "avx2", "avx512")
NOT_RUN = Difference("every cell", "was not run", tells=False)


@dataclass(frozen=True)
class Setting:
    """How one run computes.

    Attributes:
        threads: with how many threads torch and NumPy compute.
        vectors: the widest vector instructions that torch uses.
    """

    threads: int
    vectors: str

    def __str__(self) -> str:
        """As the head of a column."""
        return f"{self.vectors}, {self.threads} thread{'s' if self.threads > 1 else ''}"

    @property
    def environment(self) -> dict[str, str]:
        """The environment variables that bring it about."""
        count = str(self.threads)
        names = (THREADS, "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
        return {**dict.fromkeys(names, count), "ATEN_CPU_CAPABILITY": self.vectors}


def widths() -> tuple[str, ...]:
    """The vector widths that this processor has, narrow to wide."""
    import torch

    widest = torch.backends.cpu.get_cpu_capability().lower()
    return WIDTHS[: WIDTHS.index(widest) + 1] if widest in WIDTHS else WIDTHS[:1]


def reproduce(
    book: Book, names: Sequence[str], threads: Sequence[int], vectors: Sequence[str]
) -> None:
    """Compare references under every setting; print a table, chapter by setting.

    Args:
        book: the book.
        names: compare the references of these chapters; without any, of all.
        threads: the numbers of threads.
        vectors: the vector widths.

    Raises:
        BookError: if there is no chapter of a name, this processor lacks a vector width, or an
            output differs anywhere.
    """
    chapters = book.named(names) or list(book.chapters)
    missing = [name for name in vectors if name not in widths()]
    if missing:
        raise BookError(
            f"this processor has the vector widths {', '.join(widths())}, not {', '.join(missing)}"
        )
    settings = [Setting(*pair) for pair in itertools.product(threads, vectors)]
    found: dict[Setting, dict[str, Result]] = {}
    for setting in settings:
        print(f"Comparing {len(chapters)} chapter(s): {setting}", flush=True)
        found[setting] = run(book, setting, chapters)
    names = [chapter.name for chapter in chapters]
    print("", *table(names, found), sep="\n")
    problems = [
        f"{name}, {setting}: {cell}"
        for setting, results in found.items()
        for name in names
        for cell in results.get(name, Result(different=[NOT_RUN])).different
    ]
    if problems:
        raise BookError(*problems)


def run(book: Book, setting: Setting, chapters: Iterable[Chapter]) -> dict[str, Result]:
    """Compare the references of some chapters under one setting."""
    # More threads than cores would wait for each other: many times slower.
    at_once = max(1, (os.cpu_count() or 1) // setting.threads)
    references = [book.show(book.reference(chapter)) for chapter in chapters]
    return compare(book.root, references, setting.environment, f"--numprocesses={at_once}")


def table(names: Iterable[str], found: dict[Setting, dict[str, Result]]) -> list[str]:
    """The lines of a table, chapter by setting."""
    rows = [["chapter", *map(str, found)]]
    for name in names:
        rows.append([name, *(str(results.get(name, Result())) for results in found.values())])
    rows.append(["all", *(_total(results.values()) for results in found.values())])
    sizes = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return [
        "  ".join(f"{cell:{size}}" for cell, size in zip(row, sizes, strict=True)).rstrip()
        for row in rows
    ]


def _total(results: Iterable[Result]) -> str:
    listed = list(results)
    return str(
        Result(
            sum(one.cells for one in listed),
            [cell for one in listed for cell in one.different],
            sum(one.seconds for one in listed),
        )
    )
