"""The slides in a browser: they fit, print, have a speaker view, and contact no other host."""

from pathlib import Path

import pypdfium2
import pytest
from bs4 import BeautifulSoup
from playwright.sync_api import Browser

from bookbuild.slides.build import sources
from tests.site import axe
from tests.site.pages import BOOK
from tests.site.visit import visit

LECTURES = [path.stem for path in sources(BOOK)]
WIDE, HIGH = 1280, 720
# Anything that extends beyond its slide. Formulas contain drawings far wider than what they show.
TOO_LARGE = """() => {
    const found = [];
    for (let slide = 0; slide < Reveal.getTotalSlides(); slide++) {
        Reveal.slide(slide, 0, 9);
        const section = Reveal.getCurrentSlide(), limit = section.getBoundingClientRect();
        for (const one of section.querySelectorAll(".body *, h1, h2")) {
            const box = one.getBoundingClientRect();
            if (one.closest("svg, .katex") || !box.width) continue;
            if (box.bottom > limit.bottom + 1 || box.right > limit.right + 1)
                found.push(`${section.id}: ${one.tagName}`);
        }
    }
    return found;
}"""
UNDRAWN = """() => [...document.images].filter((image) => image.checkVisibility())
    .filter((image) => !(image.complete && image.naturalWidth)).map((image) => image.src)"""
# For print, reveal.js lays out slides differently, and figures can collapse.
FLAT = """() => [...document.querySelectorAll(".plot img")]
    .filter((image) => image.checkVisibility() && image.getBoundingClientRect().height < 200)
    .map((image) => image.src)"""
ON_A_SLIDE = """() => {
    const slide = Reveal.getCurrentSlide();
    return [...slide.querySelectorAll("img")].filter((image) => image.checkVisibility())
        .map((image) => image.className);
}"""


@pytest.mark.parametrize("name", LECTURES)
@pytest.mark.parametrize("scheme", ["site", "files"])
def test_every_slide_fits_and_asks_no_other_host(
    request: pytest.FixtureRequest, browser: Browser, scheme: str, name: str
) -> None:
    base = request.getfixturevalue(scheme)
    with visit(browser, base, f"slides/{name}.html", width=WIDE) as seen:
        seen.page.set_viewport_size({"width": WIDE, "height": HIGH})
        seen.page.wait_for_function("Reveal.isReady()")
        assert seen.page.evaluate(TOO_LARGE) == []
        assert seen.page.evaluate(UNDRAWN) == []
        assert seen.faults() == []


def test_keys_lead_through_the_slides_and_switch_to_dark(browser: Browser, files: str) -> None:
    with visit(browser, files, f"slides/{LECTURES[0]}.html", width=WIDE) as seen:
        page = seen.page
        page.wait_for_function("Reveal.isReady()")
        page.keyboard.press("ArrowRight")
        page.keyboard.press("ArrowRight")
        assert page.evaluate("Reveal.getIndices().h") == 2
        assert page.evaluate(ON_A_SLIDE) == ["ln-light"]
        page.keyboard.press("d")
        assert page.evaluate(ON_A_SLIDE) == ["ln-dark"]
        assert seen.faults() == []


@pytest.mark.parametrize("scheme", ["site", "files"])
def test_the_speaker_view_shows_the_notes(
    request: pytest.FixtureRequest, browser: Browser, scheme: str, html: Path
) -> None:
    text = (html / "slides" / f"{LECTURES[0]}.html").read_text(encoding="utf-8")
    first, second = (
        note.get_text().strip().split(":")[0]
        for note in BeautifulSoup(text, "html.parser").select("aside.notes")[:2]
    )
    base = request.getfixturevalue(scheme)
    with visit(browser, base, f"slides/{LECTURES[0]}.html", width=WIDE) as seen:
        seen.page.wait_for_function("Reveal.isReady()")
        with seen.page.context.expect_page() as opened:
            seen.page.keyboard.press("s")
        opened.value.get_by_text(first).wait_for()
        seen.page.keyboard.press("ArrowRight")
        opened.value.get_by_text(second).wait_for()


@pytest.mark.parametrize("name", LECTURES)
def test_one_page_per_slide_in_print(
    browser: Browser, files: str, html: Path, tmp_path: Path, name: str
) -> None:
    text = (html / "slides" / f"{name}.html").read_text(encoding="utf-8")
    slides = len(BeautifulSoup(text, "html.parser").select(".slides > section"))
    for query, pages in (("", slides), ("&showNotes=separate-page", 2 * slides)):
        with visit(browser, files, f"slides/{name}.html?print-pdf{query}", mode="dark") as seen:
            seen.page.wait_for_selector(".pdf-page")
            seen.page.wait_for_function("[...document.images].every((one) => one.complete"
                                        " || !one.checkVisibility())")  # fmt: skip
            assert seen.page.evaluate(FLAT) == []
            target = tmp_path / "slides.pdf"
            seen.page.pdf(path=target, prefer_css_page_size=True, print_background=True)
        document = pypdfium2.PdfDocument(target)
        assert len(document) == pages
        corner = document[0].render(scale=0.1).to_pil().getpixel((1, 1))
        assert min(corner[:3]) > 250, "printed slides are light, even in dark mode"


@pytest.mark.parametrize("name", LECTURES)
def test_slides_keep_the_rules_of_axe(
    browser: Browser, site: str, axe_script: str, name: str
) -> None:
    with visit(browser, site, f"slides/{name}.html", width=WIDE) as seen:
        seen.page.wait_for_function("Reveal.isReady()")
        assert axe.violations(seen.page, axe_script) == []


def test_without_scripts_all_slides_and_notes_are_shown(browser: Browser, files: str) -> None:
    with visit(browser, files, f"slides/{LECTURES[0]}.html", script=False) as seen:
        slides = seen.page.locator(".slides > section")
        assert slides.count() > 0
        assert slides.last.is_visible()
        assert seen.page.locator("aside.notes").last.is_visible()
