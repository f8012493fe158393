"""The chapter's checkers accept correct answers and recognize common mistakes."""

import numpy as np
import pytest

from lnbook.chapters.transformer.newer import exercises


def test_a_step_along_the_sphere() -> None:
    h = np.array([1.0, 0.0]) + 0.25 * (np.array([0.0, 1.0]) - np.array([1.0, 0.0]))
    assert exercises.check_sphere_step(h / np.linalg.norm(h)).correct
    assert exercises.check_sphere_step([0.949, 0.316]).correct


@pytest.mark.parametrize(
    ("row", "told"),
    [
        ([0.75, 0.25], "back to length 1"),
        ([0.5145, 0.8575], "length 1 before the step"),
        ([0.9701, 0.2425], "subtract h first"),
        ([0.3162, 0.9487], "swapped"),
        ([0.0, 1.0], "a quarter of the way"),
        (..., "still missing"),
    ],
)
def test_mistakes_with_the_step(row: object, told: str) -> None:
    verdict = exercises.check_sphere_step(row)
    assert not verdict.correct
    assert told in verdict.message


def test_folding() -> None:
    def fold(gamma, beta, block):
        zero, one = np.array([x * gamma + beta for x in (0, 1)]) / np.sqrt(block)
        return one - zero, zero

    assert exercises.check_fold(fold).correct
    for text, mistake in exercises.FOLDS.items():
        assert exercises.check_fold(mistake).message == text
    assert "two arrays" in exercises.check_fold(lambda *given: given[0]).message
    assert "Multiply out" in exercises.check_fold(lambda *given: given[:2]).message


def test_growth() -> None:
    harmonic = sum(2 / block for block in range(1, 33))
    assert exercises.check_growth(65, 1 + harmonic).correct
    assert exercises.check_growth(pre=65, scaled=9.1).correct


@pytest.mark.parametrize(
    ("pre", "scaled", "told"),
    [
        (64, 9.1, "starts at 1"),
        (33, 9.1, "two branches"),
        (3.0**32, 9.1, "not a factor"),
        (7, 9.1, "64 branches"),
        (65, 20.98, "square root of l"),
        (65, 8.12, "starts at 1"),
        (65, 5.06, "two branches"),
        (65, 65, "add 2/l"),
        (65, ..., "still missing"),
    ],
)
def test_mistakes_with_growth(pre: object, scaled: object, told: str) -> None:
    verdict = exercises.check_growth(pre, scaled)
    assert not verdict.correct
    assert told in verdict.message
