"""The playground computes what lnbook computes, and answers pointer, keys and screen readers."""

import itertools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from playwright.sync_api import Locator, Page, expect

from lnbook import reference
from tests.site.visit import DESKTOP, MODES, PHONE, layout_shift, next_frame, switch_to

OpenPage = Callable[..., Page]
PAGE = "playground.html"
CHAPTERS = {
    "formula/step-by-step.html": "norm",
    "batch-norm/family.html": "family",
    "formula/geometry.html": "sphere",
}
EXACT = {"rtol": 1e-12, "atol": 1e-12}
WIDTHS = pytest.mark.parametrize("width", [DESKTOP, PHONE])


def figure(page: Page, kind: str) -> Locator:
    return page.locator(f"[data-playground={kind}][data-live]")


def shown(root: Locator, name: str) -> float:
    """A number on the page, with all of its digits."""
    return float(root.locator(f"data[data-name='{name}']").get_attribute("value") or "nan")


def everything(root: Locator) -> dict[str, Any]:
    text = root.locator("data[data-name=all]").get_attribute("value")
    return json.loads(text)  # type: ignore[arg-type, no-any-return]


# The arithmetic


def test_forward_and_backward_are_those_of_the_reference(open_page: OpenPage) -> None:
    page = open_page(PAGE)
    rng = np.random.default_rng(0)
    for size in (1, 2, 3, 6, 50):
        for eps in (1e-8, 1e-5, 0.1, 10.0):
            x = rng.normal(rng.normal(0, 10), 3, size)
            gamma, beta, dy = rng.normal(size=(3, size))
            found = page.evaluate(
                "([x, gamma, beta, dy, eps]) => ({...NormMath.forward(x, gamma, beta, eps),"
                " ...NormMath.backward(dy, x, gamma, eps)})",
                [x.tolist(), gamma.tolist(), beta.tolist(), dy.tolist(), eps],
            )
            result = reference.layer_norm_forward(x, x.size, gamma, beta, eps=eps)
            for name in ("y", "mean", "variance", "rstd"):
                assert_allclose(found[name], np.squeeze(getattr(result, name)), **EXACT)
            assert_allclose(found["xhat"], result.normalized, **EXACT)
            backward = reference.layer_norm_backward(dy, x, x.size, gamma, eps=eps)
            for name, expected in zip(("dx", "dgamma", "dbeta"), backward, strict=True):
                assert_allclose(found[name], expected, **EXACT)


def normalized(method: str, x: np.ndarray, groups: int, eps: float) -> np.ndarray:
    """The reference's result for a block of shape (N, C, H, W)."""
    pixels = x.transpose(0, 2, 3, 1)
    size = x.shape[1]
    if method == "BN":
        return reference.batch_norm_forward(x, eps=eps).normalized
    if method == "LN":
        return reference.layer_norm(x, x.shape[1:], eps=eps)
    if method == "IN":
        return reference.instance_norm(x, eps=eps)
    if method == "GN":
        return reference.group_norm(x, groups, eps=eps)
    if method == "LN2d":
        return reference.layer_norm(pixels, size, eps=eps).transpose(0, 3, 1, 2)
    return reference.rms_norm(pixels, size, eps=eps).transpose(0, 3, 1, 2)


def test_sets_are_those_of_the_reference(open_page: OpenPage) -> None:
    page = open_page(PAGE)
    rng = np.random.default_rng(1)
    shapes = ((3, 4, 3, 2), (2, 6, 1, 5), (1, 2, 4, 4))
    for method, shape in itertools.product(("BN", "LN", "LN2d", "IN", "GN", "RMS2d"), shapes):
        for groups in (1, 2) if method == "GN" else (1,):
            x = rng.normal(3, 2, shape)
            found = page.evaluate(
                "([x, method, shape, groups]) => NormMath.normalizeSets(x,"
                " NormMath.sets(method, shape, groups), 1e-5, method !== 'RMS2d').xhat",
                [x.ravel().tolist(), method, list(shape), groups],
            )
            expected = normalized(method, x, groups, 1e-5)
            assert_allclose(np.reshape(found, shape), expected, **EXACT, err_msg=method)


