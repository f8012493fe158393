"""The checkers accept correct answers and name each known mistake."""

import copy

import numpy as np
import pytest
import torch
from torch import nn

from lnbook.chapters.batch_norm.train_and_eval import exercises
from tests.helpers.verdicts import verdict_test

MEAN, VAR = 1.875, 2.9375


def test_two_updates_agree_with_the_layer() -> None:
    layer = nn.BatchNorm1d(1, momentum=exercises.MOMENTUM).double()
    for batch in (exercises.FIRST, exercises.SECOND):
        layer(torch.tensor(batch).double().view(2, 1))
    assert (layer.running_mean.item(), layer.running_var.item()) == (MEAN, VAR)


def share_of_all(shares):
    return torch.cat(shares).mean().item()


def evaluate(model, x, y, batch_size, *, mode=True, back=True, how=share_of_all):
    """The correct function by default; the arguments introduce mistakes."""
    was = model.training
    if mode:
        model.eval()
    batches = list(zip(x.split(batch_size), y.split(batch_size), strict=True))
    with torch.no_grad():
        shares = [(model(a).argmax(dim=1) == b).double() for a, b in batches]
    if back:
        model.train(was)
    return how(shares)


def recalibrate(
    model, batches, *, reset=True, momentum=None, mode=True, back=True, find=nn.Module.modules
):
    """The correct function by default; the arguments introduce mistakes."""
    norms = [module for module in find(model) if isinstance(module, nn.BatchNorm1d)]
    momenta, was = [norm.momentum for norm in norms], model.training
    for norm in norms:
        if reset:
            norm.reset_running_stats()
        if momentum != "own":
            norm.momentum = momentum
    if mode:
        model.train()
    with torch.no_grad():
        for batch in batches:
            model(batch)
    if back:
        model.train(was)
        for norm, value in zip(norms, momenta, strict=True):
            norm.momentum = value


def test_recalibrate_expects_the_plain_means() -> None:
    """Computes the first layer's statistics with NumPy."""
    model, batches = exercises._recalibrate_case()
    means = np.mean([batch.numpy().mean(axis=0) for batch in batches], axis=0)
    variances = np.mean([batch.numpy().var(axis=0, ddof=1) for batch in batches], axis=0)
    expected = np.concatenate([means, variances])
    assert exercises._recalibrated(model, batches)[:6] == pytest.approx(expected)


