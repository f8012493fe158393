"""The playground computes what lnbook does, and works with a pointer, keyboard or screen reader."""

import itertools
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from playwright.sync_api import Locator, Page, expect

from lnbook import reference
from tests.site.live import EXACT, KINDS, WIDTHS, OpenPage, everything, figure, shown
from tests.site.pages import FIGURES
from tests.site.visit import DESKTOP, PHONE, next_frame

PAGE = "playground.html"
HOME = "index.html"


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
    """Compare everything that a `norm` figure shows with the reference; return it."""
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
    page.mouse.move(x, y - 40)  # after the release, moving has no effect
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
    """Send the browser the events for a finger that touches the screen, moves and lifts."""
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
    page = open_page(PAGE, still=True)
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
    page = open_page(PAGE, still=True)
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
    root.get_by_label("epsilon").fill("-9")  # the end of the slider, which means 0
    next_frame(page)
    assert everything(root)["xhat"] == [None] * 4, "0/0 is not NaN"  # JSON has no NaN
    expect(root.locator("svg")).to_contain_text("NaN")


def test_bars_keep_their_scale(open_page: OpenPage) -> None:
    """Anything beyond the scale becomes an arrow, and the gradient's factor is shown."""
    page = open_page(PAGE, still=True)
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
    root.get_by_label("epsilon").fill("-9")  # the end of the slider, which means 0
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
    page = open_page(PAGE)
    root = figure(page, "norm")
    expect(root.get_by_role("slider", name="dL/dy 1")).to_have_count(1)
    root.get_by_label("show the gradient").uncheck()
    expect(root.get_by_role("slider", name="dL/dy 1")).to_have_count(0)
    check_row(root)


@pytest.mark.parametrize(
    ("name", "number", "first", "last"),
    [("mean 1000 higher", 0, 4, 1004), ("one outlier", 5, 14 / 3, 9), ("+ feature", 3, 14 / 3, 1)],
)
def test_an_example_row_comes_smoothly(
    open_page: OpenPage, name: str, number: int, first: float, last: float
) -> None:
    page = open_page(PAGE)
    root = figure(page, "norm")
    page.evaluate(
        """(number) => {
            const all = document.querySelector(".ln-play-norm data[data-name=all]");
            window.seen = [];
            new MutationObserver(() => window.seen.push(JSON.parse(all.value).x[number]))
                .observe(all, {attributes: true});
        }""",
        number,
    )
    root.get_by_role("button", name=name).click()
    page.wait_for_function("(last) => window.seen.at(-1) === last", arg=last)
    seen = page.evaluate("window.seen")
    assert seen == sorted(seen, reverse=last < first)
    low, high = sorted((first, last))
    assert any(low < value < high for value in seen)
    check_row(root)


def test_a_click_before_a_row_has_come_does_not_stop_it_halfway(open_page: OpenPage) -> None:
    page = open_page(PAGE)
    root = figure(page, "norm")
    page.evaluate(
        """() => {
            const press = (text) =>
                [...document.querySelectorAll(".ln-play-norm button")]
                    .find((button) => button.textContent.includes(text)).click();
            press("mean 1000 higher");
            requestAnimationFrame(() => requestAnimationFrame(() => press("+ feature")));
        }"""
    )
    page.wait_for_function(
        """() => JSON.parse(document.querySelector(".ln-play-norm data[data-name=all]").value)
            .x.join() === "1004,1002,1008,1001" """
    )
    check_row(root)


def test_the_line_is_the_calculation(open_page: OpenPage) -> None:
    page = open_page(PAGE)
    root = figure(page, "norm")
    line = root.locator(".ln-play-worked")
    minus = "\N{MINUS SIGN}"
    expect(line).to_have_text(f"x̂₁ = (4 {minus} 4.67) / 2.49 = {minus}0.27")
    root.get_by_role("slider", name="x 3").focus()
    page.keyboard.press("PageUp")
    expect(line).to_have_text(f"x̂₃ = (9 {minus} 5.00) / 2.94 = 1.36")
    assert_allclose(everything(root)["xhat"][2], reference.layer_norm([4, 2, 9], 3)[2], **EXACT)


