"""The chapter's checkers accept correct answers and recognize common mistakes."""

import numpy as np
import pytest
import torch

from lnbook.chapters.practice.quantization import exercises
from lnbook.chapters.practice.quantization.experiments import quantize


def test_the_row() -> None:
    row = quantize(torch.tensor([2.8, -1.2, 0.9, 254.0]))
    assert exercises.check_row(row).correct


@pytest.mark.parametrize(
    ("row", "told"),
    [
        ([1, -1, 0, 127], "the integers"),
        ([2, 0, 0, 254], "cut off"),
        ([3, -1, 1, 254], "whole numbers"),
        ([7, 7, 7, 7], "Divide by 2"),
        (..., "still missing"),
    ],
)
def test_mistakes_with_the_row(row: object, told: str) -> None:
    verdict = exercises.check_row(row)
    assert not verdict.correct
    assert told in verdict.message


def test_moving_scale() -> None:
    def move(gamma, beta, w, s):
        return gamma / s, beta / s, w @ np.diag(s)

    assert exercises.check_move(move).correct
    for text, mistake in exercises.MOVES.items():
        assert exercises.check_move(mistake).message == text
    assert "three arrays" in exercises.check_move(lambda *given: given[0]).message
    assert "column i" in exercises.check_move(lambda *given: given[:3]).message


def test_the_answer_to_commuting_is_what_the_norm_does() -> None:
    rng = np.random.default_rng(0)
    hadamard = np.array([[1, 1, 1, 1], [1, -1, 1, -1], [1, 1, -1, -1], [1, -1, -1, 1]]) / 2
    plane, _ = np.linalg.qr(np.column_stack([np.ones(4), rng.normal(size=(4, 3))]))
    turn, _ = np.linalg.qr(rng.normal(size=(3, 3)))
    kept = plane @ np.block([[np.eye(1), np.zeros((1, 3))], [np.zeros((3, 1)), turn]]) @ plane.T
    matrices = {
        "a": np.eye(4)[[2, 0, 3, 1]],
        "b": np.diag([1, 1, -1, 1]),
        "c": np.linalg.qr(rng.normal(size=(4, 4)))[0],
        "d": kept,
        "e": -np.eye(4),
        "f": hadamard,
    }
    x = torch.from_numpy(rng.normal(size=(7, 4)))
    letters = ""
    for letter, matrix in matrices.items():
        q = torch.from_numpy(matrix).double()
        one, other = (torch.nn.functional.layer_norm(r, (4,), eps=0.0) for r in (x @ q, x))
        letters += letter * torch.allclose(one, other @ q)
    assert exercises.check_commute(letters).correct


@pytest.mark.parametrize(
    ("letters", "told"),
    [
        ("de", "a: "),
        ("abde", "b: "),
        ("acde", "c: "),
        ("ae", "d: "),
        ("ad", "e: "),
        ("adef", "f: "),
        ("adx", "x isn't one of the letters"),
        ("...", "still missing"),
        (3, "as a string"),
    ],
)
def test_mistakes_with_commuting(letters: object, told: str) -> None:
    verdict = exercises.check_commute(letters)
    assert not verdict.correct
    assert told in verdict.message
