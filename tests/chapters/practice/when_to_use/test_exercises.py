"""The chapter's checkers accept correct answers and recognize known mistakes."""

import numpy as np
import pytest
import torch
from torch import nn

from lnbook.chapters.practice.when_to_use import exercises
from lnbook.chapters.shared.checker import Verdict
from tests.helpers.verdicts import verdict_test

RIGHT = {"a": "LN", "b": "keep", "c": "IN", "d": "none", "e": "BN", "f": "GN", "g": "RMSNorm"}


def refusal(verdict: Verdict) -> str:
    assert not verdict.correct
    return verdict.message


@pytest.mark.parametrize("name", RIGHT)
def test_choices_wrong(name: str) -> None:
    good, messages = exercises.CHOICES[name]
    for word in exercises.WORDS:
        verdict = exercises.check_choices(**RIGHT | {name: word})
        assert verdict.correct == (word in good)
        if word not in good:
            message = refusal(verdict)
            assert message.startswith(f"{name}: {messages.get(word, 'That does')}")
    assert set(messages) <= set(exercises.WORDS) - set(good)
    for odd in ("layernorm", ["LN"]):
        message = refusal(exercises.check_choices(**RIGHT | {name: odd}))
        assert f"{name} should be one of LN, RMSNorm, BN" in message


@pytest.mark.parametrize("name", exercises.BIASES)
def test_a_bias_that_is_called_equivalent_is_and_a_shorter_one_is_not(name: str) -> None:
    rng = np.random.default_rng(4)
    x, weight = torch.from_numpy(rng.normal(size=(6, 4))), torch.from_numpy(rng.normal(size=(3, 4)))

    def output(bias) -> torch.Tensor:
        z = x @ weight.T + torch.tensor(bias, dtype=torch.float64)
        return {
            "layer_norm": lambda: nn.functional.layer_norm(z, (3,)),
            "rms_norm": lambda: nn.functional.rms_norm(z, (3,)),
            "batch_norm": lambda: nn.functional.batch_norm(z, None, None, training=True),
        }[name]()

    right, _ = exercises.BIASES[name]
    assert torch.allclose(output(right), output(exercises.BIAS))
    shorter = 0.9 * np.array(right)
    assert not right[0] or not torch.allclose(output(shorter), output(exercises.BIAS))


def test_mistakes_with_biases_are_named() -> None:
    good = {name: right for name, (right, _) in exercises.BIASES.items()}
    for name, (_, mistakes) in exercises.BIASES.items():
        for text, wrong in mistakes.items():
            assert text in refusal(exercises.check_bias(**good | {name: wrong}))


def by_moments(h, p):
    return h.var(axis=0) / ((h**2).mean(axis=0) / (1 - p) - h.mean(axis=0) ** 2)


def by_sampling(h, p):
    """The same ratio, computed differently: from the variance over many masks."""
    rng = np.random.default_rng(0)
    kept = rng.random((40_000, *h.shape)) >= p
    return h.var(axis=0) / (h * kept / (1 - p)).var(axis=(0, 1))


def test_variance_right_agrees_with_dropout() -> None:
    h = np.maximum(np.random.default_rng(1).normal(size=(20, 3)), 0)
    assert np.allclose(by_moments(h, 0.4), by_sampling(h, 0.4), rtol=0.02)


def zero(*names: str, frozen=()):
    def function(block: exercises.Block) -> None:
        for name, value in block.named_parameters():
            if name in names:
                nn.init.zeros_(value)
            value.requires_grad_(name not in frozen)

    return function


def in_float32(block: exercises.Block, features: int = 8) -> None:
    block.norm2.weight = nn.Parameter(torch.zeros(features))


def test_the_block_does_what_the_exercise_says() -> None:
    block, x = exercises.Block(4), torch.linspace(-1, 1, 8).double().view(2, 4)
    h = nn.functional.layer_norm(x @ block.linear1.weight.T + block.linear1.bias, (4,)).relu()
    h = nn.functional.layer_norm(h @ block.linear2.weight.T + block.linear2.bias, (4,))
    assert torch.allclose(block(x), x + h)


ANSWERS = {
    exercises.check_choices: [
        ("Correct.", *RIGHT.values()),
        ("b is still missing", "LN"),
    ],
    exercises.check_bias: [
        ("Correct.", [3, 0, -3], (5.0, 2.0, -1.0), np.zeros(3)),
        ("Your bias for LayerNorm",),
        ("should be numbers of shape (3,)", (3, 0)),
        ("RMSNorm: which biases differ", (3, 0, -3), (1, 1, 1)),
    ],
    exercises.check_variance_left: [
        ("Correct.", by_moments),
        *exercises.VARIANCE_MISTAKES.items(),
        ("returns nothing", lambda h, p: None),
        ("Compute the variance of the dropped features", lambda h, p: by_moments(h, p) + 2e-5),
    ],
    exercises.check_start: [
        ("Correct.", zero("norm2.weight")),
        ("its branch still adds something", lambda block: None),
        ("the gain of the first norm", zero("norm1.weight")),
        ("It makes the bias of the last linear layer large", zero("linear2.weight")),
        ("neither a value nor a gradient gets through", zero("norm1.weight", "norm2.weight")),
        ("Correct.", zero("norm2.weight", "linear1.bias", "linear2.bias")),
        ("Correct.", zero("norm2.weight", "linear2.weight")),
        ("Correct.", zero("linear2.weight", "linear2.bias")),
        ("Correct.", in_float32),
        ("Correct.", lambda block: in_float32(block.float())),
        ("The block raised RuntimeError", lambda block: in_float32(block, 4)),
        ("The block raised RuntimeError", lambda block: setattr(block, "forward", torch.clone)),
        (
            "never change in 20 steps: linear1.weight, linear1.bias.",
            zero("norm2.weight", frozen=["linear1.weight", "linear1.bias"]),
        ),
        ("its branch still adds", lambda block: block.norm2.requires_grad_(False)),
    ],
}

test_answers = verdict_test(ANSWERS)
