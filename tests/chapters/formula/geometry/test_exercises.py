"""The checkers on geometry: right answers pass, known mistakes are named."""

import numpy as np
import pytest
import torch

from lnbook import reference
from lnbook.chapters.formula.geometry import exercises

ROW = np.array([4.0, 2.0, 8.0])
CENTERED = ROW - ROW.mean()
XHAT = CENTERED / ROW.std()


def centered(weight, bias):
    return weight - weight.mean(axis=0), bias - bias.mean()


def projected(weight, bias):
    project = torch.eye(len(bias), dtype=torch.float64) - 1 / len(bias)
    return [project @ torch.tensor(weight), project @ torch.tensor(bias)]


def test_what_is_right_turns_layer_norm_into_rms_norm() -> None:
    rng = np.random.default_rng(5)
    weight, bias, x = rng.normal(size=(6, 4)), rng.normal(size=6), rng.normal(size=(9, 4))
    new_weight, new_bias = centered(weight, bias)
    a = x @ new_weight.T + new_bias
    rms = a / np.sqrt((a**2).mean(axis=-1, keepdims=True) + 1e-5)
    np.testing.assert_allclose(rms, reference.layer_norm(x @ weight.T + bias, 6), atol=1e-12)


RIGHT = ""
TOLD = {
    exercises.check_same_output: [
        (10 + 2 * XHAT, RIGHT),
        ([9.46, 7.86, 12.67], RIGHT),
        ([5.0, 5.0, 5.0], "This row is constant"),
        (10 + 2 * CENTERED, "Divide them by their own deviation first"),
        (2 * XHAT, "the mean is not: add 10"),
        (10 + XHAT, "multiply by 2 before you add 10"),
        (10 * XHAT + 2, "You swapped the two"),
        (10 + 4 * XHAT, "That scale is the variance"),
        (10 - 2 * XHAT, "upside down"),
        (10 + CENTERED, "with its old deviation"),
        (ROW, "Your row has mean 4.67, standard deviation 2.49"),
        (10 + 2 * XHAT + [0, 0, 0.02], "asked for: 10, 2 and [-0.27 -1.07  1.34]"),
    ],
    exercises.check_stands_out: [
        ([7.0, -2, -2, -2, -2], RIGHT),
        (1e6 * np.eye(5)[0], RIGHT),
        (np.ones(5), "This row is constant"),
        ([-1, 0, 0, 0, 0], "as far down as possible"),
        ([0, 1, 0, 0, 0], "is -0.500. Make the first feature the largest one."),
        ([5, 4, 3, 2, 1], "is 1.414. A larger one is possible."),
        ([20, 1, 0, 0, 0], "is 1.998. A larger one is possible."),
        ([0.01, 0, 0, 0, 0], "small next to the root of eps"),
    ],
    exercises.check_center_weights: [
        *(
            (lambda *given, m=m: exercises._mistakes(*given)[m], m)
            for m in exercises._mistakes(np.eye(2), np.arange(2.0))
        ),
        (centered, RIGHT),
        (projected, RIGHT),
        (lambda w, _b: w, "should return two things"),
        (lambda _w, b: (b, b, b), "should return two things"),
        (lambda w, b: (centered(w, b)[0] + 5e-6, b - b.mean()), "RMSNorm and LayerNorm differ"),
        (lambda w, b: (centered(w, b)[0], b - b.mean() + 5e-6), "RMSNorm and LayerNorm differ"),
    ],
}


@pytest.mark.parametrize(("check", "answer", "told"), [(c, *r) for c in TOLD for r in TOLD[c]])
def test_answers(check, answer, told: str) -> None:
    verdict = check(answer)
    assert verdict.correct == (told == RIGHT)
    assert told in verdict.message
