"""The checkers accept correct answers and recognize known mistakes."""

import numpy as np
import pytest

from lnbook.chapters.formula.epsilon_and_precision import exercises
from tests.helpers.verdicts import verdict_test


def merge(n_a, mean_a, total_a, n_b, mean_b, total_b):
    mean = (n_a * mean_a + n_b * mean_b) / (n_a + n_b)
    return mean, total_a + n_a * (mean_a - mean) ** 2 + total_b + n_b * (mean_b - mean) ** 2


def merge_by_squares(n_a, mean_a, total_a, n_b, mean_b, total_b):
    mean = (n_a * mean_a + n_b * mean_b) / (n_a + n_b)
    squares = total_a + n_a * mean_a**2 + total_b + n_b * mean_b**2
    return mean, squares - (n_a + n_b) * mean**2


def test_merge_expects_the_statistics_of_the_whole_row() -> None:
    for a, b in (*exercises.PARTS, exercises.LARGE_PARTS):
        merged = exercises._right(*exercises._statistics(a), *exercises._statistics(b))
        assert merged == pytest.approx((np.mean(a + b), len(a + b) * np.var(a + b)), rel=1e-12)


def test_reach_is_where_one_pass_loses_the_variance() -> None:
    """Try float16 with an eighth of the predicted mean and with four times that mean."""
    rng = np.random.default_rng(4)
    noise = rng.normal(size=(400, 64))
    wrong = []
    for mean in (45 / 8, 4 * 45):
        x = (mean + noise).astype(np.float16).astype(np.float64)
        rounded = np.square(x).mean(-1).astype(np.float16).astype(np.float64)
        squared = np.square(x.mean(-1)).astype(np.float16).astype(np.float64)
        wrong.append(np.median(np.abs((rounded - squared) / x.var(-1) - 1)))
    assert wrong[0] < 0.1 < 0.9 < wrong[1]


ANSWERS = {
    exercises.check_merge: [
        *(
            (m, lambda *given, m=m: exercises._mistakes(*given)[m])
            for m in exercises._mistakes(3, 6.0, 26.0, 2, 2.5, 4.5)
        ),
        ("Correct.", merge),
        ("the mean should be 4.6 and", lambda *given: np.add(merge(*given), [5e-6, 0.0])),
        ("and the total 45.2, but", lambda *given: np.add(merge(*given), [0.0, 5e-6])),
        ("right on paper, but it suffers from cancellation", merge_by_squares),
    ],
    exercises.check_choose_eps: [
        ("Correct.", 2.5e-7),
        ("Correct.", np.float32(2.5e-7)),
        ("Correct.", 4e-7),
        ("Correct.", 5.076e-7),
        ("must be above 0", 0.0),
        ("must be above 0", -1e-5),
        ("stretched by up to 2041", 2.4e-7),
        ("comes out with 0.989998 instead of at least 0.99.", 5.077e-7),
        ("comes out with 0.845154 instead", 1e-5),
    ],
    exercises.check_which_eps: [
        ("Correct.", 0.00099),
        ("Correct.", (0.03 / 0.7746) ** 2 - 5e-4),
        ("That's the variance plus eps", 0.0015),
        ("what the row was divided by", 0.0387),
        ("outside the square root", 0.0163692),
        ("the unbiased variance", 0.00083333),
        ("That's the variance of the row", 0.0005),
        ("That's the variance of the output", 1 / 3),
        ("wouldn't give that output", 0.00098),
    ],
    exercises.check_reach: [
        ("Correct.", 4096, 45.25, 16),
        ("Correct.", 4096, 2**5.5, np.float64(16)),
        *(
            (f"{name}: {text}", *right[:place], wrong[place])
            for text, wrong in exercises.REACH_MISTAKES.items()
            for place, name in enumerate(("float32", "float16", "bfloat16"))
            for right in [exercises.HALF_GAPS**-0.5]
            if wrong[place] != right[place]
        ),
        ("bfloat16: not right yet", 4096, 45.25, 12),
        ("bfloat16: not right yet", 4096, 45.25, -16),
        ("The mean in float32 is still missing", ..., 45.25, 16),
    ],
}

test_answers = verdict_test(ANSWERS)
