"""A chapter created by `make chapter` passes all tests before anyone edits it."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from bookbuild.book import Book
from bookbuild.errors import BookError
from bookbuild.new_chapter import new_chapter
from tests.book import test_references
from tests.book.small_book import ROOT, SmallBook
from tests.helpers.this_book import STARTUP

NAME = "transformer/one-more"
COPIED = ("_config.yml", "_toc.yml", "constraints.txt", "environment.yml", "pyproject.toml")
# The book tests that check every chapter. For its reference, checking this chapter is enough.
CHECKS = ("test_book", "test_needs", "test_terms", "test_tree")
# Tests of functions that all chapters share, which take long and read no chapter.
OTHER = ("test_no_text_lies_on_another_or_outside", "test_lines_have_their_names_next_to_them")


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the whole book, with a new chapter and its executed reference."""
    root = tmp_path_factory.mktemp("copy")
    ignored = shutil.ignore_patterns("__pycache__", ".ipynb_checkpoints", "node_modules")
    for folder in ("book", "lnbook", "tests", "bookbuild", "benchmarks"):
        shutil.copytree(ROOT / folder, root / folder, ignore=ignored)
    for file in COPIED:
        shutil.copy(ROOT / file, root / file)
    assert run(root, "bookbuild", "chapter", NAME).endswith(
        f"make notebooks NAME={NAME}, then make test\n"
    )
    run(root, "bookbuild", "notebooks", NAME)
    return root


def run(root: Path, *command: str) -> str:
    """Run a module in the copy, and return what it prints."""
    done = subprocess.run(
        [sys.executable, "-m", *command],
        cwd=root,
        env=os.environ | {"PYTHONPATH": f"{root}{os.pathsep}{STARTUP}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_it_is_well_formed(copy: Path) -> None:
    code = f"lnbook/chapters/{NAME}".replace("-", "_")
    run(copy, "ruff", "check", code, "tests/chapters")
    run(copy, "ruff", "format", "--check", code, "tests/chapters")
    run(copy, "bookbuild", "lint")
    text = f"book/{NAME}.md"
    run(copy, "codespell_lib", code, text, "tests/chapters")


def test_it_passes_the_tests(copy: Path) -> None:
    folder = NAME.replace("-", "_")
    checks = [f"tests/book/{name}.py" for name in CHECKS]
    checks += [
        f"tests/book/test_references.py::{name}[{NAME}]"
        for name in vars(test_references)
        if name.startswith("test_")
    ]
    checks += ["tests/book/test_api.py", "tests/chapters/shared/test_figures.py"]
    own = [f"lnbook/chapters/{folder}", f"tests/chapters/{folder}", f"tests/notebooks/{NAME}.ipynb"]
    leave_out = ("-k", f"not ({' or '.join(OTHER)})")
    options = ("--numprocesses=0", "-p", "no:tests.chapter_costs", *leave_out)
    run(copy, "pytest", *options, *checks, *own)


@pytest.mark.parametrize("name", ["", "chapter", "nowhere/chapter", "part/A chapter", "part/../x"])
def test_a_name_that_is_no_chapter_is_refused(small: SmallBook, name: str) -> None:
    with pytest.raises(BookError, match="in lowercase, where part is one of part"):
        new_chapter(Book(small.book.root), name)


def test_a_chapter_that_is_there_is_left_alone(small: SmallBook) -> None:
    before = small.chapter.read_text()
    with pytest.raises(BookError, match="book/part/chapter.md already exists"):
        new_chapter(Book(small.book.root), "part/chapter")
    assert small.chapter.read_text() == before
