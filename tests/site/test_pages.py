"""Every page: loads by itself, light enough, without errors, over http and from files."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, Route

from tests.site.pages import PAGES
from tests.site.server import COMPRESSED, compressed
from tests.site.visit import DESKTOP, PHONE, WATCH_SHIFTS, visit

HEAVIEST = 200 * 1024  # bytes, compressed
# A shift of a few pixels when a font arrives is not seen; Lighthouse gives full marks below 0.1.
LARGEST_SHIFT = 0.02

UNRENDERED = """() => [...document.querySelectorAll("article .math")]
    .filter((math) => !math.querySelector(".katex") && math.textContent.trim())
    .map((math) => math.textContent.trim().slice(0, 60))"""
UNDRAWN = """() => [...document.querySelectorAll("article img")]
    .filter((image) => image.checkVisibility() && !(image.complete && image.naturalWidth))
    .map((image) => image.src)"""
UNSIZED = """() => [...document.querySelectorAll("article img")]
    .filter((image) => !(image.getAttribute("width") && image.getAttribute("height")))
    .map((image) => image.src)"""
TOO_WIDE = """() => {
    const width = document.documentElement.clientWidth;
    const inside = (element) => {
        for (let box = element.parentElement; box; box = box.parentElement)
            if (["auto", "scroll", "hidden", "clip"].includes(getComputedStyle(box).overflowX))
                return true;
        return false;
    };
    if (document.documentElement.scrollWidth <= width + 1) return [];
    return [...document.querySelectorAll("body *")]
        .filter((element) => element.getBoundingClientRect().right > width + 1 && !inside(element))
        .map((element) => `${element.tagName}.${element.className}`.slice(0, 80));
}"""


def weight(html: Path, loaded: set[str]) -> int:
    """The bytes that a host sends for the files of a page."""
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


@pytest.mark.parametrize("name", PAGES)
def test_over_http(
    browser: Browser,
    site: str,
    html: Path,
    name: str,
    record: Callable[[str, str, dict[str, Any]], None],
) -> None:
    with visit(browser, site, f"{name}.html") as seen:
        at_first = weight(html, seen.loaded)
        seen.read_through()
        all_in_all, shift = weight(html, seen.loaded), seen.page.evaluate("layoutShift")
        record("weight", name, {"load": at_first, "read": all_in_all, "shift": shift})
        faults = [*seen.faults(), *text_faults(seen.page)]
        faults += [f"an image has no size: {source}" for source in seen.page.evaluate(UNSIZED)]
    assert not faults
    assert all_in_all <= HEAVIEST
    assert shift <= LARGEST_SHIFT


@pytest.mark.parametrize("width", [PHONE, DESKTOP])
def test_a_font_that_comes_late_moves_nothing(browser: Browser, site: str, width: int) -> None:
    context = browser.new_context(viewport={"width": width, "height": 800})
    page = context.new_page()
    page.add_init_script(WATCH_SHIFTS)
    late: list[str] = []

    def come_late(route: Route) -> None:
        late.append(route.request.url)
        time.sleep(1)
        route.continue_()

    page.route("**/LNSans*.woff2", come_late)
    page.goto(f"{site}transformer/variants.html", wait_until="load")
    page.evaluate("document.fonts.ready")
    page.wait_for_timeout(300)
    assert late
    assert page.evaluate("layoutShift") == 0
    context.close()


@pytest.mark.parametrize("mode", ["light", "dark"])
@pytest.mark.parametrize("name", PAGES)
def test_from_files(browser: Browser, files: str, name: str, mode: str) -> None:
    with visit(browser, files, f"{name}.html", mode=mode) as seen:
        seen.page.evaluate("document.fonts.ready")
        assert not [*seen.faults(), *seen.page.evaluate(UNRENDERED)]
        assert seen.page.evaluate("document.documentElement.dataset.theme") == mode


@pytest.mark.parametrize("width", [PHONE, DESKTOP])
@pytest.mark.parametrize("name", PAGES)
def test_nothing_scrolls_sideways(browser: Browser, site: str, name: str, width: int) -> None:
    with visit(browser, site, f"{name}.html", width=width) as seen:
        assert seen.page.evaluate(TOO_WIDE) == []
