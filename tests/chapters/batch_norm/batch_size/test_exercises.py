"""The checkers accept correct answers and name each known mistake."""

import numpy as np
import pytest
import torch

from lnbook.chapters.batch_norm.batch_size import exercises
from tests.helpers.verdicts import verdict_test

FAR, NEAR = [-1.0, 1.0], [-0.3015, 0.3015]
NORM = torch.nn.BatchNorm1d(1, affine=False, dtype=torch.float64)
BY_TORCH = [NORM(torch.tensor([[3.0], [b]]).double()).ravel() for b in (7.0, 3.002)]


def test_slope_agrees_with_autograd() -> None:
    for half, eps in exercises.SLOPE_CASES:
        d = torch.tensor(half, dtype=torch.float64, requires_grad=True)
        (d / torch.sqrt(d**2 + eps)).backward()
        assert d.grad is not None
        assert d.grad.item() == pytest.approx(exercises._slope(half, eps))


def slope_by_autograd(half, eps):
    d = torch.tensor(half, requires_grad=True)  # in float32
    (d / torch.sqrt(d**2 + eps)).backward()
    return d.grad


def best(validation, test):
    return test[validation.mean(1).argmax()]


ANSWERS = {
    exercises.check_pair: [
        ("Correct.", FAR, NEAR),
        ("Correct.", FAR, [-0.3, 0.3]),
        ("Correct.", *BY_TORCH),
        ("first pair has its signs reversed", [1, -1]),
        ("first pair divides by n - 1", [-(0.5**0.5), 0.5**0.5]),
        ("first pair is centered, but not yet divided", [-2, 2]),
        ("first pair is divided by the variance", [-0.5, 0.5]),
        ("first pair is off", [-1.02, 1.02]),
        ("In the second pair, eps matters", FAR, [-1, 1]),
        ("second pair has its signs reversed", FAR, [0.3015, -0.3015]),
        ("second pair divides by n - 1", FAR, [-0.2887, 0.2887]),
        ("second pair is centered", FAR, [-0.001, 0.001]),
        ("second pair is divided by the variance", FAR, [-90.91, 90.91]),
        ("second pair has eps outside", FAR, [-0.990, 0.990]),
        ("second pair is off", FAR, [-0.32, 0.32]),
    ],
    exercises.check_slope: [
        ("Correct.", lambda d, eps: eps / (d**2 + eps) ** 1.5),
        ("Correct.", lambda d, eps: (d**2 + eps) ** -0.5 - d**2 * (d**2 + eps) ** -1.5),
        ("Correct.", lambda d, eps: eps / torch.tensor(d**2 + eps) ** 1.5),
        ("Correct.", slope_by_autograd),
        ("You treated the square root as a constant", lambda d, eps: (d**2 + eps) ** -0.5),
        ("the second term of the product rule", lambda d, eps: -(d**2) * (d**2 + eps) ** -1.5),
        ("opposite signs", lambda d, eps: (eps + 2 * d**2) / (d**2 + eps) ** 1.5),
        ("The exponent is off", lambda d, eps: eps / (d**2 + eps)),
        ("the factor 2 cancels", lambda d, eps: (eps + d**2 / 2) / (d**2 + eps) ** 1.5),
        ("That's the output itself", lambda d, eps: d / (d**2 + eps) ** 0.5),
        ("it should be 19.0901, but it's 1.0000", lambda d, eps: 1.0),
        ("Did you forget `return`?", lambda d, eps: ...),
    ],
    exercises.check_large_eps: [
        ("Correct.", "about the same", "worse"),
        ("at_2 is still missing", None, "worse"),
        ("at_32 is still missing", "about the same", ...),
        ("at_2 should be one of better, worse, about the same", "same", "worse"),
        ("hardly any normalization is left", "better", "worse"),
        ("there isn't much to lose", "worse", "worse"),
        ("the default works well there", "about the same", "better"),
        ("divided by nearly the same number", "about the same", "about the same"),
    ],
    exercises.check_report: [
        ("Correct.", lambda v, t: (best(v, t).mean(), best(v, t).std(ddof=1))),
        ("Correct.", lambda v, t: (best(v, t).mean().round(3), best(v, t).std(ddof=1).round(3))),
        ("best on the test images", lambda v, t: (best(t, t).mean(), 0.0)),
        ("best test result of each seed", lambda v, t: (t.max(0).mean(), 0.0)),
        ("You chose a rate for each", lambda v, t: (t[v.argmax(0), np.arange(5)].mean(), 0.0)),
        ("Report the test images", lambda v, t: (best(v, v).mean(), 0.0)),
        ("mean is over all rates. Report only", lambda v, t: (t.mean(), 0.0)),
        ("Your mean is off", lambda v, t: (best(v, t).mean() + 0.001, 0.0)),
        ("with ddof=1", lambda v, t: (best(v, t).mean(), best(v, t).std())),
        ("standard error", lambda v, t: (best(v, t).mean(), best(v, t).std(ddof=1) / 5**0.5)),
        ("That's the variance", lambda v, t: (best(v, t).mean(), best(v, t).var(ddof=1))),
        ("spread is over all rates", lambda v, t: (best(v, t).mean(), t.std(ddof=1))),
        ("the spread is off", lambda v, t: (best(v, t).mean(), 0.0)),
        ("the spread is off", lambda v, t: (best(v, t).mean(), best(v, t).std(ddof=1) + 0.001)),
    ],
}

test_answers = verdict_test(ANSWERS)
