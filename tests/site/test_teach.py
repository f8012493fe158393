"""The teacher's page: the prerequisite graph, and the questions to answer."""

from collections.abc import Callable
from pathlib import Path

import pytest
from bs4 import BeautifulSoup
from playwright.sync_api import Page, expect

from bookbuild.site.tracks import needs
from tests.site.pages import BOOK, CHAPTERS
from tests.site.visit import DESKTOP, PHONE, SCROLL, layout_shift

OpenPage = Callable[..., Page]
PAGE = "teach.html"


def test_every_link_between_chapters_is_an_arc(html: Path) -> None:
    page = BeautifulSoup((html / PAGE).read_text(encoding="utf-8"), "html.parser")
    rows = page.select(".ln-graph li")
    assert [row.select_one("a")["href"] for row in rows] == [f"{name}.html" for name in CHAPTERS]  # type: ignore[index]
    wanted = []
    for row, chapter in zip(rows, BOOK.chapters, strict=True):
        before = {page for pages in needs(chapter) for page in pages} & set(CHAPTERS)
        numbers = sorted(CHAPTERS.index(name) + 1 for name in before)
        assert str(row["data-needs"]).split() == [str(number) for number in numbers]
        wanted += [row["data-number"]] * len(before)
    arcs = page.select(".ln-graph path")
    assert sorted(str(arc["data-to"]) for arc in arcs) == sorted(map(str, wanted))


def test_pointing_at_a_chapter_lights_its_arcs(open_page: OpenPage) -> None:
    page = open_page(PAGE)
    page.locator(".ln-graph a[href='gradient/jacobian.html']").focus()
    lit = page.locator(".ln-graph path.ln-lit")
    expect(lit).to_have_count(1)
    assert lit.get_attribute("data-to") == str(CHAPTERS.index("gradient/jacobian") + 1)
    page.evaluate("document.activeElement.blur()")
    expect(lit).to_have_count(0)


@pytest.mark.parametrize(("scheme", "width"), [("http", PHONE), ("file", DESKTOP)])
def test_a_question_is_answered_by_a_click(open_page: OpenPage, scheme: str, width: int) -> None:
    page = open_page(PAGE, scheme=scheme, width=width)
    question = page.locator("#question-axes")
    options, score = question.locator(".ln-option"), page.locator(".ln-score")
    expect(score).to_contain_text("20 questions")
    page.evaluate(f"({SCROLL})()")  # parts never on screen have only estimated heights
    question.scroll_into_view_if_needed()
    before = layout_shift(page, explained=False)  # an answer moves what's below it
    options.nth(0).locator("summary").click()
    expect(options.nth(0).get_by_text("No.")).to_be_visible()
    options.nth(2).locator("summary").click()
    expect(options.nth(2).get_by_text("Right.")).to_be_visible()
    expect(score).to_have_text("0 of 1 right on the first try, 19 to go")
    page.locator("#question-factor .ln-option summary").first.press("Enter")
    expect(score).to_have_text("1 of 2 right on the first try, 18 to go")
    assert layout_shift(page, explained=False) - before < 0.005
    page.get_by_role("button", name="Start over").click()
    expect(score).to_contain_text("20 questions")
    expect(page.locator(".ln-quiz details[open]")).to_have_count(0)


def test_printing_answers_nothing(open_page: OpenPage) -> None:
    page = open_page(PAGE)
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    expect(page.locator(".ln-quiz details:not([open])")).to_have_count(0)
    expect(page.locator(".ln-score")).to_contain_text("20 questions")
    page.evaluate("window.dispatchEvent(new Event('afterprint'))")


def test_without_javascript_an_option_still_opens(open_page: OpenPage) -> None:
    page = open_page(PAGE, scripts=False)
    option = page.locator("#question-axes .ln-option").nth(2)
    expect(option.get_by_text("Right.")).to_be_hidden()
    option.locator("summary").click()
    expect(option.get_by_text("Right.")).to_be_visible()
