"""Executes references with nbval in a fresh process, and finds out which cells differ."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from bookbuild.errors import BookError

START, END = "tests.notebooks.", ".ipynb"  # what surrounds a chapter's name in a report
COLOR = re.compile(r"#x1B\[[0-9;]*m")  # how a report writes terminal colors
# nbval's wording:
REASON = re.compile(r"^Cell \d+: (.+)$", re.MULTILINE)
DIFFERS = "Cell outputs differ"
RAISES = "Cell execution caused an exception"


@dataclass(frozen=True)
class Difference:
    """A cell that differs from its reference.

    Attributes:
        cell: its name, as numbered by nbval: Cell 0 is the first code cell.
        what: what happened, in a few words.
        tells: whether the cell ran to its end or raised an exception. If the kernel died or the
            cell timed out, there's no way to tell what it would have shown.
        details: what nbval printed about it.
    """

    cell: str
    what: str
    tells: bool = True
    details: str = field(default="", compare=False)

    def __str__(self) -> str:
        """The difference as a line in a message."""
        return f"{self.cell} {self.what}"


@dataclass
class Result:
    """The result of comparing one chapter.

    Attributes:
        cells: how many cells were compared.
        different: the cells that differed from the reference or failed.
        seconds: how long it took.
    """

    cells: int = 0
    different: list[Difference] = field(default_factory=list)
    seconds: float = 0.0

    def __str__(self) -> str:
        """The result as a table entry."""
        if not self.cells:
            return "not run"
        if self.different:
            return f"{len(self.different)} of {self.cells} differ"
        return f"same, {self.seconds:.0f} s"


def compare(
    root: Path, paths: Iterable[str], environment: Mapping[str, str], *options: str
) -> dict[str, Result]:
    """Compare references in a fresh process, each in a fresh kernel.

    Args:
        root: the folder of the book.
        paths: the references, or folders with references, relative to the root.
        environment: environment variables to set.
        options: more options for pytest.

    Returns:
        Each chapter's result, keyed by the chapter's name.

    Raises:
        BookError: if pytest itself fails.
    """
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        command = [sys.executable, "-m", "pytest", *paths, "-p", "no:cacheprovider", "--color=no"]
        done = subprocess.run(
            [*command, "--durations=0", f"--junitxml={report}", *options],
            cwd=root,
            env={**os.environ, **environment},
            capture_output=True,
            text=True,
        )
        if done.returncode not in (0, 1) or not report.exists():
            raise BookError(f"pytest failed on {', '.join(paths)}:\n{done.stdout}{done.stderr}")
        return read(report)


def read(report: Path) -> dict[str, Result]:
    """Each chapter's result, from pytest's report.

    Raises:
        BookError: if the report names a test that isn't a cell of a reference.
    """
    results: dict[str, Result] = {}
    for case in ElementTree.parse(report).iter("testcase"):
        classname = case.get("classname", "")
        if not (classname.startswith(START) and classname.endswith(END)):
            raise BookError(f"{report}: {classname!r} is not a reference")
        name = classname[len(START) : -len(END)].replace(".", "/")
        result = results.setdefault(name, Result())
        result.cells += 1
        result.seconds += float(case.get("time", 0))
        problem = next((part for part in case if part.tag in ("failure", "error")), None)
        if problem is not None:
            result.different.append(_difference(case.get("name", ""), problem.text or ""))
    return results


def _difference(cell: str, text: str) -> Difference:
    """The difference that nbval reports for a cell."""
    text = COLOR.sub("", text)
    said = REASON.search(text)
    reason = said[1] if said else text.strip()
    if reason == DIFFERS:
        return Difference(cell, "shows something else", details=text)
    if reason == RAISES:
        return Difference(cell, f"raises {text.strip().splitlines()[-1]}", details=text)
    return Difference(cell, f"cannot be compared: {reason}", tells=False, details=text)