def check_row(root: Locator) -> dict[str, Any]:
    """Compare all that a figure `norm` shows with the reference; return it."""
    found = everything(root)
    x, gamma, beta, dy = (np.array(found[name]) for name in ("x", "gamma", "beta", "dy"))
    result = reference.layer_norm_forward(x, x.size, gamma, beta, eps=found["eps"])
    grad, _, _ = reference.layer_norm_backward(dy, x, x.size, gamma, eps=found["eps"])
    assert_allclose(found["xhat"], result.normalized, **EXACT)
    assert_allclose(found["y"], result.y, **EXACT)
    assert_allclose(found["dx"], grad, **EXACT)
    assert_allclose(shown(root, "mean"), result.mean[0], **EXACT)
    assert_allclose(shown(root, "sigma"), np.sqrt(result.variance[0]), **EXACT)
    assert_allclose(shown(root, "root"), 1 / result.rstd[0], **EXACT)
    if root.locator("[data-act=gradient]").is_checked():
        assert_allclose(shown(root, "sum-dx"), 0, atol=1e-12)
        assert_allclose(shown(root, "sum-dx-xhat"), grad @ result.normalized, **EXACT)
    return found


# A row


@pytest.mark.parametrize(("scheme", "width"), [("http", PHONE), ("file", DESKTOP)])
def test_keys_move_a_feature(open_page: OpenPage, scheme: str, width: int) -> None:
    page = open_page(PAGE, scheme=scheme, width=width)
    root = figure(page, "norm")
    assert check_row(root)["x"] == [4, 2, 8]
    slider = root.get_by_role("slider", name="x 1")
    slider.focus()
    for key, expected in [
        ("ArrowUp", 4.1),
        ("ArrowLeft", 4.0),
        ("PageDown", 3.0),
        ("Home", -5.0),
        ("ArrowDown", -5.0),
        ("End", 10.0),
    ]:
        page.keyboard.press(key)
        next_frame(page)
        assert check_row(root)["x"] == [expected, 2, 8]
        expect(slider).to_be_focused()
        expect(slider).to_have_attribute("aria-valuetext", f"x1, {expected:g}")


@WIDTHS
@pytest.mark.parametrize(("name", "values"), [("x 3", "x"), ("dL/dy 2", "dy")])
def test_a_pointer_drags_a_feature(open_page: OpenPage, width: int, name: str, values: str) -> None:
    page = open_page(PAGE, width=width)
    root = figure(page, "norm")
    before = everything(root)[values]
    slider = root.get_by_role("slider", name=name)
    slider.scroll_into_view_if_needed()
    box = slider.locator("circle").bounding_box()
    assert box is not None
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + 3, y + 10)
    page.mouse.move(x + 5, y + 20)
    page.mouse.up()
    page.mouse.move(x, y - 40)  # it was let go
    next_frame(page)
    after = check_row(root)[values]
    moved = int(name[-1]) - 1
    assert after[moved] < before[moved] - 0.2
    assert [v for i, v in enumerate(after) if i != moved] == [
        v for i, v in enumerate(before) if i != moved
    ]
    circle = slider.locator("circle").bounding_box()
    assert circle is not None
    assert abs(circle["y"] - (box["y"] + 20)) < 3, "the handle is not under the pointer"


def swipe(page: Page, x: float, y: float, by: tuple[float, float]) -> None:
    """Put a finger on the screen, move it and lift it, as the device tells the browser."""
    device = page.context.new_cdp_session(page)

    def tell(kind: str, *places: dict[str, float]) -> None:
        device.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": list(places)})

    tell("touchStart", {"x": x, "y": y})
    for step in range(1, 16):
        tell("touchMove", {"x": x + by[0] * step / 15, "y": y + by[1] * step / 15})
        next_frame(page)
    tell("touchEnd")
    next_frame(page)


