"""The checkers accept correct answers and recognize common mistakes."""

import numpy as np

from lnbook import reference
from lnbook.chapters.formula.step_by_step import exercises
from tests.helpers.verdicts import verdict_test

ROW = np.array([1.0, 5.0, 6.0, 8.0])
NORMALIZED = (ROW - 5.0) / np.sqrt(6.5 + 1e-5)


def undo(y, mean, variance, gamma, beta, eps):  # type: ignore[no-untyped-def]
    return (y - beta) / gamma * np.sqrt(variance + eps) + mean


def test_the_epsilon_of_a_scaled_row_is_that_of_the_derivation() -> None:
    row = np.array([1.0, 2.0, 3.0, 4.0])
    expected = reference.layer_norm(100 * row + 7, 4, eps=1e-5)
    for eps, equal in ((1e-9, True), (1e-5, False), (0.0, False)):
        found = reference.layer_norm(row, 4, eps=eps)
        assert np.allclose(found, expected, rtol=0.0, atol=1e-12) == equal


ANSWERS = {
    exercises.check_by_hand: [
        ("Correct.", 5, 6.5, NORMALIZED),
        ("Correct.", 5, 6.5, [-1.57, 0, 0.39, 1.18]),
        ("Correct.", 5, 6.5, [-1.56, 0, 0.39, 1.17]),
        ("This is the sum", 20.0),
        ("This is the median", 5.5),
        ("Your mean is off", 4.98),
        ("divides by H - 1", 5, 26 / 3),
        ("This is the standard deviation", 5, np.sqrt(6.5)),
        ("This is the sum of the squared deviations", 5, 26.0),
        ("This is the mean of the squares", 5, 31.5),
        ("Your variance is off", 5, 6.52),
        ("You divided by the variance", 5, 6.5, (ROW - 5) / 6.5),
        ("square root of the unbiased variance", 5, 6.5, (ROW - 5) / np.sqrt(26 / 3)),
        ("without subtracting the mean", 5, 6.5, ROW / np.sqrt(6.5)),
        ("These are the deviations", 5, 6.5, ROW - 5),
        ("Your signs are flipped", 5, 6.5, -NORMALIZED),
        ("Give two decimals", 5, 6.5, [-1.6, 0, 0.4, 1.2]),
        ("Your normalized values are off", 5, 6.5, NORMALIZED + 0.02),
    ],
    exercises.check_undo: [
        *(
            (m, lambda *given, m=m: exercises._undo_mistakes(*given)[m])
            for m in exercises._undo_mistakes(*np.ones((5, 1, 1)), 1.0)
        ),
        ("Correct.", undo),
        ("Correct.", lambda *given: undo(*given).tolist()),
        ("Compute in float64", lambda y, *given: undo(y.astype(np.float32), *given)),
        ("doesn't return x", lambda *given: undo(*given) + 2e-5),
        ("What you return should be", lambda *given: undo(*given)[0]),
        ("Did you forget `return`?", lambda *given: None),
    ],
    exercises.check_scaled_eps: [
        ("Correct.", 1e-9),
        ("Correct.", 1e-5 / 100**2),
        ("Correct.", "1e-9"),
        *exercises.SCALED_EPS_MISTAKES.items(),
        ("make their denominators equal", 3e-9),
        ("still missing",),
    ],
    exercises.check_slip: [
        ("Correct.", "c", 2.49, 0.91, 1),
        ("Correct.", "(C)", 2.4944, 0.9053, 1.0),
        *((told, letter) for letter, told in exercises.SLIP_LINES.items()),
        ("line is still missing", "..."),
        ("line should be one of", 3),
        *((told, "c", wrong) for told, wrong in exercises.SIGMA_MISTAKES.items()),
        ("your sigma is off", "c", 2.55),
        *((told, "c", 2.49, wrong) for told, wrong in exercises.MEAN_SQUARE_MISTAKES.items()),
        ("Your mean square is off", "c", 2.49, 0.8),
        ("isn't 0", "c", 2.49, 0.91, 0),
        ("What's its mean square?", "c", 2.49, 0.91, 0.91),
    ],
}

test_answers = verdict_test(ANSWERS)
