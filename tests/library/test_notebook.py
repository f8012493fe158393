"""A chapter's first cell makes results reproducible: seeds, one thread, deterministic drawings."""

import contextlib
import io
import os
import random
import re
import subprocess
import sys
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest
import torch
from IPython.core.interactiveshell import InteractiveShell
from matplotlib.figure import Figure

from lnbook._build import FIGURE_SNAPSHOT
from lnbook.notebook import THREADS, set_up

FONTS = Path(__file__).parents[2] / "lnbook" / "notebook" / "fonts"


@pytest.fixture(autouse=True)
def restore() -> object:
    threads, parameters = torch.get_num_threads(), mpl.rcParams.copy()
    numpy_options = np.get_printoptions()
    yield
    torch.set_num_threads(threads)
    mpl.rcParams.update(parameters)
    np.set_printoptions(**numpy_options)
    torch.set_printoptions(profile="default")


def numbers() -> tuple[float, ...]:
    rng = set_up(seed=3)
    return rng.normal(), random.random(), np.random.normal(), torch.rand(()).item()


def test_all_generators_start_anew() -> None:
    first = numbers()
    assert numbers() == first
    assert set_up(seed=4).normal() != first[0]


def test_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(THREADS, raising=False)
    torch.set_num_threads(2)
    set_up()
    assert torch.get_num_threads() == 1


def test_more_threads_on_request(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(THREADS, "2")
    set_up()
    assert torch.get_num_threads() == 2


@pytest.mark.parametrize("text", ["0", "-1", "two", ""])
def test_threads_that_are_no_number(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv(THREADS, text)
    with pytest.raises(ValueError, match=f"to be a number of threads, but got '{text}'"):
        set_up()


def test_four_digits() -> None:
    set_up()
    assert str(np.array([1 / 3])) == "[0.3333]"
    assert repr(np.float64(0.5)) == "0.5"
    assert str(torch.tensor([1 / 3, 1e-4])) == "tensor([0.3333, 0.0001])"


DRAW = """
from IPython.core.interactiveshell import InteractiveShell
from matplotlib.figure import Figure
import lnbook.notebook as notebook
notebook.set_up()
shell = InteractiveShell()
notebook._show_figures_as_drawings(shell)
figure = Figure()
axes = figure.subplots()
axes.plot([1, 2, 3], label="a line")
axes.fill_between([1, 2], [3, 4])
axes.legend()
data, _ = shell.display_formatter.format(figure)
print(data["image/svg+xml"])
"""


def test_drawings_are_the_same_in_every_process() -> None:
    other = subprocess.run(
        [sys.executable, "-c", DRAW],
        env={**os.environ, "PYTHONHASHSEED": "1", "TZ": "Asia/Tokyo"},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(DRAW, {})
    assert printed.getvalue() == other
    assert "<svg" in other
    assert "<dc:date>" not in other


@pytest.mark.usefixtures("book_style")
def test_letters_come_from_the_fonts_of_the_site(capfd: pytest.CaptureFixture[str]) -> None:
    figure = Figure()
    figure.text(0.1, 0.9, r"row $\sigma$, $\sqrt{\hat{x}^2}$")
    figure.text(
        0.1, 0.7, "0.5 \N{MULTIPLICATION SIGN} \N{GREEK SMALL LETTER GAMMA} \N{MINUS SIGN} 1"
    )
    figure.text(0.1, 0.6, "a title", weight="bold")
    figure.text(0.1, 0.3, "a note", style="italic")
    drawing = io.StringIO()
    figure.savefig(drawing, format="svg")
    fonts = set(re.findall(r'<path id="([A-Za-z-]+)-[0-9a-f]+"', drawing.getvalue()))
    assert fonts >= {path.stem for path in FONTS.glob("*.ttf")}
    assert not {name for name in fonts if name.startswith("DejaVu")}
    assert capfd.readouterr().err == ""  # no font or character was missing


def test_a_figure_is_shown_as_a_drawing_with_its_record() -> None:
    from lnbook import notebook

    shell = InteractiveShell()
    notebook._show_figures_as_drawings(shell)
    figure = Figure()
    figure.subplots().plot([1.0, 2.0])
    data, _ = shell.display_formatter.format(figure)
    assert {"image/svg+xml", FIGURE_SNAPSHOT} <= set(data)
    assert "image/png" not in data
    assert data[FIGURE_SNAPSHOT]["axes"][0]["lines"][0]["y"] == [1.0, 2.0]


def test_a_number_is_shown_with_digits_that_hold_on_every_processor(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shell = InteractiveShell()
    monkeypatch.setattr("lnbook.notebook.get_ipython", lambda: shell)
    set_up()

    def shown(value: object) -> str:
        return str(shell.display_formatter.format(value)[0]["text/plain"])

    assert shown(0.32195404553733264) == shown(0.3219540455373326) == "0.3219540455"
    assert shown(np.float64(2 / 3)) == "0.6666666667"
    assert [shown(value) for value in (4.0, 1e-30, float("nan"), 12)] == [
        "4.0",
        "1e-30",
        "nan",
        "12",
    ]
    assert shown([1 / 3, (2 / 3,)]) == "[0.3333333333, (0.6666666667,)]"


def test_importing_changes_nothing() -> None:
    code = (
        "import matplotlib, numpy, torch\n"
        "before = (dict(matplotlib.rcParams), numpy.get_printoptions(), torch.get_num_threads(),"
        " torch.initial_seed())\n"
        "import lnbook.notebook, lnbook.layers\n"
        "from lnbook.chapters.formula.step_by_step import exercises, figures\n"
        "after = (dict(matplotlib.rcParams), numpy.get_printoptions(), torch.get_num_threads(),"
        " torch.initial_seed())\n"
        "assert str(before) == str(after)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_importing_the_package_loads_nothing_heavy() -> None:
    code = (
        "import sys, lnbook\n"
        "assert not {'torch', 'numpy', 'matplotlib', 'IPython'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