# The guided tour

# For each question, the right answer, and the inputs that the tour uses to show it.
TOUR = (
    ("They move closer together", {"x": [4, 2, 10]}),
    ("Nothing", {"x": [1004, 1002, 1008]}),
    ("At most √5 ≈ 2.24", {"x": [1, 0.5, 0, 1.5, 0.5, 9]}),
    ("Only y₁", {"gamma": [0, 1, 0.5]}),
    ("All of them", {"dy": [1, 0, 0]}),
    ("About 316", {"x": [3, 3, 3, 3], "eps": 1e-5}),
)


def test_the_tour_begins_with_the_row_and_its_norm(open_page: OpenPage) -> None:
    page = open_page(PAGE)
    root = figure(page, "norm", tour=True)
    expect(root.locator("svg")).to_contain_text("normalized")
    expect(root.locator("svg")).not_to_contain_text("the output")
    expect(root.get_by_role("slider")).to_have_count(3)
    expect(root.get_by_role("button", name="Drag x₃ to 10")).to_have_count(0)


@WIDTHS
def test_each_question_is_guessed_tried_and_explained(open_page: OpenPage, width: int) -> None:
    page = open_page(PAGE, width=width, still=True)
    root = figure(page, "norm", tour=True)
    before, results = [], []
    for number, (answer, state) in enumerate(TOUR, start=1):
        expect(root.locator(".ln-tour-count")).to_have_text(f"Question {number} of {len(TOUR)}")
        before.append(everything(root))
        root.locator("label", has_text=answer).click()
        root.locator(".ln-tour-go").click()
        expect(root.locator(".ln-tour-why")).to_contain_text("You guessed right.")
        results.append(everything(root))
        assert {name: results[-1][name] for name in state} == state
        x = np.array(results[-1]["x"])
        expected = reference.layer_norm(x, x.size, eps=results[-1]["eps"])
        assert_allclose(results[-1]["xhat"], expected, **EXACT)
        root.locator(".ln-tour-go").click()
    expect(root.locator(".ln-tour-count")).to_have_text("Question 1 of 6")
    # What the explanations claim.
    assert np.ptp(results[0]["xhat"][:2]) < np.ptp(before[0]["xhat"][:2])
    assert_allclose(results[1]["xhat"], before[1]["xhat"], **EXACT)
    assert before[2]["xhat"][5] < results[2]["xhat"][5] <= np.sqrt(5)
    changed = np.array(results[3]["y"]) != before[3]["y"]
    assert changed.tolist() == [True, False, False]
    assert results[3]["y"][0] == results[3]["beta"][0] == 0.5
    assert np.abs(results[4]["dx"]).min() > 0.1
    assert abs(sum(results[4]["dx"])) < 1e-12
    assert round(1 / np.sqrt(results[5]["eps"])) == 316


def test_a_wrong_guess_is_told_the_answer(open_page: OpenPage) -> None:
    page = open_page(PAGE, still=True)
    root = figure(page, "norm", tour=True)
    root.get_by_role("radio", name="They stay").focus()
    page.keyboard.press("Space")
    root.get_by_role("button", name="Drag x₃ to 10").focus()
    page.keyboard.press("Enter")
    expect(root.locator(".ln-tour-why")).to_contain_text("It's “They move closer together”.")
    expect(root.get_by_role("status")).to_contain_text("It's “They move closer together”.")
    root.get_by_role("button", name="Explore freely").click()
    expect(root.get_by_role("slider", name="dL/dy 1")).to_have_count(1)
    root.get_by_role("button", name="Take the guided tour").click()
    expect(root.locator(".ln-tour-count")).to_have_text("Question 1 of 6")


