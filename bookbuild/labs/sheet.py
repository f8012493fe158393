"""Makes two notebooks from each lab: a starter without solutions, and one with them.

A lab is a MyST notebook in the `labs` folder. An answer cell has the metadata
`lab: {answer: name}` and its solution between two comments, as in nbgrader's source notebooks:

    mean = ...
    ### BEGIN SOLUTION
    mean = x.mean()
    ### END SOLUTION

A check cell has `lab: {check: name, points: 3}` and ends with the number of points. Both
notebooks have nbgrader's metadata (version 3 of its schema), so nbgrader can collect and grade
them; `python -m lnbook.labs.grade` grades them without it.
"""

from __future__ import annotations

import re
from copy import deepcopy
from typing import Any

import nbformat
from nbformat import NotebookNode

from bookbuild.book import Book
from bookbuild.chapter import Chapter, code_cells
from bookbuild.errors import BookError
from bookbuild.notebooks.download import comes_with_lnbook, install_lnbook

BEGIN, END = "### BEGIN SOLUTION", "### END SOLUTION"
REGION = re.compile(rf"^( *){BEGIN}\n.*?^ *{END}\n?", re.MULTILINE | re.DOTALL)
ANSWER, CHECK = "answer", "check"
TITLE = re.compile(r"^# (.*)$", re.MULTILINE)
MINUTES = re.compile(r"^(\d+) minutes, (\d+) points\.", re.MULTILINE)


def title(lab: Chapter) -> str:
    """The title of a lab, without its number.

    Raises:
        BookError: if the lab has no title.
    """
    found = TITLE.search(lab.notebook.cells[0].source)
    if found is None:
        raise BookError(f"{lab.shown}: has no title")
    return found[1]


def parts(lab: Chapter) -> list[tuple[str, int, int]]:
    """The parts of a lab, each with its title, minutes and points.

    Raises:
        BookError: if the minutes or the points in the text don't add up, or differ from the checks.
    """
    text = "\n".join(cell.source for cell in lab.notebook.cells if cell.cell_type == "markdown")
    rows = re.findall(r"^\| \d+\. (.*?) \| (\d+) \| (\d+) \|$", text, re.MULTILINE)
    found = [(name, int(minutes), int(points)) for name, minutes, points in rows]
    heads = re.findall(r"^## \d+\. (.*) \((\d+) minutes, (\d+) points\)$", text, re.MULTILINE)
    total = MINUTES.search(text)
    if not total or heads != rows:
        raise BookError(f"{lab.shown}: the table of parts differs from the headings")
    if (sum(m for _, m, _ in found), sum(p for *_, p in found)) != tuple(map(int, total.groups())):
        raise BookError(f"{lab.shown}: minutes or points don't add up to those at the top")
    if sum(points_of(lab).values()) != int(total[2]):
        raise BookError(f"{lab.shown}: the points of the checks don't add up to {total[2]}")
    return found


def points_of(lab: Chapter) -> dict[str, int]:
    """The points for each check in a lab, keyed by the check's name."""
    about = [cell.metadata.get("lab", {}) for cell in lab.code_cells]
    return {one[CHECK]: one["points"] for one in about if CHECK in one}


def problems_of(lab: Chapter) -> list[str]:
    """What's wrong with a lab's cells, one fault per line."""
    found, names = [], []
    for number, cell in enumerate(lab.code_cells):
        about = cell.metadata.get("lab", {})
        has_solution = bool(REGION.search(cell.source))
        if has_solution != (ANSWER in about):
            found.append(f"{lab.where(number)}: a solution and `lab: {{answer: …}}` go together")
        if CHECK in about and not about.get("points", 0) > 0:
            found.append(f"{lab.where(number)}: a check needs points")
        names.append((ANSWER in about, about.get(ANSWER) or about.get(CHECK)))
    given = [name for name in names if name[1]]
    found += [f"{lab.shown}: '{one[1]}' occurs twice" for one in given if given.count(one) > 1]
    answers = {name for is_answer, name in given if is_answer}
    checks = {name for is_answer, name in given if not is_answer}
    found += [f"{lab.shown}: '{name}' has no check, or no answer" for name in answers ^ checks]
    return list(dict.fromkeys(found))


def starter(book: Book, lab: Chapter, repository: str | None) -> NotebookNode:
    """The lab without solutions and without outputs.

    Raises:
        BookError: if the lab is malformed.
    """
    notebook = _plain(book, lab, lab.notebook, repository)
    for cell in code_cells(notebook):
        cell.outputs, cell.execution_count = [], None
        cell.source = without_solution(cell.source)
    return notebook


def with_solutions(
    book: Book, lab: Chapter, executed: NotebookNode, repository: str | None
) -> NotebookNode:
    """The lab with solutions and their outputs.

    Raises:
        BookError: if the lab is malformed.
    """
    return _plain(book, lab, executed, repository)


def without_solution(source: str) -> str:
    """A cell's source without the solution; inside a function, an ellipsis takes its place."""
    return REGION.sub(lambda found: f"{found[1]}...\n" if found[1] else "", source).rstrip("\n")


def _plain(
    book: Book, lab: Chapter, notebook: NotebookNode, repository: str | None
) -> NotebookNode:
    if problems := problems_of(lab):
        raise BookError(*problems)
    plain: NotebookNode = nbformat.v4.new_notebook()
    plain.metadata["kernelspec"] = lab.notebook.metadata["kernelspec"]
    plain.metadata["language_info"] = {"name": "python"}
    for number, given in enumerate(notebook.cells):
        cell = deepcopy(given)
        about = cell.metadata.get("lab", {})
        cell.metadata.clear()
        if about:
            cell.metadata["nbgrader"] = nbgrader_metadata(about)
        cell["id"] = f"cell-{number}"
        plain.cells.append(cell)
    top = plain.cells[0]
    head, _, rest = top.source.partition("\n\n")
    how = (
        f"> **To run it**, use Python 3.11 or newer and install the course's package, `lnbook`: "
        f"{install_lnbook(repository)}. It comes with {_listed(comes_with_lnbook(book))}."
    )
    top.source = f"{head}\n\n{how}\n\n{rest}"
    nbformat.validate(plain)
    return plain


def _listed(names: set[str]) -> str:
    *first, last = (f"`{name}`" for name in sorted(names & {"numpy", "torch", "matplotlib"}))
    return f"{', '.join(first)} and {last}"


def nbgrader_metadata(about: dict[str, Any]) -> dict[str, Any]:
    """The metadata that nbgrader reads, for an answer cell or a check cell."""
    if ANSWER in about:
        return {
            "grade": False,
            "grade_id": about[ANSWER],
            "locked": False,
            "schema_version": 3,
            "solution": True,
            "task": False,
        }
    return {
        "grade": True,
        "grade_id": f"check-{about[CHECK]}",
        "locked": True,
        "points": about["points"],
        "schema_version": 3,
        "solution": False,
        "task": False,
    }
