"""Displayed formulas are split where a narrow page may break them."""

from collections.abc import Callable, Iterator

import pytest
from bs4 import BeautifulSoup, Tag

from bookbuild.sphinx.math import Renderer

OPTIONS = {"displayMode": True, "throwOnError": True, "strict": "ignore"}
# Spaces that KaTeX puts into a formula's text
EMPTY = dict.fromkeys(map(ord, "\u200b \u00a0"))


@pytest.fixture(scope="module")
def render() -> Iterator[Callable[[str], Tag]]:
    renderer = Renderer()

    def rendered(latex: str) -> Tag:
        answer = renderer.render({"latex": latex, "katex_options": OPTIONS})
        return BeautifulSoup(answer["html"], "html.parser")

    yield rendered
    renderer.close()


def pieces(formula: Tag) -> list[list[str]]:
    """The text of each piece, as one list per cell."""
    cells = formula.select(".ln-cell")
    return [[p.get_text().translate(EMPTY) for p in cell.select(".ln-piece")] for cell in cells]


@pytest.mark.parametrize(
    ("latex", "expected"),
    [
        ("a = b + c = d", [["a", "=b", "+c", "=d"]]),
        ("a = -b", [["a", "=\N{MINUS SIGN}b"]]),
        ("a + (b + c) = d", [["a", "+(b+c)", "=d"]]),
        (r"a = \{b + c\}", [["a", "={b+c}"]]),
        (r"x_{i = 1} \le \text{if } x = 1", [["xi=1", "\u2264ifx", "=1"]]),
        (r"a = f(b - c, -d)", [["a", "=f(b\N{MINUS SIGN}c,\N{MINUS SIGN}d)"]]),
        (r"a = b, \qquad c = d", [["a", "=b,", "c", "=d"]]),
        (r"a \quad \Longrightarrow \quad b", [["a", "\u27f9b"]]),
        ("a = (b, c]", [["a", "=(b,c]"]]),
        ("a = )b + c", [["a", "=)b", "+c"]]),  # unmatched brackets are ignored
    ],
)
def test_pieces_begin_with_a_sign(
    render: Callable[[str], Tag], latex: str, expected: list[list[str]]
) -> None:
    assert pieces(render(latex)) == expected


def test_statements_are_apart(render: Callable[[str], Tag]) -> None:
    formula = render(r"a = b, \qquad c = d, \quad e")
    statements = formula.select(".ln-statement")
    assert [s.get_text().translate(EMPTY) for s in statements] == ["a=b,", "c=d,", "e"]
    assert ["ln-near" in s["class"] for s in statements] == [False, False, True]


def test_lines_of_an_aligned_block(render: Callable[[str], Tag]) -> None:
    formula = render(r"\begin{aligned} a &= b \\[0.8em] &= c + \tanh(& d) \end{aligned}.")
    lines = formula.select(".ln-lines.ln-aligned > .ln-line")
    assert [len(line.select(".ln-cell")) for line in lines] == [2, 3]
    assert pieces(formula) == [["a"], ["=b"], [], ["=c", "+tanh("], ["d)."]]
    assert all(cell["style"] == "margin-top:0.8em" for cell in lines[1].select(".ln-cell"))


def test_a_long_first_column_is_stacked(render: Callable[[str], Tag]) -> None:
    block = r"\begin{{aligned}} {} &= c \\ d &= e \end{{aligned}}"
    assert not render(block.format("a + b")).select(".ln-stacked")
    assert render(block.format("a + b + c + d + e")).select(".ln-stacked")


@pytest.mark.parametrize("latex", ["a", r"\frac{a = b}{c + d}", r"\left( a = b \right)^2"])
def test_what_has_no_place_to_break_stays(render: Callable[[str], Tag], latex: str) -> None:
    assert not render(latex).select(".ln-lines")


def test_readers_who_listen_get_one_formula(render: Callable[[str], Tag]) -> None:
    formula = render(r"a = b \qquad c = d")
    assert len(formula.select("math")) == 1
    annotation = formula.select_one("annotation")
    assert annotation is not None
    assert annotation.get_text() == r"a = b \qquad c = d"
    hidden = formula.select_one("[aria-hidden=true] .ln-lines")
    assert hidden is not None
    assert not hidden.select("math")