# The formula, step by step


def check_steps(root: Locator) -> dict[str, Any]:
    """Compare all numbers in a `steps` figure with the reference; return them."""
    found = everything(root)
    x, gamma, beta = (np.array(found[name]) for name in ("x", "gamma", "beta"))
    result = reference.layer_norm_forward(x, x.size, gamma, beta, eps=found["eps"])
    for name in ("mean", "variance", "rstd"):
        assert_allclose(found[name], np.squeeze(getattr(result, name)), **EXACT)
    assert_allclose(found["xhat"], result.normalized, **EXACT)
    assert_allclose(found["y"], result.y, **EXACT)
    return found


def lit(root: Locator) -> set[str]:
    """The highlighted symbols in the formula, which are those whose numbers are highlighted."""
    names = "(all) => all.map((e) => /ln-step-(?!symbol|group)(\\w+)/.exec(e.className)[1])"
    symbols, numbers = (
        set(root.locator(f".ln-step-line{which} .ln-lit").evaluate_all(names))
        for which in (":not(.ln-step-numbers)", ".ln-step-numbers")
    )
    assert symbols == numbers
    return symbols


def bright(root: Locator) -> list[bool]:
    """Which of the panels x, x-hat and y aren't dimmed."""
    dims = "(all) => all.map((e) => e.classList.contains('ln-dim'))"
    return [not dim for dim in root.locator(".ln-step-panel").evaluate_all(dims)]


STEPS = (  # symbols, panels, the calculation
    ({"x", "mu"}, [True, False, False], "μ = (4 + 2 + 8) / 3 = 4.67"),
    (
        {"x", "mu", "variance"},
        [True, False, False],
        "σ² = ((-0.67)² + (-2.67)² + 3.33²) / 3 = 6.22",
    ),
    ({"variance", "eps", "root"}, [True, False, False], "√(σ² + ε) = √(6.22 + 0.00001) = 2.49"),
    ({"x", "mu", "root", "xhat"}, [True, True, False], "x̂₁ = (4 - 4.67) / 2.49 = -0.27"),
    ({"xhat", "gamma", "beta", "y"}, [False, True, True], "y₁ = 1.5 · (-0.27) + 0.5 = 0.10"),
)


@WIDTHS
def test_five_steps_light_the_formula(open_page: OpenPage, width: int) -> None:
    page = open_page(HOME, width=width)
    root = figure(page, "steps")
    assert lit(root) == set()
    check_steps(root)
    for number, (parts, panels, line) in enumerate(STEPS, start=1):
        if number % 2:
            root.locator(".ln-step-stop").nth(number - 1).click()
        else:
            root.get_by_role("button", name="Next step").click()
        expect(root.get_by_role("radio").nth(number - 1)).to_be_checked()
        page.mouse.move(0, 0)
        next_frame(page)
        assert lit(root) == parts
        assert bright(root) == panels
        expect(root.locator(".ln-step-worked")).to_have_text(line.replace("-", "\N{MINUS SIGN}"))
    root.get_by_role("button", name="Show everything").click()
    next_frame(page)
    assert lit(root) == set()


def test_a_symbol_is_linked_to_what_it_stands_for(open_page: OpenPage) -> None:
    page = open_page(HOME)
    root = figure(page, "steps")
    text = root.locator(".ln-step-text")
    mu = root.get_by_role("button", name="μ", exact=True)
    mu.hover()
    expect(text).to_have_text("μ is the mean of the row.")
    assert lit(root) == {"mu"}
    page.mouse.move(0, 0)
    next_frame(page)
    assert lit(root) == set()
    mu.focus()
    next_frame(page)
    assert lit(root) == {"mu"}
    page.keyboard.press("Tab")
    next_frame(page)
    assert lit(root) == {"variance"}
    page.keyboard.press("Enter")
    expect(root.locator("button.ln-step-variance")).to_have_attribute("aria-pressed", "true")
    page.mouse.move(0, 0)
    page.evaluate("document.activeElement.blur()")
    next_frame(page)
    assert lit(root) == {"variance"}, "the choice stays"
    # The other way around: pointing at the mean in the picture highlights the symbol.
    root.locator("svg [data-point='part:mu']").last.hover()
    next_frame(page)
    assert lit(root) == {"mu"}


