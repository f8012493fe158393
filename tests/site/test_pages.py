"""Every page loads without other hosts, is light enough, has no errors, and passes axe's rules.

A page is opened over http and from files, here on a desktop; test_narrow.py opens it on a phone.
Over http, it's then switched to dark mode; a separate test shows that it looks the same as if it
had been loaded in dark mode.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from tests.site import axe
from tests.site.pages import CHAPTERS, PAGES
from tests.site.server import COMPRESSED, compressed
from tests.site.visit import (
    DESKTOP,
    MODES,
    PATIENCE,
    PHONE,
    WATCH_SHIFTS,
    largest_shift,
    layout_shift,
    next_frame,
    switch_to,
    too_tall,
    too_wide,
    visit,
)

HEAVIEST = 200 * 1024  # bytes, compressed

UNRENDERED = """() => [...document.querySelectorAll("article .math")]
    .filter((math) => !math.querySelector(".katex") && math.textContent.trim())
    .map((math) => math.textContent.trim().slice(0, 60))"""
UNDRAWN = """() => [...document.querySelectorAll("article img")]
    .filter((image) => image.checkVisibility() && !(image.complete && image.naturalWidth))
    .map((image) => image.src)"""
UNSIZED = """() => [...document.querySelectorAll("article img")]
    .filter((image) => !(image.getAttribute("width") && image.getAttribute("height")))
    .map((image) => image.src)"""


def weight(html: Path, loaded: set[str]) -> int:
    """The bytes that a host sends for a page's files."""
    paths = [html / (name or "index.html") for name in loaded]
    return sum(
        len(compressed(path)) if path.suffix in COMPRESSED else path.stat().st_size
        for path in paths
        if path.is_file()
    )


def text_faults(page: Page) -> list[str]:
    return [
        *(f"a formula is not set: {text}" for text in page.evaluate(UNRENDERED)),
        *(f"an image is not drawn: {source}" for source in page.evaluate(UNDRAWN)),
    ]


def check_solutions(page: Page) -> None:
    """Solutions are folded, and can be opened and closed from the keyboard."""
    solutions = page.locator("details.solution")
    assert solutions.count() >= 2
    inside = solutions.first.locator(".cell").first
    expect(inside).to_be_hidden()
    solutions.first.locator("summary").first.focus()
    page.keyboard.press("Enter")
    expect(inside).to_be_visible()
    page.keyboard.press("Enter")
    expect(inside).to_be_hidden()


@pytest.mark.parametrize("name", PAGES)
def test_on_a_desktop(
    browser: Browser,
    site: str,
    html: Path,
    name: str,
    axe_script: str,
    record: Callable[[str, str, dict[str, Any]], None],
) -> None:
    with visit(browser, site, f"{name}.html", width=DESKTOP, late_fonts=True) as seen:
        faults = too_wide(seen.page)
        at_first = weight(html, seen.loaded)
        seen.read_through()
        all_in_all, shift = weight(html, seen.loaded), layout_shift(seen.page)
        record("weight", name, {"load": at_first, "read": all_in_all, "shift": shift})
        faults += [*text_faults(seen.page), *too_wide(seen.page), *too_tall(seen.page)]
        faults += [f"an image has no size: {source}" for source in seen.page.evaluate(UNSIZED)]
        faults += axe.broken_rules(seen, axe_script)
        if name in CHAPTERS:
            check_solutions(seen.page)
        faults += seen.faults()
    assert faults == []
    assert all_in_all <= HEAVIEST
    assert shift <= largest_shift(name)


@pytest.mark.parametrize("name", PAGES)
def test_from_files(browser: Browser, files: str, name: str) -> None:
    with visit(browser, files, f"{name}.html") as seen:
        seen.page.evaluate("document.fonts.ready")
        assert not [*seen.faults(), *seen.page.evaluate(UNRENDERED)]


CODE = "formula/from-scratch"  # a chapter with code, formulas, figures and exercises
# Everything about each element's appearance that the color mode can change.
LOOKS = """() => [...document.querySelectorAll("body, body *")].map((element) => {
    const style = getComputedStyle(element);
    return [element.tagName, element.checkVisibility(), style.color, style.backgroundColor,
        style.backgroundImage, style.borderColor, style.outlineColor, style.boxShadow, style.fill,
        style.stroke, style.filter, style.opacity, style.textDecoration, style.fontWeight].join();
})"""