ANSWERS = {
    exercises.check_two_updates: [
        ("Correct.", 1.88, 2.94),
        ("Correct.", [1.87], np.array([[2.93]])),
        ("Correct.", torch.tensor([MEAN]), torch.tensor([VAR])),
        ("is the weight of the new batch", 0.25 * (0.25 * 0 + 0.75 * 2) + 0.75 * 6),
        ("It starts from 0", 0.75 * 2 + 0.25 * 6),
        ("wrong order", 0.75 * 0.25 * 6 + 0.25 * 2),
        ("includes only the first batch", 0.5),
        ("includes only the second batch", 1.5),
        ("mean of all four numbers", 4),
        ("which is what momentum=1 would give", 6),
        ("Your running_mean is off", 1.9),
        ("Divide by n - 1", MEAN, 0.75 * (0.75 + 0.25 * 1) + 0.25 * 4),
        ("is the weight of the new batch", MEAN, 0.25 * (0.25 + 0.75 * 2) + 0.75 * 8),
        ("starts from 0. It starts from 1", MEAN, 0.75 * 0.25 * 2 + 0.25 * 8),
        ("starts from the first batch", MEAN, 0.75 * 2 + 0.25 * 8),
        ("wrong order", MEAN, 0.75 * (0.75 + 0.25 * 8) + 0.25 * 2),
        ("includes only the first batch", MEAN, 1.25),
        ("includes only the second batch", MEAN, 2.75),
        ("which is what momentum=None would give", MEAN, 5),
        ("standard deviations", MEAN, 0.75 * (0.75 + 0.25 * 2**0.5) + 0.25 * 8**0.5),
        ("Your running_var is off", MEAN, 2.9),
    ],
    exercises.check_noise: [
        ("Correct.", lambda m, v: m / (2 - m) * v),
        ("Correct.", lambda m, v: torch.tensor(m / (2 - m) * v, dtype=torch.float64)),
        ("Correct.", lambda m, v: torch.tensor(m / (2 - m) * v)),  # float32
        ("Correct.", lambda m, v: np.float64(m**2 * v / (1 - (1 - m) ** 2))),
        ("Correct.", lambda m, v: sum(m**2 * (1 - m) ** (2 * k) for k in range(999)) * v),
        ("the noise of a single batch", lambda m, v: v),
        ("what the last batch alone contributes", lambda m, v: m**2 * v),
        ("You factored (1 - m) out of the variance without squaring", lambda m, v: m * v),
        ("the approximation for a small m", lambda m, v: m / 2 * v),
        ("You factored m out of the variance without squaring", lambda m, v: v / (2 - m)),
        ("That's the standard deviation", lambda m, v: (m / (2 - m) * v) ** 0.5),
        ("the wrong way around", lambda m, v: (2 - m) / m * v),
        ("For m = 0.1 and v = 2.0 it should be 0.1053, but it's 0.2500", lambda m, v: 0.25),
        ("Did you forget `return`?", lambda m, v: ...),
    ],
    exercises.check_evaluate: [
        ("Correct.", evaluate),
        ("Correct.", lambda m, *data: evaluate(copy.deepcopy(m), *data, back=False)),
        ("returns nothing", lambda *_: None),
        ("never calls the model", lambda *_: 0.5),
        ("on its batch, and it changed the running stat", lambda *a: evaluate(*a, mode=False)),
        (
            "the last one is smaller",
            lambda *a: evaluate(*a, how=lambda s: np.mean([b.mean() for b in s])),
        ),
        (
            "leaves out the last, smaller batch",
            lambda *a: evaluate(*a, how=lambda s: torch.cat(s[:-1]).mean()),
        ),
        ("Divide by len(x)", lambda *a: evaluate(*a, how=lambda s: torch.cat(s).sum() / 12)),
        (
            "number of correct predictions",
            lambda *a: evaluate(*a, how=lambda s: torch.cat(s).sum()),
        ),
        ("The accuracy is off: expected", lambda *a: evaluate(*a) + 5e-6),
        ("in training mode, and you left it in evaluation", lambda *a: evaluate(*a, back=False)),
        ("you left it in training mode", lambda m, *data: (evaluate(m, *data), m.train())[0]),
        ("model: 1.weight", lambda m, *data: (m[1].weight.data.zero_(), evaluate(m, *data))[1]),
    ],
    exercises.check_recalibrate: [
        ("Correct.", recalibrate),
        ("haven't changed. They change", lambda *a: recalibrate(*a, mode=False, reset=False)),
        ("You reset the statistics, but", lambda *a: recalibrate(*a, mode=False)),
        ("Call reset_running_stats() first", lambda *a: recalibrate(*a, reset=False)),
        ("momentum is the old one. R", lambda *a: recalibrate(*a, reset=False, momentum="own")),
        ("The starting values 0 and 1 still count", lambda *a: recalibrate(*a, momentum="own")),
        ("inside another module", lambda *a: recalibrate(*a, find=nn.Module.children)),
        ("statistics of only the last batch", lambda *a: recalibrate(*a, momentum=1.0)),
        ("statistics of all rows in one batch", lambda m, b: recalibrate(m, [torch.cat(b)])),
        ("statistics of only the first batch", lambda m, b: recalibrate(m, b[:1])),
        ("n't the plain means", lambda m, b: (recalibrate(m, b), m[2].running_var.add_(2e-5))),
        ("It changes the parameter 1.weight", lambda m, b: m[1].reset_parameters()),
        ("the old momentum of each", lambda m, b: (recalibrate(m, b, back=False), m.eval())),
        (
            "in evaluation mode, and you left it in training",
            lambda m, b: (recalibrate(m, b), m.train()),
        ),
        (
            "in training mode, and you left it in evaluation",
            lambda m, b: (recalibrate(m, b), m.eval()),
        ),
    ],
}

test_answers = verdict_test(ANSWERS)
