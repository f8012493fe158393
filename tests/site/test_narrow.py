"""Every page on a phone: it passes axe's rules, and nothing is cut off.

Every formula, code cell and table either fits or visibly scrolls, on a narrow phone and after the
open page is resized to a slightly wider one.
"""

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.site import axe
from tests.site.pages import FIGURES, PAGES, SAMPLE
from tests.site.visit import (
    DESKTOP,
    MODES,
    PHONE,
    Visit,
    largest_shift,
    layout_shift,
    switch_to,
    too_tall,
    too_wide,
    visit,
)

WIDTHS = (PHONE, 390)
# Anything cut off by an element that doesn't visibly scroll, or that the keyboard can't scroll.
CUT_OFF = """() => {
    const boxes = ".katex-display, pre, .pst-scrollable-table-container, .text_html.output";
    const faults = [];
    const scrolls = (box) => box.scrollWidth > box.clientWidth + 1;
    for (const box of document.querySelectorAll(boxes.replace(/(^|, )/g, "$1article "))) {
        if (!box.clientWidth) continue;
        const say = (fault) => faults.push(`${fault}: ${box.textContent.trim().slice(0, 50)}`);
        if (scrolls(box)) {
            const style = getComputedStyle(box);
            if (!["auto", "scroll"].includes(style.overflowX)) say("cut off");
            if (!style.backgroundAttachment.startsWith("local, local, scroll")) say("no shade");
            if (box.tabIndex !== 0) say("no key scrolls it");
        }
        for (let inner of box.querySelectorAll("*"))
            if (scrolls(inner) && inner.clientWidth > 1
                && !["visible", "inline"].includes(getComputedStyle(inner).overflowX)
                && !inner.closest(".katex-mathml") && !inner.closest(".hide-tail, .vlist, svg"))
                say(`cut off inside, in ${inner.className}`);
    }
    return faults;
}"""
# The formulas that scroll, by their source.
SCROLLING = """() => [...document.querySelectorAll("article .katex-display")]
    .filter((box) => box.scrollWidth > box.clientWidth + 1)
    .map((box) => box.querySelector("annotation").textContent.trim())"""
# Inline formulas whose trailing punctuation wraps onto the next line.
DROPPED = """() => [...document.querySelectorAll("article span.math")].filter((math) => {
    const text = math.nextSibling;
    const last = [...math.querySelectorAll(".base")].pop();
    if (!last || text?.nodeType !== Node.TEXT_NODE || !/^[^\\s\\w]/.test(text.data)) return false;
    const range = document.createRange();
    range.setStart(text, 0);
    range.setEnd(text, 1);
    const [mark, base] = [range.getBoundingClientRect(), last.getBoundingClientRect()];
    return mark.width > 0 && mark.left < base.right - 3;
}).map((math) => math.parentElement.textContent.slice(0, 80))"""
# Live figures that stick out of the page, or whose content sticks out.
LIVE = "[data-playground][data-live]"
STICKING_OUT = """([live, width]) => [...document.querySelectorAll(live)].filter((figure) => {
    const box = figure.getBoundingClientRect();
    return box.left < 0 || box.right > width || figure.scrollWidth > figure.clientWidth;
}).map((figure) => `sticks out: ${figure.dataset.playground}`)"""
OPEN_ALL = """() => {
    for (const details of document.querySelectorAll("article details")) details.open = true;
}"""


def show_everything(seen: Visit) -> None:
    """Open all folds and lay out the whole page."""
    seen.page.evaluate(OPEN_ALL)
    seen.lay_out()


@pytest.mark.parametrize("name", PAGES)
def test_on_a_phone(browser: Browser, site: str, name: str, axe_script: str) -> None:
    with visit(browser, site, f"{name}.html", width=PHONE, late_fonts=True) as seen:
        page = seen.page
        expect(page.locator(LIVE)).to_have_count(len(FIGURES.get(name, ())))
        shift = layout_shift(page)
        seen.lay_out()
        # A page has the same colors on a desktop, where test_pages.py checks all of them.
        rules = axe.broken_rules(seen, axe_script, dark=name in SAMPLE)
        faults = [*too_wide(page), *too_tall(page), *rules]
        for mode in reversed(MODES):
            switch_to(page, mode)
            faults += page.evaluate(STICKING_OUT, [LIVE, PHONE])
        for width in WIDTHS:
            page.set_viewport_size({"width": width, "height": 800})
            show_everything(seen)
            faults += [f"{width} px: {fault}" for fault in page.evaluate(CUT_OFF)]
            faults += [f"{width} px: {text}" for text in page.evaluate(DROPPED)]
        faults += seen.faults()
    assert faults == []
    assert shift <= largest_shift(name)


