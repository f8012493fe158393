"""The live figures of single chapters compute what lnbook does, and every control works."""

import math
import re
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from numpy.typing import NDArray
from playwright.sync_api import Locator, expect
from torch.nn import functional

from lnbook import reference
from lnbook.reference.lstm import STEPS
from tests.helpers.this_book import BOOK
from tests.site.live import EXACT, KINDS, WIDTHS, OpenPage, everything, figure, shown
from tests.site.pages import FIGURES
from tests.site.visit import PHONE, next_frame

Array = NDArray[np.float64]


@WIDTHS
def test_eigenvalues_are_those_of_the_jacobian(open_page: OpenPage, width: int) -> None:
    page = open_page("gradient/jacobian.html", width=width)
    root = figure(page, "spectrum")
    row = np.array([1.0, -0.5, 0.2, 1.6, -1.1])
    row = (row - row.mean()) / row.std()
    for sigma, eps in (("0", "-5"), ("-2.5", "-5"), ("-5", "-3"), ("1", "0"), ("-1", "-12")):
        root.get_by_role("slider", name="standard deviation of the row").fill(sigma)
        root.get_by_role("slider", name="epsilon").fill(eps)
        next_frame(page)
        found = everything(root)
        assert_allclose(found["sigma"], 10 ** float(sigma), **EXACT)
        jacobian = reference.layer_norm_jacobian(3 + found["sigma"] * row, eps=found["eps"])
        values = np.linalg.eigvalsh(jacobian)
        rest = found["rest"]
        expected = [0, found["along"], rest, rest, rest]
        assert_allclose(values, expected, atol=1e-9 * rest, rtol=1e-9)
        assert_allclose(shown(root, "along"), found["along"], **EXACT)


def test_the_line_of_the_spectrum_is_dragged(open_page: OpenPage) -> None:
    page = open_page("gradient/jacobian.html", still=True)
    root = figure(page, "spectrum")
    before = everything(root)["sigma"]
    drawing = root.locator("svg")
    drawing.scroll_into_view_if_needed()
    box = drawing.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] / 4, box["y"] + box["height"] / 2, steps=4)
    page.mouse.up()
    next_frame(page)
    assert everything(root)["sigma"] < before / 10
    root.get_by_role("button", name="√ε").click()
    next_frame(page)
    found = everything(root)
    assert_allclose(found["sigma"] ** 2, found["eps"], rtol=1e-9)
    assert_allclose(found["along"], found["rest"] / 2, rtol=1e-9)


@WIDTHS
def test_one_example_in_many_batches(open_page: OpenPage, width: int) -> None:
    page = open_page("batch-norm/batch-size.html", width=width)
    root = figure(page, "batch")
    spreads = []
    for size in (2, 4, 8, 16, 32, 64):
        root.locator("label").filter(
            has=page.get_by_role("radio", name=str(size), exact=True)
        ).click()
        next_frame(page)
        found = everything(root)
        assert found["size"] == size
        assert len(found["given"]) == 40
        for batch, shown_bn in zip(found["given"], found["bn"], strict=True):
            assert len(batch) == size
            assert batch[0] == found["row"][found["feature"]]
            result = reference.batch_norm_forward(np.array(batch)[:, None], eps=found["eps"])
            assert_allclose(result.normalized[0, 0], shown_bn, **EXACT)
        row = reference.layer_norm(found["row"], len(found["row"]), eps=found["eps"])
        assert_allclose(found["ln"], row[found["feature"]], **EXACT)
        assert_allclose(shown(root, "spread"), np.std(found["bn"]), **EXACT)
        spreads.append(np.std(found["bn"]))
    assert spreads == sorted(spreads, reverse=True), "larger batches vary less"
    others = np.concatenate([batch[1:] for batch in found["given"]])
    assert abs(others.mean()) < 0.1
    assert abs(others.std() - 1) < 0.1
    before = everything(root)["bn"]
    root.get_by_role("button", name="Draw other batches").click()
    next_frame(page)
    assert everything(root)["bn"] != before


def normal(seed: int) -> Callable[..., Array]:
    """The generator of `norm-math.js`, which returns an array of a given shape."""
    state = seed

    def uniform() -> float:
        nonlocal state
        state = (state * 1664525 + 1013904223) % 2**32
        return (state + 0.5) / 2**32

    def draw(*shape: int) -> Array:
        pairs = [(uniform(), uniform()) for _ in range(math.prod(shape))]
        values = [math.sqrt(-2 * math.log(u)) * math.cos(2 * math.pi * v) for u, v in pairs]
        return np.array(values).reshape(shape)

    return draw


def drawn_stacks(seed: int) -> list[dict[str, Any]]:
    """The stacks of `depth.js`: rows, upstream gradients and matrices."""
    draw = normal(seed)
    return [
        {
            "row": torch.tensor(draw(16)),
            "upstream": torch.tensor(draw(16)),
            "weights": [tuple(torch.tensor(draw(16, 16) / 4) for _ in range(2)) for _ in range(24)],
        }
        for _ in range(12)
    ]


