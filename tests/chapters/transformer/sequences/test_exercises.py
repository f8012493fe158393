"""The checkers of the chapter on sequences: what is right passes, each mistake is named."""

import numpy as np
import pytest
import torch

from lnbook.chapters.shared.checker import Verdict
from lnbook.chapters.transformer.sequences import exercises, experiments

FEATURE = np.array([5.0] * 2 + [0.0] * 8)


def test_only_padding_right() -> None:
    normalized = torch.nn.functional.batch_norm(
        torch.tensor(FEATURE)[:, None], None, None, training=True, eps=1e-12
    )
    real = torch.zeros(1, 10, dtype=torch.bool)
    real[0, :2] = True
    masked = experiments.masked_batch_norm(torch.tensor(FEATURE)[None, :, None], real)
    verdict = exercises.check_only_padding(normalized[0, 0], normalized[-1].item(), masked[0, 0, 0])
    assert verdict.correct


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        ((..., -0.5, 0), "Your real is still missing"),
        (([2, 2], -0.5, 0), "should be one number"),
        ((0, -0.5, 0), "real: that would be so without the padding"),
        ((4, -0.5, 0), "real: this is x minus the mean"),
        ((1, -0.5, 0), "real: you divided by the variance"),
        ((4 / FEATURE.std(ddof=1), -0.5, 0), "real: you divided by n - 1"),
        ((5 / FEATURE.std(), -0.5, 0), "Subtract the mean first"),
        ((-2, -0.5, 0), "real: the sign"),
        ((-0.5, 2, 0), "real: this is the output at padding"),
        ((3, -0.5, 0), "real is off"),
        ((2, None, 0), "Your padding is still missing"),
        ((2, 0, 0), "padding: padding is normalized like the rest"),
        ((2, -1, 0), "padding: this is x minus the mean"),
        ((2, -0.25, 0), "padding: you divided by the variance"),
        ((2, -1 / FEATURE.std(ddof=1), 0), "padding: you divided by n - 1"),
        ((2, 0.5, 0), "padding: the sign"),
        ((2, 2, 0), "padding: this is the output at a real token"),
        ((2, -0.5, 2), "masked: this is the output without the mask"),
        ((2, -0.5, 5), "masked: the mask leaves only real tokens"),
        ((2, -0.5, 1), "masked: a constant feature has no spread"),
        ((2, -0.5, np.nan), "NaN"),
    ],
)
def test_only_padding_wrong(answers: tuple, expected: str) -> None:
    verdict = exercises.check_only_padding(*answers)
    assert not verdict.correct
    assert expected in verdict.message


def change(x: np.ndarray, place: int) -> np.ndarray:
    changed = x.copy()
    changed[place] = np.random.default_rng(place).normal(size=x.shape[1])
    return changed


def finds_leaks(layer, x, tolerance=1e-9):
    before = layer(x)
    return any(
        np.abs(layer(change(x, place)) - before)[:place].max() > tolerance
        for place in range(1, len(x))
    )


def by_jacobian(layer, x):
    """With finite differences, entry by entry."""
    for place, feature in np.ndindex(*x.shape):
        changed = x.copy()
        changed[place, feature] += 0.5
        moved = np.abs(layer(changed) - layer(x))[:place]
        if moved.size and moved.max() > 1e-9:
            return np.True_
    return np.False_


def by_reach(layer, x):
    found = experiments.reach(
        lambda t: torch.from_numpy(layer(t[0].numpy()))[None],
        torch.from_numpy(x)[None],
        torch.from_numpy(x[::-1] + 1.0)[None],
    )
    return np.tril(found[:, 0], -1).any()


@pytest.mark.parametrize("function", [finds_leaks, by_jacobian, by_reach])
def test_finds_leaks_right(function: object) -> None:
    assert exercises.check_finds_leaks(function).correct  # type: ignore[arg-type]


def test_the_cases_leak_as_they_say() -> None:
    x = np.random.default_rng(3).normal(size=(6, 4))
    assert [by_jacobian(layer, x) for _, layer, _, _ in exercises.CASES] == [
        leaks for _, _, leaks, _ in exercises.CASES
    ]


