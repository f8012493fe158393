"""Each chapter lists its prerequisites, and needs only chapters that come before it."""

import pytest

from bookbuild.book import Book
from bookbuild.site.tracks import NEEDS, linked, needs


def test_each_chapter_says_what_to_know_first(book: Book) -> None:
    assert book.chapters
    for place, chapter in enumerate(book.chapters):
        found = list(needs(chapter))
        assert len(found) == 1, f"{chapter.shown}: '{NEEDS}' is in {len(found)} paragraphs"
        before = {earlier.name for earlier in book.chapters[:place]}
        for name in found[0]:
            assert name in before, f"{chapter.shown}: needs {name}, which does not come before it"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("**You need first:** [a](b.md#c).", [["b.md#c"]]),
        ("```{admonition} A\n**You need first:** sums.\n```", [[]]),
        ("You need nothing.", []),
    ],
)
def test_how_needs_are_found(text: str, expected: list[list[str]]) -> None:
    assert list(linked(text)) == expected