def stack_gradients(
    stack: dict[str, Any], norm: str, blocks: int, scale: float, path: str
) -> list[float]:
    """The gradient norm of each block's second matrix relative to the last block's, by autograd."""
    layer_norm = partial(functional.layer_norm, normalized_shape=(16,))
    weights = [
        (scale * first, (scale * second).requires_grad_())
        for first, second in stack["weights"][:blocks]
    ]
    x = stack["row"]
    for first, second in weights:
        read = x if norm == "post" else layer_norm(x)
        # If no gradient goes through the branch, W2 still gets its own.
        written = second @ torch.relu(first @ (read.detach() if path == "stream" else read))
        x = layer_norm(x + written) if norm == "post" else x + written
    output = x if norm == "post" else layer_norm(x)
    (output @ stack["upstream"]).backward()
    norms = [float(second.grad.norm()) for _, second in weights]  # type: ignore[union-attr]
    return [value / norms[-1] for value in norms]


@WIDTHS
def test_the_gradient_in_each_block(open_page: OpenPage, width: int) -> None:
    page = open_page("transformer/gradients-at-init.html", width=width)
    root = figure(page, "depth")

    def choose(name: str) -> None:
        field = page.get_by_role("radio", name=name, exact=True)
        root.locator("label").filter(has=field).click()
        next_frame(page)

    def check(blocks: int, scale: float, path: str) -> dict[str, Any]:
        found = everything(root)
        assert (found["blocks"], found["scale"], found["path"]) == (blocks, scale, path)
        stacks = drawn_stacks(found["seed"])
        for norm in ("post", "pre"):
            right = [stack_gradients(stack, norm, blocks, scale, path) for stack in stacks]
            assert_allclose(found[norm], right, rtol=1e-8)
            first = np.exp(np.log([run[0] for run in right]).mean())
            assert_allclose(shown(root, norm), first, rtol=1e-8)
        return found

    check(24, 1.0, "both")
    choose("12")
    check(12, 1.0, "both")
    choose("24")
    choose("\N{MULTIPLICATION SIGN} 2")
    check(24, 2.0, "both")
    choose("\N{MULTIPLICATION SIGN} 1")
    assert shown(root, "pre") > 1.5
    choose("the stream only")
    check(24, 1.0, "stream")
    assert shown(root, "post") < 0.05
    root.get_by_role("button", name="Draw other weights").click()
    next_frame(page)
    assert check(24, 1.0, "stream")["seed"] == 2


def signal_sizes(seed: int, factor: float, *, normalizes: bool) -> list[float]:
    """The root mean square of a row, and of what each of 20 layers makes of it."""
    draw = normal(seed)
    signal, sizes = draw(64), []
    for weights in [np.zeros((0, 64)), *(draw(64, 64) for _ in range(20))]:
        if len(weights):
            summed = factor * math.sqrt(2 / 64) * weights @ signal
            inputs = reference.layer_norm(summed, 64, eps=0) if normalizes else summed
            signal = np.maximum(0, inputs)
        sizes.append(math.sqrt(np.mean(signal**2)))
    return sizes


@WIDTHS
def test_signals_in_a_deep_network(open_page: OpenPage, width: int) -> None:
    page = open_page("start/why-normalize.html", width=width)
    root = figure(page, "signals")
    levels = []
    for factor in (1.8, 0.4, 1.0, 2.0):
        root.get_by_role("slider", name="factor on the weights").fill(str(factor))
        next_frame(page)
        found = everything(root)
        assert found["factor"] == factor
        for name, normalizes in (("none", False), ("norm", True)):
            sizes = signal_sizes(found["seed"], factor, normalizes=normalizes)
            assert_allclose(found[name], sizes, rtol=1e-9)
            assert_allclose(shown(root, name), sizes[-1], rtol=1e-9)
        levels.append(found["norm"][1:])
    assert_allclose(levels, [levels[0]] * 4, rtol=1e-9)
    root.get_by_role("button", name="Draw other weights").click()
    next_frame(page)
    assert_allclose(everything(root)["none"], signal_sizes(2, 2.0, normalizes=False), rtol=1e-9)


def memories(seed: int, bias: float) -> dict[str, Array]:
    """What share of their initial states the four cells of `memory.js` hold after each step."""
    draw = normal(seed)
    weights = draw(4 * 32, 8) / math.sqrt(3 * 8)
    starts = draw(4, 2, 32)
    inputs = draw(200, 4, 8)
    forget = np.zeros(4 * 32)
    forget[32:64] = bias
    shared = {"weight_ih": weights, "weight_hh": np.zeros((4 * 32, 32))}
    gains = {"norm_ih_weight": 4, "norm_hh_weight": 4, "norm_gates_weight": 4, "norm_c_weight": 1}
    shared |= {name: np.ones(32 * count) for name, count in gains.items()}
    # Each cell adds the forget bias under its own name.
    biases = {"none": "bias_ih", "per-gate": "norm_gates_bias"}
    found = {}
    for name, step in STEPS.items():
        parameters = shared | {biases.get(name, "bias_gates"): forget}
        states = [(np.zeros((4, 32)), starts[:, k]) for k in range(2)]
        apart = []
        for x in [None, *inputs]:
            if x is not None:
                states = [step(x, *state, parameters) for state in states]
            one, other = (reference.layer_norm(c, 32) for _, c in states)
            apart.append(np.linalg.norm(one - other))
        found[name] = np.array(apart) / apart[0]
    return found


