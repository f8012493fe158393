"""Each chapter says what to know first, and needs only what comes before it."""

import posixpath
from collections.abc import Iterator

import pytest
from markdown_it import MarkdownIt

from bookbuild.book import Book

START = "You need first:"


def needs(source: str) -> Iterator[list[str]]:
    """The links of each paragraph that says what to know first."""
    for token in MarkdownIt("commonmark").parse(source):
        if token.type == "inline" and token.content.startswith(f"**{START}**"):
            children = token.children or []
            yield [str(c.attrs["href"]) for c in children if c.type == "link_open"]
        elif token.type == "fence" and token.info.startswith("{admonition}"):
            yield from needs(token.content)


def test_each_chapter_says_what_to_know_first(book: Book) -> None:
    assert book.chapters
    for place, chapter in enumerate(book.chapters):
        text = "\n\n".join(c.source for c in chapter.notebook.cells if c.cell_type == "markdown")
        found = list(needs(text))
        assert len(found) == 1, f"{chapter.shown}: '{START}' occurs in {len(found)} paragraphs"
        before = {earlier.name for earlier in book.chapters[:place]}
        for link in found[0]:
            name = posixpath.normpath(
                posixpath.join(posixpath.dirname(chapter.name), link.partition("#")[0])
            ).removesuffix(".md")
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
    assert list(needs(text)) == expected
