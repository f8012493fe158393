"""The chapter's checkers accept correct answers and recognize common mistakes."""

import pytest
import torch
from torch import Tensor

from lnbook.chapters.practice.debugging import exercises

WORST, LIKELY = 4096 * 2.0**-24 * 20, 64 * 2.0**-24 * 20


def test_tolerances() -> None:
    assert exercises.check_tolerances(WORST, LIKELY).correct
    assert exercises.check_tolerances(4096 * 6e-8 * 20, 64 * 6e-8 * 20).correct  # u is rounded


@pytest.mark.parametrize(
    ("worst", "likely", "told"),
    [
        (2 * WORST, LIKELY, "half of it"),
        (0.1 * WORST, LIKELY, "divides by the standard deviation"),
        (WORST / 2, LIKELY, "2 on average"),
        (WORST / 20, LIKELY, "leaves out both"),
        (WORST * 2**13, LIKELY, "float16"),
        (LIKELY, WORST, "The worst case uses n"),
        (WORST, WORST, "The worst case uses n"),
        (WORST, 2 * LIKELY, "half of it"),
        (7.0, LIKELY, "worst case isn't right"),
        (WORST, 7.0, "likely case isn't right"),
        (..., LIKELY, "still missing"),
    ],
)
def test_mistakes_with_tolerances(worst: object, likely: object, told: str) -> None:
    verdict = exercises.check_tolerances(worst, likely)
    assert not verdict.correct
    assert told in verdict.message


def right(scores: Tensor, mask: Tensor) -> Tensor:
    empty = (mask == -torch.inf).all(-1, keepdim=True)
    mask = torch.where(empty, 0.0, mask)
    return torch.where(empty, 0.0, (scores + mask).softmax(-1))


def test_softmax() -> None:
    assert exercises.check_softmax(right).correct


@pytest.mark.parametrize(
    ("function", "told"),
    [
        (lambda s, m: (s + m).softmax(-1), "is nan"),
        (lambda s, m: (s + m).softmax(-1).nan_to_num(0.0), "gradient is nan"),
        (lambda s, m: (s + m.clamp(min=-1e9)).softmax(-1), "weights of 0"),
        (lambda s, m: s.softmax(-1) * (m == 0), "ordinary masked softmax"),
        (lambda s, m: right(s, m).detach() + 0 * s, "gradient isn't"),
        (lambda s, m: right(s, m).detach(), "no gradient gets through"),
        (lambda s, m: right(s, m)[0], "shape of the scores"),
        (lambda s, m: None, "shape of the scores"),
        (lambda s, m: s @ m, "raised RuntimeError"),
    ],
)
def test_mistakes_with_softmax(function: object, told: str) -> None:
    verdict = exercises.check_softmax(function)  # type: ignore[arg-type]
    assert not verdict.correct
    assert told in verdict.message


def test_reports() -> None:
    answers = {letter: cause for letter, (cause, _) in exercises.CAUSES.items()}
    assert exercises.check_reports(**answers).correct
    for letter, (_, why) in exercises.CAUSES.items():
        wrong = "data" if answers[letter] != "data" else "mask"
        assert exercises.check_reports(**{**answers, letter: wrong}).message == f"{letter}: {why}"
    assert "b is still missing" in exercises.check_reports(a="last step").message
    assert "one of data" in exercises.check_reports(a="cosmic rays").message
