"""The checkers accept correct answers and name each known mistake."""

import numpy as np
import pytest
import torch

from lnbook import reference
from lnbook.chapters.gradient.derivation import exercises

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

    return (wrong,), message


def layer_norm_backward(dy, x, weight, eps):
    return reference.layer_norm_backward(dy, x, x.shape[-1], weight, eps=eps)[:2]


def off_by(dx, dweight):
    return lambda *given: [a + b for a, b in zip(by_autograd(*given), (dx, dweight), strict=True)]


RIGHT = ""
TOLD = {
    exercises.check_by_hand: [
        ((DX, DGAMMA), RIGHT),
        (([0.63, 0.13, -0.13, -0.63], DGAMMA), RIGHT),
        (([0.62, 0.12, -0.12, -0.62], DGAMMA), RIGHT),
        (((DY - 0.75 - XHAT * -0.875) / 4,), "leaves gamma out"),
        (((G + XHAT) / 4,), "is missing the mean of g"),
        (((G - 1) / 4,), "is missing the xhat term"),
        (((G - 4 + 4 * XHAT) / 4,), "sums where the formula has means"),
        (((G - 1 - XHAT) / 4,), "adds the xhat term"),
        ((2 * DX,), "uses an r without eps"),
        (((G - 1 - 4 * XHAT * (G * XHAT).mean()) / 2,), "leaves eps out of both r and xhat"),
        ((4 * DX,), "is missing the factor r"),
        ((DX / 4,), "factor r twice"),
        ((-DX,), "signs are flipped"),
        ((G / 4,), "two terms are missing"),
        ((DX + 0.02,), "Your dL/dx isn't right yet"),
        ((DX, G * XHAT), "This is g * xhat"),
        ((DX, DY), "This is dL/dbeta"),
        ((DX, DY * [0, 0, 4, 4]), "x instead of xhat"),
        ((DX, 2 * DGAMMA), "Your xhat leaves eps out"),
        ((DX, 4 * DGAMMA), "x - mean instead of xhat"),
        ((DX, -DGAMMA), "signs are flipped"),
        ((DX, DGAMMA + 0.02), "Your dL/dgamma isn't right yet"),
    ],
    exercises.check_why: [
        (("b", "a", "c"), RIGHT),
        (("(B)", " a", "C."), RIGHT),
        (("a", "a", "c"), "first: The upstream gradient can sum to anything"),
        (("c", "a", "c"), "for every eps"),
        (("b", "b", "c"), "second: Noise has nothing to do with it"),
        (("b", "c", "c"), "How many rows does one gamma affect"),
        (("b", "a", "a"), "third: The size of eps"),
        (("b", "a", "b"), "They don't cancel"),
        (("b", "a", ...), "third is still missing"),
        (("b", "d", "c"), "second should be one of a, b, c"),
    ],
    exercises.check_left_along: [
        ((lambda v, eps, m: eps * (v + eps) ** -1.5 * m,), RIGHT),
        ((lambda v, eps, m: np.float64(m * (1 - v / (v + eps)) / np.sqrt(v + eps)),), RIGHT),
        ((lambda v, eps, m: 0,), "only true for eps = 0"),
        ((lambda v, eps, m: v / (v + eps) ** 1.5 * m,), "the part that gets subtracted"),
        ((lambda v, eps, m: eps / (v + eps) * m,), "The factor r is missing"),
        ((lambda v, eps, m: m / (v + eps) ** 0.5,), "the first term only"),
        ((lambda v, eps, m: eps / (v + eps) ** 0.5 * m,), "don't divide by it"),
        ((lambda v, eps, m: -eps / (v + eps) ** 1.5 * m,), "The sign is flipped"),
        ((lambda v, eps, m: eps / (v + eps) ** 1.5 * m + 5e-9,), "The formula is wrong"),
        ((lambda v, eps, m: None,), "Did you forget `return`"),
    ],
    exercises.check_rms_norm_backward: [
        *(
            with_mistake(place, mistakes, message)
            for place, mistakes in enumerate((exercises._dx_mistakes, exercises._dweight_mistakes))
            for message in mistakes(np.eye(2), np.eye(2), np.ones(2), 1.0)
        ),
        ((by_autograd,), RIGHT),
        ((lambda dy, *_: (dy, dy, dy),), "should return the pair"),
        ((off_by(5e-9, 0.0),), "your dx isn't the right gradient"),
        ((off_by(0.0, 5e-9),), "your dweight isn't the right gradient"),
        ((layer_norm_backward,), "Your dx is LayerNorm's"),
    ],
}


@pytest.mark.parametrize(("check", "answer", "told"), [(c, *r) for c in TOLD for r in TOLD[c]])
def test_answers(check, answer: tuple[object, ...], told: str) -> None:
    verdict = check(*answer)
    assert verdict.correct == (told == RIGHT)
    assert told in verdict.message
