"""The checkers for the chapter on gradients before training."""

from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from lnbook.chapters.transformer.gradients_at_init import exercises
from lnbook.transformer import PreLNBlock
from tests.helpers.verdicts import expect, verdict_test


def sizes(states):
    """Compute the sizes token by token, unlike any solution that a reader would write."""
    return [
        np.mean([np.linalg.norm(b - a) / np.linalg.norm(a) for a, b in zip(x, y, strict=True)])
        for x, y in pairwise(states)
    ]


def by_torch(states):
    x = torch.tensor(states)
    return (x.diff(dim=0).norm(dim=-1) / x[:-1].norm(dim=-1)).mean(-1)


def by_steps(d, m, s_1, s_2):
    """Entry by entry: the mean square of a hidden feature, then that of an output feature."""
    hidden = torch.tensor(s_1**2 * d / 2)
    return sum([s_2**2 * m * hidden] * d)


def test_branch_length_matches_random_networks() -> None:
    rng = np.random.default_rng(3)
    d, m, s_1, s_2 = 16, 24, 0.4, 0.2
    lengths = []
    for _ in range(3000):
        x = rng.normal(size=d)
        x *= np.sqrt(d) / np.linalg.norm(x)
        hidden = np.maximum(rng.normal(0, s_1, (m, d)) @ x, 0)
        lengths.append(np.sum((rng.normal(0, s_2, (d, m)) @ hidden) ** 2))
    assert np.mean(lengths) == pytest.approx(float(by_steps(d, m, s_1, s_2)), rel=0.03)


def test_depths_match_the_bounds() -> None:
    depths = np.arange(1, 100)
    sure_above = depths[1 + 3 * depths / 2 <= 16].max()
    sure_below = depths[1 + depths / 2 >= 16].min()
    assert exercises.check_depths(sure_above, sure_below).correct


def test_final_norm(monkeypatch: pytest.MonkeyPatch) -> None:
    """Use made-up gradients: the notebook covers real ones, which take a long time."""

    def made_up(block: type, depth: int, *, seed: int, final_norm: bool) -> SimpleNamespace:
        assert block is PreLNBlock
        return SimpleNamespace(weights=[0.0, seed + depth ** (-0.5 if final_norm else 0.5)])

    monkeypatch.setattr(exercises, "at_start", made_up)
    uncached = exercises._last_gradients.__wrapped__
    monkeypatch.setattr(exercises, "_last_gradients", uncached)
    ratio = (2 + 24**0.5) / (2 + 2**0.5)
    ratio_of_each = np.mean([(seed + 24**0.5) / (seed + 2**0.5) for seed in range(5)])
    for answer, given, words in (
        ("it grows", ratio, "Correct."),
        (None, ratio, "Your answer is still missing"),
        ("up", ratio, 'Answer "it falls"'),
        ("it grows", (2 + 24**-0.5) / (2 + 2**-0.5), "ratio with the final norm"),
        ("it grows", 1 / ratio, "upside down"),
        ("it grows", 24**0.5 / 2**0.5, "Take seeds 0 to 4"),
        ("it grows", ratio + 0.015, "Take seeds 0 to 4"),
        ("it grows", ratio_of_each, "mean of five ratios"),
        ("it falls", ratio, "says otherwise"),
        ("it stays", ratio, "says otherwise"),
    ):
        expect(exercises.check_final_norm(answer, given), words)


ANSWERS = {
    exercises.check_branch_length: [
        ("Correct.", lambda d, m, s, t: s**2 * t**2 * m * d**2 / 2),
        ("Correct.", by_steps),
        *exercises.LENGTH_MISTAKES.items(),
        ("What branch_length returns is still missing", lambda *case: ...),
        ("it should be 32", lambda *case: by_steps(*case) + 0.01),
        ("branch_length raised ZeroDivisionError", lambda *case: 1 / 0),
    ],
    exercises.check_depths: [
        ("Correct.", 10, 30),
        ("Correct.", 10.0, np.int64(30)),
        ("Your depth for at_least is still missing",),
        ("the lower bound only says", 30),
        ("at_least: the factor is a square root", 2),
        ("For 11 blocks", 11),
        ("at_least is off", 12),
        ("at_most is still missing", 10),
        ("the upper bound only says", 10, 10),
        ("at_most: the factor is a square root", 10, 6),
        ("leaves out the input", 10, 32),
        ("30 are enough", 10, 31),
        ("at_most is off", 10, 29),
        ("should be one whole number", 10, 29.5),
    ],
    exercises.check_update_sizes: [
        ("Correct.", sizes),
        ("Correct.", by_torch),
        *exercises.UPDATE_MISTAKES.items(),
        ("returns nothing yet", lambda states: ...),
        ("the sizes are off", lambda states: by_torch(states) + 2e-5),
        ("modifies its input", lambda states: sizes(np.subtract(states, 1, out=states))),
    ],
}

test_answers = verdict_test(ANSWERS)
