"""A site is up to date only if all of its sources are unchanged."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from bookbuild.site import unchanged
from tests.book.small_book import SmallBook


@pytest.fixture
def root(small: SmallBook) -> Path:
    """A small book that's marked as built."""
    small.book.html.mkdir(parents=True)
    (small.book.html / "index.html").write_text("built")
    unchanged.remember(small.book.root, unchanged.sources_digest(small.book.root))
    assert unchanged.is_unchanged(small.book.root)
    return small.book.root


@pytest.mark.parametrize(
    "name",
    [
        "_config.yml",
        "_toc.yml",
        "constraints.txt",
        "pyproject.toml",
        "book/index.md",
        "book/part/chapter.md",
        "book/references.bib",
        "book/_static/lnbook.css",
        "book/_templates/provenance.html",
        "lnbook/constants.py",
        "lnbook/new.py",
        "bookbuild/new.py",
        "tests/notebooks/new.ipynb",
    ],
)
def test_any_source_counts(root: Path, name: str) -> None:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text((path.read_text() if path.exists() else "") + "# more\n")
    assert not unchanged.is_unchanged(root)


REFERENCES = "book/references.bib"


@pytest.mark.parametrize(
    "change",
    [
        lambda root: (root / REFERENCES).unlink(),
        lambda root: (root / REFERENCES).rename(root / "book" / "works.bib"),
        lambda root: (root / "_build" / "html" / "index.html").unlink(),
        unchanged.forget,
    ],
    ids=["a source is gone", "a source is renamed", "no site", "a build in progress"],
)
def test_no_claim(root: Path, change: Callable[[Path], object]) -> None:
    change(root)
    assert not unchanged.is_unchanged(root)


def test_the_repository_counts(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BOOK_REPOSITORY", "https://example.org/a/b")
    assert not unchanged.is_unchanged(root)


def test_a_failed_build_makes_no_claim(root: Path, small: SmallBook) -> None:
    small.index.write_text(small.index.read_text() + "{term}`nothing`\n")
    assert small.run("book").returncode == 1
    assert not unchanged.is_unchanged(root)


@pytest.mark.parametrize("name", ["_toc.yml", "book/references.bib", "bookbuild/sphinx/page.py"])
@pytest.mark.parametrize(("minutes", "kept"), [(-1, True), (1, False)])
def test_pages_are_read_again_when_numbers_or_the_build_change(
    small: SmallBook, name: str, minutes: int, kept: bool
) -> None:
    read = small.book.build / ".doctrees" / "environment.pickle"
    read.parent.mkdir(parents=True)
    code = small.book.root / "bookbuild" / "sphinx" / "page.py"
    code.parent.mkdir(parents=True, exist_ok=True)
    for path in (read, small.book.toc, small.book.source / "references.bib", code):
        path.touch()
    changed = read.stat().st_mtime + 60 * minutes
    os.utime(small.book.root / name, (changed, changed))
    unchanged.forget_outdated(small.book.root)
    assert read.exists() == kept
