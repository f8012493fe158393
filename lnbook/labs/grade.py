"""Grades lab notebooks on this machine: `python -m lnbook.labs.grade NOTEBOOK...`.

A lab's check cells have nbgrader's metadata (version 3 of its schema), and end with the number of
points that the answers earn. This program runs a notebook from top to bottom and adds up the points
as nbgrader does, so both give the same grade. It needs no server and no database.

It runs the code in the notebooks. Grade other people's notebooks where they can do no harm, for
example in a container.
"""

from __future__ import annotations

import argparse
import csv
import sys
from collections.abc import Iterable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["Grade", "grade", "main", "points_of", "with_checks"]

Cell = Any  # a notebook's cell, as read by nbformat
Notebook = Any
SECONDS_A_CELL = 600


@dataclass(frozen=True)
class Grade:
    """The points that a notebook earned.

    Attributes:
        earned: the points for each check, keyed by its name, in notebook order.
        possible: the most points for each check.

    Example:
        >>> result = Grade({"mean": 1.0, "axes": 0.0}, {"mean": 1.0, "axes": 3.0})
        >>> result.total, result.most
        (1.0, 4.0)
    """

    earned: dict[str, float]
    possible: dict[str, float]

    @property
    def total(self) -> float:
        """The sum of the points."""
        return sum(self.earned.values())

    @property
    def most(self) -> float:
        """The largest possible sum."""
        return sum(self.possible.values())


def _checks(notebook: Notebook) -> dict[str, Cell]:
    """A notebook's check cells, keyed by name."""
    found = {}
    for cell in notebook.cells:
        about = cell.metadata.get("nbgrader", {})
        if cell.cell_type == "code" and about.get("grade"):
            found[about["grade_id"]] = cell
    return found


def points_of(cell: Cell) -> float:
    """Return the points for an executed check cell.

    As in nbgrader, a cell that raised or wrote to stderr gets no points. Otherwise, it gets the
    number that it returned or, if there isn't one, all of its points.

    Args:
        cell: a code cell with outputs and nbgrader's metadata.

    Raises:
        ValueError: the cell returned a negative number, or more points than it's worth.

    Example:
        >>> from types import SimpleNamespace as Made
        >>> number = Made(output_type="execute_result", data={"text/plain": "1.5"})
        >>> points_of(Made(metadata={"nbgrader": {"points": 2}}, outputs=[number]))
        1.5
    """
    most = float(cell.metadata["nbgrader"]["points"])
    for output in cell.outputs:
        if output.output_type == "error":
            return 0.0
        if output.output_type == "stream" and output.name == "stderr":
            return 0.0
        if output.output_type == "execute_result":
            try:
                given = float(output.data["text/plain"])
            except (KeyError, ValueError):
                return most
            if not 0 <= given <= most:
                name = cell.metadata["nbgrader"].get("grade_id")
                raise ValueError(
                    f"expected 0 to {most} points from the check {name}, but got {given}"
                )
            return given
    return most


def with_checks(notebook: Notebook, original: Notebook) -> Notebook:
    """Return a notebook with its check cells replaced by those of another notebook.

    Students can edit check cells by accident or on purpose. A check that's missing is added at the
    end, and one that the original doesn't have is dropped.

    Args:
        notebook: a student's notebook.
        original: the lab's starter notebook, or the one with solutions.

    Example:
        >>> from nbformat.v4 import new_code_cell, new_notebook
        >>> about = {"nbgrader": {"grade": True, "grade_id": "mean", "points": 1}}
        >>> check = new_code_cell("award(1, check_mean(mean))", metadata=about)
        >>> edited = new_notebook(cells=[new_code_cell("1", metadata=about)])
        >>> with_checks(edited, new_notebook(cells=[check])).cells[0].source
        'award(1, check_mean(mean))'
    """
    restored = deepcopy(notebook)
    checks = _checks(original)
    cells, seen = [], set()
    for cell in restored.cells:
        about = cell.metadata.get("nbgrader", {})
        name = about.get("grade_id") if about.get("grade") else None
        if name is None:
            cells.append(cell)
        elif name in checks and name not in seen:
            cells.append(deepcopy(checks[name]))
            seen.add(name)
    cells += [deepcopy(cell) for name, cell in checks.items() if name not in seen]
    restored.cells = cells
    return restored


