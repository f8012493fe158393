"""Fixtures: a small book, and copies of a small book with executed references."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from bookbuild.book import Book
from tests.book.small_book import SmallBook, make_small_book


@pytest.fixture
def small(tmp_path: Path) -> SmallBook:
    return make_small_book(tmp_path)


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Callable[[], SmallBook]:
    """A function that copies a small book with executed references; the original is built once."""
    original = make_small_book(tmp_path_factory.mktemp("small"))
    done = original.run("notebooks")
    assert done.returncode == 0, done.stderr
    shutil.rmtree(original.book.build)

    def copy() -> SmallBook:
        root = tmp_path_factory.mktemp("copy") / "book"
        shutil.copytree(original.book.root, root)
        return SmallBook(Book(root))

    return copy
