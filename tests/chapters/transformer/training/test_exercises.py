"""The checkers accept correct answers and name each known mistake."""

import itertools

import numpy as np
import pytest
import torch

from lnbook.chapters.transformer.training import exercises
from tests.helpers.verdicts import expect, verdict_test

RIGHT = {"same": -1, "flipped": 0.053, "zero": -0.67}


def test_second_updates_match_torch() -> None:
    updates = []
    for second in (1.0, -1.0, 0.0):
        p = torch.zeros(1, dtype=torch.float64, requires_grad=True)
        adam = torch.optim.Adam([p], lr=1.0)
        for gradient in (1.0, second):
            before, p.grad = p.item(), torch.tensor([gradient], dtype=torch.float64)
            adam.step()
        updates.append(p.item() - before)
    assert exercises.check_second_updates(*updates).correct
    assert updates == pytest.approx([exercises.SAME, exercises.FLIPPED, exercises.ZERO], abs=1e-6)


@pytest.mark.parametrize(
    ("name", "words", "wrong"),
    [
        (name, words, wrong)
        for name, mistakes in exercises.UPDATE_MISTAKES.items()
        for words, wrong in [
            *mistakes.items(),
            (f"'{name}' is still missing", None),
            (f"'{name}' is off", RIGHT[name] + 0.01),
        ]
    ],
)
def test_wrong_second_updates(name: str, words: str, wrong: float | None) -> None:
    expect(exercises.check_second_updates(**(RIGHT | {name: wrong})), words)


def shares(S: float, a: float, k: int, restore: bool) -> float:  # noqa: N803
    """Simulate it: positions differ in one direction, and blocks add vectors in others."""
    h = np.zeros((4, k + 2))
    h[:, 0] = S**0.5 * np.array([1, -1, 1, -1])
    h[:, 1] = (1 - S) ** 0.5
    for block in range(k):
        h[:, block + 2] += a**0.5  # orthogonal to everything added so far
        if restore:
            h /= (h**2).sum(1).mean() ** 0.5
    return 1 - (h.mean(0) ** 2).sum() / (h**2).sum(1).mean()


def post_share(S: float, a: float, k: int) -> float:  # noqa: N803
    return shares(S, a, k, restore=True)


def pre_share(S: float, a: float, k: int) -> float:  # noqa: N803
    return shares(S, a, k, restore=False)


def bigram_loss(train: np.ndarray, test: np.ndarray, size: int) -> float:
    """The bigram loss, computed pair by pair."""
    losses = []
    for before, after in itertools.pairwise(test):
        rest = train[1:][train[:-1] == before]
        losses.append(-np.log(((rest == after).sum() + 1) / (len(rest) + size)))
    return float(np.mean(losses))


def rise_and_fall(step: int, width: int, warm_up: int) -> float:
    peak = (width * warm_up) ** -0.5
    return peak * (step / warm_up if step < warm_up else (warm_up / step) ** 0.5)


ANSWERS = {
    exercises.check_second_updates: [
        ("Correct.", -1, 0.05, -0.67),
        ("Correct.", torch.tensor(-1.0), np.float64(1 / 19), -0.670),
    ],
    exercises.check_sharing: [
        ("Correct.", post_share, pre_share),
        ("Correct.", lambda s, a, k: torch.tensor(post_share(s, a, k)), pre_share),
        *((words, wrong, pre_share) for words, wrong in exercises.POST_MISTAKES.items()),
        *((words, post_share, wrong) for words, wrong in exercises.PRE_MISTAKES.items()),
        ("post_share should be 0.0078", lambda *case: post_share(*case) + 5e-6, pre_share),
        ("pre_share should be 0.0714", post_share, lambda *case: pre_share(*case) + 5e-6),
        ("What post_share returns is still missing", lambda *case: None, pre_share),
        ("pre_share raised ZeroDivisionError", post_share, lambda *case: 1 / 0),
    ],
    exercises.check_bigram_loss: [
        ("Correct.", bigram_loss),
        ("Correct.", lambda *args: torch.tensor(bigram_loss(*args))),
        *exercises.BIGRAM_MISTAKES.items(),
        ("some pair in the test text was never seen", lambda *_: float("inf")),
        ("some pair in the test text was never seen", lambda *_: np.float64("nan")),
        ("but should be", lambda *args: bigram_loss(*args) + 5e-6),
    ],
    exercises.check_schedule: [
        ("Correct.", rise_and_fall),
        *exercises.SCHEDULE_MISTAKES.items(),
        ("differ from the formula", lambda *case: rise_and_fall(*case) + 5e-6),
    ],
}

test_answers = verdict_test(ANSWERS)