def test_a_bar_is_linked_to_its_symbol(open_page: OpenPage) -> None:
    page = open_page(HOME)
    root = figure(page, "steps")
    for place, part in (("1:y", "y"), ("2:xhat", "xhat"), ("0:y", "y")):
        root.locator(f"svg rect[data-point='feature:{place}']").hover()
        next_frame(page)
        assert lit(root) == {part}
        assert bright(root) == [True] * 3
    page.mouse.move(0, 0)
    next_frame(page)
    assert lit(root) == set()
    root.get_by_role("slider", name="x 2").focus()
    next_frame(page)
    assert lit(root) == {"x"}
    expect(root.locator(".ln-step-worked")).to_contain_text("x̂₂")


def test_a_tap_chooses_a_symbol_and_a_feature(open_page: OpenPage) -> None:
    page = open_page(HOME, width=PHONE)
    root = figure(page, "steps")
    epsilon = root.get_by_role("button", name="ϵ", exact=True)
    epsilon.tap()
    expect(epsilon).to_have_attribute("aria-pressed", "true")
    epsilon.tap()
    root.locator("svg").nth(-1).locator("[data-point='feature:2:y']").tap()
    expect(root.locator(".ln-step-worked")).to_contain_text("x̂₃ = (8")


def test_a_bar_of_the_formula_can_be_moved(open_page: OpenPage) -> None:
    page = open_page(HOME, scheme="file")
    root = figure(page, "steps")
    slider = root.get_by_role("slider", name="x 2")
    slider.focus()
    for key, expected in (("ArrowUp", 2.1), ("Home", -5), ("End", 10)):
        page.keyboard.press(key)
        next_frame(page)
        assert check_steps(root)["x"] == [4, expected, 8]
        expect(slider).to_be_focused()
    expect(root.locator(".ln-step-worked")).to_contain_text("x̂₂ = (10")
    box = slider.locator("circle").bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.mouse.down()
    page.mouse.move(box["x"], box["y"] + 40, steps=4)
    page.mouse.up()
    next_frame(page)
    assert check_steps(root)["x"][1] < 8
    root.get_by_role("button", name="Reset the row").click()
    page.wait_for_function(
        "JSON.parse(document.querySelector('.ln-play-steps data').value).x.join() === '4,2,8'"
    )


# The family


def check_block(root: Locator) -> np.ndarray:
    """Compare everything that a `family` figure shows with the reference; return its output."""
    found = everything(root)
    x = np.reshape(found["x"], found["shape"]).astype(float)
    expected = normalized(found["method"], x, found["groups"], found["eps"])
    assert_allclose(np.reshape(found["xhat"], x.shape), expected, **EXACT)
    framed = int(root.locator("[role=gridcell][tabindex='0']").get_attribute("data-index") or -1)
    assert_allclose(shown(root, "xhat"), expected.flat[framed], **EXACT)
    return expected


def choose(root: Locator, method: str) -> None:
    """Click where a reader clicks: on the words, which cover the radio button."""
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
    root.get_by_role("button", name="cell + 3").hover()  # moving away ends the preview
    next_frame(page)
    assert shown(root, "x") == everything(root)["x"][31]
    check_block(root)
    root.get_by_role("gridcell", name="image 3, channel 4, row 3, column 2").click()
    root.get_by_role("button", name="cell + 3").click()
    next_frame(page)
    expect(chosen).to_have_attribute("data-index", "71")
    assert everything(root)["x"][71] == 12
    check_block(root)