def adds_a_constant(layer, x):
    before = layer(x)
    for place in range(1, len(x)):
        changed = x.copy()
        changed[place] += 1.0
        if np.abs(layer(changed) - before)[:place].max() > 1e-9:
            return True
    return False


def in_place(layer, x):
    before = layer(x)
    x[-1] += np.arange(4)
    return np.abs(layer(x) - before)[:-1].max() > 1e-9


def one_feature(layer, x):
    before = layer(x)
    for place in range(1, len(x)):
        changed = x.copy()
        changed[place, 0] += 1.0
        if np.abs(layer(changed) - before)[:place].max() > 1e-9:
            return True
    return False


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda layer, x: None, "returns nothing"),
        (lambda layer, x: 1 / 0, "For LayerNorm over D, it raised ZeroDivisionError"),
        (lambda layer, x: np.abs(layer(change(x, 5)) - layer(x)) > 1, "returns several values"),
        (lambda layer, x: torch.tensor([True, False]), "returns several values"),
        (lambda layer, x: True, "LayerNorm over D has no leak, but yours says so"),
        (lambda layer, x: False, "LayerNorm over (L, D) leaks, and your function says no"),
        (lambda layer, x: bool((layer(change(x, 2)) != layer(x)).any()), "itself is no leak"),
        (
            lambda layer, x: np.abs(layer(change(x, 2)) - layer(x))[[0, 1, 3, 4, 5]].max() > 1e-9,
            "outputs after the exchanged token may move",
        ),
        (lambda layer, x: finds_leaks(layer, x, 0.0), "compare with a tolerance"),
        (adds_a_constant, "Draw the change at random"),
        (
            lambda layer, x: np.abs(layer(change(x, 5)) - layer(x))[:5].max() > 1e-9,
            "exchange every token, not only the last",
        ),
        (
            lambda layer, x: any(
                np.abs(layer(change(x, place)) - layer(x))[0].max() > 1e-9 for place in range(1, 6)
            ),
            "look at every earlier output, not only at the first",
        ),
        (one_feature, "change every feature of the token"),
        (in_place, "changes its input x"),
    ],
)
def test_finds_leaks_wrong(function: object, expected: str) -> None:
    verdict = exercises.check_finds_leaks(function)  # type: ignore[arg-type]
    assert not verdict.correct
    assert expected in verdict.message


def cumulative(x, eps):
    """Independent of the checker: PyTorch's LayerNorm over the beginning of each sequence."""
    t = torch.tensor(x)
    return torch.stack(
        [
            torch.nn.functional.layer_norm(t[:, :count], (count, t.shape[2]), eps=eps)[:, -1]
            for count in range(1, t.shape[1] + 1)
        ],
        1,
    )


def test_cumulative_norm_right() -> None:
    assert exercises.check_cumulative_norm(cumulative).correct
    assert exercises.check_cumulative_norm(lambda x, eps: cumulative(x, eps).tolist()).correct


@pytest.mark.parametrize("message", exercises.CUMULATIVE_MISTAKES)
def test_cumulative_norm_names_each_mistake(message: str) -> None:
    verdict = exercises.check_cumulative_norm(exercises.CUMULATIVE_MISTAKES[message])
    assert verdict == Verdict(False, message)


def changes_x(x, eps):
    x -= 1
    return cumulative(x, eps)


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda x, eps: None, "returns nothing"),
        (lambda x, eps: x[:, :1], "has the shape (2, 1, 3)"),
        (lambda x, eps: 1 / 0, "raised ZeroDivisionError"),
        (lambda x, eps: cumulative(x, eps) + 1e-6, "first wrong output is at token 1"),
        (
            lambda x, eps: np.concatenate([cumulative(x, eps)[:, :3], x[:, 3:]], axis=1),
            "first wrong output is at token 4",
        ),
        (changes_x, "changes its input"),
    ],
)
def test_cumulative_norm_wrong(function: object, expected: str) -> None:
    verdict = exercises.check_cumulative_norm(function)  # type: ignore[arg-type]
    assert not verdict.correct
    assert expected in verdict.message