@pytest.mark.parametrize(("kind", "number"), [("norm", 0), ("norm", 4), ("sphere", 0)])
def test_a_finger_drags_a_handle_and_not_the_page(
    open_page: OpenPage, kind: str, number: int
) -> None:
    page = open_page(PAGE, width=PHONE)
    handle = figure(page, kind).locator(".ln-play-handle").nth(number)
    handle.scroll_into_view_if_needed()
    box = handle.locator("circle").first.bounding_box()
    assert box is not None
    height = page.evaluate("scrollY")
    swipe(page, box["x"] + box["width"] / 2, box["y"] + box["height"] / 2, (5, -30))
    moved = handle.locator("circle").first.bounding_box()
    assert moved is not None
    assert page.evaluate("scrollY") == height
    assert abs(moved["y"] - (box["y"] - 30)) < 3, "the handle is not under the finger"


def test_a_finger_beside_the_handles_scrolls_the_page(open_page: OpenPage) -> None:
    page = open_page(PAGE, width=PHONE)
    before = everything(figure(page, "norm"))
    swipe(page, 20, 700, (0, -300))
    page.wait_for_function("scrollY > 150")
    assert everything(figure(page, "norm")) == before


def test_a_finger_turns_the_sphere_sideways_and_scrolls_up_and_down(open_page: OpenPage) -> None:
    page = open_page(PAGE, width=PHONE)
    root = figure(page, "sphere")
    drawing = root.locator("svg")
    drawing.scroll_into_view_if_needed()
    box = drawing.bounding_box()
    assert box is not None
    height, turned = page.evaluate("scrollY"), root.get_by_label("turn the view")
    swipe(page, box["x"] + 30, box["y"] + 30, (80, 0))
    expect(turned).not_to_have_value("155")
    assert page.evaluate("scrollY") == height
    swipe(page, box["x"] + 30, box["y"] + 30, (0, -100))
    page.wait_for_function("(height) => scrollY > height + 50", arg=height)


def test_controls_of_a_row(open_page: OpenPage) -> None:
    page = open_page(PAGE)
    root = figure(page, "norm")
    root.get_by_label("epsilon").fill("0")
    root.get_by_label("gamma of feature 1").fill("-0.5")
    root.get_by_role("radio", name="2").check()
    root.get_by_label("beta of feature 2").fill("1.5")
    root.get_by_role("radio", name="all").check()
    next_frame(page)
    found = check_row(root)
    assert (found["eps"], found["gamma"], found["beta"]) == (1, [-0.5, 1, 0.5], [0.5, 1.5, -0.5])
    root.get_by_label("gamma of all features").fill("2")
    root.get_by_role("button", name="+ feature").click()
    next_frame(page)
    assert check_row(root)["gamma"] == [2, 2, 2, 1]
    for _ in range(4):
        root.get_by_role("button", name="\N{MINUS SIGN} feature").click()
    next_frame(page)
    assert len(check_row(root)["x"]) == 2


def test_beginnings_of_a_row(open_page: OpenPage) -> None:
    page = open_page(PAGE)
    root = figure(page, "norm")
    first = everything(root)
    root.get_by_role("button", name="mean 1000 higher").click()
    next_frame(page)
    higher = check_row(root)
    assert higher["x"] == [value + 1000 for value in first["x"]]
    assert_allclose(higher["y"], first["y"], **EXACT)
    root.get_by_role("button", name="one outlier").click()
    next_frame(page)
    assert len(check_row(root)["x"]) == 6
    root.get_by_role("button", name="a constant row").click()
    next_frame(page)
    assert check_row(root)["xhat"] == [0, 0, 0, 0]
    root.get_by_label("epsilon").fill("-9")  # the place that stands for 0
    next_frame(page)
    assert everything(root)["xhat"] == [None] * 4, "0/0 is not NaN"  # JSON has no NaN
    expect(root.locator("svg")).to_contain_text("NaN")