@WIDTHS
def test_the_memory_of_four_cells(open_page: OpenPage, width: int) -> None:
    page = open_page("lstm/cell.html", width=width)
    root = figure(page, "memory")
    for bias in (5, 0, 1.5):
        root.get_by_role("slider", name="forget bias").fill(str(bias))
        next_frame(page)
        found, expected = everything(root), memories(1, bias)
        assert (found["seed"], found["bias"]) == (1, bias)
        for name in STEPS:
            assert_allclose(found[name], expected[name], rtol=1e-6, atol=1e-12)
            assert_allclose(shown(root, name), found[name][-1], **EXACT)
        assert_allclose(shown(root, "gate"), 1 / (1 + math.exp(-bias)), **EXACT)
    root.get_by_role("button", name="Draw other weights").click()
    next_frame(page)
    found, expected = everything(root), memories(2, 1.5)
    assert_allclose(found["carried"], expected["carried"], rtol=1e-6, atol=1e-12)


# What holds for every live figure

EVERY = [(name, kind) for name, kinds in FIGURES.items() for kind in kinds]
CONTROLS = "button[data-act], input[data-act], [role=slider][data-act]"


def test_each_part_of_the_course_has_something_live() -> None:
    live = {*FIGURES, "practice/when-to-use", "practice/myths"}  # a guide, and a list to filter
    parts = {chapter.name.split("/")[0] for chapter in BOOK.chapters}
    assert parts - {name.split("/")[0] for name in live} == set()


@pytest.mark.parametrize(("name", "kind"), EVERY)
def test_everything_has_a_name(open_page: OpenPage, name: str, kind: str) -> None:
    root = figure(open_page(f"{name}.html"), kind)
    nameless = root.evaluate(
        """(root) => [...root.querySelectorAll(
                ":is(input, button, [role=slider], [role=gridcell], svg)")]
            .filter((e) => !(e.closest("[aria-hidden=true]") || e.getAttribute("aria-label")
                || e.textContent.trim()
                || e.closest("label")?.textContent.trim()))
            .map((e) => e.outerHTML)"""
    )
    assert nameless == []
    assert root.locator(CONTROLS).count() >= 2


SHOWN = "svg, .ln-play-readout, .ln-play-controls, .ln-step-numbers"


def looks(root: Locator) -> list[str]:
    """The figure as it is, without what it tells a screen reader."""
    return [part.evaluate("(e) => e.outerHTML") for part in root.locator(SHOWN).all()]


def press(control: Locator) -> None:
    """Use a control with the keyboard."""
    control.focus()
    if control.evaluate("(e) => e.tagName === 'BUTTON' || e.type === 'checkbox'"):
        control.press("Space")
    else:
        at_end = "(e) => (e.value ?? e.ariaValueNow) === (e.max ?? e.ariaValueMax)"
        control.press("ArrowLeft" if control.evaluate(at_end) else "ArrowRight")


def uses(root: Locator, controls: Locator, use: Callable[[Locator], None]) -> set[int]:
    """Use each control twice (it may be chosen already), and return those that had an effect."""
    changed = set()
    for number in 2 * [*range(controls.count())]:
        if not controls.nth(number).is_visible():
            continue
        before = looks(root)
        use(controls.nth(number))
        next_frame(root.page)
        if looks(root) != before:
            changed.add(number)
    return changed


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in ("norm", "family")])
def test_every_control_works_with_the_keyboard_and_is_announced(
    open_page: OpenPage, kind: str
) -> None:
    name = next(name for name, kinds in FIGURES.items() if kind in kinds)
    page = open_page(f"{name}.html", still=True)
    root = figure(page, kind)
    controls = root.locator(CONTROLS)
    expect(root.get_by_role("status")).to_have_text("")
    assert uses(root, controls, press) == {*range(controls.count())}
    expect(root.get_by_role("status")).to_have_text(re.compile(".{30}"))


@pytest.mark.parametrize("kind", ["signals", "spectrum", "batch", "depth", "memory"])
def test_buttons_and_choices_react_to_a_tap(open_page: OpenPage, kind: str) -> None:
    name = next(name for name, kinds in FIGURES.items() if kind in kinds)
    page = open_page(f"{name}.html", width=PHONE, still=True)
    root = figure(page, kind)
    taps = root.locator("button[data-act], label:has(input[type=radio])")
    assert uses(root, taps, Locator.tap) == {*range(taps.count())}
