"""The checkers for LayerNorm myths accept correct answers and recognize known mistakes."""

import numpy as np
import pytest
import torch

from lnbook.chapters.practice.myths import exercises
from tests.helpers.verdicts import verdict_test

TRUE = "acef"


def layer_norm(x: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.layer_norm(x, x.shape[-1:])


def test_the_true_statements_hold_and_the_false_ones_have_a_counterexample() -> None:
    rng = np.random.default_rng(0)
    x = torch.tensor(rng.normal(size=(50, 4)))
    y = layer_norm(x)
    # a, b, c, d, f
    assert torch.allclose(layer_norm(3 * x + 5), y, atol=1e-2)
    assert not torch.allclose(layer_norm(x + torch.tensor([1.0, 0, 0, 0])), y, atol=0.1)
    assert torch.allclose(layer_norm(x + 3), y)
    assert torch.equal(layer_norm(-x), -y)
    assert y.sum(-1).abs().max() < 1e-12
    assert torch.equal(x.argsort(), y.argsort())
    # e: with a random gamma and a random upstream gradient
    upstream = torch.tensor(rng.normal(size=(50, 4)))
    gradient = torch.func.grad(lambda x: (layer_norm(x) * upstream).sum())(x)
    assert gradient.sum(-1).abs().max() < 1e-10
    # g
    row = (10_000 + np.array([-1.0, -1, 1, 1])).astype(np.float32)
    assert abs(np.mean(row**2) - np.mean(row) ** 2 - 1) > 0.5


@pytest.mark.parametrize(("x", "gamma"), [([1, 2, 9], [1, 3, 1]), ([-9, 1, 2], [1, 5, 0.1])])
def test_order_right(x: object, gamma: object) -> None:
    verdict = exercises.check_order(x, gamma)
    assert verdict.correct
    i, j = (int(word) - 1 for word in verdict.message.split() if word in "123")
    y = torch.as_tensor(gamma) * layer_norm(torch.as_tensor(x, dtype=torch.float64))
    assert x[i] > x[j]
    assert y[i] < y[j]


def by_normalizing(x, eps):
    y = torch.nn.functional.layer_norm(torch.tensor(x), x.shape[-1:], eps=eps)
    return 1 - y.var(-1, correction=0)


ANSWERS = {
    exercises.check_verdicts: [
        ("Correct.", TRUE),
        *(
            (f"{letter}: ", "".join(set(TRUE) ^ {letter}))  # one verdict is wrong
            for letter in exercises.STATEMENTS
        ),
        ("a: ", "bcef"),
        ("still missing", "..."),
        ("h isn't one of the letters: they go from a to g", "acefh"),
    ],
    exercises.check_order: [
        ("a negative one would be too easy", [1, 2, 9], [1, -3, 1]),
        ("Every gamma should be positive", [1, 2, 9], [1, 0, 1]),
        ("Your row is constant", [2, 2, 2], [1, 3, 1]),
        ("All your gammas are equal", [1, 2, 9], [2, 2, 2]),
        ("only between features on different sides of the mean", [1, 2, 9], [1, 1, 3]),
        ("closer to the mean", [1, 2, 9], [1, 1.1, 1]),
        ("The order is kept: the output is [-2.53 -0.56  1.4 ]", [1, 2, 9], [3, 1, 1]),
        ("No positive gamma can change the order in this row", [1, 1, 9], [1, 3, 1]),
        ("No positive gamma can change the order in this row", [1, 2, 3], [1, 3, 1]),
        ("No positive gamma can change the order in this row", [0.1, 0.2, 0.3], [1, 3, 1]),
        ("No positive gamma can change the order in this row", [1.1, 2.2, 3.3], [1, 3, 1]),
    ],
    exercises.check_shortfall: [
        ("Correct.", lambda x, eps: eps / (x.var(axis=-1) + eps)),
        ("Correct.", by_normalizing),
        *exercises.MISTAKES.items(),
        (exercises.NO_EPS, lambda x, eps: eps / x.var(axis=-1)),
        ("Your answer should be numbers of shape (4,)", lambda x, _eps: [[1.0], [2.0, 3.0]]),
        ("For eps = 0.001 it is off by up to 1", lambda x, _eps: 0 * x[:, 0]),
        ("it is off by up to 5e-07", lambda x, eps: eps / (x.var(axis=-1) + eps) + 5e-7),
    ],
}

test_answers = verdict_test(ANSWERS)
