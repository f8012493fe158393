"""The checkers of the recipes: right answers pass, known mistakes are named."""

import re

import numpy as np
import pytest
import torch

from lnbook.chapters.practice.recipes import exercises
from lnbook.chapters.shared.checker import Verdict


@pytest.mark.parametrize("gain", [(1 - 1e-4) ** 5000, 0.61, np.exp(-0.5), torch.tensor(0.6065)])
def test_decayed_gain_right(gain: object) -> None:
    assert exercises.check_decayed_gain(gain).correct


def test_decayed_gain_is_what_adamw_leaves() -> None:
    gain = torch.nn.Parameter(torch.ones(1, dtype=torch.float64))
    optimizer = torch.optim.AdamW([gain], lr=exercises.RATE, weight_decay=exercises.DECAY)
    gain.grad = torch.zeros_like(gain)
    for _ in range(50):
        optimizer.step()
    assert gain.item() ** (exercises.STEPS / 50) == pytest.approx(0.6065, abs=1e-4)


@pytest.mark.parametrize(
    ("gain", "expected"),
    [
        (0.5, "of what is left"),
        (0.393, "That is what is lost"),
        (0.0067, "without the decay rate"),
        (0.0, "without the learning rate"),
        (1.0, "No gradient does not mean no change"),
        (1.6487, "Decay pulls toward 0"),
        (0.7, "Each step multiplies the gain"),
    ],
)
def test_decayed_gain_wrong(gain: object, expected: str) -> None:
    verdict = exercises.check_decayed_gain(gain)
    assert not verdict.correct
    assert expected in verdict.message


def by_columns(weight, bias, gamma, beta):
    return weight * gamma, bias + weight @ beta


def by_matrix(weight, bias, gamma, beta):
    return torch.tensor(weight @ np.diag(gamma)), torch.tensor(bias + (weight * beta).sum(1))


@pytest.mark.parametrize("fold", [by_columns, by_matrix])
def test_fold_right(fold) -> None:
    assert exercises.check_fold(fold).correct


def test_the_right_fold_keeps_the_output_of_torch() -> None:
    rng = np.random.default_rng(0)
    norm, linear = torch.nn.LayerNorm(4).double(), torch.nn.Linear(4, 3).double()
    with torch.no_grad():
        for p in (*norm.parameters(), *linear.parameters()):
            p.copy_(torch.from_numpy(rng.normal(size=tuple(p.shape))))
        x = torch.from_numpy(rng.normal(size=(5, 4)))
        given = (linear.weight, linear.bias, norm.weight, norm.bias)
        w, b = exercises._fold(*(p.detach().numpy() for p in given))
        xhat = torch.nn.functional.layer_norm(x, (4,))
        folded = xhat @ torch.from_numpy(w).T + torch.from_numpy(b)
        torch.testing.assert_close(folded, linear(norm(x)), rtol=0, atol=1e-12)


@pytest.mark.parametrize("message", exercises.FOLD_MISTAKES)
def test_fold_names_each_mistake(message: str) -> None:
    assert exercises.check_fold(exercises.FOLD_MISTAKES[message]) == Verdict(False, message)


def in_place(weight, bias, gamma, beta):
    bias += weight @ beta
    weight *= gamma
    return weight, bias


@pytest.mark.parametrize(
    ("fold", "expected"),
    [
        (3, "Give the function itself"),
        (lambda *_: None, "Did you forget `return`?"),
        (lambda *_: ..., "Did you forget `return`?"),
        (lambda w, *_: w, "should return two arrays"),
        (lambda w, b, g, beta: (w[:1], b), "Your new weight should be numbers of shape (3, 3)"),
        (lambda w, b, g, beta: (w * g, 0.0), "Your new bias should be numbers of shape (3,)"),
        (lambda w, b, g, beta: 1 / 0, "raised ZeroDivisionError"),
        (lambda w, b, g, beta: (w + g, b), "are not both right"),
        (in_place, "changes its arguments"),
    ],
)
def test_fold_wrong(fold, expected: str) -> None:
    verdict = exercises.check_fold(fold)
    assert not verdict.correct
    assert expected in verdict.message


def by_pattern(state):
    ends = {"gamma": "weight", "beta": "bias"}
    pattern = r"(?<=\.LayerNorm\.)(gamma|beta)$"
    return {re.sub(pattern, lambda m: ends[m[1]], key): value for key, value in state.items()}


def by_ends(state):
    new = {}
    for key, value in state.items():
        key = re.sub(r"\.LayerNorm\.gamma$", ".LayerNorm.weight", key)
        new[re.sub(r"\.LayerNorm\.beta$", ".LayerNorm.bias", key)] = value
    return new


@pytest.mark.parametrize("rename", [by_pattern, by_ends])
def test_rename_right(rename) -> None:
    assert exercises.check_rename(rename).correct


@pytest.mark.parametrize("message", exercises.RENAME_MISTAKES)
def test_rename_names_each_mistake(message: str) -> None:
    mistake = exercises.RENAME_MISTAKES[message]
    assert exercises.check_rename(mistake) == Verdict(False, message)


def popping(state):
    return by_pattern({key: state.pop(key) for key in list(state)})


@pytest.mark.parametrize(
    ("rename", "expected"),
    [
        ("rename", "Give the function itself"),
        (lambda state: None, "Did you forget `return`?"),
        (lambda state: list(state), "should return a dict, but it returned a list"),
        (lambda state: state["nothing"], "raised KeyError"),
        (lambda state: {}, "'bert.embeddings.LayerNorm.weight' should be there"),
        (lambda state: {**by_pattern(state), "more": 1}, "'more' should not be there"),
        (lambda state: dict.fromkeys(by_pattern(state), 0), "values have moved"),
        (popping, "changes the dict it is given"),
    ],
)
def test_rename_wrong(rename, expected: str) -> None:
    verdict = exercises.check_rename(rename)
    assert not verdict.correct
    assert expected in verdict.message
