"""What nbval, as this project runs it, must catch in a notebook, and what it must ignore."""

import subprocess
import sys
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient
from nbclient.exceptions import CellTimeoutError
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_notebook
from nbval import kernel
from nbval.plugin import IPyNbFile

from bookbuild.errors import BookError
from bookbuild.outputs import execute
from bookbuild.outputs.execute import SECONDS_A_MESSAGE, SECONDS_PER_CELL
from bookbuild.outputs.kernels import connection
from lnbook._build import FIGURE_SNAPSHOT
from tests import conftest
from tests.book.small_book import SmallBook

ROOT = Path(__file__).resolve().parents[2]

FIGURE = "figures.rows_before_and_after([[1.0, 2.0]], [[-1.0, 1.0]])"
SET_UP = (
    "from lnbook.chapters.formula.step_by_step import figures\n"
    "from lnbook.notebook import set_up, worked\n"
)


def set_printed(cell: NotebookNode) -> None:
    cell.outputs[0].text = "it is 43\n"


def set_result(cell: NotebookNode) -> None:
    cell.outputs[0].data["text/plain"] = "1"


def set_formula(cell: NotebookNode) -> None:
    data = cell.outputs[0].data
    data["text/latex"] = data["text/latex"].replace("1.5", "1.6")


def set_record(cell: NotebookNode) -> None:
    cell.outputs[0].data[FIGURE_SNAPSHOT]["axes"][1]["lines"][0]["x"][0] = -0.99


def remove_drawing(cell: NotebookNode) -> None:
    del cell.outputs[0].data["image/svg+xml"]


def remove_figure(cell: NotebookNode) -> None:
    cell.outputs = []


def add_output(cell: NotebookNode) -> None:
    cell.outputs.append(deepcopy(cell.outputs[0]))


def move_a_line_by_a_hair(cell: NotebookNode) -> None:
    data = cell.outputs[0].data
    drawing = data["image/svg+xml"]
    assert "stroke-width: 2" in drawing
    data["image/svg+xml"] = drawing.replace("stroke-width: 2", "stroke-width: 2.0000001")


# A notebook's cells, how each one's reference is changed, and whether nbval should catch it.
CASES: list[tuple[str, Callable[[NotebookNode], None] | None, bool]] = [
    (f"{SET_UP}set_up().integers(100)", None, False),
    ("print('it is', 42)", None, False),
    ("worked.mean([1.0, 2.0])", None, False),
    (FIGURE, None, False),
    (FIGURE, move_a_line_by_a_hair, False),
    ("set_up().integers(100)", set_result, True),
    ("print('it is', 42)", set_printed, True),
    ("worked.mean([1.0, 2.0])", set_formula, True),
    (FIGURE, set_record, True),
    (FIGURE, remove_drawing, True),
    (FIGURE, remove_figure, True),
    ("print('it is', 42)", add_output, True),
    (FIGURE, None, False),
]


def test_changes_of_outputs_are_noticed(tmp_path: Path) -> None:
    notebook = new_notebook(cells=[new_code_cell(source) for source, _, _ in CASES])
    NotebookClient(notebook, kernel_name="python3").execute()
    for cell, (_, change, _) in zip(notebook.cells, CASES, strict=True):
        if change:
            change(cell)
    nbformat.write(notebook, tmp_path / "changed.ipynb")

    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-n0", "-rf", "-c", "pyproject.toml", str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
    )
    failed = {
        line.removeprefix("FAILED ").split("/")[-1].split(" - ")[0]
        for line in done.stdout.splitlines()
        if line.startswith("FAILED")
    }
    noticed = {f"changed.ipynb::Cell {i}" for i, (_, _, notice) in enumerate(CASES) if notice}
    assert failed == noticed
    assert f"{len(CASES) - len(noticed)} passed" in done.stdout


def test_nbval_waits_as_long_as_an_execution(request: pytest.FixtureRequest) -> None:
    path = next((ROOT / "tests" / "notebooks").rglob("*.ipynb"))
    file = IPyNbFile.from_parent(request.session, path=path)
    cell = next(iter(file.collect()))
    conftest.pytest_itemcollected(cell)
    assert request.config.getoption("nbval_cell_timeout") == SECONDS_PER_CELL
    assert request.config.getoption("nbval_kernel_startup_timeout") == SECONDS_A_MESSAGE
    assert cell.output_timeout == SECONDS_A_MESSAGE


def test_a_slow_machine_has_time_for_a_cell_and_for_what_it_prints(
    small: SmallBook, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: dict[str, Any] = {}

    class Slow(NotebookClient):
        def execute(self, **_: object) -> None:
            for name in ("timeout", "startup_timeout", "iopub_timeout"):
                waits[name] = getattr(self, name)
            raise CellTimeoutError("too slow")

    monkeypatch.setattr(execute, "NotebookClient", Slow)
    with pytest.raises(BookError, match=f"ran longer than {SECONDS_PER_CELL} s"):
        execute.execute(small.book, small.book.chapters[0])
    assert waits == {
        "timeout": SECONDS_PER_CELL,
        "startup_timeout": SECONDS_A_MESSAGE,
        "iopub_timeout": SECONDS_A_MESSAGE,
    }


def test_no_kernel_needs_a_port_that_another_program_could_take(
    small: SmallBook, monkeypatch: pytest.MonkeyPatch
) -> None:
    used: list[tuple[str, str]] = []

    class Asked(NotebookClient):
        def execute(self, **_: object) -> None:
            manager = self.create_kernel_manager()
            used.append((manager.transport, manager.ip))

    monkeypatch.setattr(execute, "NotebookClient", Asked)
    for _ in range(2):
        manager = kernel.KernelManager(kernel_name="python3")
        used.append((manager.transport, manager.ip))
        execute.execute(small.book, small.book.chapters[0])
    assert {transport for transport, _ in used} == {"ipc"}
    assert len({name for _, name in used}) == 4


def test_a_folder_with_a_long_name_makes_kernels_use_ports() -> None:
    assert connection("/" + 50 * "a")
    assert connection("/" + 100 * "a") == {}
