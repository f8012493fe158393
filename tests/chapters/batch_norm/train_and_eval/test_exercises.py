"""The checkers: right answers pass, and each known mistake is called by its name."""

import copy

import numpy as np
import pytest
import torch
from torch import nn

from lnbook.chapters.batch_norm.train_and_eval import exercises

MEAN, VAR = 1.875, 2.9375


def test_two_updates_right() -> None:
    assert exercises.check_two_updates(MEAN, VAR).correct
    assert exercises.check_two_updates(1.88, 2.94).correct, "rounded"
    assert exercises.check_two_updates([1.87], np.array([[2.93]])).correct, "cut off"


def test_two_updates_are_those_of_the_layer() -> None:
    layer = nn.BatchNorm1d(1, momentum=exercises.MOMENTUM).double()
    for batch in (exercises.FIRST, exercises.SECOND):
        layer(torch.tensor(batch).double().view(2, 1))
    assert (layer.running_mean.item(), layer.running_var.item()) == (MEAN, VAR)
    assert exercises.check_two_updates(layer.running_mean, layer.running_var).correct


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ((), "Your running_mean is still missing"),
        ((..., ...), "Your running_mean is still missing"),
        (("two",), "should be one number"),
        (([1.0, 2.0],), "has the shape (2,)"),
        ((0.25 * (0.25 * 0 + 0.75 * 2) + 0.75 * 6,), "is the share of the new batch"),
        ((0.75 * 2 + 0.25 * 6,), "It starts from 0"),
        ((0.75 * 0.25 * 6 + 0.25 * 2,), "wrong order"),
        ((0.5,), "only the first batch"),
        ((1.5,), "only the second batch"),
        ((4,), "mean of all four numbers"),
        ((6,), "which momentum=1 would give"),
        ((1.9,), "Your running_mean is off"),
        ((MEAN,), "Your running_var is still missing"),
        ((MEAN, 0.75 * (0.75 + 0.25 * 1) + 0.25 * 4), "Divide by n - 1"),
        ((MEAN, 0.25 * (0.25 + 0.75 * 2) + 0.75 * 8), "is the share of the new batch"),
        ((MEAN, 0.75 * 0.25 * 2 + 0.25 * 8), "starts from 0. It starts from 1"),
        ((MEAN, 0.75 * 2 + 0.25 * 8), "starts from the first batch"),
        ((MEAN, 0.75 * (0.75 + 0.25 * 8) + 0.25 * 2), "wrong order"),
        ((MEAN, 1.25), "only the first batch"),
        ((MEAN, 2.75), "only the second batch"),
        ((MEAN, 5), "which momentum=None would give"),
        ((MEAN, 0.75 * (0.75 + 0.25 * 2**0.5) + 0.25 * 8**0.5), "standard deviations"),
        ((MEAN, 2.9), "Your running_var is off"),
    ],
)
def test_two_updates_wrong(answer: tuple[object, ...], expected: str) -> None:
    verdict = exercises.check_two_updates(*answer)
    assert not verdict.correct
    assert expected in verdict.message


def test_two_updates_every_mistake_has_a_value_of_its_own() -> None:
    for right, mistakes in ((MEAN, exercises.MEAN_MISTAKES), (VAR, exercises.VAR_MISTAKES)):
        values = sorted([right, *mistakes.values()])
        assert np.diff(values).min() > 0.02, "further apart than the tolerance"


def evaluate(model, x, y, batch_size, *, mode=True, back=True, how="right"):
    """The right function, and with arguments the wrong ones."""
    was = model.training
    if mode:
        model.eval()
    batches = list(zip(x.split(batch_size), y.split(batch_size), strict=True))
    with torch.no_grad():
        shares = [(model(a).argmax(dim=1) == b).double() for a, b in batches]
    if back:
        model.train(was)
    if how == "count":
        return torch.cat(shares).sum().item()
    if how == "shares":
        return np.mean([share.mean() for share in shares])
    if how == "drop":
        return torch.cat(shares[:-1]).mean()
    if how == "whole":
        return torch.cat(shares).sum() / (len(shares) * batch_size)
    return torch.cat(shares).mean().item() + (0.01 if how == "off" else 0.0)


def on_a_copy(model, x, y, batch_size):
    return evaluate(copy.deepcopy(model), x, y, batch_size, back=False)


def test_evaluate_right() -> None:
    for function in (evaluate, on_a_copy):
        assert exercises.check_evaluate(function).correct
    assert exercises.check_evaluate(lambda m, x, y, n: torch.tensor(evaluate(m, x, y, n))).correct


