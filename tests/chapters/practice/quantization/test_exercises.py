"""The chapter's checkers accept correct answers and recognize common mistakes."""

import numpy as np
import torch

from lnbook.chapters.practice.quantization import exercises
from lnbook.chapters.practice.quantization.experiments import quantize
from tests.helpers.verdicts import verdict_test


def test_the_row() -> None:
    row = quantize(torch.tensor([2.8, -1.2, 0.9, 254.0]))
    assert exercises.check_row(row).correct


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


ANSWERS = {
    exercises.check_row: [
        ("the integers", [1, -1, 0, 127]),
        ("cut off", [2, 0, 0, 254]),
        ("whole numbers", [3, -1, 1, 254]),
        ("Divide by 2", [7, 7, 7, 7]),
        ("still missing", ...),
    ],
    exercises.check_move: [
        ("Correct.", lambda gamma, beta, w, s: (gamma / s, beta / s, w @ np.diag(s))),
        *exercises.MOVES.items(),
        ("three arrays", lambda *given: given[0]),
        ("column i", lambda *given: given[:3]),
    ],
    exercises.check_commute: [
        ("a: ", "de"),
        ("b: ", "abde"),
        ("c: ", "acde"),
        ("d: ", "ae"),
        ("e: ", "ad"),
        ("f: ", "adef"),
        ("x isn't one of the letters", "adx"),
        ("still missing", "..."),
        ("as a string", 3),
    ],
}

test_answers = verdict_test(ANSWERS)
