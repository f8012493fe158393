"""Slides show what the chapters computed, and say so when they can't."""

import re
from collections.abc import Iterator
from pathlib import Path

import nbformat
import pytest
from bs4 import BeautifulSoup

from bookbuild.book import Book
from bookbuild.errors import BookError
from bookbuild.outputs.cache import read_notebook
from bookbuild.slides import build, deck
from bookbuild.slides.results import GLUED, Results
from bookbuild.sphinx.math import Renderer

FEWEST, MOST = 18, 30  # slides
SHORTEST, LONGEST = 45, 90  # minutes


def panel(number: int, top: int, left: int = 0) -> str:
    box = f"M {left} {top + 30} L {left + 9} {top + 30} L {left + 9} {top} L {left} {top} z"
    return f'<g id="axes_{number}"><g id="patch_{number}"><path d="{box}"/></g></g>'


# Two panels in the first row, one in the second, and ten points of space below them.
FIGURE = (
    '<svg xmlns="http://www.w3.org/2000/svg" width="30pt" height="140pt" viewBox="0 0 30 140">'
    f'<g id="figure_1">{panel(1, 20)}{panel(2, 20, left=15)}{panel(3, 100)}</g></svg>'
)
TITLES = {"part/chapter": "The chapter", "other": "Another page"}
LECTURE = """\
---
title: "One"
description: "A lecture."
contents: "What it covers."
---

# One

```{notes} 1
Welcome.
```

## A number

It is {number}`part/chapter the answer:.1f`.

```{notes} 2
Say {number}`part/chapter the answer`.
```

## A figure {.beside}

$x^2$ and [a page](other.md#place)

```{figure} part/chapter drawn
```

```{notes} 3
Look.
```

## Code {.question}

```{code} part/chapter
answer =
```

```{printed} part/chapter
print(
```

```{answer}
Yes: {number}`part/chapter the answer:.0f`
```

```{notes} 4
Wait.
```
"""


def cell(source: str, *outputs: nbformat.NotebookNode, **metadata: object) -> nbformat.NotebookNode:
    return nbformat.v4.new_code_cell(source, outputs=list(outputs), metadata=metadata)


def executed(answer: float = 42.0) -> nbformat.NotebookNode:
    """A chapter with a number, a figure, and printed output."""
    glued = nbformat.v4.new_output(
        "display_data",
        {GLUED: repr(answer)},
        metadata={"scrapbook": {"name": "the answer", "mime_prefix": ""}},
    )
    figure = nbformat.v4.new_output("display_data", {"image/svg+xml": FIGURE})
    named = {"figure": {"name": "drawn"}, "image": {"alt": "A drawing of nothing at all."}}
    printed = nbformat.v4.new_output("stream", name="stdout", text="it is <so>\n")
    return nbformat.v4.new_notebook(
        cells=[
            cell(f"answer = {answer}", glued),
            cell("draw()", figure, mystnb=named),
            cell("print('it is <so>')", printed),
        ]
    )


@pytest.fixture(scope="module")
def formulas() -> Iterator[Renderer]:
    renderer = Renderer()
    yield renderer
    renderer.close()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "lecture-1.md"


def read(path: Path, formulas: Renderer, text: str = LECTURE, notebook: object = None) -> deck.Deck:
    path.write_text(text)
    results = Results({"part/chapter": notebook or executed()})
    return deck.read(path, results, TITLES, "../", formulas, "lecture-1.md")


def html(read: deck.Deck, number: int) -> BeautifulSoup:
    return BeautifulSoup(deck.section(read.slides[number], 0, read.minutes), "html.parser")


def problems(path: Path, formulas: Renderer, text: str) -> list[str]:
    with pytest.raises(BookError) as caught:
        read(path, formulas, text)
    return list(caught.value.problems)


