"""Lab sheets: the notebooks that readers download, and how they're graded."""

import csv
from copy import deepcopy
from pathlib import Path

import nbformat
import pytest
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from bookbuild.chapter import Chapter
from bookbuild.errors import BookError
from bookbuild.labs import sheet
from bookbuild.notebooks.plain_code import undefined
from bookbuild.outputs.cache import read_notebook
from lnbook.labs import grade
from tests.helpers.this_book import BOOK

ALL = pytest.mark.parametrize("lab", BOOK.labs, ids=lambda lab: lab.name)


def answers(notebook: NotebookNode) -> dict[str, NotebookNode]:
    """The answer cells, by name."""
    about = [(cell, cell.metadata.get("nbgrader", {})) for cell in notebook.cells]
    return {meta["grade_id"]: cell for cell, meta in about if meta.get("solution")}


def starter(name: str) -> NotebookNode:
    (lab,) = BOOK.named([f"labs/{name}"])
    return sheet.starter(BOOK, lab, None)


def test_there_are_three_labs_of_90_minutes() -> None:
    assert len(BOOK.labs) == 3
    for lab in BOOK.labs:
        rows = sheet.parts(lab)
        assert sum(minutes for _, minutes, _ in rows) == 90
        assert sum(points for *_, points in rows) == 20


@ALL
def test_a_starter_has_no_solution_and_no_output(lab: Chapter) -> None:
    notebook = sheet.starter(BOOK, lab, None)
    text = nbformat.writes(notebook)
    assert "SOLUTION" not in text
    kept = {line.strip() for line in text.splitlines()}
    for cell in lab.code_cells:
        for region in sheet.REGION.finditer(cell.source):
            for line in region[0].splitlines()[1:-1]:
                if len(line.strip()) > 12:
                    assert line.strip() not in kept, line
                    assert line.strip() not in "\n".join(c.source for c in notebook.cells), line
    assert not any(cell.get("outputs") for cell in notebook.cells)


@ALL
def test_a_starter_runs_to_the_end_and_earns_nothing(lab: Chapter, tmp_path: Path) -> None:
    from nbclient import NotebookClient

    notebook = sheet.starter(BOOK, lab, None)
    ran = deepcopy(notebook)
    NotebookClient(ran, kernel_name="python3", resources={"metadata": {"path": tmp_path}}).execute()
    checks = [cell for cell in ran.cells if cell.metadata.get("nbgrader", {}).get("grade")]
    assert len(checks) == len(sheet.points_of(lab))
    assert [grade.points_of(cell) for cell in checks] == [0] * len(checks)
    for cell in checks:
        assert "Not yet." in cell.outputs[0].text


@ALL
def test_the_solutions_earn_all_points(lab: Chapter) -> None:
    executed = read_notebook(BOOK.reference(lab))
    assert executed is not None
    notebook = sheet.with_solutions(BOOK, lab, executed, None)
    checks = [cell for cell in notebook.cells if cell.metadata.get("nbgrader", {}).get("grade")]
    earned = {cell.metadata.nbgrader.grade_id: grade.points_of(cell) for cell in checks}
    assert earned == {f"check-{name}": points for name, points in sheet.points_of(lab).items()}


@ALL
def test_cells_have_what_nbgrader_needs(lab: Chapter) -> None:
    notebook = sheet.starter(BOOK, lab, None)
    about = [cell.metadata["nbgrader"] for cell in notebook.cells if "nbgrader" in cell.metadata]
    names = [one["grade_id"] for one in about]
    assert len(set(names)) == len(names) == 2 * len(sheet.points_of(lab))
    for one in about:
        assert one["schema_version"] == 3
        assert one["grade"] is one["locked"] is not one["solution"]
        assert ("points" in one) is one["grade"]
    assert not undefined(cell.source for cell in notebook.cells if cell.cell_type == "code")


# Some answers are wrong, and some give a warning

