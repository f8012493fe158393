"""The checkers on when to use LayerNorm: right answers pass, known mistakes are named."""

import numpy as np
import pytest
import torch
from torch import nn

from lnbook.chapters.practice.when_to_use import exercises
from lnbook.chapters.shared.checker import Verdict

RIGHT = {"a": "LN", "b": "keep", "c": "IN", "d": "none", "e": "BN", "f": "GN"}


def test_choices_right() -> None:
    assert exercises.check_choices(**RIGHT).correct
    assert {name: right for name, (right, _) in exercises.CHOICES.items()} == RIGHT


@pytest.mark.parametrize("name", RIGHT)
def test_choices_wrong(name: str) -> None:
    right, messages = exercises.CHOICES[name]
    for word in exercises.WORDS:
        if word != right:
            verdict = exercises.check_choices(**{**RIGHT, name: word})
            assert not verdict.correct
            assert verdict.message.startswith(f"{name}: ")
            assert messages.get(word, "does not suit") in verdict.message
    assert right not in messages
    assert set(messages) <= set(exercises.WORDS)
    assert f"{name} is still missing" in exercises.check_choices(**{**RIGHT, name: ...}).message
    for odd in ("layernorm", 3, ["LN"]):
        message = exercises.check_choices(**{**RIGHT, name: odd}).message
        assert f"{name} should be one of LN, BN" in message


def by_moments(h, p):
    return h.var(axis=0) / ((h**2).mean(axis=0) / (1 - p) - h.mean(axis=0) ** 2)


def by_sampling(h, p):
    """An independent route: the variance over many masks."""
    rng = np.random.default_rng(0)
    kept = rng.random((40_000, *h.shape)) >= p
    return h.var(axis=0) / (h * kept / (1 - p)).var(axis=(0, 1))


def test_variance_right_and_it_is_that_of_dropout() -> None:
    assert exercises.check_variance_left(by_moments).correct
    h = np.maximum(np.random.default_rng(1).normal(size=(20, 3)), 0)
    assert np.allclose(by_moments(h, 0.4), by_sampling(h, 0.4), rtol=0.02)


@pytest.mark.parametrize("message", exercises.VARIANCE_MISTAKES)
def test_variance_names_each_mistake(message: str) -> None:
    verdict = exercises.check_variance_left(exercises.VARIANCE_MISTAKES[message])
    assert verdict == Verdict(False, message)


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda h, p: None, "returns nothing"),
        (lambda h, p: 0.5, "should be numbers of shape (3,), but is one number"),
        (lambda h, p: h @ p @ h, "Your function raised ValueError"),
        (lambda h, p: by_moments(h, p) + 0.1, "Compute the variance of the dropped features"),
    ],
)
def test_variance_wrong(function, expected: str) -> None:
    verdict = exercises.check_variance_left(function)
    assert not verdict.correct
    assert expected in verdict.message


def zero(*names: str):
    def function(block: exercises.Block) -> None:
        for name, value in block.named_parameters():
            if name in names:
                nn.init.zeros_(value)

    return function


def test_the_block_is_what_the_exercise_says() -> None:
    block, x = exercises.Block(4), torch.linspace(-1, 1, 8).double().view(2, 4)
    h = nn.functional.layer_norm(x @ block.linear1.weight.T + block.linear1.bias, (4,)).relu()
    h = nn.functional.layer_norm(h @ block.linear2.weight.T + block.linear2.bias, (4,))
    assert torch.allclose(block(x), x + h)


def test_start_right() -> None:
    assert exercises.check_start(zero("norm2.weight")).correct


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda block: None, "its branch still adds something"),
        (zero("norm1.weight"), "the gain of the first norm"),
        (zero("linear2.weight"), "It makes the bias of the last linear layer large"),
        (zero("norm1.weight", "norm2.weight"), "it passes neither a value nor a gradient"),
        (zero("norm2.weight", "linear2.weight"), "You also set: linear2.weight"),
        (zero("linear2.weight", "linear2.bias"), "You also set: linear2.bias, linear2.weight"),
        (lambda block: block.norm2.requires_grad_(False), "its branch still adds"),
        (lambda block: nn.init.zeros_(block.norm3.weight), "raised AttributeError"),
    ],
)
def test_start_wrong(function, expected: str) -> None:
    verdict = exercises.check_start(function)
    assert not verdict.correct
    assert expected in verdict.message


def test_start_frozen() -> None:
    def function(block: exercises.Block) -> None:
        nn.init.zeros_(block.norm2.weight)
        block.linear1.requires_grad_(False)

    message = exercises.check_start(function).message
    assert "These never move, in 20 steps: linear1.weight, linear1.bias." in message
