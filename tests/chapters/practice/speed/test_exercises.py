"""The checkers for the chapter on speed accept correct answers and recognize known mistakes."""

import statistics

import torch

from lnbook.chapters.practice.speed import exercises
from tests.helpers.verdicts import verdict_test

ARRAY = 4096 * 1024 * 2


def rms(x, weight, eps, height, out, r=lambda n, h, e: (n.square() / h + e).rsqrt()):
    for start in range(0, len(x), height):
        rows = slice(start, start + height)
        norm = torch.linalg.vector_norm(x[rows], dim=1, keepdim=True)
        torch.mul(x[rows], r(norm, x.shape[1], eps), out=out[rows]).mul_(weight)


def without_last_block(x, weight, eps, height, out):
    rms(x[:20], weight, eps, height, out[:20])


def wasteful(x, weight, eps, height, out):
    for start in range(0, len(x), height):
        block = x[start : start + height]
        r = (block.square().mean(1, keepdim=True) + eps).rsqrt()
        out[start : start + height] = weight * (block * r)


def timer(*, warm=True, in_turn=True, middle=statistics.median, upside_down=False):
    def measure(first, second, clock, rounds):
        def seconds(way):
            start = clock()
            way()
            return clock() - start

        if warm:
            first(), second()
        if in_turn:
            ratios = [1 / seconds(first) * seconds(second) for _ in range(rounds)]
            return middle(ratios) ** (-1 if upside_down else 1)
        base = middle([seconds(first) for _ in range(rounds)])
        return middle([seconds(second) for _ in range(rounds)]) / base

    return measure


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


ANSWERS = {
    exercises.check_rms_traffic: [
        ("Correct.", 2 * ARRAY, 3 * ARRAY),
        ("Forward: that's one array", ARRAY, 3 * ARRAY),
        ("Forward: that's one pass too many", 3 * ARRAY, 3 * ARRAY),
        ("Forward: bfloat16 takes 2 bytes", 4 * ARRAY, 3 * ARRAY),
        ("Forward: that's a number of arrays", 2, 3),
        ("Forward: count the arrays", 2 * ARRAY + 1, 3 * ARRAY),
        ("Backward: that's two arrays", 2 * ARRAY, 2 * ARRAY),
        ("Backward: that's one array too many", 2 * ARRAY, 4 * ARRAY),
        ("Backward: bfloat16 takes 2 bytes", 2 * ARRAY, 6 * ARRAY),
        ("Backward: that's the number of elements", 2 * ARRAY, 3 * ARRAY / 2),
    ],
    exercises.check_fused: [
        ("Correct.", 5, 4, 5 / 4),
        ("Does the norm read s again?", 4, 4, 1),
        ("separate: that's the norm alone", 2, 4, 1.25),
        ("separate: that's the sum alone", 3, 4, 1.25),
        ("add up what each of the two kernels", 6, 4, 1.25),
        ("fused: s is needed later", 5, 3, 1.25),
        ("it was just computed", 5, 5, 1.25),
        ("which arrays come in", 5, 2, 1.25),
        ("Turn it around", 5, 4, 0.8),
        ("that's the fraction that is saved", 5, 4, 0.2),
        ("times are in proportion", 5, 4, 2),
        ("speedup is still missing", 5, 4),
    ],
    exercises.check_rms_blocks: [
        ("Correct.", rms),
        ("didn't fill `out`", lambda *_: None),
        ("changed x", lambda x, *rest: rms(x.mul_(2), *rest)),
        ("The last 3 of 23 rows are missing", without_last_block),
        (
            "reads 11,776 bytes and writes 184, where a block has 2,048",
            lambda x, w, eps, height, out: rms(x, w, eps, len(x), out),
        ),
        (
            "and writes 3,584, where a block has 2,048",
            lambda x, w, eps, height, out: rms(x, w, eps, height + 3, out),
        ),
        ("write 4 arrays", wasteful),
        (
            "with height = 4, no torch operation writes 4 rows",
            lambda x, w, eps, height, out: rms(x, w, eps, 1, out),
        ),
        (
            "with height = 5, no torch operation writes 5 rows",
            lambda x, w, eps, height, out: rms(x, w, eps, 4, out),
        ),
        (
            "wrong for x with the shape (17, 48)",
            lambda *a: rms(*a, r=lambda n, h, e: (n.square() / 64 + e).rsqrt()),
        ),
        ("The weight is missing", lambda x, w, *rest: rms(x, w**0, *rest)),
        ("subtracted the mean", lambda x, *rest: rms(x - x.mean(1, keepdim=True), *rest)),
        ("eps is missing", lambda *a: rms(*a, r=lambda n, h, e: n.square().div(h).rsqrt())),
        (
            "belongs inside",
            lambda *a: rms(*a, r=lambda n, h, e: 1 / (n.square().div(h).sqrt() + e)),
        ),
        ("summed, not averaged", lambda *a: rms(*a, r=lambda n, h, e: (n.square() + e).rsqrt())),
        ("Take its square root", lambda *a: rms(*a, r=lambda n, h, e: 1 / (n.square() / h + e))),
        (
            "Compare one row",
            lambda *a: rms(*a, r=lambda n, h, e: (n.square() / h + e).rsqrt() + 2e-5),
        ),
    ],
    exercises.check_timer: [
        ("Correct.", timer()),
        ("Correct.", timer(warm=False)),
        ("from too few rounds", lambda *a: timer()(*a[:3], 1)),
        ("from too few rounds", lambda *a: timer(middle=statistics.mean)(*a[:3], 3)),
        ("a sum or a minimum", timer(middle=min)),
        ("never called", lambda *_: 1.0),
        ("upside down", timer(upside_down=True)),
        ("take the median of these", timer(middle=statistics.mean)),
        ("both ruin it", totals),
        ("take turns, and compare", timer(in_turn=False)),
        ("The first calls ruin it", once_each),
        ("but the truth is 1.5", lambda *given: 1.1 * timer()(*given)),
        ("but the truth is 1.5", timer(in_turn=False, middle=statistics.mean)),
    ],
}

test_answers = verdict_test(ANSWERS)
