"""The checkers accept correct answers and name each known mistake."""

import numpy as np
import pytest
import torch

from lnbook import reference
from lnbook.chapters.gradient.jacobian import exercises


def by_values(loss, w):
    return all(torch.allclose(loss(k * w), loss(w)) for k in (0.5, 3.0))


def by_slope(loss, w):
    w = w.requires_grad_()
    return (w * torch.autograd.grad(loss(w), w)[0]).sum().abs() < 1e-9


def by_slope_elsewhere(loss, w):
    return bool(by_slope(loss, w)) and bool(by_slope(loss, 2 * w.detach()))


RIGHT = ""
TOLD = {
    exercises.check_eigenvalues: [
        ([0.25, 0.19, 0.25, 0.0], RIGHT),
        (np.linalg.eigvalsh(reference.layer_norm_jacobian([0, 0, 4, 4], eps=12.0)), RIGHT),
        ([0, 0, 0.25, 0.25], "Along xhat, the eigenvalue is 0 only if eps is"),
        ([0.5, 0, 0.5, 0], "for eps = 0"),
        ([0, 0.75, 1, 1], "without the factor r"),
        ([0, 0.0625, 0.25, 0.25], "part that gets removed"),
        ([0.25, 0.1875, 0.25, 0.25], "One eigenvalue is 0"),
        ([0, 0.25, 0.25, 0.25], "smaller than r"),
        ([0, 0.046875, 0.0625, 0.0625], "You left out the square root"),
        ([0, 0.195, 0.25, 0.25], "Find v and r first"),
    ],
    exercises.check_removed: [
        ([-2, -1, 0, 3], RIGHT),
        ([3.5, 4.5, 5.5, 8.5], RIGHT),
        ([5, 5, 5, 5], "does remove a constant gradient"),
        ([0, 0, 0, 0], "does remove a constant gradient"),
        ([1, -1, 1, -1], "Its norm goes from 2.000 to 0.904"),
        ([-1.07, -0.53, 0, 1.6], "That's close: give exact numbers"),
        ([1, 2, 3, 6.0001], "That's close: give exact numbers"),
    ],
    exercises.check_scale_invariant: [
        (by_values, RIGHT),
        (by_slope_elsewhere, RIGHT),
        (lambda loss, w: torch.allclose(loss(2 * w), loss(w)), RIGHT),
        (by_slope, "There's no slope along W at this one point"),
        (lambda loss, w: True, "For LN(W h + b), the scale of W matters"),
        (lambda loss, w: torch.allclose(loss(-w), loss(w)), "Did you try a negative factor"),
        (lambda loss, w: None, "should return True or False, but returned None"),
        (lambda loss, w: 1 / 0, "raised ZeroDivisionError"),
    ],
    exercises.check_equilibrium: [
        (lambda lr, decay, s: (lr * s**2 / (2 * decay)) ** 0.25, RIGHT),
        (lambda lr, decay, s: (lr * s**2 / decay / (2 - lr * decay)) ** 0.25, RIGHT),
        (lambda lr, decay, s: (lr * s**2 / (2 * decay)) ** 0.5, "Take the root."),
        (lambda lr, decay, s: lr * s**2 / (2 * decay), "Take the root twice"),
        (lambda lr, decay, s: (2 * lr * decay) ** 0.5 / s, "That's the effective learning rate"),
        (lambda lr, decay, s: (lr * s**2 / decay) ** 0.25, "You dropped the factor 2"),
        (lambda lr, decay, s: (decay * s**2 / (2 * lr)) ** 0.25, "are swapped"),
        (lambda lr, decay, s: 2.0, "gives the wrong number"),
        (lambda lr, decay, s: ..., "is still missing"),
    ],
}


@pytest.mark.parametrize(("check", "answer", "told"), [(c, *r) for c in TOLD for r in TOLD[c]])
def test_answers(check, answer, told: str) -> None:
    verdict = check(answer)
    assert verdict.correct == (told == RIGHT)
    assert told in verdict.message
