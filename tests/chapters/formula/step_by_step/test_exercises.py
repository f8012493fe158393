"""The checkers: right answers pass, and each known mistake is called by its name."""

import numpy as np
import pytest
import torch

from lnbook.chapters.formula.step_by_step import exercises
from lnbook.chapters.shared.checker import Verdict

ROW = np.array([1.0, 5.0, 6.0, 8.0])
NORMALIZED = (ROW - 5.0) / np.sqrt(6.5 + 1e-5)


def test_by_hand_right() -> None:
    assert exercises.check_by_hand(5, 6.5, NORMALIZED).correct
    assert exercises.check_by_hand(5.0, 6.5, [-1.57, 0, 0.39, 1.18]).correct, "two decimals"
    assert exercises.check_by_hand(5.0, 6.5, [-1.56, 0, 0.39, 1.17]).correct, "cut off"
    assert exercises.check_by_hand(torch.tensor(5.0), 6.5, torch.tensor(NORMALIZED)).correct


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ((), "Your mean is still missing"),
        ((..., ..., ...), "Your mean is still missing"),
        ((20.0,), "This is the sum"),
        ((5.5,), "This is the median"),
        ((4.9,), "Your mean is off"),
        (("five",), "should be one number, but is"),
        (([5.0, 5.0],), "should be one number, but has the shape (2,)"),
        ((np.nan,), "holds NaN or infinity"),
        ((5,), "Your variance is still missing"),
        ((5, 26 / 3), "divides by H - 1"),
        ((5, np.sqrt(6.5)), "This is the standard deviation"),
        ((5, 26.0), "This is the sum of the squared deviations"),
        ((5, 31.5), "This is the mean of the squares"),
        ((5, 6.0), "Your variance is off"),
        ((5, 6.5), "Your row of normalized values is still missing"),
        ((5, 6.5, (ROW - 5) / 6.5), "You divided by the variance"),
        ((5, 6.5, (ROW - 5) / np.sqrt(26 / 3)), "root of the unbiased variance"),
        ((5, 6.5, ROW / np.sqrt(6.5)), "without subtracting the mean"),
        ((5, 6.5, ROW - 5), "These are the deviations"),
        ((5, 6.5, NORMALIZED[:3]), "should be numbers of shape (4,), but has the shape (3,)"),
        ((5, 6.5, -NORMALIZED), "Your signs are the wrong way around"),
        ((5, 6.5, [-1.6, 0, 0.4, 1.2]), "Give two decimals"),
        ((5, 6.5, [-1.57, ..., 0.39, 1.18]), "still has a '...' in it"),
        ((5, 6.5, 1.0), "should be numbers of shape (4,), but is one number"),
        ((5, 6.5, NORMALIZED + 0.02), "Your normalized values are off"),
    ],
)
def test_by_hand_wrong(answer: tuple[object, ...], expected: str) -> None:
    verdict = exercises.check_by_hand(*answer)
    assert not verdict.correct
    assert expected in verdict.message


def right(x: np.ndarray, eps: float) -> np.ndarray:
    return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + eps)


def test_normalize_rows_right() -> None:
    assert exercises.check_normalize_rows(right).correct
    assert exercises.check_normalize_rows(lambda x, eps: torch.tensor(right(x, eps))).correct
    assert exercises.check_normalize_rows(lambda x, eps: right(x, eps).tolist()).correct


@pytest.mark.parametrize("message", exercises._mistakes(np.eye(2), 1.0))
def test_normalize_rows_names_each_mistake(message: str) -> None:
    verdict = exercises.check_normalize_rows(lambda x, eps: exercises._mistakes(x, eps)[message])
    assert verdict == Verdict(False, message)


def changes_its_input(x: np.ndarray, eps: float) -> np.ndarray:
    answer = right(x, eps)
    x -= 1.0
    return answer


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda _x, _eps: None, "returns nothing. Did you forget `return`?"),
        (lambda x, _eps: x.mean(-1), "should be numbers of shape (3, 5), but has the shape (3,)"),
        (lambda x, _eps: x - x.mean(-1), "Did you keep the axis with keepdims=True?"),
        (lambda _x, _eps: 1 / 0, "raised ZeroDivisionError: division by zero (x had the shape"),
        (lambda x, eps: right(x.astype(np.float32), eps), "compute in float64"),
        (lambda x, eps: right(x, eps) + 1e-4, "differ from the reference"),
        (lambda x, eps: right(x, max(eps, 1e-3)), "differ from the reference"),
        (lambda x, eps: np.where(x == 3.0, 1.0, right(x, eps)), "constant row should become"),
        (changes_its_input, "changes its input"),
    ],
)
def test_normalize_rows_wrong(function: object, expected: str) -> None:
    verdict = exercises.check_normalize_rows(function)  # type: ignore[arg-type]
    assert not verdict.correct
    assert expected in verdict.message


@pytest.mark.parametrize("weight", [3.0, 3.004, [3.0, 3.0, 3.0], np.full(3, -3.0)])
def test_target_right(weight: object) -> None:
    verdict = exercises.check_target(weight, 10.0)
    assert verdict.correct
    assert ("upside down" in verdict.message) == (np.min(weight) < 0)


@pytest.mark.parametrize(
    ("weight", "bias", "expected"),
    [
        (..., ..., "Your gamma is still missing"),
        (3.0, None, "Your beta is still missing"),
        (1.0, 10.0, "standard deviation 1.000; asked for: 10 and 3."),
        (3.0, 3.0, "mean 3.000"),
        (9.0, 10.0, "That gamma is the variance"),
        (10.0, 3.0, "You swapped the two"),
        (3.006, 10.0, "standard deviation 3.006"),
        ([3.0, 3.0], 10.0, "should be numbers of shape (3,), but has the shape (2,)"),
    ],
)
def test_target_wrong(weight: object, bias: object, expected: str) -> None:
    verdict = exercises.check_target(weight, bias)
    assert not verdict.correct
    assert expected in verdict.message
