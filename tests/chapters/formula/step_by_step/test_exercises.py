"""The checkers accept correct answers and recognize common mistakes."""

import numpy as np
import pytest

from lnbook import reference
from lnbook.chapters.formula.step_by_step import exercises

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


RIGHT = ""
TOLD = {
    exercises.check_by_hand: [
        ((5, 6.5, NORMALIZED), RIGHT),
        ((5, 6.5, [-1.57, 0, 0.39, 1.18]), RIGHT),
        ((5, 6.5, [-1.56, 0, 0.39, 1.17]), RIGHT),
        ((20.0,), "This is the sum"),
        ((5.5,), "This is the median"),
        ((4.98,), "Your mean is off"),
        ((5, 26 / 3), "divides by H - 1"),
        ((5, np.sqrt(6.5)), "This is the standard deviation"),
        ((5, 26.0), "This is the sum of the squared deviations"),
        ((5, 31.5), "This is the mean of the squares"),
        ((5, 6.52), "Your variance is off"),
        ((5, 6.5, (ROW - 5) / 6.5), "You divided by the variance"),
        ((5, 6.5, (ROW - 5) / np.sqrt(26 / 3)), "square root of the unbiased variance"),
        ((5, 6.5, ROW / np.sqrt(6.5)), "without subtracting the mean"),
        ((5, 6.5, ROW - 5), "These are the deviations"),
        ((5, 6.5, -NORMALIZED), "Your signs are flipped"),
        ((5, 6.5, [-1.6, 0, 0.4, 1.2]), "Give two decimals"),
        ((5, 6.5, NORMALIZED + 0.02), "Your normalized values are off"),
    ],
    exercises.check_undo: [
        *(
            ((lambda *given, m=m: exercises._undo_mistakes(*given)[m],), m)
            for m in exercises._undo_mistakes(*np.ones((5, 1, 1)), 1.0)
        ),
        ((undo,), RIGHT),
        ((lambda *given: undo(*given).tolist(),), RIGHT),
        ((lambda y, *given: undo(y.astype(np.float32), *given),), "Compute in float64"),
        ((lambda *given: undo(*given) + 2e-5,), "doesn't return x"),
        ((lambda *given: undo(*given)[0],), "What you return should be"),
        ((lambda *given: None,), "Did you forget `return`?"),
    ],
    exercises.check_scaled_eps: [
        ((1e-9,), RIGHT),
        ((1e-5 / 100**2,), RIGHT),
        (("1e-9",), RIGHT),
        *(((wrong,), told) for told, wrong in exercises.SCALED_EPS_MISTAKES.items()),
        ((3e-9,), "make their denominators equal"),
        ((), "still missing"),
    ],
    exercises.check_slip: [
        (("c", 2.49, 0.91, 1), RIGHT),
        (("(C)", 2.4944, 0.9053, 1.0), RIGHT),
        *(((letter,), told) for letter, told in exercises.SLIP_LINES.items()),
        (("...",), "line is still missing"),
        ((3,), "line should be one of"),
        *((("c", wrong), told) for told, wrong in exercises.SIGMA_MISTAKES.items()),
        (("c", 2.55), "your sigma is off"),
        *((("c", 2.49, wrong), told) for told, wrong in exercises.MEAN_SQUARE_MISTAKES.items()),
        (("c", 2.49, 0.8), "Your mean square is off"),
        (("c", 2.49, 0.91, 0), "isn't 0"),
        (("c", 2.49, 0.91, 0.91), "What's its mean square?"),
    ],
}


@pytest.mark.parametrize(("check", "answer", "told"), [(c, *r) for c in TOLD for r in TOLD[c]])
def test_answers(check, answer: tuple[object, ...], told: str) -> None:
    verdict = check(*answer)
    assert verdict.correct == (told == RIGHT)
    assert told in verdict.message