def test_bars_keep_their_scale(open_page: OpenPage) -> None:
    """What leaves the scale becomes an arrow, and the factor of the gradient is told."""
    page = open_page(PAGE)
    root = figure(page, "norm")
    arrows, factor = root.locator(".ln-play-leaves"), root.locator(".ln-play-factor")
    scales = "(e) => [...e.querySelectorAll('text[text-anchor=end]')].map((t) => t.textContent)"
    before = root.evaluate(scales)
    expect(arrows).to_have_count(0)
    expect(factor).to_contain_text("\N{MULTIPLICATION SIGN} 0.40")
    root.get_by_role("button", name="a constant row").click()
    expect(factor).to_contain_text("\N{MULTIPLICATION SIGN} 316")
    expect(arrows).to_have_count(4)
    assert root.evaluate(scales) == before


def test_notes_about_epsilon_need_an_epsilon(open_page: OpenPage) -> None:
    page = open_page(PAGE)
    root = figure(page, "norm")
    notes = root.locator(".ln-play-below")
    assert notes.all_inner_texts() == ["0, up to rounding", "0, up to ε"]
    root.get_by_label("epsilon").fill("-9")  # the place that stands for 0
    next_frame(page)
    assert notes.all_inner_texts() == ["0, up to rounding", "0, up to rounding"]


@pytest.mark.parametrize("width", [PHONE, 390])
def test_on_a_phone_the_sliders_are_beside_the_row(open_page: OpenPage, width: int) -> None:
    page = open_page(PAGE, width=width)
    root = figure(page, "norm")
    sliders = [root.get_by_label(name) for name in ("epsilon", "gamma of feature 1")]
    row = root.get_by_role("slider", name="x 1").locator("circle").bounding_box()
    for slider in sliders:
        box = slider.bounding_box()
        assert box is not None
        assert row is not None
        assert 0 < row["y"] - box["y"] < 300


def test_what_has_the_focus_has_one_ring(open_page: OpenPage) -> None:
    page = open_page(PAGE)
    own = "(e) => [getComputedStyle(e).outlineStyle, getComputedStyle(e.firstChild).strokeWidth]"
    for name, kind in (("slider", "norm"), ("gridcell", "family")):
        root = figure(page, kind)
        focused = root.locator(f"[role={name}][tabindex='0']:not(input)").first
        focused.focus()
        page.keyboard.press("ArrowDown")
        page.keyboard.press("ArrowUp")
        next_frame(page)
        style, width = page.locator(":focus").evaluate(own)
        assert style == "none"
        assert float(width.removesuffix("px")) >= 2


def test_the_gradient_can_be_left_out(open_page: OpenPage) -> None:
    page = open_page("formula/step-by-step.html")
    root = figure(page, "norm")
    expect(root.get_by_role("slider", name="dL/dy 1")).to_have_count(0)
    root.get_by_label("show the gradient").check()
    expect(root.get_by_role("slider", name="dL/dy 1")).to_have_count(1)
    check_row(root)


# The family


def check_block(root: Locator) -> np.ndarray:
    """Compare all that a figure `family` shows with the reference; return its output."""
    found = everything(root)
    x = np.reshape(found["x"], found["shape"]).astype(float)
    expected = normalized(found["method"], x, found["groups"], found["eps"])
    assert_allclose(np.reshape(found["xhat"], x.shape), expected, **EXACT)
    framed = int(root.locator("[role=gridcell][tabindex='0']").get_attribute("data-index") or -1)
    assert_allclose(shown(root, "xhat"), expected.flat[framed], **EXACT)
    return expected