BY_HAND = "mean = 5\nvariance = 12\nnormalized = [-1, -1/3, -1/3, 5/3]\nnormalized_16 = ..."
NUMPY = """
def layer_norm(x, gamma, beta, eps):
    assert x.ndim == 2
    mean, std = x.mean(1, keepdims=True), np.sqrt(x.var(1, keepdims=True) + eps)
    return gamma * (x - mean) / std + beta
"""
BACKWARD = """
def backward(dy, x, gamma, eps):
    xhat = (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + eps)
    return gamma * dy, (dy * xhat).sum(0), dy.sum(0)
"""
# Two correct answers: PyTorch warns about the first, and NumPy about the second
HALF = """
def layer_norm_half(x, weight, bias, eps):
    x, weight, bias = (torch.tensor(v, dtype=torch.float32) for v in (x, weight, bias))
    return torch.nn.functional.layer_norm(x, x.shape[-1:], weight, bias, eps).half()
"""
AVERAGE = """
import numpy as np

def average(y, mask):
    return np.nan_to_num(np.nanmean(np.where(mask[..., None], y, np.nan), axis=1))
"""
STACKS = """
def pre_ln_stack(x, branches, norms, final):
    for branch, norm in zip(branches, norms):
        x = x + branch(norm(x))
    return x

def post_ln_stack(x, branches, norms):
    for branch, norm in zip(branches, norms):
        x = norm(x + branch(x))
    return x
"""


# For each lab: some answers, and the points that each one earns. Starting a notebook takes seconds,
# so a lab runs only once, with all of its answers.
ANSWERS = {
    "formula-and-axes": {
        "by-hand": (BY_HAND, 2),
        "in-numpy": (NUMPY, 3),
        "statements": ("true_statements = 'ad'", 0),
        "counts": ("tokens, groups, batch = (512, 512), (80, 128), (1, 2)", 2),
    },
    "gradient": {
        "backward": (BACKWARD, 2),
        "numeric": ("1 / 0", 0),
        "geometry": ("removed, rank_without_eps, rank_with_eps = [0, 1, 1, 4], 8, 9", 0),
    },
    "transformer": {
        "stacks": (STACKS, 2),
        "limits": ("smallest, k = 255, 8", 1),
        "half": (HALF, 3),
        "average": (AVERAGE, 3),
    },
}


@pytest.mark.parametrize("lab", ANSWERS)
def test_an_answer_earns_its_points(lab: str, tmp_path: Path) -> None:
    notebook = starter(lab)
    for name, (answer, _) in ANSWERS[lab].items():
        answers(notebook)[name].source = answer
    earned = grade.grade(notebook, folder=tmp_path).earned
    expected = {f"check-{name}": points for name, (_, points) in ANSWERS[lab].items()}
    assert earned == dict.fromkeys(earned, 0) | expected


# The grader, run on a separate notebook


def check(name: str, points: float, source: str) -> NotebookNode:
    about = sheet.nbgrader_metadata({"check": name, "points": points})
    return new_code_cell(source, metadata={"nbgrader": about})


NUMBER, RAISES = check("a", 2, "x"), check("b", 3, "assert x == 2")
SMALL = new_notebook(cells=[new_markdown_cell("# A"), new_code_cell("x = 1.5"), NUMBER, RAISES])


def test_a_check_gives_its_number_or_everything_or_nothing(tmp_path: Path) -> None:
    result = grade.grade(SMALL, folder=tmp_path)
    assert result.earned == {"check-a": 1.5, "check-b": 0}
    assert (result.total, result.most) == (1.5, 5)
    assert SMALL.cells[1].outputs == [], "the notebook itself isn't changed"


def test_a_check_that_writes_to_stderr_earns_nothing(tmp_path: Path) -> None:
    prints = check("a", 2, "print('done')\n2")
    warns = check("b", 2, "import sys\nprint('careful', file=sys.stderr)\n2")
    earned = grade.grade(new_notebook(cells=[prints, warns]), folder=tmp_path).earned
    assert earned == {"check-a": 2, "check-b": 0}


