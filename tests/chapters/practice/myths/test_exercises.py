"""The checkers on what is said about LayerNorm: right answers pass, known mistakes are named."""

import numpy as np
import pytest
import torch

from lnbook.chapters.practice.myths import exercises
from lnbook.chapters.shared.checker import Verdict

RIGHT = {"a": True, "b": False, "c": True, "d": False, "e": True, "f": True, "g": False}


def layer_norm(x: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.layer_norm(x, x.shape[-1:])


def test_the_true_statements_hold_and_the_false_ones_have_a_counterexample() -> None:
    rng = np.random.default_rng(0)
    x = torch.tensor(rng.normal(size=(50, 4)))
    y = layer_norm(x)
    # a: equal normalized forms, so the centered rows are multiples
    two = 3 * x + 5
    centered = [z - z.mean(-1, keepdim=True) for z in (x, two)]
    assert torch.allclose(layer_norm(two), y, atol=1e-2)
    assert torch.allclose(centered[1], 3 * centered[0])
    # b: a bias that is not constant has an effect, a constant one has none
    assert not torch.allclose(layer_norm(x + torch.tensor([1.0, 0, 0, 0])), y, atol=0.1)
    assert torch.allclose(layer_norm(x + 3), y)
    # c, d, f
    assert torch.equal(layer_norm(-x), -y)
    assert y.sum(-1).abs().max() < 1e-12
    assert torch.equal(x.argsort(), y.argsort())
    # e: with a random gamma and a random upstream gradient
    leaf = x.clone().requires_grad_()
    upstream = torch.tensor(rng.normal(size=(50, 4)))
    (layer_norm(leaf) * upstream).sum().backward()
    assert leaf.grad is not None
    assert leaf.grad.sum(-1).abs().max() < 1e-10
    # g
    row = (10_000 + np.array([-1.0, -1, 1, 1])).astype(np.float32)
    assert abs(np.mean(row**2) - np.mean(row) ** 2 - 1) > 0.5
    truths = {name: truth for name, (truth, _) in exercises.STATEMENTS.items()}
    assert truths == RIGHT


def test_verdicts_right() -> None:
    assert exercises.check_verdicts(**RIGHT).correct
    assert exercises.check_verdicts(**{name: np.bool_(v) for name, v in RIGHT.items()}).correct


@pytest.mark.parametrize("name", RIGHT)
def test_verdicts_name_the_one_that_is_misjudged(name: str) -> None:
    verdict = exercises.check_verdicts(**{**RIGHT, name: not RIGHT[name]})
    assert verdict == Verdict(False, f"6 of 7 are right. {name}: {exercises.STATEMENTS[name][1]}")


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        ({}, "Your answer to a, b, c, d, e, f, g is still missing"),
        ({**RIGHT, "d": ...}, "Your answer to d is still missing"),
        ({**RIGHT, "d": None}, "Your answer to d is still missing"),
        ({**RIGHT, "c": "yes"}, "c should be True or False, but is 'yes'"),
        ({**RIGHT, "c": 1}, "c should be True or False, but is 1"),
        ({**RIGHT, "h": True}, "There is no statement h"),
        ({**RIGHT, "a": False, "b": True}, "5 of 7 are right. a: "),
    ],
)
def test_verdicts_wrong(answers: dict[str, object], expected: str) -> None:
    verdict = exercises.check_verdicts(**answers)
    assert not verdict.correct
    assert expected in verdict.message


@pytest.mark.parametrize(
    ("x", "gamma"),
    [
        ([1, 2, 9], [1, 3, 1]),
        ([9, 8, 1], [1, 2, 5]),
        (np.array([1e-3, 2e-3, 9e-3]), (1.0, 3.0, 1.0)),
        (torch.tensor([-9.0, 1.0, 2.0]), torch.tensor([1.0, 5.0, 0.1])),
    ],
)
def test_order_right(x: object, gamma: object) -> None:
    verdict = exercises.check_order(x, gamma)
    assert verdict.correct
    i, j = (int(word) - 1 for word in verdict.message.split() if word in "123")
    y = torch.as_tensor(gamma) * layer_norm(torch.as_tensor(x, dtype=torch.float64))
    assert x[i] > x[j]
    assert y[i] < y[j]


@pytest.mark.parametrize(
    ("x", "gamma", "expected"),
    [
        (..., [1, 1, 1], "Your row is still missing"),
        ([1, 2, 9], [1, 2], "Your gamma should be numbers of shape (3,)"),
        ([1, 2, 9], [1, -3, 1], "a negative one is too easy"),
        ([1, 2, 9], [1, 0, 1], "Every gamma should be positive"),
        ([2, 2, 2], [1, 3, 1], "Your row is constant"),
        ([1, 2, 9], [2, 2, 2], "All your gammas are equal"),
        ([1, 2, 9], [1, 1, 3], "only between features on different sides of the mean"),
        ([1, 2, 9], [1, 1.1, 1], "nearer to the mean"),
        ([1, 2, 9], [3, 1, 1], "The order is kept: the output is [-2.53 -0.56  1.4 ]"),
        ([1, 1, 9], [1, 3, 1], "The order is kept"),
    ],
)
def test_order_wrong(x: object, gamma: object, expected: str) -> None:
    verdict = exercises.check_order(x, gamma)
    assert not verdict.correct
    assert expected in verdict.message


def by_normalizing(x, eps):
    y = torch.nn.functional.layer_norm(torch.tensor(x), x.shape[-1:], eps=eps)
    return 1 - y.var(-1, correction=0)


@pytest.mark.parametrize(
    "function",
    [
        lambda x, eps: eps / (x.var(axis=-1) + eps),
        lambda x, eps: 1 - x.var(axis=-1) / (x.var(axis=-1) + eps),
        lambda x, eps: list(eps / (x.var(axis=-1) + eps)),
        by_normalizing,
    ],
)
def test_shortfall_right(function) -> None:
    assert exercises.check_shortfall(function).correct


@pytest.mark.parametrize("message", exercises.MISTAKES)
def test_shortfall_names_each_mistake(message: str) -> None:
    assert exercises.check_shortfall(exercises.MISTAKES[message]) == Verdict(False, message)


def changes_its_input(x, eps):
    x -= x.mean(axis=-1, keepdims=True)
    return eps / (x.var(axis=-1) + eps)


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda x, eps: eps / x.var(axis=-1), exercises.NO_EPS),
        (lambda x, _eps: 3.0, "Your answer should be numbers of shape (4,)"),
        (lambda x, _eps: [[1.0], [2.0, 3.0]], "Your answer should be numbers of shape (4,)"),
        (lambda x, _eps: 0 * x[:, 0], "For eps = 0.001 it is off by up to 1"),
        (lambda x, eps: eps / (x.var(axis=-1) + eps) + 1e-5, "it is off by up to 1e-05"),
        (changes_its_input, "changes its input"),
    ],
)
def test_shortfall_wrong(function, expected: str) -> None:
    verdict = exercises.check_shortfall(function)
    assert not verdict.correct
    assert expected in verdict.message
