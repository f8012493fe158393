"""`make reproduce`: what it compares, with which settings, and how it reports differences."""

import contextlib
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from bookbuild.chapter import Chapter
from bookbuild.errors import BookError
from bookbuild.outputs.nbval_report import Difference, Result
from bookbuild.reproduce import reproduce
from bookbuild.reproduce.settings import Setting, settings
from tests.book.small_book import ROOT, SmallBook

MakeBook = Callable[[], SmallBook]

THREADS = """
```{code-cell}
import os

print("threads", os.environ.get("LNBOOK_THREADS", "1"))
```
"""
# Both iterations keep amplifying an error in the last bit.
CHAOS = """
```{code-cell}
import numpy as np
import torch

x = torch.tensor(0.3, dtype=torch.float64)
for _ in range(200):
    x = torch.sin(9 * x)
print(f"{x.item():.4f}")
```

```{code-cell}
y = np.float64(0.3)
for _ in range(200):
    y = np.sin(9 * y)
print(f"{y:.4f}")
```

```{code-cell}
rows = np.random.default_rng(0).normal(size=(50, 50))
print(f"{(rows @ rows).std():.4f} {torch.tensor(rows).exp().mean().item():.4f}")
```
"""


def test_each_setting_finds_what_depends_on_it_and_nothing_else(built: MakeBook) -> None:
    """A second thread changes one cell; noise changes the chaotic cells, in torch and in NumPy."""
    small = built()
    for path in (ROOT / "tests").glob("*.*"):  # files that pytest's settings refer to
        shutil.copy(path, small.book.root / "tests")
    shutil.copytree(ROOT / "tests" / "helpers", small.book.root / "tests" / "helpers")
    small.chapter.write_text(small.chapter.read_text() + THREADS + CHAOS)
    assert small.run("notebooks").returncode == 0
    done = small.run("reproduce", "--settings", "two-threads", "noise-0")
    assert done.returncode == 1
    *cells, where = done.stderr.splitlines()
    assert cells == [
        "error: part/chapter, two-threads: Cell 2 shows something else",
        "error: part/chapter, noise-0: Cell 3 shows something else",
        "error: part/chapter, noise-0: Cell 4 shows something else",
    ]
    assert where == "error: see _build/reproduce.txt for what these cells show instead"
    assert "Comparing 1 chapter(s): two-threads\n" in done.stdout
    table = done.stdout[done.stdout.index("chapter  ") :].splitlines()
    assert table[0].split() == ["chapter", "two-threads", "noise-0"]
    assert [line.split()[0] for line in table[1:]] == ["part/chapter", "all"]
    assert "1 of 6" in table[1]
    assert "2 of 6" in table[1]
    details = (small.book.build / "reproduce.txt").read_text()
    assert details.count("part/chapter, noise-0: Cell") == 2
    assert "x = torch.sin(9 * x)" in details


def test_what_gave_the_same_outputs_is_run_again_only_after_a_change(
    monkeypatch: pytest.MonkeyPatch, built: MakeBook
) -> None:
    book = built().book
    runs: list[str] = []
    outcome = Result(cells=3)

    def run(_book: object, setting: Setting, chapters: list[Chapter]) -> dict[str, Result]:
        runs.append(setting.name)
        return {chapter.name: outcome for chapter in chapters}

    def count(*chosen: str, only_changed: bool = True) -> int:
        runs.clear()
        with contextlib.suppress(BookError):
            reproduce.reproduce(book, (), chosen, only_changed=only_changed)
        return len(runs)

    monkeypatch.setattr(reproduce, "run", run)
    assert [count("default"), count("default")] == [1, 0]
    assert [count("sse", "default"), count("sse", "default")] == [1, 0]
    assert count("default", only_changed=False) == 1, "it runs if requested"

    reference = book.reference(book.chapters[0])
    reference.write_text(reference.read_text().replace("it is 42", "it is 43"))
    outcome = Result(cells=3, different=[Difference("Cell 2", "shows something else")])
    assert [count("default"), count("default")] == [1, 1], "a chapter that differs isn't recorded"


def test_kernels_without_the_noise_they_should_have_are_an_error(
    monkeypatch: pytest.MonkeyPatch, small: SmallBook
) -> None:
    book = small.book
    monkeypatch.setattr(reproduce, "compare", lambda *_: {"part/chapter": Result(cells=2)})
    with pytest.raises(BookError, match="only 0 of 1 kernels ran with noise"):
        reproduce.run(book, Setting("noise-7", noise=7), book.chapters)


def test_what_is_not_there_is_refused_before_anything_runs(small: SmallBook) -> None:
    with pytest.raises(BookError, match="no chapter named gone; choose from part/chapter"):
        reproduce.reproduce(small.book, ["gone"], [], only_changed=False)
    with pytest.raises(
        BookError, match="no setting named avx1024; choose from default, two-threads, sse"
    ):
        reproduce.reproduce(small.book, [], ["avx1024"], only_changed=False)


def test_a_setting_sets_what_it_says() -> None:
    known = settings()
    assert {"default", "two-threads", "sse", *(f"noise-{i}" for i in range(5))} <= set(known)
    with known["default"].environment(ROOT) as variables:
        assert variables == {}
    with known["two-threads"].environment(ROOT) as variables:
        assert variables["LNBOOK_THREADS"] == variables["OMP_NUM_THREADS"] == "2"
    with known["sse"].environment(ROOT) as variables:
        assert variables["MKL_CBWR"] == "COMPATIBLE"
        assert variables["NUMBA_CPU_NAME"] == "nehalem"
        assert variables["OPENBLAS_CORETYPE"] == "Nehalem"
    with known["noise-3"].environment(ROOT) as variables:
        assert variables["PYTHONPATH"].split(os.pathsep)[-1] == str(ROOT)
        startup = Path(variables["IPYTHONDIR"], "profile_default", "startup", "noise.py")
        assert "start(3, " in startup.read_text()