def test_checks_come_from_the_original(tmp_path: Path) -> None:
    cheat = deepcopy(SMALL)
    cheat.cells[2].source = "2"
    cheat.cells[2].metadata["nbgrader"]["points"] = 100
    del cheat.cells[3]
    cheat.cells.append(check("c", 50, "50"))
    assert grade.grade(cheat, folder=tmp_path).total == 52
    result = grade.grade(cheat, SMALL, tmp_path)
    assert result.earned == {"check-a": 1.5, "check-b": 0}
    assert result.most == 5


def test_more_points_than_there_are(tmp_path: Path) -> None:
    notebook = new_notebook(cells=[check("a", 2, "3")])
    with pytest.raises(ValueError, match="expected 0 to 2.0 points .* check-a, but got 3.0"):
        grade.grade(notebook, folder=tmp_path)


def test_a_notebook_without_checks(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no check cells"):
        grade.grade(new_notebook(cells=[new_code_cell("1")]), folder=tmp_path)


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, notebook in (("one", SMALL), ("original", SMALL)):
        nbformat.write(notebook, tmp_path / f"{name}.ipynb")
    (tmp_path / "broken.ipynb").write_text("{}")
    names = [str(tmp_path / f"{name}.ipynb") for name in ("one", "broken")]
    table = tmp_path / "points.csv"
    status = grade.main([*names, "--checks", str(tmp_path / "original.ipynb"), "--csv", str(table)])
    said = capsys.readouterr()
    assert status == 1
    assert "one.ipynb: 1.5 of 5 points" in said.out
    assert "broken.ipynb: not graded" in said.err
    with table.open(newline="") as file:
        rows = list(csv.reader(file))
    assert rows == [["notebook", "check-a", "check-b", "total"], ["one.ipynb", "1.5", "0.0", "1.5"]]


# What makes a lab malformed


def lab_of(*cells: tuple[dict[str, object], str]) -> Chapter:
    sources = [
        new_code_cell(source, metadata={"lab": about} if about else {}) for about, source in cells
    ]
    return Chapter("labs/x", Path("x"), "labs/x.md", new_notebook(cells=sources), (1,) * len(cells))


SOLVED = f"x = ...\n{sheet.BEGIN}\nx = 1\n{sheet.END}"


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        ([({}, SOLVED)], "go together"),
        ([({"answer": "a"}, "x = 1"), ({"check": "a", "points": 1}, "1")], "go together"),
        ([({"answer": "a"}, SOLVED), ({"check": "a"}, "1")], "a check needs points"),
        ([({"answer": "a"}, SOLVED)], "'a' has no check"),
        ([({"check": "a", "points": 1}, "1")], "'a' has no check, or no answer"),
        ([({"answer": "a"}, SOLVED)] * 2, "'a' occurs twice"),
    ],
)
def test_a_malformed_lab(cells: list[tuple[dict[str, object], str]], message: str) -> None:
    assert any(message in problem for problem in sheet.problems_of(lab_of(*cells)))


def test_minutes_that_do_not_add_up() -> None:
    (lab, *_) = BOOK.labs
    notebook = deepcopy(lab.notebook)
    notebook.cells[0].source = notebook.cells[0].source.replace("90 minutes", "80 minutes")
    wrong = Chapter(lab.name, lab.path, lab.shown, notebook, lab.lines)
    with pytest.raises(BookError, match="don't add up"):
        sheet.parts(wrong)


def test_what_takes_the_place_of_a_solution() -> None:
    assert sheet.without_solution(SOLVED) == "x = ..."
    inside = f"def f(x):\n    # Your answer\n    {sheet.BEGIN}\n    return x\n    {sheet.END}\n"
    assert sheet.without_solution(inside) == "def f(x):\n    # Your answer\n    ..."
