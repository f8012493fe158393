"""The chapter's checkers accept correct answers and recognize common mistakes."""

from functools import partial

import torch
from torch import Tensor

from lnbook.chapters.practice.debugging import exercises
from tests.helpers.verdicts import verdict_test

WORST, LIKELY = 4096 * 2.0**-24 * 20, 64 * 2.0**-24 * 20


def empty(mask: Tensor) -> Tensor:
    return (mask == -torch.inf).all(-1, keepdim=True)


def right(scores: Tensor, mask: Tensor) -> Tensor:
    seen = torch.where(empty(mask), 0.0, mask)
    return torch.where(empty(mask), 0.0, (scores + seen).softmax(-1))


def by_hand(scores: Tensor, mask: Tensor, shift: bool = True) -> Tensor:
    largest = (scores + mask.clamp(min=-1e9)).amax(-1, keepdim=True)
    exps = torch.exp(scores + mask - shift * largest)
    total = exps.sum(-1, keepdim=True)
    return exps / torch.where(total == 0, 1.0, total)


def test_reports() -> None:
    answers = {letter: cause for letter, (cause, _) in exercises.CAUSES.items()}
    assert exercises.check_reports(**answers).correct
    for letter, (_, why) in exercises.CAUSES.items():
        wrong = "data" if answers[letter] != "data" else "mask"
        assert exercises.check_reports(**{**answers, letter: wrong}).message == f"{letter}: {why}"
    assert "b is still missing" in exercises.check_reports(a="last step").message
    assert "one of data" in exercises.check_reports(a="cosmic rays").message


ANSWERS = {
    exercises.check_tolerances: [
        ("Correct.", WORST, LIKELY),
        ("Correct.", 4096 * 6e-8 * 20, 64 * 6e-8 * 20),  # u is rounded
        ("Correct.", 0.005, 0.00008),
        ("half of it", 2 * WORST, LIKELY),
        ("divides by the standard deviation", 0.1 * WORST, LIKELY),
        ("2 on average", WORST / 2, LIKELY),
        ("leaves out both", WORST / 20, LIKELY),
        ("float16", WORST * 2**13, LIKELY),
        ("The worst case uses n", LIKELY, WORST),
        ("The worst case uses n", WORST, WORST),
        ("half of it", WORST, 2 * LIKELY),
        ("worst case isn't right", 7.0, LIKELY),
        ("likely case isn't right", WORST, 7.0),
        ("still missing", ..., LIKELY),
    ],
    exercises.check_softmax: [
        ("Correct.", right),
        ("Correct.", lambda s, m: right(s, m).float()),
        ("Correct.", lambda s, m: right(s.float(), m.float())),
        ("Correct.", by_hand),
        ("entries are all masked is nan", lambda s, m: (s + m).softmax(-1)),
        (
            "an entry that isn't masked is nan.",
            lambda s, m: right(s, m) + 0 * m.where(~empty(m), 0),
        ),
        ("if the scores are large: exp is inf", partial(by_hand, shift=False)),
        ("gradient is nan", lambda s, m: (s + m).softmax(-1).nan_to_num(0.0)),
        ("weights of 0", lambda s, m: (s + m.clamp(min=-1e9)).softmax(-1)),
        ("exactly 0", lambda s, m: (s + m.clamp(min=-20)).softmax(-1) * ~empty(m)),
        ("ordinary masked softmax", lambda s, m: s.softmax(-1) * (m == 0)),
        ("gradient isn't", lambda s, m: right(s, m).detach() + 0 * s),
        ("no gradient gets through", lambda s, m: right(s, m).detach()),
        ("shape of the scores", lambda s, m: right(s, m)[0]),
        ("shape of the scores", lambda s, m: None),
        ("raised RuntimeError", lambda s, m: s @ m),
    ],
}

test_answers = verdict_test(ANSWERS)
