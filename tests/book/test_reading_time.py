"""The rule for reading times, which must match the one stated in the text."""

import nbformat
import pytest
from nbformat import NotebookNode

from bookbuild.book import Book
from bookbuild.site.reading_time import (
    MINUTES_PER_EXERCISE,
    SECONDS,
    WORDS_PER_MINUTE,
    ReadingTime,
    in_words,
    parser_for,
    reading_time,
    time_of,
)

LONG = "word " * 180 * 20
FOLDED = ":class: dropdown\n"


def code(lines: int, *tags: str, **metadata: object) -> NotebookNode:
    cell = nbformat.v4.new_code_cell("x = 1\n\n" * lines)
    cell.metadata.update(tags=list(tags), **metadata)
    return cell


def directive(name: str, body: str = LONG, options: str = "") -> str:
    return f"```{{{name}}} a title\n{options}\n{body}\n```\n"


def between(name: str, *cells: str | NotebookNode) -> list[str | NotebookNode]:
    return [f"```{{{name}-start}} a\n```\n", *cells, f"```{{{name}-end}}\n```\n"]


def time(book: Book, *cells: str | NotebookNode) -> ReadingTime:
    made = [nbformat.v4.new_markdown_cell(c) if isinstance(c, str) else c for c in cells]
    return time_of(parser_for(book.config), made)


@pytest.mark.parametrize(
    ("cells", "minutes"),
    [
        (["short"], 5),
        ([LONG], 20),
        ([LONG, code(50)], 30),
        ([LONG, code(50, "hide-input")], 20),
        ([LONG, code(50, "remove-cell")], 20),
        ([LONG, "```python\n" + "x = 1\n\n" * 50 + "```"], 30),
        ([LONG, *(code(0, mystnb={"image": {"alt": "a"}}) for _ in range(24))], 30),
        ([LONG, *(code(9, "hide-input", mystnb={"image": {}}) for _ in range(24))], 30),
        ([LONG, *(code(9, "remove-cell", mystnb={"image": {}}) for _ in range(24))], 20),
        ([LONG, *[directive("figure", "")] * 24], 30),
        ([LONG, *[directive("math", "x")] * 40], 30),
        ([LONG, "$$\nx\n$$\n\n" * 40], 30),
        ([LONG, "$x$ " * 300], 30),
        ([LONG, directive("hint", options=FOLDED)], 20),
        ([LONG, directive("hint")], 40),
        ([LONG, "````{tip}\n" + directive("hint", options=FOLDED) + LONG + "\n````"], 40),
        ([LONG, *between("solution", LONG, code(50)), LONG], 40),
        ([LONG, *between("deeper", LONG, code(50), directive("math", "x") * 40), LONG], 40),
        ([LONG, *between("exercise", LONG)], 20),
        (["{term}`" + LONG + " <row>`"], 20),
        (["[" + LONG + "](page.md)"], 20),
        (["```{list-table}\n:class: a\n\n* - " + LONG + "\n```"], 20),
        (["<!-- " + LONG + " -->"], 5),
    ],
)
def test_minutes_to_read(book: Book, cells: list[str | NotebookNode], minutes: int) -> None:
    assert time(book, *cells).reading == minutes


def test_exercises_come_on_top(book: Book) -> None:
    three = time(book, *between("exercise", LONG) * 3)
    assert (three.reading, three.exercises, three.solving) == (5, 3, 20)
    assert time(book, "short").solving == 0


def test_a_page_without_code_has_a_time(book: Book) -> None:
    one_page = reading_time(book, "one-page")
    assert 1 < one_page.minutes < 10
    assert one_page.exercises == 0


@pytest.mark.parametrize(
    ("minutes", "words"),
    [(55, "55 minutes"), (115, "115 minutes"), (120, "2 hours"), (340, "5 h 40 min")],
)
def test_minutes_in_words(minutes: int, words: str) -> None:
    assert in_words(minutes) == words


def test_the_text_gives_the_rule(book: Book) -> None:
    text = (book.source / "running.md").read_text()
    rule = (
        f"{WORDS_PER_MINUTE} words per minute, {SECONDS['line of code']} seconds per visible line "
        f"of code, {SECONDS['formula']} per inline formula, {SECONDS['equation']} per displayed "
        f"equation, and {SECONDS['figure']} per figure"
    )
    assert rule in text
    assert f"Each exercise adds {MINUTES_PER_EXERCISE} minutes" in text
