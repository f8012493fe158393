"""The checkers on epsilon and precision: right answers pass, known mistakes are named."""

import numpy as np
import pytest
import torch

from lnbook.chapters.formula.epsilon_and_precision import exercises
from lnbook.chapters.shared.checker import Verdict


def textbook(n_a, mean_a, total_a, n_b, mean_b, total_b):
    delta, n = mean_b - mean_a, n_a + n_b
    return mean_a + delta * n_b / n, total_a + total_b + delta**2 * n_a * n_b / n


def moves_both(n_a, mean_a, total_a, n_b, mean_b, total_b):
    mean = (n_a * mean_a + n_b * mean_b) / (n_a + n_b)
    total_a = total_a + n_a * (mean_a - mean) ** 2
    total_b = total_b + n_b * (mean_b - mean) ** 2
    return [mean, total_a + total_b]


def as_tensor(*statistics):
    return torch.tensor(textbook(*statistics), dtype=torch.float64)


@pytest.mark.parametrize("merge", [textbook, moves_both, as_tensor])
def test_merge_right(merge) -> None:
    assert exercises.check_merge(merge).correct


def test_merge_agrees_with_the_whole_row() -> None:
    rng = np.random.default_rng(3)
    for split in (1, 4, 9):
        row = rng.normal(5.0, 2.0, 10)
        parts = [(len(p), p.mean(), ((p - p.mean()) ** 2).sum()) for p in np.split(row, [split])]
        merged = exercises._right(*parts[0], *parts[1])
        assert merged == pytest.approx((row.mean(), 10 * row.var()), rel=1e-12)


@pytest.mark.parametrize("message", exercises._mistakes(3, 6.0, 26.0, 2, 2.5, 4.5))
def test_merge_names_each_mistake(message: str) -> None:
    verdict = exercises.check_merge(lambda *given: exercises._mistakes(*given)[message])
    assert verdict == Verdict(False, message)


def by_squares(n_a, mean_a, total_a, n_b, mean_b, total_b):
    mean = (n_a * mean_a + n_b * mean_b) / (n_a + n_b)
    squares = total_a + n_a * mean_a**2 + total_b + n_b * mean_b**2
    return mean, squares - (n_a + n_b) * mean**2


@pytest.mark.parametrize(
    ("merge", "expected"),
    [
        (lambda *_: None, "returns nothing. Did you forget `return`?"),
        (lambda *_: (1.0, 2.0, 3.0), "has the shape (3,)"),
        (lambda *_: 1 / 0, "raised ZeroDivisionError"),
        (lambda *s: (textbook(*s)[0] + 1.0, textbook(*s)[1]), "the mean should be 4.6"),
        (by_squares, "right on paper, but cancels"),
    ],
)
def test_merge_wrong(merge, expected: str) -> None:
    verdict = exercises.check_merge(merge)
    assert not verdict.correct
    assert expected in verdict.message


@pytest.mark.parametrize("eps", [1e-6, 1e-5, 5e-5, torch.tensor(1e-5), np.float32(2e-6)])
def test_choose_eps_right(eps: object) -> None:
    assert exercises.check_choose_eps(eps).correct


@pytest.mark.parametrize(
    ("eps", "expected"),
    [
        (..., "Your eps is still missing"),
        (0.0, "must be above 0"),
        (-1e-5, "must be above 0"),
        (1e-7, "stretched by up to 3162"),
        (5.2e-5, "comes out with 0.990 instead"),
    ],
)
def test_choose_eps_wrong(eps: object, expected: str) -> None:
    verdict = exercises.check_choose_eps(eps)
    assert not verdict.correct
    assert expected in verdict.message


@pytest.mark.parametrize("eps", [1e-3, 0.00099, 0.000995, (0.03 / 0.7746) ** 2 - 5e-4])
def test_which_eps_right(eps: float) -> None:
    assert exercises.check_which_eps(eps).correct


@pytest.mark.parametrize(
    ("eps", "expected"),
    [
        (..., "Your eps is still missing"),
        (0.0015, "This is the variance plus eps"),
        (0.0387298, "what the row was divided by"),
        (0.0387, "what the row was divided by"),
        (0.0163692, "outside the root"),
        (0.00083333, "the unbiased variance"),
        (0.0005, "This is the variance of the row"),
        (1 / 3, "This is the variance of the output"),
        (1e-5, "would not give that output"),
    ],
)
def test_which_eps_wrong(eps: object, expected: str) -> None:
    verdict = exercises.check_which_eps(eps)
    assert not verdict.correct
    assert expected in verdict.message
