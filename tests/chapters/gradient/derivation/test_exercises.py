"""The checkers accept correct answers and name each known mistake."""

import numpy as np
import torch

from lnbook import reference
from lnbook.chapters.gradient.derivation import exercises
from tests.helpers.verdicts import verdict_test

DX = np.array([0.625, 0.125, -0.125, -0.625])
DGAMMA = np.array([-2.0, -0.5, 0.0, -1.0])

G = np.array([4.0, 2.0, 0.0, -2.0])
XHAT = np.array([-0.5, -0.5, 0.5, 0.5])
DY = np.array([4.0, 1.0, 0.0, -2.0])


def by_autograd(dy, x, weight, eps):
    inputs = [torch.tensor(a, requires_grad=True) for a in (x, weight)]
    y = torch.nn.functional.rms_norm(inputs[0], weight.shape, inputs[1], eps)
    return torch.autograd.grad(y, inputs, torch.tensor(dy))


def with_mistake(place, mistakes, message):
    def wrong(*given):
        answer = list(by_autograd(*given))
        answer[place] = mistakes(*given)[message]
        return answer

    return message, wrong


def layer_norm_backward(dy, x, weight, eps):
    return reference.layer_norm_backward(dy, x, x.shape[-1], weight, eps=eps)[:2]


def off_by(dx, dweight):
    return lambda *given: [a + b for a, b in zip(by_autograd(*given), (dx, dweight), strict=True)]


ANSWERS = {
    exercises.check_by_hand: [
        ("Correct.", DX, DGAMMA),
        ("Correct.", [0.63, 0.13, -0.13, -0.63], DGAMMA),
        ("Correct.", [0.62, 0.12, -0.12, -0.62], DGAMMA),
        ("leaves gamma out", (DY - 0.75 - XHAT * -0.875) / 4),
        ("is missing the mean of g", (G + XHAT) / 4),
        ("is missing the xhat term", (G - 1) / 4),
        ("sums where the formula has means", (G - 4 + 4 * XHAT) / 4),
        ("adds the xhat term", (G - 1 - XHAT) / 4),
        ("uses an r without eps", 2 * DX),
        ("leaves eps out of both r and xhat", (G - 1 - 4 * XHAT * (G * XHAT).mean()) / 2),
        ("is missing the factor r", 4 * DX),
        ("factor r twice", DX / 4),
        ("signs are flipped", -DX),
        ("two terms are missing", G / 4),
        ("Your dL/dx isn't right yet", DX + 0.02),
        ("This is g * xhat", DX, G * XHAT),
        ("This is dL/dbeta", DX, DY),
        ("x instead of xhat", DX, DY * [0, 0, 4, 4]),
        ("Your xhat leaves eps out", DX, 2 * DGAMMA),
        ("x - mean instead of xhat", DX, 4 * DGAMMA),
        ("signs are flipped", DX, -DGAMMA),
        ("Your dL/dgamma isn't right yet", DX, DGAMMA + 0.02),
    ],
    exercises.check_why: [
        ("Correct.", "b", "a", "c"),
        ("Correct.", "(B)", " a", "C."),
        ("first: The upstream gradient can sum to anything", "a", "a", "c"),
        ("for every eps", "c", "a", "c"),
        ("second: Noise has nothing to do with it", "b", "b", "c"),
        ("How many rows does one gamma affect", "b", "c", "c"),
        ("third: The size of eps", "b", "a", "a"),
        ("They don't cancel", "b", "a", "b"),
        ("third is still missing", "b", "a", ...),
        ("second should be one of a, b, c", "b", "d", "c"),
    ],
    exercises.check_left_along: [
        ("Correct.", lambda v, eps, m: eps * (v + eps) ** -1.5 * m),
        ("Correct.", lambda v, eps, m: np.float64(m * (1 - v / (v + eps)) / np.sqrt(v + eps))),
        ("Correct.", lambda v, eps, m: eps * m * torch.tensor(v + eps).rsqrt() ** 3),
        ("only true for eps = 0", lambda v, eps, m: 0),
        ("the part that gets subtracted", lambda v, eps, m: v / (v + eps) ** 1.5 * m),
        ("The factor r is missing", lambda v, eps, m: eps / (v + eps) * m),
        ("the first term only", lambda v, eps, m: m / (v + eps) ** 0.5),
        ("don't divide by it", lambda v, eps, m: eps / (v + eps) ** 0.5 * m),
        ("The sign is flipped", lambda v, eps, m: -eps / (v + eps) ** 1.5 * m),
        ("The formula is wrong", lambda v, eps, m: eps / (v + eps) ** 1.5 * m + 2e-5),
        ("Did you forget `return`", lambda v, eps, m: None),
    ],
    exercises.check_rms_norm_backward: [
        *(
            with_mistake(place, mistakes, message)
            for place, mistakes in enumerate((exercises._dx_mistakes, exercises._dweight_mistakes))
            for message in mistakes(np.eye(2), np.eye(2), np.ones(2), 1.0)
        ),
        ("Correct.", by_autograd),
        ("should return the pair", lambda dy, *_: (dy, dy, dy)),
        ("your dx isn't the right gradient", off_by(2e-5, 0.0)),
        ("your dweight isn't the right gradient", off_by(0.0, 2e-5)),
        ("Your dx is LayerNorm's", layer_norm_backward),
    ],
}

test_answers = verdict_test(ANSWERS)
