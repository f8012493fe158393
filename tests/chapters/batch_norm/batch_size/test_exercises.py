"""The checkers accept correct answers and name each known mistake."""

import numpy as np
import pytest
import torch

from lnbook.chapters.batch_norm.batch_size import exercises

FAR, NEAR = [-1.0, 1.0], [-0.3015, 0.3015]
NORM = torch.nn.BatchNorm1d(1, affine=False, dtype=torch.float64)
BY_TORCH = [NORM(torch.tensor([[3.0], [b]]).double()).ravel() for b in (7.0, 3.002)]


def test_slope_agrees_with_autograd() -> None:
    for half, eps in exercises.SLOPE_CASES:
        d = torch.tensor(half, dtype=torch.float64, requires_grad=True)
        (d / torch.sqrt(d**2 + eps)).backward()
        assert d.grad is not None
        assert d.grad.item() == pytest.approx(exercises._slope(half, eps))


def best(validation, test):
    return test[validation.mean(1).argmax()]


RIGHT = ""
TOLD = {
    exercises.check_pair: [
        ((FAR, NEAR), RIGHT),
        ((FAR, [-0.3, 0.3]), RIGHT),
        (BY_TORCH, RIGHT),
        (([1, -1],), "first pair has its signs reversed"),
        (([-(0.5**0.5), 0.5**0.5],), "first pair divides by n - 1"),
        (([-2, 2],), "first pair is centered, but not yet divided"),
        (([-0.5, 0.5],), "first pair is divided by the variance"),
        (([-1.02, 1.02],), "first pair is off"),
        ((FAR, [-1, 1]), "In the second pair, eps matters"),
        ((FAR, [0.3015, -0.3015]), "second pair has its signs reversed"),
        ((FAR, [-0.2887, 0.2887]), "second pair divides by n - 1"),
        ((FAR, [-0.001, 0.001]), "second pair is centered"),
        ((FAR, [-90.91, 90.91]), "second pair is divided by the variance"),
        ((FAR, [-0.990, 0.990]), "second pair has eps outside"),
        ((FAR, [-0.32, 0.32]), "second pair is off"),
    ],
    exercises.check_slope: [
        ((lambda d, eps: eps / (d**2 + eps) ** 1.5,), RIGHT),
        ((lambda d, eps: (d**2 + eps) ** -0.5 - d**2 * (d**2 + eps) ** -1.5,), RIGHT),
        ((lambda d, eps: (d**2 + eps) ** -0.5,), "You treated the square root as a constant"),
        ((lambda d, eps: -(d**2) * (d**2 + eps) ** -1.5,), "the second term of the product rule"),
        ((lambda d, eps: (eps + 2 * d**2) / (d**2 + eps) ** 1.5,), "opposite signs"),
        ((lambda d, eps: eps / (d**2 + eps),), "The exponent is off"),
        ((lambda d, eps: (eps + d**2 / 2) / (d**2 + eps) ** 1.5,), "the factor 2 cancels"),
        ((lambda d, eps: d / (d**2 + eps) ** 0.5,), "That's the output itself"),
        (
            (lambda d, eps: 1.0,),
            "it should be 19.0901, but it's 1.0000",
        ),
        ((lambda d, eps: ...,), "Did you forget `return`?"),
    ],
    exercises.check_large_eps: [
        (("about the same", "worse"), RIGHT),
        ((None, "worse"), "at_2 is still missing"),
        (("about the same", ...), "at_32 is still missing"),
        (("same", "worse"), "at_2 should be one of better, worse, about the same"),
        (("better", "worse"), "hardly any normalization is left"),
        (("worse", "worse"), "there isn't much to lose"),
        (("about the same", "better"), "the default works well there"),
        (("about the same", "about the same"), "divided by nearly the same number"),
    ],
    exercises.check_report: [
        ((lambda v, t: (best(v, t).mean(), best(v, t).std(ddof=1)),), RIGHT),
        ((lambda v, t: (best(t, t).mean(), 0.0),), "best on the test images"),
        ((lambda v, t: (t.max(0).mean(), 0.0),), "best test result of each seed"),
        ((lambda v, t: (t[v.argmax(0), np.arange(5)].mean(), 0.0),), "You chose a rate for each"),
        ((lambda v, t: (best(v, v).mean(), 0.0),), "Report the test images"),
        ((lambda v, t: (t.mean(), 0.0),), "mean is over all rates. Report only"),
        ((lambda v, t: (best(v, t).mean() + 5e-9, 0.0),), "Your mean is off"),
        ((lambda v, t: (best(v, t).mean(), best(v, t).std()),), "with ddof=1"),
        ((lambda v, t: (best(v, t).mean(), best(v, t).std(ddof=1) / 5**0.5),), "standard error"),
        ((lambda v, t: (best(v, t).mean(), best(v, t).var(ddof=1)),), "That's the variance"),
        ((lambda v, t: (best(v, t).mean(), t.std(ddof=1)),), "spread is over all rates"),
        ((lambda v, t: (best(v, t).mean(), best(v, t).std(ddof=1) + 5e-9),), "the spread is off"),
    ],
}


@pytest.mark.parametrize(("check", "answer", "told"), [(c, *r) for c in TOLD for r in TOLD[c]])
def test_answers(check, answer: tuple[object, ...], told: str) -> None:
    verdict = check(*answer)
    assert verdict.correct == (told == RIGHT)
    assert told in verdict.message
