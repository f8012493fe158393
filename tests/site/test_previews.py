"""Preview cards: what they show, and how a pointer, a keyboard and a finger open and close them."""

import itertools
import re

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.site import axe
from tests.site.visit import DESKTOP, MODES, PHONE, layout_shift, switch_to, visit

CHAPTER = "gradient/jacobian"
KINDS = [
    ("Glossary", 'a[href*="#term-Jacobian"]', "derivatives"),
    ("Symbol", 'a.ln-symbol[href$="#symbol-epsilon"]', "added to the variance"),
    ("Cited work", ".bibtex-citation a", "201"),
    ("Equation", 'a[href*="derivation.html#equation-"]', ""),
    ("Figure", "a:has(> .std-numref)", "Fig. 9.1"),
]
CARD = ".ln-card"


def link_to(page: Page, selector: str) -> Locator:
    link = page.locator(f"article {selector}").first
    link.evaluate("(link) => link.scrollIntoView({block: 'center'})")
    page.wait_for_timeout(300)  # wait until scrolling and layout are finished
    return link


def point_at(page: Page, link: Locator) -> None:
    """Move the pointer onto the first line of a link."""
    x, y = link.evaluate(
        "(link) => {const box = link.getClientRects()[0];"
        "return [box.x + box.width / 2, box.y + box.height / 2]}"
    )
    page.mouse.move(x - 1, y)
    page.mouse.move(x, y)


@pytest.mark.parametrize("place", ["site", "files"])
def test_a_pointer_opens_a_card(
    request: pytest.FixtureRequest, browser: Browser, place: str
) -> None:
    base = str(request.getfixturevalue(place))
    with visit(browser, base, f"{CHAPTER}.html") as seen:
        for kind, selector, text in KINDS:
            check_card(seen.page, kind, selector, text)
        assert not seen.faults()


def check_card(page: Page, kind: str, selector: str, text: str) -> None:
    """Open a link's card with the pointer, check it, and close it again."""
    link = link_to(page, selector)
    before = layout_shift(page)
    point_at(page, link)
    card = page.locator(CARD)
    expect(card).to_be_visible()
    assert card.get_attribute("data-kind") == kind
    expect(card).to_contain_text(text)
    assert link.get_attribute("aria-describedby") == card.get_attribute("id")
    assert card.get_attribute("role") == "tooltip"
    assert card.locator("a, button").count() == 0
    if kind in ("Equation", "Symbol"):
        expect(card.locator(".katex").first).to_be_visible()
    if kind == "Figure":
        page.wait_for_function("document.querySelector('.ln-card img').naturalWidth > 0")
    box = card.bounding_box()
    assert box is not None
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= DESKTOP
    card.hover()
    page.wait_for_timeout(600)
    expect(card).to_be_visible()  # the pointer can move onto the card
    page.mouse.move(2, 790)
    expect(card).to_have_count(0)
    assert link.get_attribute("aria-describedby") is None
    assert layout_shift(page) == before


def test_the_focus_opens_a_card_and_escape_closes_it(browser: Browser, site: str) -> None:
    with visit(browser, site, f"{CHAPTER}.html") as seen:
        page = seen.page
        link = link_to(page, 'a[href*="#term-"]')
        page.keyboard.press("Shift")  # to show that the reader is using the keyboard
        link.focus()
        expect(page.locator(CARD)).to_be_visible()
        page.keyboard.press("Escape")
        expect(page.locator(CARD)).to_have_count(0)
        expect(link).to_be_focused()
        page.keyboard.press("Enter")
        page.wait_for_url(re.compile("glossary.html#term-"))


def test_the_first_tap_opens_a_card_and_the_second_follows(browser: Browser, site: str) -> None:
    with visit(browser, site, f"{CHAPTER}.html", width=PHONE) as seen:
        page = seen.page
        link = link_to(page, 'a[href*="#term-"]')
        link.tap()
        card = page.locator(CARD)
        expect(card).to_be_visible()
        assert CHAPTER in page.url
        assert card.get_attribute("role") == "dialog"
        assert card.get_attribute("aria-label")
        expect(card.locator("a")).to_be_focused()
        box = card.bounding_box()
        assert box is not None
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= PHONE
        page.locator("article h1").tap()
        expect(card).to_have_count(0)
        link = link_to(page, 'a[href*="#term-"]')
        link.tap()
        expect(card).to_be_visible()
        link.tap()
        page.wait_for_url(re.compile("glossary.html#term-"))


def test_cards_keep_the_rules_of_axe(browser: Browser, site: str, axe_script: str) -> None:
    """Checks the cards and their links; test_pages.py checks the rest of the page."""
    with visit(browser, site, f"{CHAPTER}.html") as seen:
        for mode, (kind, selector, _) in itertools.product(MODES, KINDS):
            switch_to(seen.page, mode)  # before the card opens, since it closes when colors change
            point_at(seen.page, link_to(seen.page, selector))
            expect(seen.page.locator(CARD)).to_have_attribute("data-kind", kind)
            found = axe.violations(seen.page, axe_script, within=f"{CARD}, [aria-describedby]")
            assert found == [], kind
            seen.page.keyboard.press("Escape")
            seen.page.mouse.move(2, 790)


def test_a_card_that_cannot_be_loaded_leaves_a_link(browser: Browser, site: str) -> None:
    with visit(browser, site, f"{CHAPTER}.html", width=PHONE) as seen:
        seen.page.route("**/previews/*.js", lambda route: route.abort())
        link_to(seen.page, 'a[href*="#term-"]').tap()
        seen.page.wait_for_url(re.compile("glossary.html#term-"))


def test_without_scripts_they_are_links(browser: Browser, files: str) -> None:
    with visit(browser, files, f"{CHAPTER}.html", script=False) as seen:
        seen.page.locator('article a[href*="#term-"]').first.click()
        assert "glossary.html#term-" in seen.page.url


def test_a_page_links_each_symbol_once(browser: Browser, site: str) -> None:
    with visit(browser, site, "lstm/cell.html") as seen:
        links = seen.page.locator("a.ln-symbol").evaluate_all(
            "links => links.map((link) => link.getAttribute('href'))"
        )
        assert len(links) > 3
        assert len(set(links)) == len(links)
        # Here, sigma is the sigmoid, and the card says so.
        point_at(seen.page, link_to(seen.page, 'a.ln-symbol[href$="#symbol-sigma"]'))
        expect(seen.page.locator(CARD)).to_contain_text("sigmoid")
