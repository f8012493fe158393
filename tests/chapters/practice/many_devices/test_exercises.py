"""The chapter's checkers accept correct answers and recognize common mistakes."""

import numpy as np
import pytest

from lnbook.chapters.practice.many_devices import exercises

ROW = np.array([1.0, 3.0, 5.0, 7.0])


def test_two_halves() -> None:
    assert exercises.check_two_halves(ROW.mean(), ROW.var()).correct


@pytest.mark.parametrize(
    ("mean", "variance", "told"),
    [
        (8, 5, "sum of the two means"),
        (3, 5, "same size"),
        (4, 1, "mean of the two variances"),
        (4, 20, "Divide by the number"),
        (4, ROW.var(ddof=1), "unbiased"),
        (4, ROW.std(), "standard deviation"),
        (4, 3, "squared deviations"),
        (..., 5, "still missing"),
    ],
)
def test_mistakes_with_two_halves(mean: object, variance: object, told: str) -> None:
    verdict = exercises.check_two_halves(mean, variance)
    assert not verdict.correct
    assert told in verdict.message


def test_merge() -> None:
    right = exercises.check_merge(lambda m, v: (m.mean(), np.mean(v + m**2) - m.mean() ** 2))
    assert right.correct
    for text, mistake in exercises.MERGE_MISTAKES.items():
        assert exercises.check_merge(mistake).message == text
    assert "within the parts plus" in exercises.check_merge(lambda m, v: (0.0, 0.0)).message


def test_reductions() -> None:
    assert exercises.check_reductions(**exercises.RIGHT).correct
    for letter, right in exercises.RIGHT.items():
        for wrong in set(exercises.WHAT) - {right}:
            verdict = exercises.check_reductions(**{**exercises.RIGHT, letter: wrong})
            assert verdict.message == f"{letter}: {exercises.WHY[letter]}"
    assert (
        "d is still missing"
        in exercises.check_reductions(a="average", b="sum", c="nothing").message
    )
    assert "one of nothing" in exercises.check_reductions(a="all-reduce").message
