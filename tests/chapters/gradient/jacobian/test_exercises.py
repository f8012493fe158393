"""The checkers accept correct answers and name each known mistake."""

import numpy as np
import torch

from lnbook import reference
from lnbook.chapters.gradient.jacobian import exercises
from tests.helpers.verdicts import verdict_test


def by_values(loss, w):
    return all(torch.allclose(loss(k * w), loss(w)) for k in (0.5, 3.0))


def by_slope(loss, w):
    w = w.requires_grad_()
    return (w * torch.autograd.grad(loss(w), w)[0]).sum().abs() < 1e-9


def by_slope_elsewhere(loss, w):
    return bool(by_slope(loss, w)) and bool(by_slope(loss, 2 * w.detach()))


ANSWERS = {
    exercises.check_eigenvalues: [
        ("Correct.", [0.0, 0.19, 0.25, 0.25]),
        ("List them from the smallest to the largest", [0.25, 0.25, 0.19, 0.0]),
        ("Correct.", np.linalg.eigvalsh(reference.layer_norm_jacobian([0, 0, 4, 4], eps=12.0))),
        ("Along xhat, the eigenvalue is 0 only if eps is", [0, 0, 0.25, 0.25]),
        ("for eps = 0", [0, 0, 0.5, 0.5]),
        ("without the factor r", [0, 0.75, 1, 1]),
        ("part that gets removed", [0, 0.0625, 0.25, 0.25]),
        ("One eigenvalue is 0", [0.1875, 0.25, 0.25, 0.25]),
        ("smaller than r", [0, 0.25, 0.25, 0.25]),
        ("You left out the square root", [0, 0.046875, 0.0625, 0.0625]),
        ("Find v and r first", [0, 0.195, 0.25, 0.25]),
    ],
    exercises.check_removed: [
        ("Correct.", [-2, -1, 0, 3]),
        ("Correct.", [3.5, 4.5, 5.5, 8.5]),
        ("does remove a constant gradient", [5, 5, 5, 5]),
        ("does remove a constant gradient", [0, 0, 0, 0]),
        ("Its norm goes from 2.000 to 0.904", [1, -1, 1, -1]),
        ("That's close: give exact numbers", [-1.07, -0.53, 0, 1.6]),
        ("That's close: give exact numbers", [1, 2, 3, 6.0001]),
        ("from 2000001.000 to 0.515. Which two", [1e6, 1e6 + 1, 1e6 + 1, 1e6]),
        ("from 200.502 to 0.440. Which two", [100, 101, 100, 100]),
    ],
    exercises.check_scale_invariant: [
        ("Correct.", by_values),
        ("Correct.", by_slope_elsewhere),
        ("Correct.", lambda loss, w: torch.allclose(loss(2 * w), loss(w))),
        ("There's no slope along W at this one point", by_slope),
        ("For LN(W h + b), the scale of W matters", lambda loss, w: True),
        ("Did you try a negative factor", lambda loss, w: torch.allclose(loss(-w), loss(w))),
        ("should return True or False, but returned None", lambda loss, w: None),
        ("raised ZeroDivisionError", lambda loss, w: 1 / 0),
    ],
    exercises.check_equilibrium: [
        ("Correct.", lambda lr, decay, s: (lr * s**2 / (2 * decay)) ** 0.25),
        ("Correct.", lambda lr, decay, s: (lr * s**2 / decay / (2 - lr * decay)) ** 0.25),
        ("Take the root.", lambda lr, decay, s: (lr * s**2 / (2 * decay)) ** 0.5),
        ("Take the root twice", lambda lr, decay, s: lr * s**2 / (2 * decay)),
        ("That's the effective learning rate", lambda lr, decay, s: (2 * lr * decay) ** 0.5 / s),
        ("You dropped the factor 2", lambda lr, decay, s: (lr * s**2 / decay) ** 0.25),
        ("are swapped", lambda lr, decay, s: (decay * s**2 / (2 * lr)) ** 0.25),
        ("gives the wrong number", lambda lr, decay, s: 2.0),
        ("is still missing", lambda lr, decay, s: ...),
    ],
}

test_answers = verdict_test(ANSWERS)
