"""The checkers on speed: right answers pass, known mistakes are named."""

import statistics

import pytest
import torch

from lnbook.chapters.practice.speed import exercises

ARRAY = 4096 * 1024 * 2


def test_traffic_right() -> None:
    assert exercises.check_rms_traffic(forward=2 * ARRAY, backward=3 * ARRAY).correct


@pytest.mark.parametrize(
    ("forward", "backward", "expected"),
    [
        (..., ..., "Forward is still missing"),
        (ARRAY, 3 * ARRAY, "Forward: that is one array"),
        (3 * ARRAY, 3 * ARRAY, "Forward: that is a pass too many"),
        (4 * ARRAY, 3 * ARRAY, "Forward: bfloat16 takes 2 bytes"),
        (2, 3, "Forward: that is a number of arrays"),
        (5 * ARRAY, 3 * ARRAY, "Forward: count the arrays"),
        (2 * ARRAY, ..., "Backward is still missing"),
        (2 * ARRAY, 2 * ARRAY, "Backward: that is two arrays"),
        (2 * ARRAY, 4 * ARRAY, "Backward: that is an array too many"),
        (2 * ARRAY, 6 * ARRAY, "Backward: bfloat16 takes 2 bytes"),
        (2 * ARRAY, 3 * ARRAY / 2, "Backward: that is the number of elements"),
    ],
)
def test_traffic_names_each_mistake(forward, backward, expected: str) -> None:
    verdict = exercises.check_rms_traffic(forward=forward, backward=backward)
    assert not verdict.correct
    assert expected in verdict.message


def rms(x, weight, eps, height, out, *, r=None, change=lambda c: c):
    for start in range(0, len(x), height):
        rows = slice(start, start + height)
        block = change(x[rows])
        norm = torch.linalg.vector_norm(block, dim=1, keepdim=True)
        scale = (
            (norm.square() / x.shape[1] + eps).rsqrt() if r is None else r(norm, x.shape[1], eps)
        )
        torch.mul(block, scale, out=out[rows]).mul_(weight)


def whole(x, weight, eps, height, out):
    rms(x, weight, eps, len(x), out)


def without_last_block(x, weight, eps, height, out):
    end = len(x) // height * height
    rms(x[:end], weight, eps, height, out[:end])


def in_place(x, weight, eps, height, out):
    out.copy_(x.mul_(2))


def wasteful(x, weight, eps, height, out):
    for start in range(0, len(x), height):
        block = x[start : start + height]
        r = (block.square().mean(1, keepdim=True) + eps).rsqrt()
        out[start : start + height] = weight * (block * r)


def no_weight(x, weight, eps, height, out):
    rms(x, torch.ones_like(weight), eps, height, out)


def with_mean(x, weight, eps, height, out):
    rms(x, weight, eps, height, out, change=lambda block: block - block.mean(1, keepdim=True))


def test_rms_blocks_right() -> None:
    assert exercises.check_rms_blocks(rms).correct


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda *_: None, "Nothing was written"),
        (lambda *_: 1 / 0, "raised ZeroDivisionError"),
        (in_place, "changed x"),
        (without_last_block, "The last 3 of 23 rows are missing"),
        (whole, "bytes at once, where a block has 2,048"),
        (wasteful, "write 4 arrays"),
        (no_weight, "The weight is missing"),
        (with_mean, "subtracted the mean"),
        (lambda *a: rms(*a, r=lambda n, h, e: n.square().div(h).rsqrt()), "eps is missing"),
        (lambda *a: rms(*a, r=lambda n, h, e: 1 / (n.square().div(h).sqrt() + e)), "outside"),
        (lambda *a: rms(*a, r=lambda n, h, e: (n.square() + e).rsqrt()), "summed, not averaged"),
        (lambda *a: rms(*a, r=lambda n, h, e: 1 / (n.square() / h + e)), "Take its root"),
        (lambda *a: rms(*a, r=lambda n, h, e: n), "Compare one row"),
    ],
)
def test_rms_blocks_names_each_mistake(function, expected: str) -> None:
    verdict = exercises.check_rms_blocks(function)
    assert not verdict.correct
    assert expected in verdict.message


def timer(*, warm=True, in_turn=True, middle=statistics.median, upside_down=False):
    def measure(first, second, clock, rounds):
        def seconds(way):
            start = clock()
            way()
            return clock() - start

        if warm:
            first(), second()
        if in_turn:
            pairs = [(seconds(first), seconds(second)) for _ in range(rounds)]
            ratio = middle([b / a for a, b in pairs])
        else:
            base = middle([seconds(first) for _ in range(rounds)])
            ratio = middle([seconds(second) for _ in range(rounds)]) / base
        return 1 / ratio if upside_down else ratio

    return measure


def test_timer_right() -> None:
    assert exercises.check_timer(timer()).correct
    # The median forgives one cold round among many.
    assert exercises.check_timer(timer(warm=False)).correct


def totals(first, second, clock, rounds):
    spent = [0.0, 0.0]
    for _ in range(rounds):
        for number, way in enumerate((first, second)):
            start = clock()
            way()
            spent[number] += clock() - start
    return spent[1] / spent[0]


def once_each(first, second, clock, rounds):
    start = clock()
    first()
    middle = clock()
    second()
    return (clock() - middle) / (middle - start)


@pytest.mark.parametrize(
    ("measure", "expected"),
    [
        (lambda *_: 1.0, "never called"),
        (lambda first, second, *_: first(), "still missing"),
        (lambda *_: 1 / 0, "raised ZeroDivisionError"),
        (timer(upside_down=True), "upside down"),
        (timer(middle=statistics.mean), "take the median of these"),
        (totals, "both spoil it"),
        (timer(in_turn=False), "run the two in turn"),
        (once_each, "The first calls spoil it"),
        (timer(in_turn=False, middle=statistics.mean), "where the truth is 1.5"),
    ],
)
def test_timer_names_each_mistake(measure, expected: str) -> None:
    verdict = exercises.check_timer(measure)
    assert not verdict.correct
    assert expected in verdict.message