def test_slides_with_their_times_and_notes(path: Path, formulas: Renderer) -> None:
    found = read(path, formulas)
    assert (found.number, found.minutes) == (1, 10)
    assert [slide.anchor for slide in found.slides] == ["one", "a-number", "a-figure", "code"]
    assert [slide.kind for slide in found.slides] == ["title", "", "beside", "question"]
    notes = html(found, 1).select_one("aside.notes")
    assert notes is not None
    assert notes.get_text(" ", strip=True) == "2 minutes, from 0 to 2 of 10 Say 42.0."
    assert "42" not in html(found, 0).get_text()


def test_a_changed_number_changes_the_slide(path: Path, formulas: Renderer) -> None:
    assert html(read(path, formulas), 1).select_one(".body").get_text(strip=True) == "It is 42.0."
    after = read(path, formulas, notebook=executed(7.25))
    assert html(after, 1).select_one(".body").get_text(strip=True) == "It is 7.2."
    assert "Yes: 7" in html(after, 3).select_one(".answer.fragment").get_text()
    assert "answer = 7.25" in html(after, 3).select_one(".highlight").get_text()


def test_figure_links_and_formulas(path: Path, formulas: Renderer) -> None:
    slide = html(read(path, formulas), 2)
    light, dark = slide.select("figure img")
    assert (light["src"], dark["src"]) == (
        "figures/chapter-drawn.svg",
        "figures/chapter-drawn.dark.svg",
    )
    size = (light["width"], light["height"])
    assert (light["alt"], size) == ("A drawing of nothing at all.", ("40", "187"))
    links = [link["href"] for link in slide.select("a")]
    assert links == ["../other.html#place", "../part/chapter.html#drawn"]
    assert slide.select(".katex")
    assert slide.section["class"] == ["beside"]


def test_only_some_panels_of_a_figure(path: Path, formulas: Renderer) -> None:
    text = LECTURE.replace("chapter drawn", "chapter drawn 2")
    found = read(path, formulas, text)
    (figure,) = found.figures
    assert (figure.name, figure.chapter) == ("drawn.2", "part/chapter")
    assert figure.alt.endswith("(Only panel 2, counted from the top.)")
    light, _ = html(found, 2).select("figure img")
    assert (light["src"], light["width"], light["height"]) == (
        "figures/chapter-drawn.2.svg",
        "40",
        "80",
    )
    # The second row with the 20 points above it, and then everything below the last row.
    strips = BeautifulSoup(figure.svg, "xml").select("svg > svg")
    assert [strip["viewBox"] for strip in strips] == [
        "0 80.00 30.00 50.00",
        "0 130.00 30.00 10.00",
    ]
    assert html(found, 2).select_one("figcaption a")["href"] == "../part/chapter.html#drawn"


