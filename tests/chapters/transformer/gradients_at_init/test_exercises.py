"""The checkers: right answers pass, and each known mistake is called by its name."""

from itertools import pairwise

import numpy as np
import pytest
import torch

from lnbook.chapters.shared.checker import Verdict
from lnbook.chapters.shared.encoder import at_start
from lnbook.chapters.transformer.gradients_at_init import exercises
from lnbook.transformer import PreLNBlock

STREAM = [6656, 18944]
FACTOR = [0.1644, 0.27735]


def test_stream_bounds_right() -> None:
    assert exercises.check_stream_bounds(STREAM, FACTOR).correct
    assert exercises.check_stream_bounds([13 * 512, 37 * 512], [37**-0.5, 13**-0.5]).correct
    assert exercises.check_stream_bounds(np.array(STREAM), [0.164, 0.277]).correct, "rounded"


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ((), "Your pair of bounds is still missing"),
        (([..., 5],), "still has a '...' in it"),
        (([6144, 18432],), "leaves out the input"),
        (([13, 37],), "divided by d"),
        ((np.sqrt(STREAM),), "holds lengths"),
        ((STREAM[::-1],), "wrong way around"),
        (([1, 2],), "Put d = 512 and l = 24"),
        ((STREAM,), "Your pair of factors is still missing"),
        ((STREAM, FACTOR[::-1]), "wrong way around"),
        ((STREAM, [1 / 37, 1 / 13]), "lacks the root: a norm"),
        ((STREAM, [13**0.5, 37**0.5]), "upside down"),
        ((STREAM, [18944**-0.5, 6656**-0.5]), "lacks the root of d"),
        ((STREAM, [24**-0.5, 24**-0.5]), "Lemma 2 are more exact"),
        ((STREAM, [0.5, 0.6]), "Divide d by your squared lengths"),
    ],
)
def test_stream_bounds_wrong(answer: tuple[object, ...], expected: str) -> None:
    verdict = exercises.check_stream_bounds(*answer)
    assert not verdict.correct
    assert expected in verdict.message


def sizes(states):
    """Token by token, as no reader would write it."""
    return [
        np.mean([np.linalg.norm(b - a) / np.linalg.norm(a) for a, b in zip(x, y, strict=True)])
        for x, y in pairwise(states)
    ]


def by_torch(states):
    x = torch.tensor(states)
    return (x.diff(dim=0).norm(dim=-1) / x[:-1].norm(dim=-1)).mean(-1)


@pytest.mark.parametrize("function", [sizes, by_torch])
def test_update_sizes_right(function: object) -> None:
    assert exercises.check_update_sizes(function).correct  # type: ignore[arg-type]


@pytest.mark.parametrize("message", exercises.UPDATE_MISTAKES)
def test_update_sizes_names_each_mistake(message: str) -> None:
    wrong = exercises.UPDATE_MISTAKES[message]
    assert exercises.check_update_sizes(wrong) == Verdict(False, message)


def changes_its_input(states):
    answer = sizes(states)
    states -= states[0]
    return answer


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda states: None, "returns nothing yet"),
        (lambda states: ..., "returns nothing yet"),
        (lambda states: states[0], "should be numbers of shape (3,)"),
        (lambda states: 1 / 0, "raised ZeroDivisionError: division by zero"),
        (lambda states: np.array(sizes(states)) + 1e-6, "the sizes are off"),
        (changes_its_input, "changes its input"),
    ],
)
def test_update_sizes_wrong(function: object, expected: str) -> None:
    verdict = exercises.check_update_sizes(function)  # type: ignore[arg-type]
    assert not verdict.correct
    assert expected in verdict.message


def measured() -> float:
    deep, shallow = (
        [at_start(PreLNBlock, depth, seed=seed, final_norm=False).weights[-1] for seed in range(5)]
        for depth in (24, 2)
    )
    return float(np.mean(deep) / np.mean(shallow))


def test_final_norm() -> None:
    ratio = measured()
    assert ratio > 3
    assert exercises.check_final_norm("it grows", ratio).correct
    for answer, given, expected in (
        (None, ratio, "Your answer is still missing"),
        ("up", ratio, 'Answer "it falls"'),
        ("it grows", ..., "Your ratio is still missing"),
        ("it grows", exercises._ratio(True), "ratio with the final norm"),
        ("it grows", 1 / ratio, "upside down"),
        ("it grows", ratio + 0.1, "Take seeds 0 to 4"),
        ("it falls", ratio, "says something else"),
        ("it stays", ratio, "says something else"),
    ):
        verdict = exercises.check_final_norm(answer, given)
        assert not verdict.correct
        assert expected in verdict.message
