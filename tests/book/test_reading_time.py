"""The rule for reading times, and that the text tells the same rule."""

import pytest
from docutils import nodes
from sphinx_exercise.nodes import exercise_enumerable_node, solution_node

from bookbuild.book import Book
from bookbuild.site.reading_time import MINUTES_AN_EXERCISE, SECONDS, WORDS_A_MINUTE, reading_time

LONG = "word " * 180 * 20


def page(*children: nodes.Node) -> nodes.section:
    return nodes.section("", *children)


def cell(source: str, *, folded: bool = False, outputs: nodes.Node | None = None) -> nodes.Node:
    box = nodes.container(nb_element="cell_code", **({"hide_mode": "input"} if folded else {}))
    box += nodes.container("", nodes.literal_block(source, source), nb_element="cell_code_source")
    if outputs is not None:
        box += nodes.container("", outputs, mime_type="text/plain")
    return box


def words(text: str) -> nodes.paragraph:
    return nodes.paragraph("", "", nodes.Text(text))


@pytest.mark.parametrize(
    ("children", "minutes"),
    [
        ([words("short")], 5),
        ([words(LONG)], 20),
        ([words(LONG), cell("x = 1\n\n" * 150)], 30),
        ([words(LONG), cell("x = 1\n" * 150, folded=True)], 20),
        ([words(LONG), cell("x", outputs=nodes.literal_block("", "1\n" * 900))], 20),
        ([words(LONG), *(nodes.math_block("", "x") for _ in range(40))], 30),
        ([words(LONG), *(nodes.math("", "x") for _ in range(300))], 30),
        ([words(LONG), *(nodes.figure() for _ in range(24))], 30),
        ([words(LONG), nodes.hint("", words(LONG), classes=["dropdown"])], 20),
        ([words(LONG), nodes.hint("", words(LONG))], 40),
        ([words(LONG), solution_node("", words(LONG))], 20),
    ],
)
def test_minutes_to_read(children: list[nodes.Node], minutes: int) -> None:
    assert reading_time(page(*children)).reading == minutes


def test_exercises_are_read_and_solved() -> None:
    time = reading_time(page(*(exercise_enumerable_node("", words(LONG)) for _ in range(3))))
    assert (time.reading, time.exercises, time.solving) == (60, 3, 20)
    assert reading_time(page(words("short"))).solving == 0


def test_the_text_tells_the_rule(book: Book) -> None:
    text = (book.source / "running.md").read_text()
    told = (
        f"{WORDS_A_MINUTE} words a minute, {SECONDS['line of code']} seconds for a line of code, "
        f"{SECONDS['formula']} for a formula in a line, {SECONDS['equation']} for one that stands "
        f"alone, {SECONDS['figure']} for a figure, and {MINUTES_AN_EXERCISE} minutes to solve an "
        "exercise"
    )
    assert told in text
