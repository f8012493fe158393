"""What readers do: search, switch modes, copy, expand, print; with a keyboard and on a phone."""

import re
from pathlib import Path
from string import ascii_uppercase

import pypdfium2
import pytest
from bs4 import BeautifulSoup
from playwright.sync_api import Browser, expect

from tests.site.pages import BOOK
from tests.site.visit import AT_REST, DESKTOP, MODES, PHONE, visit

CHAPTER = "formula/step-by-step"
# Where a page comes from, and how wide the window is; two pairs cover all four values.
PLACES = pytest.mark.parametrize(("place", "width"), [("site", PHONE), ("files", DESKTOP)])
RING = """() => {
    const style = getComputedStyle(document.activeElement);
    return style.outlineStyle !== "none" && parseFloat(style.outlineWidth) > 0
        || style.boxShadow !== "none";
}"""


@pytest.fixture
def base(request: pytest.FixtureRequest, place: str) -> str:
    """The site's URL, over HTTP or from files."""
    return str(request.getfixturevalue(place))


def test_search_opens_by_the_keyboard(browser: Browser, site: str) -> None:
    with visit(browser, site, "index.html") as seen:
        seen.page.keyboard.press("Control+k")
        field = seen.page.locator("input[type=search]:visible")
        expect(field).to_be_focused()
        seen.page.keyboard.press("Escape")
        expect(field).to_be_hidden()


def test_mode_is_switched_and_kept(browser: Browser, site: str) -> None:
    with visit(browser, site, f"{CHAPTER}.html", mode="light") as seen:
        theme = "document.documentElement.dataset.theme"
        for _ in range(3):  # the switch cycles through three modes
            seen.page.locator(".theme-switch-button:visible").first.click()
            if seen.page.evaluate(theme) == "dark":
                break
        assert seen.page.evaluate(theme) == "dark"
        seen.page.wait_for_function(AT_REST)
        paper = "getComputedStyle(document.body).backgroundColor"
        dark = seen.page.evaluate(paper)
        seen.page.goto(f"{site}formula/geometry.html")
        assert seen.page.evaluate(theme) == "dark"
        assert seen.page.evaluate(paper) == dark
        assert not seen.faults()


@pytest.mark.parametrize("mode", MODES)
def test_the_first_click_on_the_mode_changes_it(browser: Browser, site: str, mode: str) -> None:
    with visit(browser, site, "index.html", mode=mode) as seen:
        shown = []
        for _ in range(3):
            seen.page.locator(".theme-switch-button:visible").first.click()
            shown.append(seen.page.locator("html").get_attribute("data-theme"))
        other = next(each for each in MODES if each != mode)
        assert shown == [other, mode, mode]
        assert seen.page.locator("html").get_attribute("data-mode") == "auto"


def test_nothing_shows_through_the_head_of_the_page(browser: Browser, site: str) -> None:
    with visit(browser, site, f"{CHAPTER}.html", width=PHONE) as seen:
        page = seen.page
        strips = []
        for y in (800, 1300):
            page.evaluate("(y) => scrollTo(0, y)", y)
            page.wait_for_function("(y) => scrollY === y", arg=y)
            strips.append(page.locator(".bd-header-article").screenshot())
        assert strips[0] == strips[1]


def test_next_leads_through_the_whole_book(html: Path) -> None:
    place, seen = html / "index.html", []
    while True:
        seen.append(place.relative_to(html).with_suffix("").as_posix())
        text = place.read_text(encoding="utf-8")
        link = re.search(r'<a class="right-next" rel="next" href="([^"]+)">', text)
        if link is None:
            break
        place = (place.parent / link[1]).resolve()
    assert seen == list(BOOK.pages)
    assert seen.index("running") == seen.index("playground") + 1


def test_letters_lead_through_the_glossary(html: Path) -> None:
    page = BeautifulSoup((html / "glossary.html").read_text(encoding="utf-8"), "html.parser")
    letters = page.select(".ln-letters li")
    assert "".join(letter.get_text().strip() for letter in letters).startswith(ascii_uppercase)
    links = page.select(".ln-letters a")
    assert len(links) > 15
    for link in links:
        term = page.find(id=str(link["href"]).removeprefix("#"))
        assert term is not None
        assert term.get_text().strip().upper().startswith(link.get_text())


def test_a_page_links_each_term_once(html: Path) -> None:
    for name in set(BOOK.pages) - {"glossary"}:
        text = (html / f"{name}.html").read_text(encoding="utf-8")
        links = re.findall(r'<a [^>]*href="([^"]*)"[^>]*><span class="xref std std-term', text)
        assert len(links) == len(set(links)), name


