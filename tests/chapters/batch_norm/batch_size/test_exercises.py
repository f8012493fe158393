"""The checkers: right answers pass, and each known mistake is called by its name."""

import numpy as np
import pytest
import torch

from lnbook.chapters.batch_norm.batch_size import exercises

FAR, NEAR = [-1.0, 1.0], [-0.3015, 0.3015]
NORM = torch.nn.BatchNorm1d(1, affine=False, dtype=torch.float64)
BY_TORCH = [NORM(torch.tensor([[3.0], [b]]).double()).ravel() for b in (7.0, 3.002)]


def accuracy(model, x, y):
    was = model.training
    with torch.no_grad():
        share = (model.eval()(x).argmax(1) == y).double().mean()
    model.train(was)
    return share.item()


def best(validation, test):
    return test[validation.mean(1).argmax()]


RIGHT = ""
TOLD = {
    exercises.check_pair: [
        ((FAR, NEAR), RIGHT),
        ((FAR, [-0.3, 0.3]), RIGHT),
        (BY_TORCH, RIGHT),
        (([1, -1],), "first pair has the signs"),
        (([-(0.5**0.5), 0.5**0.5],), "first pair divides by n - 1"),
        (([-2, 2],), "first pair is centered, but not yet divided"),
        (([-0.5, 0.5],), "first pair is divided by the variance"),
        (([-1.02, 1.02],), "first pair is off"),
        ((FAR, [-1, 1]), "In the second pair eps counts"),
        ((FAR, [0.3015, -0.3015]), "second pair has the signs"),
        ((FAR, [-0.2887, 0.2887]), "second pair divides by n - 1"),
        ((FAR, [-0.001, 0.001]), "second pair is centered"),
        ((FAR, [-90.91, 90.91]), "second pair is divided by the variance"),
        ((FAR, [-0.990, 0.990]), "second pair has eps outside"),
        ((FAR, [-0.32, 0.32]), "second pair is off"),
    ],
    exercises.check_accuracy: [
        ((accuracy,), RIGHT),
        ((lambda m, x, y: (m(x).argmax(1) == y).double().mean(),), "Call model.eval() first"),
        ((lambda m, x, y: (m.eval()(x).argmax(1) == y).double().mean(),), "Set it back"),
        ((lambda m, x, y: (accuracy(m, x, y), m.train())[0],), "that was in evaluation mode"),
        ((lambda m, x, y: (accuracy(m, x, y), m.train()(x))[0],), "It changes the network"),
        ((lambda *given: 40 * accuracy(*given),), "That is a count"),
        ((lambda *given: 100 * accuracy(*given),), "in percent"),
        ((lambda *given: 1 - accuracy(*given),), "share of errors"),
        ((lambda *given: accuracy(*given) + 5e-6,), "should be 0.6750, but is 0.6750"),
    ],
    exercises.check_report: [
        ((lambda v, t: (best(v, t).mean(), best(v, t).std(ddof=1)),), RIGHT),
        ((lambda v, t: (best(t, t).mean(), 0.0),), "best on the test images"),
        ((lambda v, t: (t.max(0).mean(), 0.0),), "best test result of each seed"),
        ((lambda v, t: (t[v.argmax(0), np.arange(5)].mean(), 0.0),), "You choose a rate for each"),
        ((lambda v, t: (best(v, v).mean(), 0.0),), "Report the test images"),
        ((lambda v, t: (t.mean(), 0.0),), "mean is over all rates. Report the chosen"),
        ((lambda v, t: (best(v, t).mean() + 5e-9, 0.0),), "Your mean is off"),
        ((lambda v, t: (best(v, t).mean(), best(v, t).std()),), "with ddof=1"),
        ((lambda v, t: (best(v, t).mean(), best(v, t).std(ddof=1) / 5**0.5),), "standard error"),
        ((lambda v, t: (best(v, t).mean(), best(v, t).var(ddof=1)),), "That is the variance"),
        ((lambda v, t: (best(v, t).mean(), t.std(ddof=1)),), "spread is over all rates"),
        ((lambda v, t: (best(v, t).mean(), best(v, t).std(ddof=1) + 5e-9),), "the spread is off"),
    ],
}


@pytest.mark.parametrize(("check", "answer", "told"), [(c, *r) for c in TOLD for r in TOLD[c]])
def test_answers(check, answer: tuple[object, ...], told: str) -> None:
    verdict = check(*answer)
    assert verdict.correct == (told == RIGHT)
    assert told in verdict.message
