"""The checkers: right answers pass, and each known mistake is called by its name."""

import numpy as np
import pytest
import torch
from torch.nn.functional import layer_norm

from lnbook.chapters.lstm.training import exercises


def test_contrast_right_is_that_of_a_norm() -> None:
    w = torch.linspace(-1, 1, 2001, dtype=torch.float64)
    w = w / w.std(correction=0) / 3**0.5
    white, faint = (layer_norm(x * w, w.shape).std(correction=0).item() for x in (1.0, 1 / 16))
    assert exercises.check_contrast(white / faint).correct
    assert exercises.check_contrast(1.0038).correct


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (16, "before the norm"),
        (1, "right without eps"),
        (0.99619, "faint pixel divided by the white"),
        (1.00765, "factor of the variances"),
        (1.00026, "added eps to the standard deviation"),
        (2.0, "Work out"),
    ],
)
def test_contrast_wrong(answer: object, expected: str) -> None:
    verdict = exercises.check_contrast(answer)
    assert not verdict.correct
    assert expected in verdict.message


def by_torch(gradients, largest):
    parameters = [torch.zeros_like(g).requires_grad_() for g in gradients]
    for parameter, gradient in zip(parameters, gradients, strict=True):
        parameter.grad = gradient.clone()
    torch.nn.utils.clip_grad_norm_(parameters, largest)
    return [parameter.grad for parameter in parameters]


def in_place(gradients, largest):
    share = min(1.0, largest / sum(g.square().sum() for g in gradients) ** 0.5)
    return [g.mul_(share) for g in gradients]


def test_clip_right() -> None:
    assert exercises.check_clip(by_torch).correct


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda gs, largest: [g * min(1, largest / g.norm()) for g in gs], "each tensor on its"),
        (lambda gs, largest: [g.clip(-largest, largest) for g in gs], "each number on its own"),
        (
            lambda gs, largest: [
                g * largest / sum(h.square().sum() for h in gs) ** 0.5 for g in gs
            ],
            "short gradients too",
        ),
        (
            lambda gs, largest: [
                g * min(1, largest / sum(h.square().sum() for h in gs)) for g in gs
            ],
            "square of the norm",
        ),
        (
            lambda gs, largest: [g * min(1, largest / sum(h.norm() for h in gs)) for g in gs],
            "adds up the norms",
        ),
        (lambda gs, largest: gs, "does not clip"),
        (lambda gs, largest: [0 * g for g in gs], "values are off"),
        (in_place, "changes what it is given"),
        (lambda gs, largest: None, "not return anything yet"),
        (lambda gs, largest: gs[0], "list of as many tensors"),
        (lambda gs, largest: [g.flatten() for g in gs], "shape"),
        (lambda gs, largest: 1 / 0, "raised ZeroDivisionError"),
    ],
)
def test_clip_wrong(function, expected: str) -> None:
    verdict = exercises.check_clip(function)
    assert not verdict.correct
    assert expected in verdict.message


def test_patience_right_is_that_of_adam() -> None:
    parameter = torch.zeros(1, dtype=torch.float64, requires_grad=True)
    adam = torch.optim.Adam([parameter])
    parameter.grad = torch.full_like(parameter, 1e12)
    adam.step()
    v = adam.state[parameter]["exp_avg_sq"].item()
    updates = np.log(v) / -np.log(0.999)
    assert exercises.check_patience(updates).correct
    assert exercises.check_patience(48_000).correct


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (459, "beta_1"),
        (20_700, "squares"),
        (55_200, "share 1 - beta_2"),
        (100, "Solve"),
        (-5, "Solve"),
    ],
)
def test_patience_wrong(answer: object, expected: str) -> None:
    verdict = exercises.check_patience(answer)
    assert not verdict.correct
    assert expected in verdict.message
