"""The checkers of the chapter on gradients before training."""

from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from lnbook.chapters.transformer.gradients_at_init import exercises
from lnbook.transformer import PreLNBlock

STREAM = [6656, 18944]
FACTOR = [0.1644, 0.27735]


def sizes(states):
    """Token by token, as no reader would write it."""
    return [
        np.mean([np.linalg.norm(b - a) / np.linalg.norm(a) for a, b in zip(x, y, strict=True)])
        for x, y in pairwise(states)
    ]


def by_torch(states):
    x = torch.tensor(states)
    return (x.diff(dim=0).norm(dim=-1) / x[:-1].norm(dim=-1)).mean(-1)


def test_final_norm(monkeypatch: pytest.MonkeyPatch) -> None:
    """With gradients that are made up: the notebook tries it on real ones, which take long."""

    def made_up(block: type, depth: int, *, seed: int, final_norm: bool) -> SimpleNamespace:
        assert block is PreLNBlock
        return SimpleNamespace(weights=[0.0, seed + depth ** (-0.5 if final_norm else 0.5)])

    monkeypatch.setattr(exercises, "at_start", made_up)
    uncached = exercises._last_gradients.__wrapped__
    monkeypatch.setattr(exercises, "_last_gradients", uncached)
    ratio = (2 + 24**0.5) / (2 + 2**0.5)
    for answer, given, words in (
        ("it grows", ratio, "Correct."),
        (None, ratio, "Your answer is still missing"),
        ("up", ratio, 'Answer "it falls"'),
        ("it grows", (2 + 24**-0.5) / (2 + 2**-0.5), "ratio with the final norm"),
        ("it grows", 1 / ratio, "upside down"),
        ("it grows", 24**0.5 / 2**0.5, "Take seeds 0 to 4"),
        ("it grows", ratio + 0.03, "Take seeds 0 to 4"),
        ("it falls", ratio, "says something else"),
        ("it stays", ratio, "says something else"),
    ):
        verdict = exercises.check_final_norm(answer, given)
        assert words in repr(verdict)
        assert verdict.correct == (words == "Correct.")


# For each checker: a few words of its verdict, and the answer that gets it.
ANSWERS = {
    exercises.check_stream_bounds: [
        ("Correct.", [13 * 512, 37 * 512], [37**-0.5, 13**-0.5]),
        ("Correct.", STREAM, [0.164, 0.277]),
        ("leaves out the input", [6144, 18432]),
        ("divided by d", [13, 37]),
        ("holds lengths", np.sqrt(STREAM)),
        ("wrong way around", STREAM[::-1]),
        ("Put d = 512 and l = 24", [6656, 18945]),
        ("Your pair of factors is still missing", STREAM),
        ("wrong way around", STREAM, FACTOR[::-1]),
        ("lacks the root: a norm", STREAM, [1 / 37, 1 / 13]),
        ("upside down", STREAM, [13**0.5, 37**0.5]),
        ("lacks the root of d", STREAM, [18944**-0.5, 6656**-0.5]),
        ("Lemma 2 are more exact", STREAM, [24**-0.5, 24**-0.5]),
        ("Divide d by your squared lengths", STREAM, [0.1644, 0.279]),
    ],
    exercises.check_update_sizes: [
        ("Correct.", sizes),
        ("Correct.", by_torch),
        *exercises.UPDATE_MISTAKES.items(),
        ("returns nothing yet", lambda states: ...),
        ("the sizes are off", lambda states: by_torch(states) + 5e-9),
        ("changes its input", lambda states: sizes(np.subtract(states, 1, out=states))),
    ],
}


@pytest.mark.parametrize("check", ANSWERS)
def test_answers_get_their_verdict(check) -> None:
    for words, *answer in ANSWERS[check]:
        verdict = check(*answer)
        assert words in repr(verdict)
        assert verdict.correct == (words == "Correct.")