def choose(root: Locator, method: str) -> None:
    """Click where a reader clicks: on the words, which the round button lies under."""
    button = root.page.get_by_role("radio", name=method, exact=True)
    root.locator("label").filter(has=button).click()
    expect(root.get_by_role("radio", name=method, exact=True)).to_be_checked()


@WIDTHS
def test_methods_of_the_family(open_page: OpenPage, width: int) -> None:
    page = open_page(PAGE, width=width)
    root = figure(page, "family")
    for method, count, size in [
        ("Batch", 4, 18),
        ("Layer", 3, 24),
        ("Layer, channels only", 18, 4),
        ("Instance", 12, 6),
        ("Group", 6, 12),
        ("RMS", 18, 4),
    ]:
        choose(root, method)
        next_frame(page)
        before = check_block(root)
        assert (shown(root, "count"), shown(root, "size")) == (count, size), method
        assert root.locator("[role=gridcell][aria-selected=true]").count() == size, method
        assert root.locator("[role=gridcell][aria-label$='moved']").count() == 0, method
        root.get_by_role("button", name="cell + 3").click()
        next_frame(page)
        moved = np.abs(check_block(root) - before) > 1e-12
        assert shown(root, "moved") == moved.sum() == size, method
        assert root.locator("[role=gridcell][aria-label$='moved']").count() == size, method
        root.get_by_role("button", name="reset").click()


def test_groups(open_page: OpenPage) -> None:
    page = open_page(PAGE)
    root = figure(page, "family")
    choose(root, "Group")
    for name, count in (("1", 3), ("4", 12)):
        root.get_by_role("group", name="groups g").get_by_label(name).check(force=True)
        next_frame(page)
        check_block(root)
        assert shown(root, "count") == count


def test_arrow_keys_move_the_frame(open_page: OpenPage) -> None:
    page = open_page(PAGE)
    root = figure(page, "family")
    root.locator("[role=gridcell][tabindex='0']").focus()
    for key, place in [
        ("Home", "image 2, channel 1, row 1, column 1"),
        ("ArrowLeft", "image 2, channel 1, row 1, column 1"),
        ("ArrowRight", "image 2, channel 1, row 1, column 2"),
        ("ArrowRight", "image 2, channel 2, row 1, column 1"),
        ("ArrowUp", "image 1, channel 2, row 3, column 1"),
        ("End", "image 1, channel 4, row 3, column 2"),
        ("ArrowDown", "image 2, channel 4, row 1, column 2"),
    ]:
        page.keyboard.press(key)
        focused = page.evaluate("document.activeElement.getAttribute('aria-label')")
        assert focused.startswith(place + ":"), key
        check_block(root)


def test_pointing_previews_and_a_click_chooses(open_page: OpenPage) -> None:
    page = open_page(PAGE)
    root = figure(page, "family")
    chosen = root.locator("[role=gridcell][tabindex='0']")
    root.get_by_role("gridcell", name="image 3, channel 4, row 3, column 2").hover()
    next_frame(page)
    assert shown(root, "x") == everything(root)["x"][71]
    expect(chosen).to_have_attribute("data-index", "31")
    root.get_by_role("button", name="cell + 3").hover()  # on the way, the preview is left
    next_frame(page)
    assert shown(root, "x") == everything(root)["x"][31]
    check_block(root)
    root.get_by_role("gridcell", name="image 3, channel 4, row 3, column 2").click()
    root.get_by_role("button", name="cell + 3").click()
    next_frame(page)
    expect(chosen).to_have_attribute("data-index", "71")
    assert everything(root)["x"][71] == 12
    check_block(root)


# The sphere


def check_arrow(root: Locator) -> tuple[np.ndarray, np.ndarray]:
    """Compare what a figure `sphere` shows with the reference; return the row and its norm."""
    x, centered, xhat = (
        np.array([shown(root, f"{name}-{i}") for i in (1, 2, 3)])
        for name in ("x", "centered", "xhat")
    )
    assert_allclose(xhat, reference.layer_norm(x, 3), **EXACT)
    assert_allclose(centered, x - x.mean(), **EXACT)
    assert_allclose(shown(root, "length"), np.linalg.norm(xhat), **EXACT)
    return x, xhat


