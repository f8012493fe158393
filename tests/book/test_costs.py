"""A chapter's costs are measured when it runs, and chapters that need too much memory fail."""

import os
import subprocess
import sys
import time
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook

from bookbuild.book import Book
from bookbuild.errors import BookError
from bookbuild.outputs import costs
from bookbuild.outputs.costs import Cost
from tests.book.small_book import SmallBook
from tests.helpers.this_book import STARTUP

ROOT = Path(__file__).resolve().parents[2]
COMMAND = [sys.executable, "-m", "pytest", "-p", "tests.chapter_costs", "-p", "no:cacheprovider"]
COMMAND += ["--nbval-lax", "-rE", "--dist=loadfile"]
CELLS = ["block = b'1' * 200_000_000", "del block"]


def test_peak_is_what_was_held_at_once() -> None:
    code = f"{'; '.join(CELLS)}; input()"
    with subprocess.Popen(
        [sys.executable, "-c", f"print('up', flush=True); input(); {code}"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        bufsize=1,
    ) as process:
        assert process.stdin
        assert process.stdout
        process.stdout.readline()
        before = costs.peak_memory(process.pid)
        process.stdin.write("\n")
        until = time.monotonic() + 600  # no matter how slow the machine is
        while (after := costs.peak_memory(process.pid)) < before + 190_000_000:
            assert time.monotonic() < until, f"{before}, then {after}"
            time.sleep(0.01)
        process.stdin.write("\n")
    assert after < before + 220_000_000
    assert costs.peak_memory(process.pid) is None, "it has ended"


def test_children_count() -> None:
    code = "print('up', flush=True); input()"
    child = f"import subprocess, sys; block = b'1' * 100_000_000; {code}"
    parent = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}])"
    with subprocess.Popen(
        [sys.executable, "-c", parent], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout
        process.stdout.readline()
        peak = costs.peak_memory(process.pid)
        process.communicate("\n")
    assert peak is not None
    assert 100_000_000 < peak < 140_000_000


def test_costs_of_the_last_runs_are_kept(tmp_path: Path) -> None:
    book = Book(tmp_path)
    costs.keep(book, {"part/a": Cost(1.0, 10), "part/b": Cost(2.0, 20)})
    costs.keep(book, {"part/b": Cost(3.0, 30)})
    assert costs.read(book) == {"part/a": Cost(1.0, 10), "part/b": Cost(3.0, 30)}


def test_table() -> None:
    lines = list(
        costs.table(
            ["part/a", "part/b", "part/c"],
            {"part/a": Cost(1.0, 300_000_000), "part/c": Cost(2.5, 200_000_000)},
        )
    )
    assert [line.split() for line in lines] == [
        ["chapter", "time", "peak", "memory"],
        ["part/a", "1.0", "s", "300", "MB"],
        ["part/b", "not", "measured"],
        ["part/c", "2.5", "s", "200", "MB"],
        ["all", "in", "turn", "3.5", "s", "300", "MB"],
    ]
    assert len({len(line) for line in lines}) == 1


def test_peaks_are_recorded_for_the_teacher(small: SmallBook) -> None:
    book = small.book
    (book.source / "teach").mkdir()
    assert costs.recorded(book) == {}
    with pytest.raises(BookError, match="not measured yet: part/chapter"):
        costs.record(book)
    costs.keep(book, {"part/chapter": Cost(1.0, 123_400_000), "part/gone": Cost(1.0, 1)})
    costs.record(book)
    assert costs.recorded(book) == {"part/chapter": 123}


def test_the_record_has_the_chapters_and_every_lab(book: Book) -> None:
    recorded, names = costs.recorded(book), {chapter.name for chapter in book.notebooks}
    assert set(recorded) <= names  # new chapters are missing until `bookbuild costs --record`
    assert {name for name in names if name.startswith("labs/")} <= set(recorded)
    assert max(recorded.values()) * 1e6 <= costs.LARGEST_PEAK


def test_nothing_measured_yet(tmp_path: Path) -> None:
    with pytest.raises(BookError, match=r"_build/costs.json does not exist: run 'make test'"):
        costs.show(Book(tmp_path))


def test_nbval_measures_and_judges(tmp_path: Path) -> None:
    folder = tmp_path / "tests" / "notebooks" / "part"
    folder.mkdir(parents=True)
    for name, sources in {"small": ["1"], "large": CELLS}.items():
        nbformat.write(new_notebook(cells=[*map(new_code_cell, sources)]), folder / f"{name}.ipynb")
    limit = "from bookbuild.outputs import costs\ncosts.LARGEST_PEAK = 200_000_000\n"
    (tmp_path / "conftest.py").write_text(limit)
    (tmp_path / "pytest.ini").touch()

    done = subprocess.run(
        [*COMMAND, "--numprocesses=1", "tests"],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{STARTUP}"},
    )
    assert "3 passed, 1 error" in done.stdout, done.stdout + done.stderr
    assert "ERROR tests/notebooks/part/large.ipynb::Cell 1" in done.stdout
    assert "MB, but the limit is 200 MB, which is all" in done.stdout
    kept = costs.read(Book(tmp_path))
    assert kept["part/small"].peak < 200_000_000 < kept["part/large"].peak
    assert all(0 < cost.seconds < 600 for cost in kept.values())
