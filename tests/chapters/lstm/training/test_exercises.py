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


def by_torch(gradients, largest):
    parameters = [torch.zeros_like(g).requires_grad_() for g in gradients]
    for parameter, gradient in zip(parameters, gradients, strict=True):
        parameter.grad = gradient.clone()
    torch.nn.utils.clip_grad_norm_(parameters, largest)
    return [parameter.grad for parameter in parameters]


def scaled(share):
    """A function that multiplies all gradients by a share, from their norm and the largest."""
    return lambda gs, largest: [
        g * share(torch.cat([*map(torch.ravel, gs)]).norm(), largest) for g in gs
    ]


def test_patience_right_is_that_of_adam() -> None:
    parameter = torch.zeros(1, dtype=torch.float64, requires_grad=True)
    adam = torch.optim.Adam([parameter])
    parameter.grad = torch.full_like(parameter, 1e12)
    adam.step()
    v = adam.state[parameter]["exp_avg_sq"].item()
    assert exercises.check_patience(np.log(v) / -np.log(0.999)).correct
    assert exercises.check_patience(48_000).correct


# For each checker: a few words of its verdict, and the answer that gets it.
ANSWERS = {
    exercises.check_contrast: [
        ("before the norm", 16),
        ("right without eps", 1),
        ("faint pixel divided by the white", 0.99619),
        ("factor of the variances", 1.00765),
        ("added eps to the standard deviation", 1.00026),
        ("Work out", 1.00395),
    ],
    exercises.check_clip: [
        ("Correct.", by_torch),
        ("each tensor on its", lambda gs, largest: [g * min(1, largest / g.norm()) for g in gs]),
        ("each number on its own", lambda gs, largest: [g.clip(-largest, largest) for g in gs]),
        ("short gradients too", scaled(lambda norm, largest: largest / norm)),
        ("square of the norm", scaled(lambda norm, largest: min(1, largest / norm**2))),
        ("values are off", scaled(lambda norm, largest: min(1, largest / norm) + 2e-7)),
        (
            "adds up the norms",
            lambda gs, largest: [g * min(1, largest / sum(h.norm() for h in gs)) for g in gs],
        ),
        ("does not clip", lambda gs, largest: gs),
        (
            "changes what it is given",
            lambda gs, largest: by_torch([g.mul_(2) for g in gs], largest),
        ),
        ("not return anything yet", lambda gs, largest: None),
        ("list of as many tensors", lambda gs, largest: gs[0]),
    ],
    exercises.check_patience: [
        ("beta_1", 459),
        ("squares", 20_700),
        ("share 1 - beta_2", 55_200),
        ("Solve", 48_900),
        ("Solve", -5),
    ],
}


@pytest.mark.parametrize("check", ANSWERS)
def test_answers_get_their_verdict(check) -> None:
    for words, *answer in ANSWERS[check]:
        verdict = check(*answer)
        assert words in repr(verdict)
        assert verdict.correct == (words == "Correct.")
