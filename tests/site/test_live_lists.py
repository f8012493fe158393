"""The course map, the decision guide and the claims filter, with and without scripts."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from bs4 import BeautifulSoup
from playwright.sync_api import Page, expect

from bookbuild.book import Book
from bookbuild.site.tracks import needs
from bookbuild.sphinx.live_lists import VERDICTS
from tests.site.pages import BOOK, CHAPTERS
from tests.site.visit import DESKTOP, PHONE

OpenPage = Callable[..., Page]
GUIDE, CLAIMS = "practice/when-to-use.html", "practice/myths.html"
WIDTHS = pytest.mark.parametrize("width", [DESKTOP, PHONE])


def needed(book: Book, name: str) -> set[str]:
    (chapter,) = book.named([name])
    return {page for pages in needs(chapter) for page in pages}


# The course map


def test_every_chapter_is_on_the_map_with_a_drawing_of_its_own(html: Path) -> None:
    page = BeautifulSoup((html / "index.html").read_text(encoding="utf-8"), "html.parser")
    cards = page.select(".ln-map li")
    links = [card.select_one("a")["href"] for card in cards]  # type: ignore[index]
    assert links == [f"{name}.html" for name in CHAPTERS]
    drawings = Counter(str(card.select_one(".ln-thumb")) for card in cards)
    assert "None" not in drawings
    assert max(drawings.values()) == 1, "add a drawing to book/_templates/thumbnails.html"
    for card, name in zip(cards, CHAPTERS, strict=True):
        before = [CHAPTERS[int(number) - 1] for number in str(card["data-needs"]).split()]
        assert set(before) == needed(BOOK, name) & set(CHAPTERS)


@WIDTHS
def test_the_map_shows_what_a_chapter_builds_on(open_page: OpenPage, width: int) -> None:
    page = open_page("index.html", width=width)
    page.locator(".ln-map").scroll_into_view_if_needed()
    link = page.locator(".ln-map a[href='gradient/jacobian.html']")
    link.focus()

    def marked(name: str) -> list[str | None]:
        return [a.get_attribute("href") for a in page.locator(f".ln-map .{name} a").all()]

    assert marked("ln-needed") == ["gradient/derivation.html"]
    assert marked("ln-before") == ["formula/step-by-step.html"]
    page.evaluate("document.activeElement.blur()")
    assert marked("ln-needed") == marked("ln-before") == []


def test_a_card_is_one_link(open_page: OpenPage) -> None:
    page = open_page("index.html")
    card = page.locator(".ln-map li").nth(4)
    card.scroll_into_view_if_needed()
    card.click(position={"x": 40, "y": 40})  # on the card's drawing
    page.wait_for_url("**/formula/epsilon-and-precision.html")


# The decision guide

ADVICE = {
    "": "Keep its norm",
    "n": "Pre-norm",
    "nn": "LayerNorm between the layers",
    "nnn": "Instance norm",
    "nnnn": "LayerNorm or GN",
    "nnnnn": "With many images per GPU, BN",
    "nnnnnn": "No norm",
}


@pytest.mark.parametrize(("scheme", "width"), [("http", PHONE), ("file", DESKTOP)])
def test_the_guide_leads_to_an_advice(open_page: OpenPage, scheme: str, width: int) -> None:
    page = open_page(GUIDE, scheme=scheme, width=width)
    guide = page.locator(".ln-guide")
    guide.scroll_into_view_if_needed()
    items = guide.locator(":scope > ol:not(.ln-guide-path) > li:visible")
    for answers, advice in ADVICE.items():
        expect(items).to_have_count(1)
        for _ in answers:
            guide.get_by_role("button", name="No", exact=True).click()
        expect(guide.locator(".ln-guide-count")).to_have_text(f"Question {len(answers) + 1} of 7")
        guide.get_by_role("button", name="Yes").click()
        expect(items).to_contain_text(advice)
        expect(guide.locator(".ln-guide-path li")).to_have_count(len(answers) + 1)
        guide.get_by_role("button", name="Start over").click()
    for _ in range(7):
        guide.get_by_role("button", name="No", exact=True).click()
    expect(items).to_contain_text("None of these")
    guide.locator(".ln-guide-path button").nth(2).click()  # go back to an answered question
    expect(guide.locator(".ln-guide-count")).to_have_text("Question 3 of 7")


def test_the_guide_says_what_the_figure_says(html: Path) -> None:
    """Both have the same questions in the same order, and the same norms."""
    text = (html / GUIDE).read_text(encoding="utf-8")
    page = BeautifulSoup(text, "html.parser")
    items = page.select(".ln-guide > ol > li")
    figure = page.select_one("figure#when-guide img")
    assert figure is not None
    asked = str(figure["alt"]).split(". ")
    for number, word in enumerate(
        ("trained weights", "transformer", "recurrent", "style", "example", "convnet", "without"), 1
    ):
        assert word in items[number - 1].get_text()
        assert any(part.startswith(f"{number}:") or f" {number}:" in part for part in asked)


# The claims


def test_each_claim_has_its_verdicts_as_badges(html: Path) -> None:
    page = BeautifulSoup((html / CLAIMS).read_text(encoding="utf-8"), "html.parser")
    (table,) = page.select("table.ln-claims")
    rows = table.select("tbody tr")
    assert len(rows) > 50
    for row in rows:
        cell = row.select("td")[1]
        names = [badge.get_text() for badge in cell.select(".ln-verdict")]
        assert ", ".join(names) == cell.get_text().strip()
        assert names
        assert set(names) <= set(VERDICTS)
    entries = page.select("strong.ln-verdict")
    assert len(entries) > 40
    for strong in entries:
        assert f"ln-verdict-{strong.get_text().strip('. ').lower()}" in strong["class"]


@WIDTHS
def test_claims_are_filtered_by_verdict_and_words(open_page: OpenPage, width: int) -> None:
    page = open_page(CLAIMS, width=width)
    bar, rows = page.locator(".ln-filter"), page.locator(".ln-claims tbody tr:visible")
    bar.scroll_into_view_if_needed()
    every = rows.count()
    expect(bar.get_by_role("button", name=f"all {every}")).to_have_attribute("aria-pressed", "true")
    for name in VERDICTS:
        button = bar.locator(f"[data-verdict={name}]")
        button.focus()
        page.keyboard.press("Enter")
        expect(button).to_have_attribute("aria-pressed", "true")
        expect(rows).to_have_count(int((button.text_content() or "").split()[-1]))
        for row in rows.all():
            expect(row.locator(f".ln-verdict-{name}").first).to_be_visible()
        expect(bar.get_by_role("status")).to_have_text(f"{rows.count()} of {every} claims")
    bar.locator("[data-verdict=all]").click()
    bar.get_by_role("searchbox").fill("LANDSCAPE smooth")
    expect(rows).to_have_count(1)
    bar.get_by_role("searchbox").fill("no such claim")
    expect(rows).to_have_count(0)
    expect(bar.get_by_role("status")).to_contain_text("No claim matches")


# Accessibility


def test_without_scripts_all_can_be_read(open_page: OpenPage) -> None:
    page = open_page(GUIDE, scripts=False)
    for item in page.locator(".ln-guide > ol > li > p").all():
        expect(item).to_be_visible()
    assert page.locator(".ln-guide button").count() == 0
    page = open_page(CLAIMS, scripts=False)
    assert page.locator(".ln-claims tbody tr").count() > 50
    assert page.locator(".ln-filter").count() == 0
