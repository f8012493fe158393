"""The page that lists all exercises keeps up with the book and its order."""

from pathlib import Path

import pytest
from bs4 import BeautifulSoup
from sphinx.application import Sphinx
from sphinx.util.docutils import docutils_namespace

PAGE = """\
{title}
=======

.. exercise:: First of {title}
   :label: {title}-1

   Do it.

.. exercise:: {second}
   :label: {title}-2

   Do that.
"""
INDEX = """\
Book
====

.. toctree::

   later
   earlier
   list
"""


@pytest.fixture
def pages(tmp_path: Path) -> Path:
    folder = tmp_path / "pages"
    folder.mkdir()
    (folder / "index.rst").write_text(INDEX)
    (folder / "list.rst").write_text("All\n===\n\n.. exercise-list::\n")
    for title in ("later", "earlier"):
        (folder / f"{title}.rst").write_text(PAGE.format(title=title, second="Second"))
    return folder


def built(pages: Path) -> list[tuple[str, str]]:
    """Build the pages, and return the text and target of each link in the list."""
    out = pages.parent / "html"
    configuration = {"extensions": ["sphinx_exercise", "bookbuild.sphinx.exercise_list"]}
    with docutils_namespace():  # at the end, undoes what extensions register
        app = Sphinx(
            str(pages), None, str(out), str(out / "trees"), "html", configuration, status=None
        )
        app.build()
    soup = BeautifulSoup((out / "list.html").read_text(), "html.parser")
    return [(link.get_text(), link["href"]) for link in soup.select("dl.exercise-list a")]


def test_exercises_stand_in_the_order_of_the_book(pages: Path) -> None:
    assert built(pages) == [
        (text, f"{chapter}.html{anchor}")
        for chapter in ("later", "earlier")
        for text, anchor in (
            (chapter, ""),
            (f"First of {chapter}", f"#{chapter}-1"),
            ("Second", f"#{chapter}-2"),
        )
    ]


def test_the_list_follows_a_change_of_a_chapter(pages: Path) -> None:
    built(pages)
    (pages / "later.rst").write_text(PAGE.format(title="later", second="Another"))
    assert ("Another", "later.html#later-2") in built(pages)
