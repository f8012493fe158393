"""The known bugs that `make bugs` injects into lnbook, and how it judges the chapters' outputs."""

import ast
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from bookbuild.book import Book
from bookbuild.bugs.bug import Bug
from bookbuild.bugs.known import BUGS
from bookbuild.bugs.run import attempt, named, reaching, red_anyway, unfound
from bookbuild.errors import BookError
from bookbuild.outputs.digest import modules
from bookbuild.outputs.nbval_report import Difference, read
from tests.book.small_book import SmallBook

ROOT = Path(__file__).resolve().parents[2]
CONSTANTS = "lnbook/constants.py"

# What nbval says about a cell, as pytest reports it.
REPORT = """\
<testsuites><testsuite>
<testcase classname="tests.notebooks.part.chapter.ipynb" name="Cell 0" time="1.5" />
<testcase classname="tests.notebooks.part.chapter.ipynb" name="Cell 1" time="0.5">
<failure message="NbCellError">{}</failure></testcase>
</testsuite></testsuites>
"""
DIFFERS = (
    "Notebook cell execution failed\nCell 1: Cell outputs differ\n\nInput:\nx\n\nTraceback:\n 2"
)
RAISES = (
    "Notebook cell execution failed\nCell 1: Cell execution caused an exception\n\n"
    "Input:\nx\n\nTraceback:\n\n#x1B[31mValueError#x1B[39m: expected x\n"
)
TIMEOUT = "Cell 1: Timeout of 300 seconds exceeded executing cell\n\nInput:\nx\n"
DEAD = "pytest plugin exception: Kernel dead on test start"


def small_bug(after: str) -> Bug:
    return Bug("a bug", CONSTANTS, "HALF = 21", after)


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: f"{bug.name}, {bug.file}")
def test_a_bug_changes_the_code_of_its_file(bug: Bug) -> None:
    text = (ROOT / bug.file).read_text(encoding="utf-8")
    assert ast.dump(ast.parse(bug.applied(text))) != ast.dump(ast.parse(text))


def test_no_bug_stands_in_a_file_twice() -> None:
    assert len({(bug.name, bug.file) for bug in BUGS}) == len(BUGS)
    assert len({(bug.file, bug.applied((ROOT / bug.file).read_text())) for bug in BUGS}) == len(
        BUGS
    )


def test_every_bug_is_reached_by_a_chapter(book: Book) -> None:
    imported = {chapter.name: modules(book, chapter) for chapter in book.chapters}
    order = {bug: [one.name for one in reaching(book, bug, imported)] for bug in BUGS}
    assert all(order.values())
    backward = next(bug for bug in BUGS if bug.name == "dgamma summed over features")
    naming = {
        chapter.name
        for chapter in book.chapters
        if any("layer_norm_backward" in cell.source for cell in chapter.code_cells)
    }
    assert 0 < len(naming) < len(order[backward])
    assert set(order[backward][: len(naming)]) == naming
    last = order[backward][-1]
    assert len(imported[last]) == max(map(len, imported.values()))


@pytest.mark.parametrize(("text", "count"), [("HALF = 20\n", 0), ("HALF = 21\nHALF = 21\n", 2)])
def test_a_bug_that_no_longer_fits_says_so(tmp_path: Path, text: str, count: int) -> None:
    (tmp_path / "lnbook").mkdir()
    (tmp_path / CONSTANTS).write_text(text)
    with pytest.raises(BookError) as caught:
        small_bug("HALF = 22").put_into(tmp_path)
    assert str(caught.value) == (
        f"{CONSTANTS}: the bug 'a bug' replaces text that should occur once but occurs "
        f"{count} times: 'HALF = 21'"
    )
    assert (tmp_path / CONSTANTS).read_text() == text


def test_a_bug_without_its_file_says_so(tmp_path: Path) -> None:
    with pytest.raises(BookError, match="constants.py: no such file, but the bug 'a bug'"):
        small_bug("HALF = 22").put_into(tmp_path)


def test_bugs_are_chosen_by_name() -> None:
    assert named(BUGS, []) == list(BUGS)
    assert {bug.name for bug in named(BUGS, ["std for var", "wrong axis"])} == {
        "std for var",
        "wrong axis",
    }
    with pytest.raises(BookError, match="no bug named wrong; choose from eps outside the root"):
        named(BUGS, ["wrong", "wrong axis"])


@pytest.mark.parametrize(
    ("text", "what", "tells"),
    [
        (DIFFERS, "shows something else", True),
        (RAISES, "raises ValueError: expected x", True),
        (TIMEOUT, "cannot be compared: Timeout of 300 seconds exceeded executing cell", False),
        (DEAD, f"cannot be compared: {DEAD}", False),
    ],
    ids=["differs", "raises", "timeout", "dead kernel"],
)
def test_a_report_is_read(tmp_path: Path, text: str, what: str, tells: bool) -> None:
    report = tmp_path / "report.xml"
    report.write_text(REPORT.format(text))
    (result,) = read(report).values()
    assert result.different == [Difference("Cell 1", what, tells)]
    assert (result.cells, result.seconds) == (2, 2.0)


def test_a_report_on_something_else_is_refused(tmp_path: Path) -> None:
    report = tmp_path / "report.xml"
    report.write_text(REPORT.format(DIFFERS).replace("tests.notebooks.", "tests.unit."))
    with pytest.raises(BookError, match="'tests.unit.part.chapter.ipynb' is not a reference"):
        read(report)


def test_chapters_are_judged_by_their_outputs(built: Callable[[], SmallBook]) -> None:
    book = built().book
    shutil.copy(ROOT / "tests" / "nbval_sanitize.cfg", book.root / "tests")
    source = (book.root / CONSTANTS).read_text()

    other, harmless = (small_bug(after) for after in ("HALF = 22", "HALF = 42 // 2"))
    runs = [attempt(book, bug, book.chapters, everything=False) for bug in (other, harmless)]
    found = [str(run) for (run,) in runs]
    assert found[0] == "Cell 0 shows something else"
    assert found[1] == "same"  # even though the digest of its sources has changed
    assert unfound([other, harmless], [run for (run,) in runs]) == [
        f"{CONSTANTS}: no chapter catches the bug 'a bug'"
    ]
    assert (book.root / CONSTANTS).read_text() == source

    (book.root / CONSTANTS).write_text("HALF = None\n")
    (told,) = red_anyway(book, runs[0])
    assert told.startswith(
        "part/chapter: fails even without a bug: Cell 0 raises TypeError: unsupported operand"
    )
