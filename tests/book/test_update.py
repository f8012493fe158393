"""Upgrading the pins: what gets compared and written, and when nothing may be written."""

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from nbformat.v4 import new_code_cell, new_output

from bookbuild.book import Book
from bookbuild.environment import pins, resolve, update_pins
from bookbuild.errors import BookError
from bookbuild.outputs import differences
from tests.book.small_book import ROOT, SmallBook

PINS = "# Why\n# and how\nJinja2==3.1\nnumpy==2.0\npytest_x==1\npytest==8\ntorch==2.13.0\n"


def git(root: Path, *arguments: str) -> None:
    who = ["-c", "user.name=A", "-c", "user.email=a@example.org"]
    subprocess.run(["git", *who, *arguments], cwd=root, check=True, capture_output=True)


def commit(root: Path) -> None:
    git(root, "init", "-q")
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", "Begin")


@pytest.fixture
def kept(small: SmallBook) -> SmallBook:
    """The small book in a Git repository, with everything committed."""
    root = small.book.root
    shutil.copy(ROOT / "environment.yml", root / "environment.yml")
    small.book.constraints.write_text(PINS)
    commit(root)
    return small


def test_changes() -> None:
    old, new = {"a": "1", "numpy": "2.0", "z": "3"}, {"numpy": "2.1", "y": "1", "z": "3"}
    assert list(pins.changes(old, new)) == [
        "a      1 -> (none)",
        "numpy  2.0 -> 2.1",
        "y      (none) -> 1",
    ]


def test_written_pins_keep_head_order_and_spelling(tmp_path: Path) -> None:
    path = tmp_path / "constraints.txt"
    path.write_text(PINS)
    pins.write(path, pins.read(path))
    assert path.read_text() == PINS
    pins.write(path, {"numpy": "2.1", "jinja2": "4", "pytest-x": "1", "z": "0"})
    assert path.read_text() == "# Why\n# and how\nJinja2==4\nnumpy==2.1\npytest_x==1\nz==0\n"


def test_the_pins_of_this_book_are_as_they_would_be_written(book: Book, tmp_path: Path) -> None:
    path = tmp_path / "constraints.txt"
    shutil.copy(book.constraints, path)
    pins.write(path, pins.read(path))
    assert path.read_text() == book.constraints.read_text()


def test_the_conda_environment_follows(book: Book, tmp_path: Path) -> None:
    path = tmp_path / "environment.yml"
    shutil.copy(book.conda, path)
    old = pins.read(book.constraints)
    pins.write_conda(path, old)
    assert path.read_text() == book.conda.read_text()
    pins.write_conda(path, old | {"torch": "9.9"})
    expected = book.conda.read_text().replace(f"-cpu={old['torch']}\n", "-cpu=9.9\n")
    assert path.read_text() == expected


def test_what_a_resolution_pins() -> None:
    text = (
        "cuda-bindings==13.0\njinja2==3.1\nnvidia-cublas==13.4\npip==26\nsetuptools==84.2\n"
        "setuptools-scm==9\ntorch==2.15.0+cpu\ntriton==3.9\n"
    )
    assert resolve.wanted(pins.parse(text)) == {
        "jinja2": "3.1",
        "setuptools-scm": "9",
        "torch": "2.15.0",
        "triton": "3.9",
    }


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        ("error: Failed to fetch: `x`\n  Caused by: dns error", "cannot be reached"),
        ("error: Request failed\n Caused by: error sending request for url", "cannot be reached"),
        (
            "x No solution found:\n  Because a<2 and b>3, no",
            "compatible versions: x No solution found: Because a<2 and b>3, no",
        ),
    ],
)
def test_why_there_is_no_resolution(told: str, expected: str) -> None:
    assert expected in resolve.why(told)


def test_an_update(
    kept: SmallBook, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    new = pins.parse(PINS) | {"torch": "2.15.0"}
    monkeypatch.setattr(update_pins, "newest", lambda *_: new)
    update_pins.update_pins(kept.book)
    told = capsys.readouterr().out
    assert "  torch  2.13.0 -> 2.15.0\n1 pin(s) changed in constraints.txt environment.yml" in told
    assert "To undo: git restore constraints.txt environment.yml tests/notebooks" in told
    assert kept.book.constraints.read_text() == PINS.replace("2.13.0", "2.15.0")
    assert "pytorch-cpu=2.15.0\n" in kept.book.conda.read_text()


def test_nothing_to_update(
    kept: SmallBook, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(update_pins, "newest", lambda *_: pins.parse(PINS))
    update_pins.update_pins(kept.book)
    assert "Every pin is already at the newest compatible version" in capsys.readouterr().out
    assert kept.book.constraints.read_text() == PINS


def test_uncommitted_changes_are_refused(kept: SmallBook) -> None:
    kept.chapter.write_text("changed")
    done = kept.run("update-pins")
    assert done.returncode == 1
    assert done.stderr == "error: commit or stash your changes first: book/part/chapter.md\n"
    assert kept.book.constraints.read_text() == PINS


def test_a_package_that_is_not_pinned(kept: SmallBook) -> None:
    with pytest.raises(BookError, match=r"^constraints\.txt does not pin nopkg$"):
        update_pins.update_pins(kept.book, ["nopkg", "Pytest-X"])


def test_no_repository(small: SmallBook) -> None:
    done = small.run("update-pins")
    assert done.returncode == 1
    assert done.stderr.startswith("error: git diff failed in ")


def test_no_network(kept: SmallBook, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.upper().startswith("PIP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    done = kept.run("update-pins")
    assert done.returncode == 1
    assert done.stderr.startswith("error: the package index cannot be reached")
    assert kept.book.constraints.read_text() == PINS


@pytest.mark.parametrize("kind", ["image/png", "image/jpeg", "image/svg+xml"])
def test_a_difference_shows_no_image(kind: str) -> None:
    image = new_output("display_data", {kind: "iVBORw0KGgo" * 1000})
    lines = list(differences.shown(new_code_cell(outputs=[image])))
    assert lines[0] == f"[{kind}]"
    assert all(len(line) < 120 for line in lines)


def test_differences_from_the_last_commit(built: Callable[[], SmallBook]) -> None:
    small = built()
    commit(small.book.root)
    assert "The outputs of 0 of 1 chapter(s) differ" in small.run("differences").stdout
    small.reference.write_text(small.reference.read_text().replace("it is 42", "it is 43"))
    done = small.run("differences")
    assert done.returncode == 0, done.stderr
    assert "\npart/chapter\n  code cell 1: print(" in done.stdout
    assert "    -it is 42\n    +it is 43\n" in done.stdout
    assert "The outputs of 1 of 1 chapter(s) differ from the last commit" in done.stdout