@WIDTHS
def test_the_sphere(open_page: OpenPage, width: int) -> None:
    page = open_page(PAGE, width=width)
    root = figure(page, "sphere")
    _, xhat = check_arrow(root)

    def put(name: str, value: str) -> tuple[np.ndarray, np.ndarray]:
        root.get_by_label(name, exact=True).fill(value)
        next_frame(page)
        return check_arrow(root)

    moved, same = put("mean", "-0.5")
    assert_allclose(moved.mean(), -0.5, **EXACT)
    assert_allclose(same, xhat, **EXACT)
    moved, same = put("standard deviation", "0.5")
    assert_allclose(moved.std(), 0.5, **EXACT)
    assert_allclose(same, xhat, atol=1e-4)  # up to epsilon
    moved, other = put("x 2", "-1")
    assert moved[1] == -1
    assert np.abs(other - xhat).max() > 0.5
    _, center = put("standard deviation", "0")
    assert_allclose(center, 0, **EXACT)
    moved, _ = put("standard deviation", "1")
    assert_allclose(moved.std(), 1, **EXACT)
    put("x 1", "4")
    assert check_arrow(root)[0].std() <= 1.6 + 1e-12, "the arrow leaves the drawing"


def test_the_tip_follows_the_pointer(open_page: OpenPage) -> None:
    page = open_page(PAGE)
    root = figure(page, "sphere")
    before, _ = check_arrow(root)
    tip = root.locator("[data-act=tip] circle").last
    tip.scroll_into_view_if_needed()
    box = tip.bounding_box()
    assert box is not None
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x - 20, y + 15, steps=3)
    page.mouse.up()
    next_frame(page)
    after, _ = check_arrow(root)
    assert np.abs(after - before).max() > 0.1
    box = tip.bounding_box()
    assert box is not None
    assert abs(box["x"] + box["width"] / 2 - (x - 20)) < 2
    assert abs(box["y"] + box["height"] / 2 - (y + 15)) < 2


def test_turning_keeps_the_row(open_page: OpenPage) -> None:
    page = open_page(PAGE)
    root = figure(page, "sphere")
    before, _ = check_arrow(root)
    root.locator("svg").scroll_into_view_if_needed()
    drawing = root.locator("svg").bounding_box()
    assert drawing is not None
    page.mouse.move(drawing["x"] + 20, drawing["y"] + 20)
    page.mouse.down()
    page.mouse.move(drawing["x"] + 80, drawing["y"] + 50, steps=3)
    page.mouse.up()
    next_frame(page)
    assert root.get_by_label("turn the view").input_value() != "155"
    assert_allclose(check_arrow(root)[0], before, **EXACT)


@pytest.mark.parametrize("still", [False, True])
def test_looking_along_the_ones(open_page: OpenPage, still: bool) -> None:
    page = open_page(PAGE, still=still)
    root = figure(page, "sphere")
    tilts = root.get_by_label("tilt the view")
    root.get_by_role("button", name="along (1, 1, 1)").click()
    if still:  # there at once
        next_frame(page)
        assert tilts.input_value() == "90"
    expect(tilts).to_have_value("90")


# For everybody


@pytest.mark.parametrize("path", [PAGE, *CHAPTERS])
def test_no_figure_is_wider_than_a_phone(open_page: OpenPage, path: str) -> None:
    page = open_page(path, width=PHONE)
    figures = page.locator("[data-live]")
    expect(figures).to_have_count(3 if path == PAGE else 1)
    for mode in MODES:
        switch_to(page, mode)
        for root in figures.all():
            box = root.bounding_box()
            assert box is not None
            assert box["x"] >= 0
            assert box["x"] + box["width"] <= PHONE
            inside = root.evaluate("(e) => e.scrollWidth <= e.clientWidth")
            assert inside, "something sticks out"