def test_a_finger_chooses_a_cell_or_scrolls_the_page(open_page: OpenPage) -> None:
    page = open_page(PAGE, width=PHONE)
    root = figure(page, "family")
    chosen = root.locator("[role=gridcell][tabindex='0']")
    cell = root.get_by_role("gridcell", name="image 3, channel 4, row 3, column 2")
    cell.tap()
    expect(chosen).to_have_attribute("data-index", "71")
    assert page.evaluate("document.activeElement.dataset.index") == "71"
    box = cell.bounding_box()
    assert box is not None
    height = page.evaluate("scrollY")
    swipe(page, box["x"] - 60, box["y"] - 60, (0, -200))
    page.wait_for_function("(height) => scrollY > height + 100", arg=height)
    expect(chosen).to_have_attribute("data-index", "71")
    assert root.locator("[stroke-dasharray='4 3']").count() == 0, "a finger previews nothing"
    check_block(root)


# The sphere


def check_arrow(root: Locator) -> tuple[np.ndarray, np.ndarray]:
    """Compare what a `sphere` figure shows with the reference; return the row and its norm."""
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
    assert_allclose(same, xhat, atol=1e-4)  # equal up to the effect of epsilon
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
    if still:  # without animation, the view changes at once
        next_frame(page)
        assert tilts.input_value() == "90"
    expect(tilts).to_have_value("90")


# Accessibility


def test_what_changed_is_told_once_it_rests(open_page: OpenPage) -> None:
    page = open_page(PAGE)
    status = figure(page, "norm", tour=True).get_by_role("status")
    expect(status).to_have_text("")
    root = figure(page, "norm")
    # Wait for the message about leaving the tour: its timer started before the test's clock did.
    expect(status).to_have_text(re.compile("^Mean 4.67"))
    page.clock.install()  # from now on, the test controls the time
    page.clock.pause_at(page.evaluate("Date.now() + 1000"))
    slider = root.get_by_role("slider", name="x 1")
    slider.focus()
    page.evaluate(  # records every text that a screen reader would read
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


@pytest.mark.parametrize("name", FIGURES)
def test_without_scripts_there_is_a_figure_and_nothing_to_press(
    open_page: OpenPage, name: str
) -> None:
    page = open_page(f"{name}.html", scripts=False)
    for root in page.locator("[data-playground]").all():
        expect(root.locator("[role=img]")).to_be_visible()
        assert len(root.locator("[role=img]").get_attribute("aria-label") or "") > 100
        for controls in root.locator(".ln-play-controls").all():
            expect(controls).to_be_hidden()
        assert root.locator("button:visible").count() == 0
        assert root.locator("[tabindex]").count() == 0


def test_paper_shows_nothing_to_press(open_page: OpenPage) -> None:
    page = open_page(PAGE)
    page.emulate_media(media="print")
    for kind in FIGURES["playground"]:
        expect(figure(page, kind, tour=True).locator("svg")).to_be_visible()
        expect(figure(page, kind, tour=True).locator(".ln-play-controls")).to_be_hidden()


def test_scripts_are_loaded_where_they_are_used(html: Path) -> None:
    for path in sorted(html.rglob("*.html")):
        name = path.relative_to(html).with_suffix("").as_posix()
        if name.startswith("_"):
            continue
        text = path.read_text(encoding="utf-8")
        kinds = FIGURES.get(name, ())
        for kind in KINDS:
            assert (f"playground/{kind}.js" in text) == (kind in kinds), (name, kind)
        assert ("playground/playground.js" in text) == bool(kinds), name


@pytest.mark.parametrize("chapter", [name for name in FIGURES if "/" in name])
def test_the_downloaded_notebook_has_the_picture(html: Path, chapter: str) -> None:
    path = html / "_sources" / f"{chapter}.ipynb"
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    text = "\n".join("".join(cell["source"]) for cell in cells)
    assert "{playground}" not in text
    assert text.count("](data:image/svg+xml;base64,") == len(FIGURES[chapter])
