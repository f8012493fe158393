"""Stacked panels are side by side on a wide screen, and nothing else changes."""

from typing import Any

import pytest
from playwright.sync_api import expect

from tests.site.live import OpenPage
from tests.site.visit import DESKTOP, MODES, PHONE

WIDE = 1440  # the narrowest window with room for two panels
STACKS = {  # by figure: its page and its number of panels
    "training-curves": ("transformer/training.html", 2),
    "training-shares": ("transformer/training.html", 3),
    "when-plain": ("practice/when-to-use.html", 4),
}
# Each visible image of a figure's panels: its box, and the shape it should have.
STRIPS = """figure => [...figure.querySelectorAll(".ln-panels > span")].map(column =>
    [...column.querySelectorAll("img")].filter(image => image.offsetParent).map(image => {
        const { x, y, width, height } = image.getBoundingClientRect();
        const { padding } = getComputedStyle(image);
        const [across, down] = image.style.aspectRatio.split("/").map(Number);
        return { x, y, width, height, padding, shape: across / down };
    }))"""


# What covers the right end of the second column, or null. A part of the page that wasn't on the
# screen before is drawn only in the next frame, and may then move.
ON_TOP = """async figure => {
    const column = figure.querySelectorAll(".ln-panels > span")[1];
    for (let turn = 0; turn < 3; turn++) {
        column.scrollIntoView({ block: "center", behavior: "instant" });
        await new Promise(requestAnimationFrame);
        await new Promise(requestAnimationFrame);
    }
    const box = column.getBoundingClientRect();
    const top = document.elementFromPoint(box.right - 4, box.top + box.height / 3);
    return column.contains(top) ? null : top?.outerHTML.slice(0, 200) ?? "nothing";
}"""


@pytest.mark.parametrize("name", STACKS)
@pytest.mark.parametrize("mode", MODES)
def test_panels_are_in_two_columns_where_there_is_room(
    open_page: OpenPage, mode: str, name: str
) -> None:
    path, count = STACKS[name]
    page = open_page(path, width=WIDE)
    page.emulate_media(color_scheme=mode)  # type: ignore[arg-type]
    shown = page.locator(f"figure#{name}")
    shown.evaluate("figure => figure.scrollIntoView({ block: 'center', behavior: 'instant' })")
    columns: list[list[dict[str, Any]]] = shown.evaluate(STRIPS)
    assert len(columns) == count
    for panel, axis in columns:
        for strip in (panel, axis):
            assert strip["padding"] == "0px"
            assert strip["width"] / strip["height"] == pytest.approx(strip["shape"], rel=0.01)
        assert axis["y"] == pytest.approx(panel["y"] + panel["height"], abs=0.5)
        assert axis["x"] == panel["x"]
    firsts = [panel for panel, _ in columns]
    assert firsts[1]["y"] == firsts[0]["y"]
    assert firsts[1]["x"] > firsts[0]["x"] + firsts[0]["width"]
    for below, above in zip(firsts[2:], firsts, strict=False):
        assert below["y"] > above["y"] + above["height"]

    # There's room between the bar on the left and the text on the right.
    left = page.locator("#pst-primary-sidebar").bounding_box()
    right = page.locator("nav.page-toc").bounding_box()
    assert left is not None
    assert right is not None
    assert firsts[0]["x"] > left["x"] + left["width"]
    assert firsts[1]["x"] + firsts[1]["width"] < right["x"]
    assert shown.evaluate(ON_TOP) is None
    assert page.evaluate("document.documentElement.scrollWidth") <= WIDE


@pytest.mark.parametrize("width", [PHONE, DESKTOP, WIDE])
def test_the_alt_text_is_there_once(open_page: OpenPage, width: int) -> None:
    page = open_page("transformer/training.html", width=width)
    figure = page.locator("figure#training-curves")
    expect(figure.get_by_role("img")).to_have_count(1)
    expect(figure.locator(".ln-panels")).to_be_visible(visible=width == WIDE)
