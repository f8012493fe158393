"""The chapter's checkers accept correct answers and recognize common mistakes."""

import numpy as np

from lnbook.chapters.practice.many_devices import exercises
from tests.helpers.verdicts import verdict_test

ROW = np.array([1.0, 3.0, 5.0, 7.0])


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


ANSWERS = {
    exercises.check_two_halves: [
        ("Correct.", ROW.mean(), ROW.var()),
        ("sum of the two means", 8, 5),
        ("same size", 3, 5),
        ("mean of the two variances", 4, 1),
        ("Divide by the number", 4, 20),
        ("unbiased", 4, ROW.var(ddof=1)),
        ("standard deviation", 4, ROW.std()),
        ("squared deviations", 4, 3),
        ("still missing", ..., 5),
    ],
    exercises.check_merge: [
        ("Correct.", lambda m, v: (m.mean(), np.mean(v + m**2) - m.mean() ** 2)),
        *exercises.MERGE_MISTAKES.items(),
        ("within the parts plus", lambda m, v: (0.0, 0.0)),
    ],
}

test_answers = verdict_test(ANSWERS)
