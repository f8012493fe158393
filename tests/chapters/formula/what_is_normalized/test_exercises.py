"""The checkers accept correct answers and recognize common mistakes."""

import numpy as np
import pytest
import torch
from torch import nn

from lnbook.chapters.formula.what_is_normalized import exercises
from lnbook.chapters.shared.checker import Verdict
from tests.helpers.verdicts import verdict_test

COUNTS = {"vectors": 32, "tokens": 160, "sequences": 8, "images": 16, "pixels": 16384}


@pytest.mark.parametrize(
    ("normalized", "shape", "expected"),
    [((5,), (3, 5), 3), ((5,), (2, 4, 5), 8), ((4, 5), (2, 4, 5), 2), ((3, 2, 2), (4, 3, 2, 2), 4)],
)
def test_the_counts_follow_the_same_rule_as_small_layers(normalized, shape, expected: int) -> None:
    """Count the groups that share a mean by changing one entry of each."""
    layer = nn.LayerNorm(normalized, dtype=torch.float64)
    x = torch.from_numpy(np.random.default_rng(0).normal(size=shape))
    undecided, groups = torch.ones(shape, dtype=torch.bool), 0
    while undecided.any():
        changed = x.clone()
        changed[tuple(undecided.nonzero()[0])] += 1.0
        undecided &= (layer(changed) - layer(x)).abs() <= 1e-9
        groups += 1
    assert groups == expected


@pytest.mark.parametrize("name", COUNTS)
def test_counts(name: str) -> None:
    def told(count: object) -> Verdict:
        return exercises.check_counts(**{**COUNTS, name: count})

    right, mistakes = COUNTS[name], exercises.COUNTS[name][2]
    assert told(right).correct
    for count, message in mistakes.items():
        assert told(count) == Verdict(False, f"{name}: {message}")
    for count in (right - 1, right + 1):
        assert "multiply the sizes" in told(count).message
    assert f"{name} is still missing: " in told(...).message


@pytest.mark.parametrize("name", ["A", "B", "C"])
def test_a_mystery_averages_over_its_axes(name: str) -> None:
    layer = getattr(exercises, f"mystery_{name.lower()}")
    x = np.random.default_rng(1).normal(size=(3, 4, 5))
    changed = x.copy()
    changed[1, 2, 3] += 1.0
    places = np.argwhere(np.abs(layer(changed) - layer(x)) > 1e-9)
    found = {letter for letter, column in zip("NLD", places.T, strict=True) if len(set(column)) > 1}
    assert found == set(exercises.MYSTERIES[name])
    with pytest.raises(ValueError, match="expected an array of shape"):
        layer(x[0])


def standardize(x: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
    return (x - x.mean(axes, keepdims=True)) / x.std(axes, keepdims=True)


D, LD, BATCH = (2,), (1, 2), (0, 1)


@pytest.mark.parametrize(
    ("letter", "first", "second"), [("a", LD, D), ("b", D, LD), ("c", BATCH, D), ("d", D, D)]
)
def test_the_pairs_of_norms_do_what_the_solution_says(letter: str, first, second) -> None:
    x = np.random.default_rng(3).normal(2.0, 3.0, size=(3, 4, 5))
    equal = np.allclose(standardize(standardize(x, first), second), standardize(x, D))
    assert equal == (letter != "c")


ANSWERS = {
    exercises.check_counts: [
        ("one per sequence", 32, 8),
        ("one per feature", 32, 64),
        ("one per token", 32, 160, 160),
        ("one per channel of each image", 32, 160, 8, 48),
        ("as in LayerNorm2d", 32, 160, 8, 16384),
        ("There are 16 images", 32, 160, 8, 16, 1024),
        ("one per image", 32, 160, 8, 16, 16),
    ],
    exercises.check_mystery: [
        ("Correct.", "LD", "NL", "L"),
        ("Correct.", "dl", "l, n", ["L"]),
        ("Correct.", ("L", "D"), {"N", "L"}, 1),
        ("Correct.", (1, 2), (0, 1), (-2,)),
        ("A is still missing",),
        ("A: change one entry, and outputs at other positions along L change too.\nL is", "D"),
        ("along L and D change too.\nL and D are missing", "N"),
        ("A: change one entry, and no output elsewhere along N changes.\nLeave N out", "NLD"),
        ("B: change one entry, and no output elsewhere along D", "LD", "NLD"),
        ("B: change one entry, and outputs at other positions along L", "LD", "N"),
        ("C: change one entry, and no output elsewhere along N", "LD", "NL", "NL"),
        ('A should be one or more of the letters N, L and D, such as "D", but', "features"),
        ("A should be one or more", ""),
        ("A should be one or more", 2.5),
        ("A should be one or more", 7),
    ],
    exercises.check_twice: [
        ("Correct.", "abd"),
        ("Correct.", "(D), b, A"),
        ("Correct.", ["a", "b", "d"]),
        (exercises.TWICE["a"], "bd"),
        (exercises.TWICE["b"], "ad"),
        (exercises.TWICE["c"], "abcd"),
        (exercises.TWICE["d"], "ab"),
        ("e isn't one of the letters", "abe"),
        ("Your letters are still missing", "..."),
        ("Give the letters as a string", 3),
        ("Your letters are still missing",),
    ],
}

test_answers = verdict_test(ANSWERS)
