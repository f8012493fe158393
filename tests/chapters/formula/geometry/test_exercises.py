"""The checkers accept correct answers and recognize known mistakes."""

import numpy as np
import pytest
import torch

from lnbook import reference
from lnbook.chapters.formula.geometry import exercises
from tests.helpers.verdicts import verdict_test

ROW = np.array([4.0, 2.0, 8.0])
CENTERED = ROW - ROW.mean()
XHAT = CENTERED / ROW.std()


def centered(weight, bias):
    return weight - weight.mean(axis=0), bias - bias.mean()


def projected(weight, bias):
    project = torch.eye(len(bias), dtype=torch.float64) - 1 / len(bias)
    return [project @ torch.tensor(weight), project @ torch.tensor(bias)]


@pytest.mark.parametrize(("h", "k"), exercises.SIZES)
def test_no_group_sticks_out_further_than_the_bound(h: int, k: int) -> None:
    group = np.zeros(h)
    group[:k] = 1.0
    bound = np.sqrt((h - k) / k)
    assert reference.layer_norm(group, h, eps=0.0)[0] == pytest.approx(bound)
    rng = np.random.default_rng(3)
    rows = rng.normal(size=(200, h))
    rows[:, :k] = rng.normal(0.0, 5.0, size=(200, 1))
    assert np.all(reference.layer_norm(rows, h, eps=0.0)[:, 0] <= bound + 1e-12)


def test_what_is_right_turns_layer_norm_into_rms_norm() -> None:
    rng = np.random.default_rng(5)
    weight, bias, x = rng.normal(size=(6, 4)), rng.normal(size=6), rng.normal(size=(9, 4))
    new_weight, new_bias = centered(weight, bias)
    a = x @ new_weight.T + new_bias
    rms = a / np.sqrt((a**2).mean(axis=-1, keepdims=True) + 1e-5)
    np.testing.assert_allclose(rms, reference.layer_norm(x @ weight.T + bias, 6), atol=1e-12)


ANSWERS = {
    exercises.check_same_output: [
        ("Correct.", 10 + 2 * XHAT),
        ("Correct.", [9.46, 7.86, 12.67]),
        ("This row is constant", [5.0, 5.0, 5.0]),
        ("Divide them by their standard deviation first", 10 + 2 * CENTERED),
        ("the mean isn't: add 10", 2 * XHAT),
        ("multiply by 2 before you add 10", 10 + XHAT),
        ("You swapped the two", 10 * XHAT + 2),
        ("You multiplied by the variance instead", 10 + 4 * XHAT),
        ("upside down", 10 - 2 * XHAT),
        ("with its old standard deviation", 10 + CENTERED),
        ("Your row has mean 4.67, standard deviation 2.49", ROW),
        ("should be 10, 2 and [-0.27 -1.07  1.34]", 10 + 2 * XHAT + [0, 0, 0.02]),
    ],
    exercises.check_group: [
        ("Correct.", lambda h, k: np.sqrt(h / k - 1)),
        ("Correct.", lambda h, k: torch.tensor((h - k) / k).sqrt()),
        *exercises.GROUP_MISTAKES.items(),
        ("For H = 5 and k = 1 you get 1.000, but the largest", lambda h, k: 1.0),
        ("returns nothing", lambda h, k: None),
        ("takes 1 positional argument", lambda h: h),
    ],
    exercises.check_center_weights: [
        *(
            (m, lambda *given, m=m: exercises._mistakes(*given)[m])
            for m in exercises._mistakes(np.eye(2), np.arange(2.0))
        ),
        ("Correct.", centered),
        ("Correct.", projected),
        ("should return two things", lambda w, _b: w),
        ("should return two things", lambda _w, b: (b, b, b)),
        ("RMSNorm and LayerNorm differ", lambda w, b: (centered(w, b)[0] + 5e-6, b - b.mean())),
        ("RMSNorm and LayerNorm differ", lambda w, b: (centered(w, b)[0], b - b.mean() + 5e-6)),
    ],
}

test_answers = verdict_test(ANSWERS)
