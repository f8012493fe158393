"""The chapter's checkers accept correct answers and recognize common mistakes."""

import numpy as np
import pytest

from lnbook.chapters.transformer.adaptive import exercises
from lnbook.layers import AdaLayerNorm


def test_the_modulated_row() -> None:
    import torch

    layer = AdaLayerNorm(2, 1, eps=0.0)
    layer.modulation.bias.data = torch.tensor([1.0, 1.0, 0.5, -1.0])
    row = layer(torch.tensor([2.0, 4.0]), torch.zeros(1)).detach().numpy()
    assert exercises.check_modulate(row).correct


@pytest.mark.parametrize(
    ("row", "told"),
    [
        ([0.5, 0.0], "1 + scale"),
        ([-1.5, 1.0], "swapped"),
        ([4.0, 1.0], "Normalize it first"),
        ([0.0, 0.0], "shifted first"),
        ([-1.0, 1.0], "before the modulation"),
        ([7.0, 7.0], "Multiply by 1.5 and 0"),
        (..., "still missing"),
    ],
)
def test_mistakes_with_the_row(row: object, told: str) -> None:
    verdict = exercises.check_modulate(row)
    assert not verdict.correct
    assert told in verdict.message


def test_folding() -> None:
    def fold(scale, shift, gamma, beta):
        x = np.array([[0.0], [1.0]])
        zero, one = (gamma * x + beta) * (1 + scale) + shift
        return one - zero - 1, zero

    assert exercises.check_fold(fold).correct
    for text, mistake in exercises.FOLDS.items():
        assert exercises.check_fold(mistake).message == text
    assert "two arrays" in exercises.check_fold(lambda *given: given[0]).message
    assert "Multiply out" in exercises.check_fold(lambda *given: given[:2]).message


def test_starts() -> None:
    right = {"a": "learns", "b": "stuck", "c": "learns", "d": "differs"}
    assert exercises.check_starts(**right).correct
    for letter, answer in right.items():
        wrong = "learns" if answer != "learns" else "stuck"
        assert exercises.check_starts(**right | {letter: wrong}).message.startswith(letter)
        assert "still missing" in exercises.check_starts(**right | {letter: ...}).message
        assert "but is 'no'" in exercises.check_starts(**right | {letter: "no"}).message
