"""The checkers: right answers pass, and each known mistake is called by its name."""

import numpy as np
import pytest

from lnbook.chapters.formula.step_by_step import exercises

ROW = np.array([1.0, 5.0, 6.0, 8.0])
NORMALIZED = (ROW - 5.0) / np.sqrt(6.5 + 1e-5)


def normalize(x: np.ndarray, eps: float) -> np.ndarray:
    return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + eps)


def test_a_negative_gamma_is_right_and_turns_the_pattern() -> None:
    for weight in (3.0, [3.0, 3.0, 3.0], np.full(3, -3.0)):
        verdict = exercises.check_target(weight, 10.0)
        assert verdict.correct
        assert ("upside down" in verdict.message) == (np.min(weight) < 0)


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
        ((5, 6.5, (ROW - 5) / np.sqrt(26 / 3)), "root of the unbiased variance"),
        ((5, 6.5, ROW / np.sqrt(6.5)), "without subtracting the mean"),
        ((5, 6.5, ROW - 5), "These are the deviations"),
        ((5, 6.5, -NORMALIZED), "Your signs are the wrong way around"),
        ((5, 6.5, [-1.6, 0, 0.4, 1.2]), "Give two decimals"),
        ((5, 6.5, NORMALIZED + 0.02), "Your normalized values are off"),
    ],
    exercises.check_normalize_rows: [
        *(
            ((lambda *given, m=m: exercises._mistakes(*given)[m],), m)
            for m in exercises._mistakes(np.eye(2), 1.0)
        ),
        ((normalize,), RIGHT),
        ((lambda x, eps: normalize(x.astype(np.float32), eps),), "compute in float64"),
        ((lambda x, eps: normalize(x, eps) + 2e-5,), "differ from the reference"),
        ((lambda x, eps: normalize(x, max(eps, 1e-3)),), "differ from the reference"),
        ((lambda x, eps: normalize(x, eps) + (x == 3.0),), "constant row should become"),
    ],
    exercises.check_target: [
        ((3.004, 10.0), RIGHT),
        ((1.0, 10.0), "standard deviation 1.000; asked for: 10 and 3."),
        ((3.0, 3.0), "mean 3.000"),
        ((9.0, 10.0), "That gamma is the variance"),
        ((10.0, 3.0), "You swapped the two"),
        ((3.006, 10.0), "standard deviation 3.006"),
    ],
}


@pytest.mark.parametrize(("check", "answer", "told"), [(c, *r) for c in TOLD for r in TOLD[c]])
def test_answers(check, answer: tuple[object, ...], told: str) -> None:
    verdict = check(*answer)
    assert verdict.correct == (told == RIGHT)
    assert told in verdict.message