def test_what_changed_is_told_once_it_rests(open_page: OpenPage) -> None:
    page = open_page(PAGE)
    root = figure(page, "norm")
    status = root.get_by_role("status")
    expect(status).to_have_text("")
    page.clock.install()  # from now on, time passes when the test says so
    page.clock.pause_at(page.evaluate("Date.now() + 1000"))
    slider = root.get_by_role("slider", name="x 1")
    slider.focus()
    page.evaluate(  # every text that a screen reader would have read
        """() => {
            const status = document.querySelector(".ln-play-norm [role=status]");
            window.said = [];
            new MutationObserver(() => window.said.push(status.textContent))
                .observe(status, {childList: true, characterData: true, subtree: true});
        }"""
    )
    for _ in range(10):
        page.keyboard.press("ArrowUp")
        page.clock.run_for(100)
    assert page.evaluate("window.said") == []
    page.clock.run_for(1000)
    told = "Mean 5.00, standard deviation 2.45. Output 0.50, -1.22, 0.11."
    assert page.evaluate("window.said") == [told.replace("-", "\N{MINUS SIGN}")]


def test_everything_has_a_name(open_page: OpenPage) -> None:
    page = open_page(PAGE)
    nameless = page.evaluate(
        """() => [...document.querySelectorAll(
                "[data-live] :is(input, button, [role=slider], [role=gridcell], svg)")]
            .filter((e) => !(e.getAttribute("aria-label") || e.textContent.trim()
                || e.closest("label")?.textContent.trim()))
            .map((e) => e.outerHTML)"""
    )
    assert nameless == []
    assert figure(page, "norm").get_by_role("slider").count() >= 6


@pytest.mark.parametrize("path", [PAGE, *CHAPTERS])
def test_without_scripts_there_is_a_figure_and_nothing_to_press(
    open_page: OpenPage, path: str
) -> None:
    page = open_page(path, scripts=False)
    for root in page.locator("[data-playground]").all():
        expect(root.locator("svg[role=img]")).to_be_visible()
        assert len(root.locator("svg").get_attribute("aria-label") or "") > 100
        expect(root.locator(".ln-play-controls")).to_be_hidden()
        assert root.locator("[tabindex]").count() == 0


def test_paper_shows_nothing_to_press(open_page: OpenPage) -> None:
    page = open_page(PAGE)
    page.emulate_media(media="print")
    for kind in CHAPTERS.values():
        expect(figure(page, kind).locator("svg")).to_be_visible()
        expect(figure(page, kind).locator(".ln-play-controls")).to_be_hidden()


def test_scripts_are_loaded_where_they_are_used(html: Path) -> None:
    for path in sorted(html.rglob("*.html")):
        name = path.relative_to(html).as_posix()
        if name.startswith("_"):
            continue
        text = path.read_text(encoding="utf-8")
        kinds = set(CHAPTERS.values()) if name == PAGE else {CHAPTERS.get(name)}
        for kind in CHAPTERS.values():
            assert (f"playground/{kind}.js" in text) == (kind in kinds), (name, kind)
        assert ("playground/playground.js" in text) == (kinds != {None}), name


def test_a_live_figure_takes_no_more_room(open_page: OpenPage) -> None:
    page = open_page(PAGE)
    expect(page.locator("[data-live]")).to_have_count(3)
    assert layout_shift(page) < 0.01


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_the_downloaded_notebook_has_the_picture(html: Path, chapter: str) -> None:
    path = html / "_sources" / Path(chapter).with_suffix(".ipynb")
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    text = "\n".join("".join(cell["source"]) for cell in cells)
    assert "{playground}" not in text
    assert text.count("](data:image/svg+xml;base64,") == 1