def test_paper_has_page_numbers_and_the_address(
    browser: Browser, site: str, tmp_path: Path
) -> None:
    with visit(browser, site, f"{CHAPTER}.html") as seen:
        seen.page.evaluate("dispatchEvent(new Event('beforeprint'))")
        seen.page.pdf(path=tmp_path / "page.pdf", prefer_css_page_size=True)
    document = pypdfium2.PdfDocument(tmp_path / "page.pdf")
    for number in (1, 2):
        text = " ".join(document[number].get_textpage().get_text_bounded().split())
        assert f"{number + 1} of {len(document)}" in text
        assert f"{site}{CHAPTER}.html" in text


def test_code_is_copied_as_it_stands(browser: Browser, site: str) -> None:
    with visit(browser, site, f"{CHAPTER}.html") as seen:
        cell = seen.page.locator(".cell_input:visible").nth(1)
        seen.page.evaluate("navigator.clipboard.writeText('')")
        cell.hover()
        cell.locator("button.copybtn").click()
        seen.page.wait_for_function("async () => (await navigator.clipboard.readText()) !== ''")
        copied = seen.page.evaluate("navigator.clipboard.readText()")
        assert copied.strip() == cell.locator("pre").inner_text().strip()


def test_keyboard_sees_where_it_is(browser: Browser, site: str) -> None:
    with visit(browser, site, f"{CHAPTER}.html") as seen:
        without: list[str] = []
        for _ in range(60):
            seen.page.keyboard.press("Tab")
            if not seen.page.evaluate(RING):
                without.append(seen.page.evaluate("document.activeElement.outerHTML")[:120])
        assert not without


def test_keyboard_skips_to_the_text(browser: Browser, site: str) -> None:
    with visit(browser, site, f"{CHAPTER}.html") as seen:
        seen.page.keyboard.press("Tab")
        seen.page.keyboard.press("Enter")
        expect(seen.page).to_have_url(re.compile("#main-content$"))


def test_phone_has_a_menu(browser: Browser, files: str) -> None:
    with visit(browser, files, f"{CHAPTER}.html", width=PHONE) as seen:
        link = seen.page.locator("a[href$='geometry.html']:visible")
        assert link.count() <= 1  # at most the link to the next chapter
        seen.page.locator(".primary-toggle:visible").first.click()
        menu = seen.page.locator("dialog[open] nav a", has_text="geometry").first
        expect(menu).to_be_visible()
        menu.click()
        seen.page.wait_for_url(re.compile("geometry.html"))
        assert not seen.faults()


@PLACES
def test_without_scripts_all_can_be_read(browser: Browser, base: str, width: int) -> None:
    with visit(browser, base, f"{CHAPTER}.html", width=width, script=False) as seen:
        page = seen.page
        expect(page.locator("article h1")).to_be_visible()
        expect(page.locator("article .katex").first).to_be_visible()
        expect(page.locator("article img:visible").first).to_be_visible()
        page.locator("details.solution summary").first.click()
        expect(page.locator("details.solution .cell").first).to_be_visible()
        assert not seen.foreign


@pytest.mark.parametrize("mode", ["light", "dark"])
def test_print_shows_the_text_alone(browser: Browser, site: str, mode: str) -> None:
    with visit(browser, site, f"{CHAPTER}.html", mode=mode) as seen:
        page = seen.page
        page.emulate_media(media="print", color_scheme="dark" if mode == "dark" else "light")
        for part in (".bd-sidebar-primary", ".bd-header-article", ".prev-next-footer"):
            for one in page.locator(part).all():
                expect(one).to_be_hidden()
        expect(page.locator("article h1")).to_be_visible()
        color = page.evaluate("getComputedStyle(document.querySelector('article p')).color")
        assert max(map(int, re.findall(r"\d+", color)[:3])) < 130  # dark text, even in dark mode
        hidden = page.locator("article img").evaluate_all(
            "images => images.filter((image) => image.checkVisibility()).length"
        )
        assert hidden >= 2


def test_motion_is_left_out_on_request(browser: Browser, site: str) -> None:
    with visit(browser, site, f"{CHAPTER}.html", reduced_motion=True) as seen:
        moving = seen.page.evaluate(
            """() => [...document.querySelectorAll("*")].filter((element) => {
                const style = getComputedStyle(element);
                const times = `${style.transitionDuration},${style.animationDuration}`;
                return times.split(",").some((time) => parseFloat(time) > 0.011);
            }).map((element) => element.className.toString().slice(0, 60))"""
        )
        assert not moving
        assert seen.page.evaluate("getComputedStyle(document.documentElement).scrollBehavior") in (
            "auto",
            "",
        )


def test_a_lost_reader_finds_back(browser: Browser, site: str) -> None:
    with visit(browser, site, "404.html") as seen:
        seen.page.locator("article a").first.click()
        expect(seen.page.locator("article h1")).to_be_visible()