def test_what_a_cell_printed_is_escaped(path: Path, formulas: Renderer) -> None:
    assert html(read(path, formulas), 3).select_one("pre.printed").get_text() == "it is <so>"


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("the answer:.1f", "the other:.1f", "15: part/chapter has no number named 'the other'; "
         "did you mean 'the answer'?"),
        ("It is {number}`part/", "It is {number}`pat/", "no chapter named 'pat/chapter'; did you"),
        ("the answer:.1f", "the answer:x", "15: part/chapter: 'the answer' is 42.0: "),
        ("{number}`part/chapter the answer:.1f`", "{digit}`x`", "but got {digit}`x`"),
        ("chapter drawn", "chapter painted", "part/chapter has no figure named 'painted'"),
        ("chapter drawn", "chapter drawn 3", "'drawn' has 2 rows of panels; expected some of them"),
        ("chapter drawn", "chapter drawn 2 1", "but got 2 1"),
        ("part/chapter drawn", "drawn", "expected {figure} part/chapter name, got 'drawn'"),
        ("answer =\n", "missing =\n", "has 0 statements that start with 'missing ='"),
        ("print(\n", "write(\n", "has 0 cells with a line 'write(…'"),
        ("print(\n", "answer\n", "the cell with 'answer…' shows no text"),
        ("other.md", "gone.md", "23: the book has no page 'gone'"),
        ("other.md#place", "other.html", "expected a link to a page such as"),
        ("$x^2$", "$\\frac{x$", "invalid formula: "),
        ("{printed}", "{paper}", "expected one of figure, code, printed, answer, notes, but got"),
        ("{.question}", "{.query}", "expected a slide of kind question, "),
        ("```{notes} 3\nLook.\n```", "", "the slide 'A figure' needs exactly one block of notes"),
        ("Look.", "", "the slide 'A figure' needs exactly one block of notes"),
        ("{notes} 3", "{notes}", "expected {notes} with the minutes for this slide, got ''"),
        ("## Code", "## A number", "two slides have the title 'A number'"),
        ("# One", "Text.\n\n# One", "there is text before the first heading"),
        ('title: "One"\n', "", "the front matter lacks title"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named(
    path: Path, formulas: Renderer, old: str, new: str, expected: str
) -> None:
    assert old in LECTURE
    found = problems(path, formulas, LECTURE.replace(old, new, 1))
    assert any(expected in problem for problem in found), found
    assert all(problem.startswith("lecture-1.md:") for problem in found)


# ---------- This book's lectures ----------


@pytest.fixture(scope="module")
def lectures(book: Book) -> list[deck.Deck]:
    notebooks = {chapter.name: read_notebook(book.reference(chapter)) for chapter in book.chapters}
    return build.decks(book, notebooks, "../")  # type: ignore[arg-type]


def test_each_lecture_fits_its_time(lectures: list[deck.Deck]) -> None:
    assert [lecture.number for lecture in lectures] == list(range(1, len(lectures) + 1))
    for lecture in lectures:
        assert FEWEST <= len(lecture.slides) <= MOST, lecture.name
        assert SHORTEST <= lecture.minutes <= LONGEST, lecture.name
        kinds = {slide.kind for slide in lecture.slides}
        assert kinds >= {"title", "question", "exercise", "demo", "remember"}, lecture.name


def test_each_slide_has_something_to_say(lectures: list[deck.Deck]) -> None:
    short = [
        f"{lecture.name}: {slide.words}"
        for lecture in lectures
        for slide in lecture.slides
        if len(BeautifulSoup(slide.notes, "html.parser").get_text().split()) < 20
    ]
    assert not short


RESULT = re.compile(r"\d\.\d|\d\s?(?:%|percent)")
FENCE = re.compile(r"^```.*$", re.MULTILINE)
NOT_TYPED = re.compile(r"\{\w+\}`[^`]*`|`[^`]*`|\$\$.*?\$\$|\$[^$]*\$", re.DOTALL)
# A version, experiment settings, and answers to exercises done by hand: none of them can change.
FOUND_IN = {
    "PyTorch 1.7.1",
    "multiplies all the weights of these layers by **1.8**",
    "A scale of 1.8",
    "at least 80% of the test digits",
    "the variance is 6.5, and the normalized values are -1.57, 0, 0.39 and 1.18",
    "0.625, 0.125, -0.125, -0.625, and the one with respect to gamma is -2, -0.5, 0, -1",
    "The slider moves in steps of 0.05",
    "at a learning rate of 0.002",
    "(five at 0.002)",
}


def test_no_result_is_typed_by_hand(book: Book) -> None:
    """Results come from cells: a decimal point or a percentage outside a formula is suspect."""
    typed = []
    for path in build.sources(book):
        text = NOT_TYPED.sub("", FENCE.sub("", path.read_text(encoding="utf-8")))
        text = text.replace("\N{MINUS SIGN}", "-")
        for allowed in FOUND_IN:
            text = text.replace(allowed, "")
        typed += [f"{path.name}: {line}" for line in text.splitlines() if RESULT.search(line)]
    assert not typed


def test_few_words_per_slide(lectures: list[deck.Deck]) -> None:
    """People in the back row read a slide while someone is speaking."""
    long = []
    for lecture in lectures:
        for slide in lecture.slides:
            body = BeautifulSoup(slide.body, "html.parser")
            for tag in body.select("figcaption, .katex, .highlight, .printed, .answer"):
                tag.decompose()
            if len(body.get_text().split()) > 60:
                long.append(f"{lecture.name}: {slide.words}")
    assert not long
