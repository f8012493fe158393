"""The tracks through the course: which pages each one has, and how long it takes."""

from __future__ import annotations

import posixpath
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass

from markdown_it import MarkdownIt

from bookbuild.book import Book
from bookbuild.chapter import Chapter
from bookbuild.errors import BookError
from bookbuild.site.reading_time import in_words, reading_time, rounded

FILE = "tracks.toml"  # in the folder with the pages
HOUR, DAY, EVERYTHING = "hour", "day", "everything"
NEEDS = "You need first:"


@dataclass(frozen=True)
class Track:
    """One track through the course.

    Attributes:
        title: its name.
        text: what it's for, in a sentence.
        pages: the names of its pages, in order.
        minutes: the time to read them.
        exercises: how many there are.
        solving: the minutes it takes to solve those.
    """

    title: str
    text: str
    pages: tuple[str, ...]
    minutes: float
    exercises: int
    solving: int

    @property
    def time(self) -> str:
        """The time to read it, in words."""
        return in_words(rounded(self.minutes))

    @property
    def more(self) -> str:
        """The time to solve its exercises, in words."""
        return in_words(self.solving)


class Course:
    """What you need to plan your reading: each page's reading time, and the tracks.

    Raises:
        BookError: if a track is missing or lists a page that the book doesn't have.
    """

    def __init__(self, book: Book) -> None:
        self.book = book
        where = book.show(book.source / FILE)
        given = tomllib.loads((book.source / FILE).read_text(encoding="utf-8"))
        if list(given) != [HOUR, DAY, EVERYTHING]:
            raise BookError(f"{where}: expected [{HOUR}], [{DAY}], and [{EVERYTHING}]")
        chapters = [chapter.name for chapter in book.chapters]
        given[EVERYTHING]["pages"] = chapters
        listed = dict.fromkeys(page for track in given.values() for page in track["pages"])
        unknown = [page for page in listed if page not in book.pages]
        if unknown:
            raise BookError(*(f"{where}: there is no page '{page}'" for page in unknown))
        self.times = {page: reading_time(book, page) for page in listed}
        self.tracks = {name: self._track(**values) for name, values in given.items()}
        self.essential = frozenset(self.tracks[DAY].pages).intersection(chapters)

    def _track(self, title: str, text: str, pages: list[str]) -> Track:
        times = [self.times[page] for page in pages]
        return Track(
            title,
            text,
            tuple(pages),
            sum(time.minutes for time in times),
            sum(time.exercises for time in times),
            sum(time.solving for time in times),
        )


def needs(chapter: Chapter) -> Iterator[list[str]]:
    """The pages that each "You need first" paragraph of a chapter links to."""
    text = "\n\n".join(c.source for c in chapter.notebook.cells if c.cell_type == "markdown")
    folder = posixpath.dirname(chapter.name)
    for links in linked(text):
        paths = (posixpath.join(folder, link.partition("#")[0]) for link in links)
        yield [posixpath.normpath(path).removesuffix(".md") for path in paths]


def linked(text: str) -> Iterator[list[str]]:
    """The links in each paragraph that says what you need to know first."""
    for token in MarkdownIt("commonmark").parse(text):
        if token.type == "inline" and token.content.startswith(f"**{NEEDS}**"):
            children = token.children or []
            yield [str(c.attrs["href"]) for c in children if c.type == "link_open"]
        elif token.type == "fence" and token.info.startswith("{admonition}"):
            yield from linked(token.content)
