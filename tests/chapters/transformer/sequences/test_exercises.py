"""The checkers for the chapter on sequences accept correct answers and name each mistake."""

from functools import partial

import numpy as np
import pytest
import torch

from lnbook.chapters.transformer.sequences import exercises, experiments
from tests.helpers.verdicts import verdict_test

FEATURE = np.array([5.0] * 2 + [0.0] * 8)


def test_only_padding_right() -> None:
    normalized = torch.nn.functional.batch_norm(
        torch.tensor(FEATURE)[:, None], None, None, training=True, eps=1e-12
    )
    real = torch.zeros(1, 10, dtype=torch.bool)
    real[0, :2] = True
    masked = experiments.masked_batch_norm(torch.tensor(FEATURE)[None, :, None], real)
    assert exercises.check_only_padding(
        normalized[0, 0], normalized[-1, 0], masked[0, 0, 0]
    ).correct


def share_by_search(mean, std):
    """The fraction of real tokens, out of 1000 positions, that gives the largest variance."""

    def variance(count):
        feature = mean + std * np.tile([1.0, -1.0], count // 2)
        return np.pad(feature, (0, 1000 - count)).var()

    return max(range(2, 1001, 2), key=variance) / 1000


def share(mean, std):
    return 0.5 * (1 + torch.tensor(std / mean) ** 2)


def test_padded_variance_matches_padding() -> None:
    for mean, std in ((3.0, 1.0), (-2.0, 1.5)):
        assert share_by_search(mean, std) == pytest.approx(float(share(mean, std)), abs=1e-3)
    assert share_by_search(1.0, 1.001) == 1.0
    assert share_by_search(1.0, 0.99) < 1.0


def moves(layer, x, places=range(1, 6), at=slice(None), by=None, tolerance=1e-9):
    """Whether an earlier output changes when a token is replaced or moved; `at` selects outputs."""
    for place in places:
        changed = x.copy()
        changed[place] = np.sin(np.arange(4) + place) if by is None else x[place] + by
        if np.abs(layer(changed) - layer(x))[:place][at].max() > tolerance:
            return True
    return False


def by_jacobian(layer, x):
    """The answer by finite differences, entry by entry."""
    return np.bool_(any(moves(layer, x, by=0.5 * unit) for unit in np.eye(4)))


def by_reach(layer, x):
    found = experiments.reach(
        lambda t: torch.from_numpy(layer(t[0].numpy()))[None],
        torch.from_numpy(x)[None],
        torch.from_numpy(x[::-1] + 1.0)[None],
    )
    return np.tril(found[:, 0], -1).any()


def test_the_cases_leak_as_labeled() -> None:
    x = np.random.default_rng(3).normal(size=(6, 4))
    assert all(by_jacobian(layer, x) == leaks for _, layer, leaks, _ in exercises.CASES)


def moved(layer, x):
    """How much each output changes if the third token is replaced."""
    return np.abs(layer(np.where(np.arange(6)[:, None] == 2, x[::-1], x)) - layer(x)).max(1)


def doubles(layer, x):
    return any(moves(layer, x, places=[place], by=x[place]) for place in range(1, 6))


def in_place(layer, x):
    before = layer(x)
    x[-1] += np.arange(4)
    return np.abs(layer(x) - before)[:-1].max() > 1e-9


def cumulative(x, eps):
    """Independent of the checker: PyTorch's LayerNorm over each prefix of a sequence."""
    t = torch.tensor(x)
    return torch.stack(
        [
            torch.nn.functional.layer_norm(t[:, :count], (count, t.shape[2]), eps=eps)[:, -1]
            for count in range(1, t.shape[1] + 1)
        ],
        1,
    )


ANSWERS = {
    exercises.check_only_padding: [
        ("real: that would be right without the padding", 0, -0.5, 0),
        ("real: that's x minus the mean", 4, -0.5, 0),
        ("real: you divided by the variance", 1, -0.5, 0),
        ("real: you divided by n - 1", 4 / FEATURE.std(ddof=1), -0.5, 0),
        ("Subtract the mean first", 5 / FEATURE.std(), -0.5, 0),
        ("real: the sign", -2, -0.5, 0),
        ("real: that's the output at padding", -0.5, 2, 0),
        ("real is off", 2.01, -0.5, 0),
        ("padding: padding is normalized like the rest", 2, 0, 0),
        ("padding: that's x minus the mean", 2, -1, 0),
        ("padding: you divided by the variance", 2, -0.25, 0),
        ("padding: you divided by n - 1", 2, -1 / FEATURE.std(ddof=1), 0),
        ("padding: the sign", 2, 0.5, 0),
        ("padding: that's the output at a real token", 2, 2, 0),
        ("masked: that's the output without the mask", 2, -0.5, 2),
        ("masked: the mask leaves only real tokens", 2, -0.5, 5),
        ("masked: a constant feature is equal to its mean", 2, -0.5, 1),
    ],
    exercises.check_padded_variance: [
        ("Correct.", 1, share),
        ("Correct.", 1.0, lambda mean, std: (std**2 + mean**2) / (2 * mean**2)),
        ("a mean other than 0 isn't enough", 0, share),
        ("1 - 2p, not -2p", 0.5**0.5, share),
        ("ratio is off", 3, share),
        ("ratio is still missing", ..., share),
        ("worst_share is still missing", 1, None),
        *((message, 1, wrong) for message, wrong in exercises.WORST_MISTAKES.items()),
        ("worst_share should be 0.5556", 1, lambda mean, std: 0.3),
        ("raised ZeroDivisionError", 1, lambda mean, std: 1 / 0),
    ],
    exercises.check_finds_leaks: [
        ("Correct.", moves),
        ("Correct.", by_jacobian),
        ("Correct.", by_reach),
        ("returns nothing", lambda layer, x: None),
        ("returns several values", lambda layer, x: moved(layer, x) > 1),
        ("returns several values", lambda layer, x: torch.tensor([True, False])),
        ("sees a leak where there is none, in LayerNorm over D", lambda layer, x: True),
        ("misses the leak in LayerNorm over (L, D)", lambda layer, x: False),
        ("itself changes, that isn't a leak", lambda layer, x: moved(layer, x).max() > 1e-9),
        (
            "outputs after the changed token are allowed to change",
            lambda layer, x: np.delete(moved(layer, x), 2).max() > 1e-9,
        ),
        ("compare with a tolerance", partial(moves, tolerance=0.0)),
        ("Use a random change", partial(moves, by=1.0)),
        ("change every token, not only the last", partial(moves, places=[5])),
        ("look at every earlier output, not only at the first", partial(moves, at=0)),
        ("token 3, and nothing else leaks: change every token", partial(moves, places=[1, 5])),
        ("not only at the one before it", partial(moves, at=-1)),
        ("or doubling it", doubles),
        ("a leak can be small", partial(moves, tolerance=0.1)),
        ("change every feature of the token", partial(moves, by=np.eye(4)[0])),
        ("change every feature of the token", partial(moves, by=np.eye(4)[-1])),
        ("compare every feature of the output", partial(moves, at=(slice(None), 0))),
        ("compare every feature of the output", partial(moves, at=(slice(None), -1))),
        ("changes its input x", in_place),
    ],
    exercises.check_cumulative_norm: [
        ("Correct.", cumulative),
        ("Correct.", lambda x, eps: cumulative(x, eps).tolist()),
        *exercises.CUMULATIVE_MISTAKES.items(),
        ("returns nothing", lambda x, eps: None),
        ("first wrong output is at token 1", lambda x, eps: cumulative(x, eps) + 2e-5),
        (
            "first wrong output is at token 4",
            lambda x, eps: np.concatenate([cumulative(x, eps)[:, :3], x[:, 3:]], axis=1),
        ),
        ("changes its input", lambda x, eps: cumulative(np.subtract(x, 1, out=x), eps)),
    ],
}

test_answers = verdict_test(ANSWERS)