@pytest.mark.parametrize(
    ("scheme", "name"),
    [
        *(("site", name) for name in ("index", "playground", CODE, "api/data", "search")),
        *(("files", name) for name in ("index", CODE)),
    ],
)
def test_dark_mode_is_the_same_loaded_or_switched_to(
    request: pytest.FixtureRequest, browser: Browser, scheme: str, name: str
) -> None:
    """That's why it's enough to check every page after switching it to dark mode."""
    base = request.getfixturevalue(scheme)
    looks = []
    for first in MODES:
        with visit(browser, base, f"{name}.html", mode=first) as seen:
            assert seen.page.locator("html").get_attribute("data-theme") == first
            light = seen.page.evaluate(LOOKS) if first == "light" else []
            switch_to(seen.page, "dark")
            looks.append(seen.page.evaluate(LOOKS))
            assert light != looks[-1]
            assert not seen.faults()
    assert looks[0] == looks[1]


FOLLOWS_THE_SYSTEM = """<script>
    const root = document.documentElement, dark = matchMedia("(prefers-color-scheme: dark)");
    root.dataset.theme = "light";
    dark.onchange = () => {root.dataset.theme = dark.matches ? "dark" : "light"};
</script>"""


@pytest.mark.parametrize(
    ("style", "content", "expected"),
    [
        ("p {color: #222}", "<p>text</p>", []),
        ("", "<img src='data:,'>", ["light image-alt", "dark image-alt"]),
        ("[data-theme=light] p {color: #bbb}", "<p>text</p>", ["light color-contrast"]),
        ("[data-theme=dark] p {color: #bbb}", "<p>text</p>", ["dark color-contrast"]),
        (
            "[data-theme=light] img {display: none}",
            "<img src='data:,' width=9 height=9>",
            ["dark image-alt"],
        ),
        ("[data-theme=dark] p {display: none}", "<p>text</p>", ["dark changes"]),
        ("[data-theme=dark] p {opacity: 0}", "<p>text</p>", ["dark changes"]),
    ],
)
def test_what_is_wrong_in_a_mode_is_found(
    browser: Browser, axe_script: str, tmp_path: Path, style: str, content: str, expected: list[str]
) -> None:
    (tmp_path / "page.html").write_text(
        f"<!doctype html><html lang=en><title>t</title><style>{style}</style>{FOLLOWS_THE_SYSTEM}"
        f"<main><h1>h</h1>{content}</main>"
    )
    with visit(browser, f"{tmp_path.as_uri()}/", "page.html") as seen:
        found = list(axe.broken_rules(seen, axe_script))
    assert len(found) == len(expected), found
    for text, words in zip(found, expected, strict=True):
        assert all(word in text for word in words.split()), text


@pytest.mark.parametrize("width", [PHONE, DESKTOP])
def test_a_font_that_comes_late_moves_nothing(browser: Browser, site: str, width: int) -> None:
    context = browser.new_context(viewport={"width": width, "height": 800})
    context.set_default_timeout(PATIENCE)
    page = context.new_page()
    page.add_init_script(WATCH_SHIFTS)
    late: list[Route] = []
    page.route("**/LNSans*.woff2", lambda route: late.append(route))
    page.goto(f"{site}transformer/variants.html", wait_until="commit")
    # The reader has started reading: the page was drawn without the font half a second ago.
    page.wait_for_function(
        "performance.getEntriesByName('first-contentful-paint')"
        ".some((paint) => performance.now() > paint.startTime + 500)"
    )
    # The fonts of formulas may shift a line very slightly, so wait until they've arrived.
    page.wait_for_function(
        "[...document.fonts].every((font) => font.family.includes('LN Sans')"
        " || font.status !== 'loading')"
    )
    assert late
    before = layout_shift(page)
    for route in late:
        route.continue_()
    page.wait_for_load_state("load")
    page.evaluate("document.fonts.ready")
    assert page.evaluate(
        "[...document.fonts].some((font) => font.family.includes('LN Sans')"
        " && font.status === 'loaded')"
    )
    assert layout_shift(page) == before <= largest_shift("transformer/variants")
    context.close()


def test_a_shift_is_measured(browser: Browser, tmp_path: Path) -> None:
    """This includes a shift in the frame just before the measurement."""
    (tmp_path / "page.html").write_text("<div id=above></div><p>A line that is moved.</p>")
    with visit(browser, f"{tmp_path.as_uri()}/", "page.html") as seen:
        next_frame(seen.page)
        assert layout_shift(seen.page) == 0
        seen.page.evaluate("above.style.height = '100px'")
        assert layout_shift(seen.page) > 0
