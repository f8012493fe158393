"""The chapter's checkers accept correct answers and recognize common mistakes."""

import numpy as np

from lnbook.chapters.transformer.adaptive import exercises
from lnbook.layers import AdaLayerNorm
from tests.helpers.verdicts import verdict_test


def test_the_modulated_row() -> None:
    import torch

    layer = AdaLayerNorm(2, 1, eps=0.0)
    layer.modulation.bias.data = torch.tensor([1.0, 1.0, 0.5, -1.0])
    row = layer(torch.tensor([2.0, 4.0]), torch.zeros(1)).detach().numpy()
    assert exercises.check_modulate(row).correct


def fold(scale, shift, gamma, beta):
    x = np.array([[0.0], [1.0]])
    zero, one = (gamma * x + beta) * (1 + scale) + shift
    return one - zero - 1, zero


def test_starts() -> None:
    right = {"a": "learns", "b": "stuck", "c": "learns", "d": "differs"}
    assert exercises.check_starts(**right).correct
    for letter, answer in right.items():
        wrong = "learns" if answer != "learns" else "stuck"
        assert exercises.check_starts(**right | {letter: wrong}).message.startswith(letter)
        assert "still missing" in exercises.check_starts(**right | {letter: ...}).message
        assert "but is 'no'" in exercises.check_starts(**right | {letter: "no"}).message


ANSWERS = {
    exercises.check_modulate: [
        ("1 + scale", [0.5, 0.0]),
        ("swapped", [-1.5, 1.0]),
        ("Normalize it first", [4.0, 1.0]),
        ("shifted first", [0.0, 0.0]),
        ("before the modulation", [-1.0, 1.0]),
        ("Multiply by 1.5 and 0", [7.0, 7.0]),
        ("still missing", ...),
    ],
    exercises.check_fold: [
        ("Correct.", fold),
        *exercises.FOLDS.items(),
        ("two arrays", lambda *given: given[0]),
        ("Multiply out", lambda *given: given[:2]),
    ],
}

test_answers = verdict_test(ANSWERS)
