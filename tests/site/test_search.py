"""Search: what it finds first, and how it works with a keyboard, a pointer or a phone."""

import json
import re
import subprocess
import tomllib
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.site import axe
from tests.site.node_tools import NODE
from tests.site.pages import BOOK
from tests.site.test_pages import HEAVIEST, weight
from tests.site.visit import DESKTOP, PHONE, Visit, layout_shift, visit

HERE = Path(__file__).parent
FIRST: dict[str, str] = tomllib.loads((HERE / "searches.toml").read_text(encoding="utf-8"))["first"]
CHAPTER = "formula/step-by-step"
ENOUGH = 40
FIELD = "input[role=combobox]:visible"
OPTION = "[role=option]:visible"


@pytest.fixture(scope="module")
def found(html: Path) -> dict[str, list[str]]:
    """The top five results for each query."""
    run = [NODE, HERE / "search_first.js", html, *FIRST]
    done = subprocess.run(run, capture_output=True, text=True, check=True)
    return dict(zip(FIRST, json.loads(done.stdout), strict=True))


def test_there_are_enough_queries() -> None:
    assert len([place for place in FIRST.values() if is_in_the_book(place)]) >= ENOUGH


def is_in_the_book(place: str) -> bool:
    return place.partition("#")[0] in BOOK.pages


@pytest.mark.parametrize(
    "query", [query for query, place in FIRST.items() if is_in_the_book(place)]
)
def test_the_first_hit(found: dict[str, list[str]], query: str) -> None:
    expected = FIRST[query]
    first = found[query][0] if found[query] else ""
    assert expected in (first, first.partition("#")[0]), found[query]


def test_every_place_that_is_found_is_there(html: Path) -> None:
    text = (html / "searchindex.js").read_text(encoding="utf-8")
    data = json.loads(json.loads(text[text.index("parse(") + 6 : text.rindex(")")]))
    assert [page[0] for page in data["pages"]] == [n for n in BOOK.pages if n != "genindex"]
    for place, (name, *_) in enumerate(data["pages"]):
        page = (html / f"{name}.html").read_text(encoding="utf-8")
        ids = set(re.findall(r'\bid="([^"]+)"', page))
        anchors = {row[2] for row in data["rows"] if row[1] == place and row[2]}
        assert anchors <= ids, name


def open_search(seen: Visit) -> Page:
    seen.page.locator(".search-button:visible, .search-button__button:visible").first.click()
    expect(seen.page.locator(FIELD)).to_be_focused()
    return seen.page


@pytest.mark.parametrize(("place", "width"), [("site", PHONE), ("files", DESKTOP)])
def test_results_come_while_typing(
    request: pytest.FixtureRequest, browser: Browser, place: str, width: int
) -> None:
    base = str(request.getfixturevalue(place))
    with visit(browser, base, f"{CHAPTER}.html", width=width) as seen:
        page = open_search(seen)
        page.keyboard.type("warm")
        expect(page.locator(OPTION).first).to_contain_text("warm-up")
        assert page.locator(OPTION).first.locator("mark").count() >= 1
        page.locator(OPTION, has_text="Train a transformer").first.click()
        page.wait_for_url(re.compile("transformer/training.html"))
        assert not seen.faults()


def test_the_index_is_loaded_on_first_use_only(browser: Browser, site: str, html: Path) -> None:
    for name in (CHAPTER, "search"):
        with visit(browser, site, f"{name}.html") as seen:
            assert not [path for path in seen.loaded if "search" in path and "index" in path]
            assert weight(html, seen.loaded) <= HEAVIEST
            before = len(seen.loaded)
            seen.page.keyboard.press("/")
            seen.page.keyboard.type("norm")
            expect(seen.page.locator(OPTION).first).to_be_visible()
            assert "searchindex.js" in seen.loaded
            loaded = len(seen.loaded)
            assert loaded > before
            seen.page.locator(FIELD).fill("variance")
            expect(seen.page.locator(OPTION).first).to_contain_text("ariance")
            assert len(seen.loaded) == loaded, "a second query loads nothing more"
            assert not seen.faults()


def test_the_keyboard_chooses_a_result(browser: Browser, site: str) -> None:
    with visit(browser, site, f"{CHAPTER}.html") as seen:
        page = seen.page
        page.keyboard.press("Control+k")
        field = page.locator(FIELD)
        expect(field).to_have_attribute("aria-expanded", "false")
        page.keyboard.type("padding mask")
        expect(field).to_have_attribute("aria-expanded", "true")
        options = page.locator(OPTION)
        expect(options.nth(0)).to_have_attribute("aria-selected", "true")
        for key, place in (("ArrowDown", 1), ("ArrowDown", 2), ("ArrowUp", 1)):
            page.keyboard.press(key)
            expect(options.nth(place)).to_have_attribute("aria-selected", "true")
            assert page.locator("[role=option][aria-selected=true]").count() == 1
            assert field.get_attribute("aria-activedescendant") == options.nth(place).get_attribute(
                "id"
            )
            expect(field).to_be_focused()
        target = options.nth(1).get_attribute("href")
        page.keyboard.press("Enter")
        page.wait_for_url(re.compile(re.escape(str(target).removeprefix("../"))))


def test_enter_before_the_index_has_come_waits_for_it(browser: Browser, site: str) -> None:
    with visit(browser, site, f"{CHAPTER}.html") as seen:
        page = open_search(seen)
        page.locator(FIELD).fill("cuDNN")
        page.keyboard.press("Enter")
        page.wait_for_url(re.compile("lstm/beyond.html#what-happens-to-cudnn"))


def test_the_search_page_shows_more(browser: Browser, site: str) -> None:
    with visit(browser, site, f"{CHAPTER}.html") as seen:
        page = open_search(seen)
        page.keyboard.type("gradient")
        page.locator(".ln-search-all").click()
        page.wait_for_url(re.compile(r"search.html\?q=gradient"))
        expect(page.locator(FIELD)).to_have_value("gradient")
        expect(page.locator(OPTION)).to_have_count(60)
        page.locator(OPTION).first.click()
        page.wait_for_load_state()
        page.go_back()
        expect(page.locator(OPTION).first).to_be_visible()
        assert not seen.faults()


def test_nothing_found_is_said(browser: Browser, site: str) -> None:
    with visit(browser, site, "search.html") as seen:
        page = seen.page
        page.locator(FIELD).fill("xyzzyqwvkj")
        expect(page.locator("form [role=status]:visible")).to_contain_text("Nothing found")
        expect(page.locator(OPTION)).to_have_count(0)


@pytest.mark.parametrize("width", [PHONE, DESKTOP])
def test_open_results_keep_the_rules_of_axe(
    browser: Browser, site: str, width: int, axe_script: str
) -> None:
    for name in (CHAPTER, "search"):
        with visit(browser, site, f"{name}.html", width=width) as seen:
            page = seen.page
            seen.lay_out()
            page.keyboard.press("Control+k")
            page.keyboard.type("half precision")
            expect(page.locator(OPTION).first).to_be_visible()
            # Before axe: it switches modes, and a text font that came late then moves the page.
            assert layout_shift(page) <= 0.02
            assert list(axe.broken_rules(seen, axe_script)) == []


def test_without_scripts_the_field_leads_to_a_page_that_says_so(
    browser: Browser, site: str
) -> None:
    with visit(browser, site, f"{CHAPTER}.html", script=False) as seen:
        seen.page.locator("a.search-button-field:visible").first.click()
        expect(seen.page.locator("noscript p")).to_be_visible()
