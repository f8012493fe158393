"""The chapter's checkers accept correct answers and recognize common mistakes."""

import numpy as np

from lnbook.chapters.transformer.newer import exercises
from tests.helpers.verdicts import verdict_test


def test_a_step_along_the_sphere() -> None:
    h = np.array([1.0, 0.0]) + 0.25 * (np.array([0.0, 1.0]) - np.array([1.0, 0.0]))
    assert exercises.check_sphere_step(h / np.linalg.norm(h)).correct
    assert exercises.check_sphere_step([0.949, 0.316]).correct


def fold(gamma, beta, block):
    zero, one = np.array([x * gamma + beta for x in (0, 1)]) / np.sqrt(block)
    return one - zero, zero


def test_growth() -> None:
    harmonic = sum(2 / block for block in range(1, 33))
    assert exercises.check_growth(65, 1 + harmonic).correct
    assert exercises.check_growth(pre=65, scaled=9.1).correct


ANSWERS = {
    exercises.check_sphere_step: [
        ("back to length 1", [0.75, 0.25]),
        ("length 1 before the step", [0.5145, 0.8575]),
        ("subtract h first", [0.9701, 0.2425]),
        ("swapped", [0.3162, 0.9487]),
        ("a quarter of the way", [0.0, 1.0]),
        ("still missing", ...),
    ],
    exercises.check_fold: [
        ("Correct.", fold),
        *exercises.FOLDS.items(),
        ("two arrays", lambda *given: given[0]),
        ("Multiply out", lambda *given: given[:2]),
    ],
    exercises.check_growth: [
        ("starts at 1", 64, 9.1),
        ("two branches", 33, 9.1),
        ("not a factor", 3.0**32, 9.1),
        ("64 branches", 7, 9.1),
        ("square root of l", 65, 20.98),
        ("starts at 1", 65, 8.12),
        ("two branches", 65, 5.06),
        ("add 2/l", 65, 65),
        ("still missing", 65, ...),
    ],
}

test_answers = verdict_test(ANSWERS)
