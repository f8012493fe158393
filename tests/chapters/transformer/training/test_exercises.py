"""The checkers: right answers pass, and each known mistake is called by its name."""

import itertools

import numpy as np
import pytest
import torch

from lnbook.chapters.shared.checker import Verdict
from lnbook.chapters.transformer.training import exercises

WITHOUT, WITH = [-0.002, 0.002], [-0.00004, 0.00004]


def test_first_updates_right() -> None:
    assert exercises.check_first_updates(WITHOUT, WITH).correct
    assert exercises.check_first_updates(torch.tensor(WITHOUT), np.array(WITH)).correct


def test_first_updates_are_those_of_torch() -> None:
    for share, expected in ((1.0, WITHOUT), (1 / exercises.WARM_UP, WITH)):
        parameters = torch.zeros(2, dtype=torch.float64, requires_grad=True)
        parameters.grad = torch.tensor(exercises.GRADIENTS)
        torch.optim.Adam([parameters], lr=exercises.LR * share).step()
        assert parameters.tolist() == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ((), "without warm-up is still missing"),
        (([..., ...], [..., ...]), "has a '...' in it"),
        (([0.002, -0.002],), "turn the signs around"),
        (([-2e-6, 0.2],), "a step of SGD"),
        (([-0.002, -0.002],), "The signs differ"),
        (([-0.002 * 3.16228, 0.002 * 3.16228],), "Adam corrects for that"),
        (([-0.003, 0.003],), "without warm-up is off"),
        ((WITHOUT,), "with warm-up is still missing"),
        ((WITHOUT, WITHOUT), "one fiftieth"),
        ((WITHOUT, [0, 0]), "Steps count from 1"),
        ((WITHOUT, [-4e-8, 0.004]), "a step of SGD"),
        ((WITHOUT, [-0.0001, 0.0001]), "with warm-up is off"),
    ],
)
def test_first_updates_wrong(answer: tuple[object, ...], expected: str) -> None:
    verdict = exercises.check_first_updates(*answer)
    assert not verdict.correct
    assert expected in verdict.message


def bigram_loss(train: np.ndarray, test: np.ndarray, size: int) -> float:
    """Pair by pair."""
    losses = []
    for before, after in itertools.pairwise(test):
        rest = train[1:][train[:-1] == before]
        losses.append(-np.log(((rest == after).sum() + 1) / (len(rest) + size)))
    return float(np.mean(losses))


def test_bigram_loss_right() -> None:
    assert exercises.check_bigram_loss(bigram_loss).correct
    assert exercises.check_bigram_loss(lambda *args: torch.tensor(bigram_loss(*args))).correct


@pytest.mark.parametrize("message", exercises.BIGRAM_MISTAKES)
def test_bigram_loss_names_each_mistake(message: str) -> None:
    wrong = exercises.BIGRAM_MISTAKES[message]
    assert exercises.check_bigram_loss(wrong) == Verdict(False, message)


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda *_: float("inf"), "a pair of the test text was never seen"),
        (lambda *_: np.float64("nan"), "a pair of the test text was never seen"),
        (lambda *_: None, "is still missing"),
        (lambda *_: [1.0, 2.0], "should be one number"),
        (lambda *args: bigram_loss(*args) + 0.01, "but should be"),
        (lambda train, _test, _size: train[10**6], "It raised IndexError"),
    ],
)
def test_bigram_loss_wrong(function, expected: str) -> None:
    verdict = exercises.check_bigram_loss(function)
    assert not verdict.correct
    assert expected in verdict.message


def test_schedule_right() -> None:
    def rise_and_fall(step: int, width: int, warm_up: int) -> float:
        peak = (width * warm_up) ** -0.5
        return peak * (step / warm_up if step < warm_up else (warm_up / step) ** 0.5)

    assert exercises.check_schedule(rise_and_fall).correct


@pytest.mark.parametrize("message", exercises.SCHEDULE_MISTAKES)
def test_schedule_names_each_mistake(message: str) -> None:
    wrong = exercises.SCHEDULE_MISTAKES[message]
    assert exercises.check_schedule(wrong) == Verdict(False, message)


def test_schedule_wrong() -> None:
    assert "still missing" in exercises.check_schedule(lambda *_: ...).message
    assert "It raised ZeroDivisionError" in exercises.check_schedule(lambda *_: 1 / 0).message
    assert "differ from the formula" in exercises.check_schedule(lambda *_: 1.0).message
