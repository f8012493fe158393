"""The checkers: right answers pass, and each known mistake is called by its name."""

import numpy as np
import pytest
import torch

from lnbook import reference
from lnbook.chapters.gradient.jacobian import exercises
from lnbook.chapters.shared.checker import Verdict


@pytest.mark.parametrize(
    "values",
    [
        [0, 0.1875, 0.25, 0.25],
        [0.25, 0.19, 0.25, 0.0],
        np.linalg.eigvalsh(reference.layer_norm_jacobian([0, 0, 4, 4], eps=12.0)),
    ],
)
def test_eigenvalues_right(values: object) -> None:
    assert exercises.check_eigenvalues(values).correct


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (
            [0, 0.25, 0.25],
            "Your list of eigenvalues should be numbers of shape (4,), but has the shape (3,)",
        ),
        ([0, 0, 0.25, 0.25], "Along xhat the eigenvalue is 0 only if eps is"),
        ([0.5, 0, 0.5, 0], "for eps = 0"),
        ([0, 0.75, 1, 1], "without the factor r"),
        ([0, 0.0625, 0.25, 0.25], "part that is removed"),
        ([0.25, 0.1875, 0.25, 0.25], "One eigenvalue is 0"),
        ([0, 0.25, 0.25, 0.25], "smaller than r"),
        ([0, 0.046875, 0.0625, 0.0625], "You left the root out"),
        ([0, 1, 2, 3], "Find v and r first"),
    ],
)
def test_eigenvalues_wrong(values: object, expected: str) -> None:
    verdict = exercises.check_eigenvalues(values)
    assert not verdict.correct
    assert expected in verdict.message


def apply_jacobian(u: np.ndarray, x: np.ndarray, eps: float) -> np.ndarray:
    return reference.layer_norm_backward(u, x, x.shape[-1], eps=eps)[0]


def test_apply_jacobian_right() -> None:
    def by_autograd(u, x, eps):
        t = torch.tensor(x, requires_grad=True)
        y = torch.nn.functional.layer_norm(t, t.shape[-1:], eps=eps)
        return torch.autograd.grad(y, t, torch.tensor(u))[0]

    for function in (apply_jacobian, by_autograd):
        assert exercises.check_apply_jacobian(function).correct


@pytest.mark.parametrize("message", exercises._mistakes(np.eye(2), np.eye(2), 1.0))
def test_apply_jacobian_names_each_mistake(message: str) -> None:
    verdict = exercises.check_apply_jacobian(lambda *given: exercises._mistakes(*given)[message])
    assert verdict == Verdict(False, message)


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda *_: None, "returns nothing"),
        (lambda u, x, eps: apply_jacobian(u, x, eps) + 1e-6, "differ from J u"),
        (lambda u, x, eps: apply_jacobian(u, x, eps)[0], "should be numbers of shape (3, 5)"),
        (lambda u, x, eps: u - u.mean(-1), "keepdims=True"),
        (lambda u, x, eps: apply_jacobian(u, x, max(eps, 1e-3)), "differ from J u"),
    ],
)
def test_apply_jacobian_wrong(function: object, expected: str) -> None:
    verdict = exercises.check_apply_jacobian(function)  # type: ignore[arg-type]
    assert not verdict.correct
    assert expected in verdict.message


def test_apply_jacobian_notices_a_matrix() -> None:
    def with_a_matrix(u, x, eps):
        return np.stack(
            [reference.layer_norm_jacobian(row, eps=eps) @ g for row, g in zip(x, u, strict=True)]
        )

    verdict = exercises.check_apply_jacobian(with_a_matrix)
    assert not verdict.correct
    assert "it builds the matrix" in verdict.message


@pytest.mark.parametrize("g", [[1, 2, 3, 6], [-2, -1, 0, 3], [3.5, 4.5, 5.5, 8.5], [0, 2, 4, 10]])
def test_removed_right(g: object) -> None:
    assert exercises.check_removed(g).correct


@pytest.mark.parametrize(
    ("g", "expected"),
    [
        (..., "Your g is still missing"),
        ([5, 5, 5, 5], "A constant gradient is removed"),
        ([0, 0, 0, 0], "A constant gradient is removed"),
        ([1, -1, 1, -1], "Of a length of 2.000, 0.904 is left"),
        ([-1.07, -0.53, 0, 1.6], "That is close: give exact numbers"),
    ],
)
def test_removed_wrong(g: object, expected: str) -> None:
    verdict = exercises.check_removed(g)
    assert not verdict.correct
    assert expected in verdict.message
