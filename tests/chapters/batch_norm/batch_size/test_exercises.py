"""The checkers: right answers pass, and each known mistake is called by its name."""

import numpy as np
import pytest
import torch

from lnbook.chapters.batch_norm.batch_size import exercises
from lnbook.chapters.shared.checker import Verdict

FAR, NEAR = [-1.0, 1.0], [-0.3015, 0.3015]


def by_torch(values: tuple[float, float]) -> list[float]:
    norm = torch.nn.BatchNorm1d(1).double()
    return norm(torch.tensor(values).double()[:, None])[:, 0].tolist()


def test_pair_right() -> None:
    assert exercises.check_pair(FAR, NEAR).correct
    assert exercises.check_pair([-1, 1], [-0.3, 0.3]).correct, "rounded"
    assert exercises.check_pair(by_torch((3, 7)), by_torch((3, 3.002))).correct


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ((), "Your first pair is still missing"),
        (([..., 1],), "still has a '...'"),
        (([1, -1],), "first pair has the signs"),
        (([-(0.5**0.5), 0.5**0.5],), "first pair divides by n - 1"),
        (([-2, 2],), "first pair is centered, but not yet divided"),
        (([-0.5, 0.5],), "first pair is divided by the variance"),
        (([0.1, 0.2],), "first pair is off"),
        ((FAR, [-1, 1]), "In the second pair eps counts"),
        ((FAR, [0.3015, -0.3015]), "second pair has the signs"),
        ((FAR, [-0.2887, 0.2887]), "second pair divides by n - 1"),
        ((FAR, [-0.001, 0.001]), "second pair is centered"),
        ((FAR, [-90.91, 90.91]), "second pair is divided by the variance"),
        ((FAR, [-0.990, 0.990]), "second pair has eps outside"),
        ((FAR, [1, 2, 3]), "has the shape (3,)"),
    ],
)
def test_pair_wrong(answer: tuple[object, ...], expected: str) -> None:
    verdict = exercises.check_pair(*answer)
    assert not verdict.correct
    assert expected in verdict.message


def right(model, x, y):
    was = model.training
    with torch.no_grad():
        share = (model.eval()(x).argmax(1) == y).double().mean()
    model.train(was)
    return share.item()


def stays_in_training(model, x, y):
    share = right(model, x, y)
    model.train()
    return share


def resets_after(model, x, y):
    """Right in evaluation mode, but then training mode moves the averages."""
    share = right(model, x, y)
    model.train()(x)
    return share


def refuses_evaluation(model, x, y):
    if not model.training:
        raise ValueError("train first")
    return right(model, x, y)


def test_accuracy_right() -> None:
    assert exercises.check_accuracy(right).correct
    assert exercises.check_accuracy(lambda *a: torch.tensor(right(*a))).correct


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda m, x, y: (m(x).argmax(1) == y).double().mean().item(), "Call model.eval() first"),
        (lambda m, x, y: (m.eval()(x).argmax(1) == y).double().mean().item(), "Set it back"),
        (stays_in_training, "in training mode that was in evaluation mode"),
        (resets_after, "It changes the network"),
        (lambda m, x, y: 40 * right(m, x, y), "That is a count"),
        (lambda m, x, y: 100 * right(m, x, y), "in percent"),
        (lambda m, x, y: 1 - right(m, x, y), "share of errors"),
        (lambda m, x, y: 0.25, "should be 0.6750, but is 0.2500"),
        (lambda m, x, y: None, "is still missing"),
        (lambda m, x, y: (m.eval()(x).argmax(1) == y).double(), "has the shape (40,)"),
        (lambda m, x, y: m(y), "raised RuntimeError"),
        (refuses_evaluation, "raised ValueError: train first"),
    ],
)
def test_accuracy_wrong(function: object, expected: str) -> None:
    verdict = exercises.check_accuracy(function)
    assert not verdict.correct
    assert expected in verdict.message


def best(validation, test):
    return test[validation.mean(1).argmax()]


def test_report_right() -> None:
    verdict = exercises.check_report(lambda v, t: (best(v, t).mean(), best(v, t).std(ddof=1)))
    assert verdict == Verdict(True, "One rate for all seeds, chosen without the test images.")


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda v, t: (best(t, t).mean(), best(t, t).std(ddof=1)), "best on the test images"),
        (lambda v, t: (t.max(0).mean(), t.max(0).std(ddof=1)), "best test result of each seed"),
        (lambda v, t: (t[v.argmax(0), np.arange(5)].mean(), 0.0), "You choose a rate for each"),
        (lambda v, t: (best(v, v).mean(), 0.0), "Report the test images"),
        (lambda v, t: (t.mean(), t.std()), "over all rates. Report the chosen"),
        (lambda v, t: (0.1, 0.1), "Your mean is off"),
        (lambda v, t: (best(v, t).mean(), best(v, t).std()), "with ddof=1"),
        (lambda v, t: (best(v, t).mean(), best(v, t).std(ddof=1) / 5**0.5), "standard error"),
        (lambda v, t: (best(v, t).mean(), best(v, t).var(ddof=1)), "That is the variance"),
        (lambda v, t: (best(v, t).mean(), t.std(ddof=1)), "spread is over all rates"),
        (lambda v, t: (best(v, t).mean(), 0.5), "the spread is off"),
        (lambda v, t: None, "is still missing"),
        (lambda v, t: best(v, t).mean(), "but is one number"),
        (lambda v, t: t[9], "raised IndexError"),
    ],
)
def test_report_wrong(function: object, expected: str) -> None:
    verdict = exercises.check_report(function)
    assert not verdict.correct
    assert expected in verdict.message
