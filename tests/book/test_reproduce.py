"""`make reproduce`: what it compares, under which settings, and what it says of a difference."""

import shutil
from collections.abc import Callable

import pytest

from bookbuild.reproduce import WIDTHS, Setting, widths
from tests.book.small_book import ROOT, SmallBook

ADDED = """
```{code-cell}
import os

print("threads", os.environ.get("LNBOOK_THREADS", "1"))
print("vectors", len(os.environ.get("ATEN_CPU_CAPABILITY", "default")) > 0)
```
"""


@pytest.fixture
def sensitive(built: Callable[[], SmallBook]) -> SmallBook:
    """A small book whose chapter shows with how many threads it was computed."""
    small = built()
    for path in (ROOT / "tests").glob("*.*"):  # what the settings of pytest name
        shutil.copy(path, small.book.root / "tests")
    small.chapter.write_text(small.chapter.read_text() + ADDED)
    assert small.run("notebooks").returncode == 0
    return small


def test_a_difference_is_told_with_its_chapter_setting_and_cell(sensitive: SmallBook) -> None:
    done = sensitive.run("reproduce", "--threads", "1", "2", "--vectors", "default")
    assert done.returncode == 1
    told = "part/chapter, default, 2 threads: Cell 2 shows something else"
    assert done.stderr.splitlines() == [f"error: {told}"]
    assert "Comparing 1 chapter(s): default, 1 thread\n" in done.stdout
    table = done.stdout[done.stdout.index("chapter  ") :].splitlines()
    assert table[0].split("  ", 1)[1].strip() == "default, 1 thread  default, 2 threads"
    assert [line.split()[0] for line in table[1:]] == ["part/chapter", "all"]
    assert "1 of 3" in table[1]


def test_what_is_not_there_is_refused_before_anything_runs(sensitive: SmallBook) -> None:
    done = sensitive.run("reproduce", "part/chapters")
    assert done.stderr == "error: no chapter is called part/chapters; there are: part/chapter\n"
    done = sensitive.run("reproduce", "--vectors", "avx1024")
    assert f"has the vector widths {', '.join(widths())}, not avx1024" in done.stderr


def test_a_setting_sets_what_it_says() -> None:
    found = Setting(2, "avx2").environment
    assert {found[name] for name in ("LNBOOK_THREADS", "OMP_NUM_THREADS")} == {"2"}
    assert found["ATEN_CPU_CAPABILITY"] == "avx2"
    assert widths() == WIDTHS[: len(widths())]