def grade(
    notebook: Notebook, original: Notebook | None = None, folder: Path | None = None
) -> Grade:
    """Run a notebook and return what it earns.

    A cell that raises doesn't stop the run, so later answers still count.

    Args:
        notebook: the notebook, as returned by `nbformat.read`. It isn't changed.
        original: where the check cells come from; None to trust the notebook's own.
        folder: where to run it; None for the current folder.

    Raises:
        ValueError: the notebook has no checks, or a check gives more points than it has.

    Example:
        >>> from nbformat.v4 import new_code_cell, new_notebook
        >>> grade(new_notebook(cells=[new_code_cell("1 + 1")]))
        Traceback (most recent call last):
        ValueError: expected a lab sheet, but the notebook has no check cells
    """
    from nbclient import NotebookClient  # comes with Jupyter; lnbook doesn't need it otherwise

    ready = deepcopy(notebook) if original is None else with_checks(notebook, original)
    for cell in ready.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    if not _checks(ready):
        raise ValueError("expected a lab sheet, but the notebook has no check cells")
    NotebookClient(
        ready,
        timeout=SECONDS_A_CELL,
        kernel_name="python3",
        allow_errors=True,
        resources={"metadata": {"path": str(folder or Path.cwd())}},
    ).execute()
    checks = _checks(ready)
    return Grade(
        {name: points_of(cell) for name, cell in checks.items()},
        {name: float(cell.metadata["nbgrader"]["points"]) for name, cell in checks.items()},
    )


def _report(path: Path, result: Grade) -> Iterator[str]:
    yield f"{path.name}: {result.total:g} of {result.most:g} points"
    for name, points in result.earned.items():
        yield f"  {name:24} {points:g} of {result.possible[name]:g}"


def _write(path: Path, rows: Sequence[tuple[str, Grade]]) -> None:
    names = list(rows[0][1].possible) if rows else []
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["notebook", *names, "total"])
        for notebook, result in rows:
            writer.writerow([notebook, *(result.earned.get(n, 0) for n in names), result.total])


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m lnbook.labs.grade", description="Grade lab notebooks on this machine."
    )
    parser.add_argument("notebooks", nargs="+", type=Path, metavar="NOTEBOOK")
    parser.add_argument(
        "--checks",
        type=Path,
        metavar="ORIGINAL",
        help="take the check cells from this notebook, in case a student has changed them",
    )
    parser.add_argument("--csv", type=Path, metavar="FILE", help="also write a table of all points")
    return parser


def main(arguments: Iterable[str] | None = None) -> int:
    """Grade the notebooks named on the command line.

    Args:
        arguments: the arguments; None for those on the command line.

    Returns:
        The exit status: 1 if a notebook couldn't be graded.

    Example:
        >>> main(["no-such-notebook.ipynb"])
        1
    """
    import nbformat

    options = _parser().parse_args(None if arguments is None else list(arguments))
    original = nbformat.read(options.checks, as_version=4) if options.checks else None
    rows, failed = [], False
    for path in options.notebooks:
        try:
            result = grade(nbformat.read(path, as_version=4), original, path.resolve().parent)
        except Exception as error:  # one bad notebook must not stop the others
            print(f"{path}: not graded: {type(error).__name__}: {error}", file=sys.stderr)
            failed = True
            continue
        rows.append((path.name, result))
        print("\n".join(_report(path, result)))
    if options.csv:
        _write(options.csv, rows)
    return int(failed)


if __name__ == "__main__":
    raise SystemExit(main())
