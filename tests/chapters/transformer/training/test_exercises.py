"""The checkers: right answers pass, and each known mistake is called by its name."""

import itertools

import numpy as np
import pytest
import torch

from lnbook.chapters.transformer.training import exercises

WITHOUT, WITH = [-0.002, 0.002], [-0.00004, 0.00004]


def test_first_updates_right_is_what_torch_does() -> None:
    updates = []
    for share in (1.0, 1 / 50):
        parameters = torch.zeros(2, dtype=torch.float64, requires_grad=True)
        parameters.grad = torch.tensor([1e-3, -100.0], dtype=torch.float64)
        torch.optim.Adam([parameters], lr=0.002 * share).step()
        updates.append(parameters)
    assert exercises.check_first_updates(*updates).correct


def bigram_loss(train: np.ndarray, test: np.ndarray, size: int) -> float:
    """Pair by pair."""
    losses = []
    for before, after in itertools.pairwise(test):
        rest = train[1:][train[:-1] == before]
        losses.append(-np.log(((rest == after).sum() + 1) / (len(rest) + size)))
    return float(np.mean(losses))


def rise_and_fall(step: int, width: int, warm_up: int) -> float:
    peak = (width * warm_up) ** -0.5
    return peak * (step / warm_up if step < warm_up else (warm_up / step) ** 0.5)


# For each checker: a few words of its verdict, and the answer that gets it.
ANSWERS = {
    exercises.check_first_updates: [
        ("Correct.", WITHOUT, WITH),
        ("turn the signs around", [0.002, -0.002]),
        ("a step of SGD", [-2e-6, 0.2]),
        ("The signs differ", [-0.002, -0.002]),
        ("Adam corrects for that", [-0.002 * 3.16228, 0.002 * 3.16228]),
        ("without warm-up is off", [-0.00201, 0.00201]),
        ("with warm-up is still missing", WITHOUT),
        ("one fiftieth", WITHOUT, WITHOUT),
        ("Steps count from 1", WITHOUT, [0, 0]),
        ("a step of SGD", WITHOUT, [-4e-8, 0.004]),
        ("with warm-up is off", WITHOUT, [-0.0000402, 0.0000402]),
    ],
    exercises.check_bigram_loss: [
        ("Correct.", bigram_loss),
        ("Correct.", lambda *args: torch.tensor(bigram_loss(*args))),
        *exercises.BIGRAM_MISTAKES.items(),
        ("a pair of the test text was never seen", lambda *_: float("inf")),
        ("a pair of the test text was never seen", lambda *_: np.float64("nan")),
        ("but should be", lambda *args: bigram_loss(*args) + 5e-6),
    ],
    exercises.check_schedule: [
        ("Correct.", rise_and_fall),
        *exercises.SCHEDULE_MISTAKES.items(),
        ("differ from the formula", lambda *case: rise_and_fall(*case) + 5e-6),
    ],
}


@pytest.mark.parametrize("check", ANSWERS)
def test_answers_get_their_verdict(check) -> None:
    for words, *answer in ANSWERS[check]:
        verdict = check(*answer)
        assert words in repr(verdict)
        assert verdict.correct == (words == "Correct.")
