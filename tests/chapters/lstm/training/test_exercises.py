"""The checkers accept correct answers and name each known mistake."""

import numpy as np
import torch
from torch.nn.functional import layer_norm

from lnbook.chapters.lstm.training import exercises
from tests.helpers.verdicts import verdict_test


def test_contrast_matches_a_norm() -> None:
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
    """A function that scales all gradients, given their norm and the largest norm allowed."""
    return lambda gs, largest: [
        g * share(torch.cat([*map(torch.ravel, gs)]).norm(), largest) for g in gs
    ]


def test_patience_matches_adam() -> None:
    parameter = torch.zeros(1, dtype=torch.float64, requires_grad=True)
    adam = torch.optim.Adam([parameter])
    parameter.grad = torch.full_like(parameter, 1e12)
    adam.step()
    v = adam.state[parameter]["exp_avg_sq"].item()
    assert exercises.check_patience(np.log(v) / -np.log(0.999)).correct
    assert exercises.check_patience(48_000).correct


def test_shades_survive_a_norm() -> None:
    generator = torch.Generator().manual_seed(5)
    inputs = {
        "a": lambda x: [x, 2 * x],
        "b": lambda x: [x, 1 - x],
        "c": lambda x: [2 * x - 1],
        "d": lambda x: torch.eye(17)[round(16 * x)].tolist(),
        "e": lambda x: [x],
    }
    for letter, encode in inputs.items():
        weight = torch.rand(64, len(encode(1.0)), generator=generator) - 0.5
        bias = (torch.rand(64, generator=generator) - 0.5) * (letter == "e")
        gray, white = (
            layer_norm(weight @ torch.tensor(encode(x)) + bias, (64,)) for x in (9 / 16, 1.0)
        )
        differs = ((gray - white).norm() / white.norm()).item() > 0.1
        assert differs == (letter in "".join(exercises.SHADES_MISSED)), letter


ANSWERS = {
    exercises.check_contrast: [
        ("before the norm", 16),
        ("right without eps", 1),
        ("faint pixel divided by the white", 0.99619),
        ("factor between the variances", 1.00765),
        ("added eps to the standard deviation", 1.00026),
        ("Compute x s", 1.0037),
        ("Compute x s", 1.0039),
    ],
    exercises.check_clip: [
        ("Correct.", by_torch),
        ("each tensor sep", lambda gs, largest: [g * min(1, largest / g.norm()) for g in gs]),
        ("each number separately", lambda gs, largest: [g.clip(-largest, largest) for g in gs]),
        ("small gradients, too", scaled(lambda norm, largest: largest / norm)),
        ("square of the norm", scaled(lambda norm, largest: min(1, largest / norm**2))),
        ("values are off", scaled(lambda norm, largest: min(1, largest / norm) + 2e-7)),
        (
            "adds up the norms",
            lambda gs, largest: [g * min(1, largest / sum(h.norm() for h in gs)) for g in gs],
        ),
        ("doesn't clip", lambda gs, largest: gs),
        (
            "changes its arguments",
            lambda gs, largest: by_torch([g.mul_(2) for g in gs], largest),
        ),
        ("doesn't return anything yet", lambda gs, largest: None),
        ("list of as many tensors", lambda gs, largest: gs[0]),
    ],
    exercises.check_shades: [
        ("Correct.", "bde"),
        ("Correct.", "E, D, B"),
        ("Correct.", ["b", "d", "e"]),
        ("(a) is x times", "abde"),
        ("(c) leaves only the sign", "bcde"),
        ("(b) does change", "de"),
        ("(d) does work", "be"),
        ("(e) does work", "bd"),
        ("still missing", ...),
        ("f isn't one of the letters", "bdef"),
        ("as a string", 3),
    ],
    exercises.check_patience: [
        ("beta_1", 459),
        ("squares", 20_700),
        ("fraction 1 - beta_2", 55_200),
        ("Solve", 48_900),
        ("Solve", -5),
    ],
}

test_answers = verdict_test(ANSWERS)
