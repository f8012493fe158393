"""The chapter's checkers accept correct answers and recognize common mistakes."""

import numpy as np
import pytest

from lnbook.chapters.practice.cpu_kernel import exercises


def test_passes() -> None:
    assert exercises.check_passes(12, 2).correct


@pytest.mark.parametrize(
    ("formula", "kernel", "told"),
    [
        (7, 2, "five also write one"),
        (14, 2, "one number per row"),
        (5, 2, "only what is written"),
        (9, 2, "two operations read one"),
        (12, 4, "from memory only once"),
        (12, 1, "has to be written"),
        (12, 3, "trips to memory"),
        (..., 2, "still missing"),
    ],
)
def test_mistakes_with_passes(formula: object, kernel: object, told: str) -> None:
    verdict = exercises.check_passes(formula, kernel)
    assert not verdict.correct
    assert told in verdict.message


def rms(x, weight, eps, y) -> None:
    for n in range(x.shape[0]):
        y[n] = weight * x[n] / (np.dot(x[n], x[n]) / x.shape[1] + eps) ** 0.5


def test_rms_kernel() -> None:
    assert exercises.check_rms_kernel(rms).correct
    for text, mistake in exercises.RMS_MISTAKES.items():

        def wrong(x, weight, eps, y, mistake=mistake) -> None:
            y[:] = mistake(x, weight, eps)

        assert exercises.check_rms_kernel(wrong).message == text


def test_other_mistakes_with_the_kernel() -> None:
    def fills(value):
        return lambda x, weight, eps, y: y.fill(value)

    def spoils(x, weight, eps, y) -> None:
        rms(x, weight, eps, y)
        x[0, 0] = 0.0

    assert "Sum the squares" in exercises.check_rms_kernel(fills(7.0)).message
    assert "as they were" in exercises.check_rms_kernel(fills(np.nan)).message
    assert "changes x" in exercises.check_rms_kernel(spoils).message
    assert "function itself" in exercises.check_rms_kernel(3).message
    assert "ZeroDivisionError" in exercises.check_rms_kernel(lambda *_: 1 / 0).message


def test_reproducible() -> None:
    assert exercises.check_reproducible(**exercises.RIGHT).correct
    for letter, right in exercises.RIGHT.items():
        for wrong in set(exercises.CHOICES) - {right}:
            verdict = exercises.check_reproducible(**{**exercises.RIGHT, letter: wrong})
            assert verdict.message == f"{letter}: {exercises.WHY[letter]}"
    assert (
        "d is still missing"
        in exercises.check_reproducible(a="wrong", b="varies", c="same").message
    )
    assert "one of wrong" in exercises.check_reproducible(a="race").message