@pytest.mark.parametrize("name", ["gradient/derivation", "formula/from-scratch", "api/recurrent"])
def test_long_formulas_break(browser: Browser, site: str, name: str) -> None:
    with visit(browser, site, f"{name}.html", width=390) as seen:
        show_everything(seen)
        assert seen.page.evaluate(SCROLLING) == []


def shaded(page: Page, box: Locator) -> set[str]:
    """The edges of a box at which a shade shows that there's more to see."""

    def edges() -> dict[str, bytes]:
        place = box.bounding_box()
        assert place is not None
        starts = {"left": place["x"], "right": place["x"] + place["width"] - 16}
        # Without the rounded corners, where some of the shade mixes with the page behind it.
        y, height = place["y"] + 8, place["height"] - 16
        return {
            edge: page.screenshot(clip={"x": start, "y": y, "width": 16, "height": height})
            for edge, start in starts.items()
        }

    seen = edges()
    box.evaluate("(box) => box.style.setProperty('--ln-shade', 'transparent')")
    without = edges()
    box.evaluate("(box) => box.style.removeProperty('--ln-shade')")
    return {edge for edge in seen if seen[edge] != without[edge]}


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize(
    ("name", "kind"),
    [("formula/step-by-step", ".katex-display"), ("gradient/derivation", ".highlight pre")],
)
def test_what_scrolls_has_a_shade_only_where_more_is(
    browser: Browser, site: str, name: str, kind: str, dark: bool
) -> None:
    """The shade's cover scrolls with the content, which uncovers the shade at the other edge."""
    with visit(browser, site, f"{name}.html", width=PHONE) as seen:
        page = seen.page
        show_everything(seen)
        if dark:
            switch_to(page, "dark")
        box = page.locator(f"article {kind}[tabindex='0']").first
        box.scroll_into_view_if_needed()
        assert shaded(page, box) == {"right"}
        for share, edges in ((0.5, {"left", "right"}), (1, {"left"})):
            to = "(box, share) => box.scrollTo(share * (box.scrollWidth - box.clientWidth), 0)"
            box.evaluate(to, share)
            assert shaded(page, box) == edges


# The right edges of an article's boxes, as drawn.
EDGES = """() => [...document.querySelectorAll(
        "article section > :is(.cell, .admonition, .pst-scrollable-table-container)")]
    .filter((box) => box.clientWidth > 0 && !box.parentElement.closest(".admonition"))
    .map((box) => Math.round(box.getBoundingClientRect().right))"""
ROOM = "getComputedStyle(document.querySelector('.bd-article')).paddingRight"
MIDDLE = """() => {
    const rects = [...document.querySelectorAll(".bd-article-container, #pst-secondary-sidebar")]
        .filter((part) => part.checkVisibility())
        .map((part) => part.getBoundingClientRect());
    const left = Math.min(...rects.map((rect) => rect.left));
    const right = Math.max(...rects.map((rect) => rect.right));
    const main = document.querySelector(".bd-main").getBoundingClientRect();
    return (left + right) / 2 - (main.left + main.right) / 2;
}"""


@pytest.mark.parametrize("width", [1024, DESKTOP, 1440, 1920])
def test_all_boxes_end_at_one_edge(browser: Browser, site: str, width: int) -> None:
    with visit(browser, site, "formula/step-by-step.html", width=width) as seen:
        page = seen.page
        show_everything(seen)
        edges = set(page.evaluate(EDGES))
        article = page.locator(".bd-article").bounding_box()
        assert article is not None
        assert edges == {round(article["x"] + article["width"] - float(page.evaluate(ROOM)[:-2]))}
        assert abs(page.evaluate(MIDDLE)) <= 1


def test_without_the_sidebar_the_article_is_in_the_middle(browser: Browser, site: str) -> None:
    with visit(browser, site, "formula/step-by-step.html", width=1440, reduced_motion=True) as seen:
        page = seen.page
        page.locator(".primary-toggle:visible").click()
        page.wait_for_function(
            "document.querySelector('.bd-main').getBoundingClientRect().left <= 1"
        )
        assert abs(page.evaluate(MIDDLE)) <= 1
