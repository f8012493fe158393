"""What nbval, as this project calls it, must notice in a notebook, and the one thing it may not."""

import subprocess
import sys
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_notebook

from lnbook.mime import FIGURE_RECORD

ROOT = Path(__file__).resolve().parents[2]

CELLS = [
    "from lnbook import worked\n"
    "from lnbook.figures import formula as figures\n"
    "from lnbook.notebook import set_up\n"
    "set_up().integers(100)",
    "print('it is', 42)",
    "worked.mean([1.0, 2.0])",
    "figures.rows_before_and_after([[1.0, 2.0]], [[-1.0, 1.0]])",
]


def set_printed(notebook: NotebookNode) -> None:
    notebook.cells[1].outputs[0].text = "it is 43\n"


def set_result(notebook: NotebookNode) -> None:
    notebook.cells[0].outputs[0].data["text/plain"] = "1"


def set_formula(notebook: NotebookNode) -> None:
    data = notebook.cells[2].outputs[0].data
    data["text/latex"] = data["text/latex"].replace("1.5", "1.6")


def set_record(notebook: NotebookNode) -> None:
    notebook.cells[3].outputs[0].data[FIGURE_RECORD]["axes"][1]["lines"][0]["x"][0] = -0.99


def remove_drawing(notebook: NotebookNode) -> None:
    del notebook.cells[3].outputs[0].data["image/svg+xml"]


def remove_figure(notebook: NotebookNode) -> None:
    notebook.cells[3].outputs = []


def add_output(notebook: NotebookNode) -> None:
    notebook.cells[1].outputs.append(deepcopy(notebook.cells[2].outputs[0]))


def move_a_line_by_a_hair(notebook: NotebookNode) -> None:
    data = notebook.cells[3].outputs[0].data
    drawing = data["image/svg+xml"]
    assert "stroke-width: 2" in drawing
    data["image/svg+xml"] = drawing.replace("stroke-width: 2", "stroke-width: 2.0000001")


# Each notebook with its changes, and the cells in which nbval must notice them.
VARIANTS: dict[str, tuple[list[Callable[[NotebookNode], None]], set[int]]] = {
    "same": ([], set()),
    "hair": ([move_a_line_by_a_hair], set()),
    "values": ([set_result, set_printed, set_formula, set_record], {0, 1, 2, 3}),
    "drawing": ([remove_drawing, add_output], {1, 3}),
    "figure": ([remove_figure], {3}),
}


def test_changes_of_outputs_are_noticed(tmp_path: Path) -> None:
    original = new_notebook(cells=[new_code_cell(source) for source in CELLS])
    NotebookClient(original, kernel_name="python3").execute()
    for name, (changes, _) in VARIANTS.items():
        notebook = deepcopy(original)
        for change in changes:
            change(notebook)
        nbformat.write(notebook, tmp_path / f"{name}.ipynb")

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
    assert failed == {
        f"{name}.ipynb::Cell {cell}" for name, (_, cells) in VARIANTS.items() for cell in cells
    }
    assert f"{len(VARIANTS) * len(CELLS) - len(failed)} passed" in done.stdout
