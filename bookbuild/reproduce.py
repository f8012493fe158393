"""Runs every reference under several numbers of threads and vector widths, and prints a table."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bookbuild.book import Book
from bookbuild.errors import BookError

THREADS = "LNBOOK_THREADS"  # what lnbook.notebook.set_up reads
# Narrow to wide, by the names that torch reads in ATEN_CPU_CAPABILITY.
WIDTHS = ("default", "avx2", "avx512")


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


@dataclass
class Result:
    """What comparing one chapter found.

    Attributes:
        cells: how many cells were compared.
        different: which of them differed from the reference or failed.
        seconds: how long it took.
    """

    cells: int = 0
    different: list[str] = field(default_factory=list)
    seconds: float = 0.0

    def __str__(self) -> str:
        """As an entry of the table."""
        if not self.cells:
            return "not run"
        if self.different:
            return f"{len(self.different)} of {self.cells} differ"
        return f"same, {self.seconds:.0f} s"


def widths() -> tuple[str, ...]:
    """The vector widths that this processor has, narrow to wide."""
    import torch

    widest = torch.backends.cpu.get_cpu_capability().lower()
    return WIDTHS[: WIDTHS.index(widest) + 1] if widest in WIDTHS else WIDTHS[:1]


def reproduce(book: Book, threads: Sequence[int], vectors: Sequence[str]) -> None:
    """Compare every reference under every setting; print a table, chapter by setting.

    Raises:
        BookError: if this processor lacks a vector width, or an output differs anywhere.
    """
    missing = [name for name in vectors if name not in widths()]
    if missing:
        raise BookError(
            f"this processor has the vector widths {', '.join(widths())}, not {', '.join(missing)}"
        )
    settings = [Setting(*pair) for pair in itertools.product(threads, vectors)]
    found: dict[Setting, dict[str, Result]] = {}
    for setting in settings:
        print(f"Comparing every chapter: {setting}", flush=True)
        found[setting] = run(book, setting)
    names = [chapter.name for chapter in book.chapters]
    print("", *table(names, found), sep="\n")
    problems = [
        f"{name}, {setting}: {cell}"
        for setting, results in found.items()
        for name in names
        for cell in results.get(name, Result(different=["not run"])).different
    ]
    if problems:
        raise BookError(*problems)


def run(book: Book, setting: Setting) -> dict[str, Result]:
    """Compare every reference under one setting, each in a fresh kernel of a fresh process."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        command = [sys.executable, "-m", "pytest", book.show(book.references)]
        done = subprocess.run(
            [*command, "-p", "no:cacheprovider", "--durations=0", f"--junitxml={report}"],
            cwd=book.root,
            env={**os.environ, **setting.environment},
            capture_output=True,
            text=True,
        )
        if done.returncode not in (0, 1) or not report.exists():
            raise BookError(f"pytest failed under {setting}:\n{done.stdout}{done.stderr}")
        return read(report)


def read(report: Path) -> dict[str, Result]:
    """The result of each chapter, from the report of pytest.

    Raises:
        BookError: if the report names a test that is not a cell of a reference.
    """
    results: dict[str, Result] = {}
    for case in ElementTree.parse(report).iter("testcase"):
        classname = case.get("classname", "")
        start, end = "tests.notebooks.", ".ipynb"
        if not (classname.startswith(start) and classname.endswith(end)):
            raise BookError(f"{report}: {classname!r} is no reference")
        name = classname[len(start) : -len(end)].replace(".", "/")
        result = results.setdefault(name, Result())
        result.cells += 1
        result.seconds += float(case.get("time", 0))
        if case.find("failure") is not None or case.find("error") is not None:
            result.different.append(case.get("name", ""))
    return results


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
