"""The checkers of the chapter on variants: each known mistake is called by its name."""

import numpy as np
import pytest
import torch

from lnbook.chapters.shared.checker import Verdict
from lnbook.chapters.transformer.variants import exercises
from lnbook.transformer import PeriLNBlock, PostLNBlock, PreLNBlock


def test_logit_bounds_right() -> None:
    assert exercises.check_logit_bounds(32, 10).correct
    assert exercises.check_logit_bounds(layer_norm=np.float64(32), l2=torch.tensor(10.0)).correct


def test_logit_bounds_are_reached() -> None:
    """By a query and a key that point the same way."""
    z = np.tile([1.0, -1.0], 32)
    row = 2 * (z - z.mean()) / z.std()
    assert row @ row / 8 == pytest.approx(exercises.LAYER_NORM_BOUND)
    unit = z / np.linalg.norm(z)
    assert 10 * unit @ unit == pytest.approx(exercises.L2_BOUND)


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ((), "The bound with LayerNorm is still missing"),
        ((16, 10), "each have a gain of 2"),
        ((8, 10), "leaves the gains out"),
        ((256, 10), "forgets to divide"),
        ((4, 10), "The length of a normalized row is the root of its size: query"),
        ((2048, 10), "8, not 64"),
        ((10, 10), "This is the bound with L2"),
        ((31, 10), "How long is a row of 64 features"),
        ((32,), "The bound with L2 is still missing"),
        ((32, 1.25), "replaces the division"),
        ((32, 640), "length 1, whatever"),
        ((32, 100), "one scale"),
        ((32, 20), "at most 1"),
    ],
)
def test_logit_bounds_wrong(answer: tuple[object, ...], expected: str) -> None:
    verdict = exercises.check_logit_bounds(*answer)
    assert not verdict.correct
    assert expected in verdict.message


def right(x, attention, feed_forward, norm1, norm2):
    x = x + norm1(attention(x))
    return x + norm2(feed_forward(x))


def test_output_norm_right() -> None:
    assert exercises.check_output_norm(right).correct


@pytest.mark.parametrize("message", exercises.OUTPUT_NORM_MISTAKES)
def test_output_norm_names_each_mistake(message: str) -> None:
    mistake = exercises.OUTPUT_NORM_MISTAKES[message]
    verdict = exercises.check_output_norm(lambda x, *parts: mistake(x, parts))
    assert verdict == Verdict(False, message)


@pytest.mark.parametrize(
    ("block", "start"),
    [
        (PreLNBlock, "This is Pre-LN"),
        (PostLNBlock, "This is Post-LN"),
        (PeriLNBlock, "This normalizes before and after"),
    ],
)
def test_output_norm_mistakes_are_the_blocks(block: type, start: str) -> None:
    """The mistakes place their norms as the blocks of lnbook do."""
    message = next(m for m in exercises.OUTPUT_NORM_MISTAKES if m.startswith(start))
    parts = exercises._branches(np.random.default_rng(0))
    attention, feed_forward, norm1, norm2 = parts

    def torched(function):
        return lambda z: torch.from_numpy(function(z.detach().numpy()))

    module = block(6, 1, 6, dropout=0.0, dtype=torch.float64)
    module.feed_forward = torched(feed_forward)
    for name, norm in (("norm1", norm1), ("norm2", norm2)):
        for part in (name, f"{name}_out"):
            if hasattr(module, part):
                delattr(module, part)
                object.__setattr__(module, part, torched(norm))
    x = np.random.default_rng(1).normal(size=(4, 6))
    y = module.compute(torch.from_numpy(x), torched(attention))
    assert y.detach().numpy() == pytest.approx(exercises.OUTPUT_NORM_MISTAKES[message](x, parts))


def in_place(x, attention, feed_forward, norm1, norm2):
    x += norm1(attention(x))
    return x + norm2(feed_forward(x))


@pytest.mark.parametrize(
    ("block", "expected"),
    [
        (None, "still missing"),
        (..., "still missing"),
        (lambda *_: None, "returns nothing"),
        (lambda x, *_: x[0], "has the shape (6,)"),
        (lambda x, *_: 1 / 0, "raised ZeroDivisionError"),
        (lambda x, *parts: right(x, *parts) + 0.1, "should read the stream as it is"),
        (in_place, "changes its input"),
    ],
)
def test_output_norm_wrong(block: object, expected: str) -> None:
    verdict = exercises.check_output_norm(block)
    assert not verdict.correct
    assert expected in verdict.message


@pytest.mark.parametrize(
    "answer",
    [
        ([[1, 1], [0, 0]], [0, 1], [0, 1], -1),
        ([[0, 0], [3, 3]], [2, 0], [1, 0], -0.8),
        ([[1, 1], [1, 1]], [1, -1], [1, -1], -1.5),
    ],
)
def test_rms_xor_right(answer: tuple[object, ...]) -> None:
    W, b, v, c = answer  # noqa: N806
    h = torch.from_numpy(exercises.CORNERS) @ torch.tensor(W).double().T + torch.tensor(b)
    s = torch.nn.functional.rms_norm(h, (2,), eps=1e-5) @ torch.tensor(v).double() + c
    assert (s > 0).tolist() == [False, True, True, False]
    assert exercises.check_rms_xor(*answer).correct


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ((), "W is still missing"),
        (([[..., ...], [..., ...]], 0, 0, 0), "W still has a '...' in it"),
        (([1, 2], 0, 0, 0), "W should be numbers of shape (2, 2)"),
        (([[1, 1], [0, 0]], [0, 1, 2], [0, 1], -1), "b should be numbers of shape (2,)"),
        (([[1, 1], [0, 0]], [0, 1], [0, 1], ...), "c is still missing"),
        (([[1, 1], [0, 0]], [0, 1], [0, -1], 1), "All four are the wrong way around"),
        (([[1, 1], [0, 0]], [0, 1], [0, 0], 1), "The score is the same at all four"),
        (([[1, 1], [0, 0]], [0, 1], [0, 0], 0), "The score is the same at all four"),
        (([[1, 0], [0, 0]], [0, 1], [1, 0], 0), "wrong at (-1, 1) and (1, 1)."),
        (([[1, 1], [0, 0]], [0, 1], [1, 0], -0.5), "wrong at (-1, 1), (1, -1) and (1, 1)."),
    ],
)
def test_rms_xor_wrong(answer: tuple[object, ...], expected: str) -> None:
    verdict = exercises.check_rms_xor(*answer)
    assert not verdict.correct
    assert expected in verdict.message