def forget(model, x, y, batch_size):
    model.load_state_dict({name: 0 * v for name, v in model.state_dict().items()})
    return evaluate(model, x, y, batch_size)


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda *_: None, "returns nothing"),
        (lambda *_: 0.5, "never calls the model"),
        (lambda m, x, y: 0.5, "raised TypeError"),
        (lambda *a: evaluate(*a, mode=False), "on its batch, and it moved the running statistics"),
        (lambda *a: evaluate(*a, how="shares"), "the last one is smaller"),
        (lambda *a: evaluate(*a, how="drop"), "leaves the last, smaller batch out"),
        (lambda *a: evaluate(*a, how="whole"), "Divide by len(x)"),
        (lambda *a: evaluate(*a, how="count"), "number of right predictions"),
        (lambda *a: evaluate(*a, how="off"), "The accuracy is off: expected"),
        (lambda *a: evaluate(*a, back=False), "came in training mode and is left in evaluation"),
        (lambda *a: str(evaluate(*a)) + "?", "should be one number"),
        (forget, "It changes the model: 0.weight"),
    ],
)
def test_evaluate_wrong(function: object, expected: str) -> None:
    verdict = exercises.check_evaluate(function)  # type: ignore[arg-type]
    assert not verdict.correct
    assert expected in verdict.message


def test_evaluate_wants_evaluation_mode_back_as_well() -> None:
    def always_to_training(model, x, y, batch_size):
        result = evaluate(model, x, y, batch_size)
        model.train()
        return result

    verdict = exercises.check_evaluate(always_to_training)
    assert not verdict.correct
    assert "came in evaluation mode and is left in training mode" in verdict.message


def test_evaluate_tells_all_answers_apart() -> None:
    model, x, y = exercises._evaluate_case()
    size = exercises.EVALUATE_SIZE
    wrong, right = (exercises._shares(model, x, y, size, training) for training in (True, False))
    values = [np.concatenate(shares).mean() for shares in (wrong, right)]
    values += map(float, exercises._evaluate_mistakes(right, size).values())
    assert np.diff(sorted(values)).min() > 1e-3
    order = torch.arange(len(x)).flip(0)
    again = exercises._shares(model, x[order], y[order], size, training=False)
    assert np.concatenate(again).mean() == pytest.approx(values[1])


def recalibrate(model, batches, *, reset=True, momentum=None, mode=True, back=True):
    """The right function, and with arguments the wrong ones."""
    norms = [module for module in model.modules() if isinstance(module, nn.BatchNorm1d)]
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


def test_recalibrate_right() -> None:
    assert exercises.check_recalibrate(recalibrate).correct


def test_recalibrate_expects_the_plain_means() -> None:
    """Of the first layer, with NumPy alone."""
    model, batches = exercises._recalibrate_case()
    expected = np.concatenate(
        [
            np.mean([batch.numpy().mean(axis=0) for batch in batches], axis=0),
            np.mean([batch.numpy().var(axis=0, ddof=1) for batch in batches], axis=0),
        ]
    )
    assert exercises._recalibrated(model, batches)[:6] == pytest.approx(expected)


def momentum_not_back(model, batches):
    recalibrate(model, batches, back=False)
    model.eval()


def mode_not_back(model, batches):
    recalibrate(model, batches)
    model.train()


def parameters_too(model, batches):
    for layer in model:
        layer.reset_parameters()
    recalibrate(model, batches)


def from_the_rows(model, batches):
    """Puts biased variances into the first norm."""
    recalibrate(model, batches)
    model[0].running_var.copy_(torch.stack([b.var(0, correction=0) for b in batches]).mean(0))


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda model, batches: None, "have not moved"),
        (lambda *a: recalibrate(*a, mode=False, reset=False), "have not moved"),
        (lambda *a: recalibrate(*a, mode=False), "They are reset, but not moved"),
        (lambda *a: recalibrate(*a, reset=False), "Call reset_running_stats() first"),
        (lambda *a: recalibrate(*a, reset=False, momentum="own"), "the momentum is the old one. R"),
        (lambda *a: recalibrate(*a, momentum="own"), "The start values 0 and 1 are still in"),
        (lambda *a: recalibrate(*a, momentum=1.0), "those of the last batch alone"),
        (lambda m, b: recalibrate(m, [torch.cat(b)]), "those of all rows in one batch"),
        (lambda m, b: recalibrate(m, b[:1]), "those of the first batch alone"),
        (from_the_rows, "not the plain means"),
        (parameters_too, "It changes the parameter 0.weight"),
        (momentum_not_back, "give each norm its old momentum back"),
        (mode_not_back, "left in training mode"),
        (lambda model: None, "raised TypeError"),
    ],
)
def test_recalibrate_wrong(function: object, expected: str) -> None:
    verdict = exercises.check_recalibrate(function)  # type: ignore[arg-type]
    assert not verdict.correct
    assert expected in verdict.message
