"""The checkers: right answers pass, and each known mistake is called by its name."""

import numpy as np
import pytest
import torch

from lnbook import reference
from lnbook.chapters.gradient.jacobian import exercises


def apply_jacobian(u, x, eps):
    return reference.layer_norm_backward(u, x, x.shape[-1], eps=eps)[0]


def apply_by_autograd(u, x, eps):
    t = torch.tensor(x, requires_grad=True)
    y = torch.nn.functional.layer_norm(t, t.shape[-1:], eps=eps)
    return torch.autograd.grad(y, t, torch.tensor(u))[0]


def apply_by_matrices(u, x, eps):
    pairs = zip(x, u, strict=True)
    return np.stack([reference.layer_norm_jacobian(row, eps=eps) @ g for row, g in pairs])


RIGHT = ""
TOLD = {
    exercises.check_eigenvalues: [
        ([0.25, 0.19, 0.25, 0.0], RIGHT),
        (np.linalg.eigvalsh(reference.layer_norm_jacobian([0, 0, 4, 4], eps=12.0)), RIGHT),
        ([0, 0, 0.25, 0.25], "Along xhat the eigenvalue is 0 only if eps is"),
        ([0.5, 0, 0.5, 0], "for eps = 0"),
        ([0, 0.75, 1, 1], "without the factor r"),
        ([0, 0.0625, 0.25, 0.25], "part that is removed"),
        ([0.25, 0.1875, 0.25, 0.25], "One eigenvalue is 0"),
        ([0, 0.25, 0.25, 0.25], "smaller than r"),
        ([0, 0.046875, 0.0625, 0.0625], "You left the root out"),
        ([0, 0.195, 0.25, 0.25], "Find v and r first"),
    ],
    exercises.check_apply_jacobian: [
        *(
            (lambda *given, m=m: exercises._mistakes(*given)[m], m)
            for m in exercises._mistakes(np.eye(2), np.eye(2), 1.0)
        ),
        (apply_jacobian, RIGHT),
        (apply_by_autograd, RIGHT),
        (lambda *given: apply_jacobian(*given) + 5e-9, "differ from J u"),
        (lambda u, x, eps: apply_jacobian(u, x, max(eps, 1e-3)), "differ from J u"),
        (apply_by_matrices, "it builds the matrix"),
    ],
    exercises.check_removed: [
        ([-2, -1, 0, 3], RIGHT),
        ([3.5, 4.5, 5.5, 8.5], RIGHT),
        ([5, 5, 5, 5], "A constant gradient is removed"),
        ([0, 0, 0, 0], "A constant gradient is removed"),
        ([1, -1, 1, -1], "Of a length of 2.000, 0.904 is left"),
        ([-1.07, -0.53, 0, 1.6], "That is close: give exact numbers"),
        ([1, 2, 3, 6.0001], "That is close: give exact numbers"),
    ],
}


@pytest.mark.parametrize(("check", "answer", "told"), [(c, *r) for c in TOLD for r in TOLD[c]])
def test_answers(check, answer, told: str) -> None:
    verdict = check(answer)
    assert verdict.correct == (told == RIGHT)
    assert told in verdict.message
