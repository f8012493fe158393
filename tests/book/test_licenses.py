"""The list of licenses covers everything that the book uses."""

import re
import sys
from importlib.metadata import PackageNotFoundError

import pytest

from bookbuild.book import Book
from bookbuild.environment import licenses
from bookbuild.errors import BookError


def test_the_list_is_up_to_date(book: Book) -> None:
    written = licenses.path(book).read_text(encoding="utf-8")
    assert written == licenses.text(licenses.pinned(book)), (
        "run 'python -m bookbuild licenses', and read the list"
    )


# A program that only checks spelling: no part of it ends up in the book.
RUN_ONLY = {"codespell"}


def test_nothing_forbids_to_share_the_book(book: Book) -> None:
    # Everything we ship may be redistributed under its own license; GPL-only tools couldn't become
    # part of the site.
    shared = {license for _, _, license in licenses.SHIPPED}
    assert shared <= {"MIT", "BSD-2-Clause", "BSD-3-Clause", "OFL-1.1"}
    for name in set(licenses.pinned(book)) - RUN_ONLY:
        names = licenses.license_of(name).split(", ")
        assert any("GPL" not in each for each in names), name


def test_each_folder_that_comes_from_elsewhere_is_listed(book: Book) -> None:
    folders = {path.parent.name for path in (book.source / "_static").rglob("LICENSE*")}
    listed = " ".join(what for _, what, _ in licenses.SHIPPED)
    assert folders == set(re.findall(r"`(\w+)/", listed))


def test_a_package_that_is_not_there() -> None:
    with pytest.raises(BookError, match="no-such-package is not installed"):
        licenses.license_of("no-such-package")


@pytest.mark.skipif(sys.platform != "linux", reason="some packages exist only for Linux")
def test_what_only_linux_installs_has_the_license_of_its_metadata(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    read = {name: licenses.license_of(name) for name in licenses.ONLY_LINUX}
    assert read == licenses.ONLY_LINUX

    def missing(name: str) -> None:
        raise PackageNotFoundError(name)

    monkeypatch.setattr(licenses, "metadata", missing)
    assert licenses.license_of("triton") == read["triton"]
