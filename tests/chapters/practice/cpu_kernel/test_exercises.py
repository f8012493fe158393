"""The chapter's checkers accept correct answers and recognize common mistakes."""

import numpy as np

from lnbook.chapters.practice.cpu_kernel import exercises
from tests.helpers.verdicts import verdict_test


def rms(x, weight, eps, y) -> None:
    for n in range(x.shape[0]):
        y[n] = weight * x[n] / (np.dot(x[n], x[n]) / x.shape[1] + eps) ** 0.5


def in_32_bits(x, weight, eps, y) -> None:
    for n in range(x.shape[0]):
        square = np.float32(0)
        for i in range(x.shape[1]):
            square += np.float32(x[n, i] * x[n, i])
        r = np.float32(1) / np.sqrt(square / np.float32(x.shape[1]) + np.float32(eps))
        y[n] = x[n] * r * weight


def spoiling(x, weight, eps, y) -> None:
    rms(x, weight, eps, y)
    x[0, 0] = 0.0


def storing(function):
    def kernel(x, weight, eps, y) -> None:
        y[:] = function(x, weight, eps)

    return kernel


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


ANSWERS = {
    exercises.check_passes: [
        ("Correct.", 12, 2),
        ("five also write one", 7, 2),
        ("one number per row", 14, 2),
        ("only what is written", 5, 2),
        ("two operations read one", 9, 2),
        ("from memory only once", 12, 4),
        ("has to be written", 12, 1),
        ("trips to memory", 12, 3),
        ("still missing", ..., 2),
    ],
    exercises.check_rms_kernel: [
        ("Correct.", rms),
        ("Correct.", in_32_bits),
        *((text, storing(mistake)) for text, mistake in exercises.RMS_MISTAKES.items()),
        ("Sum the squares", storing(lambda *_: 7.0)),
        ("as they were", storing(lambda *_: np.nan)),
        ("changes x", spoiling),
        ("function itself", 3),
        ("ZeroDivisionError", lambda *_: 1 / 0),
    ],
}

test_answers = verdict_test(ANSWERS)
