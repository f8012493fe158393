"""The checkers of the chapter on what is normalized."""

import numpy as np
import pytest
import torch
from torch import nn

from lnbook.chapters.formula.what_is_normalized import exercises
from lnbook.chapters.shared.checker import Verdict

RIGHT = {"vectors": 32, "tokens": 160, "sequences": 8, "images": 16, "pixels": 16384}


def means_of(layer: nn.Module, x: torch.Tensor) -> int:
    """How many groups share a mean, found by moving one entry of each."""
    undecided = torch.ones(x.shape, dtype=torch.bool)
    groups = 0
    before = layer(x)
    while undecided.any():
        index = tuple(undecided.nonzero()[0])
        changed = x.clone()
        changed[index] += 1.0
        undecided &= (layer(changed) - before).abs() <= 1e-9
        groups += 1
    return groups


def test_the_counts_follow_the_same_rule_as_small_layers() -> None:
    generator = np.random.default_rng(0)

    def normal(*shape: int) -> torch.Tensor:
        return torch.from_numpy(generator.normal(size=shape))

    def layer_norm(*shape: int) -> nn.Module:
        return nn.LayerNorm(shape, dtype=torch.float64)

    assert means_of(layer_norm(5), normal(3, 5)) == 3
    assert means_of(layer_norm(5), normal(2, 4, 5)) == 2 * 4
    assert means_of(layer_norm(4, 5), normal(2, 4, 5)) == 2
    assert means_of(layer_norm(3, 2, 2), normal(4, 3, 2, 2)) == 4


def test_counts_right() -> None:
    assert exercises.check_counts(**RIGHT).correct
    assert exercises.check_counts(32.0, np.int64(160), torch.tensor(8), 16, 16 * 32 * 32).correct


@pytest.mark.parametrize("name", RIGHT)
def test_counts_wrong(name: str) -> None:
    _, right, mistakes = exercises.COUNTS[name]
    assert RIGHT[name] == right
    assert right not in mistakes
    for count, message in mistakes.items():
        verdict = exercises.check_counts(**{**RIGHT, name: count})
        assert verdict == Verdict(False, f"{name}: {message}")
    assert "multiply the sizes" in exercises.check_counts(**{**RIGHT, name: 77}).message
    assert f"{name} is still missing" in exercises.check_counts(**{**RIGHT, name: ...}).message
    odd = exercises.check_counts(**{**RIGHT, name: (8, 20)})
    assert odd == Verdict(False, f"{name} should be one whole number, but is (8, 20).")


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (("tokens", 8), "one per sequence"),
        (("tokens", 64), "one per feature"),
        (("sequences", 160), "one per token"),
        (("images", 48), "one per channel of each image"),
        (("images", 16384), "as in LayerNorm2d"),
        (("pixels", 1024), "There are 16 images"),
        (("pixels", 16), "one per image"),
    ],
)
def test_counts_name_the_usual_mistakes(name: tuple[str, int], expected: str) -> None:
    assert expected in exercises.check_counts(**{**RIGHT, name[0]: name[1]}).message


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


@pytest.mark.parametrize(
    "answer",
    [
        ("LD", "NL", "L"),
        ("dl", "l, n", ["L"]),
        (("L", "D"), {"N", "L"}, 1),
        ((1, 2), (0, 1), (-2,)),
        ("(L, D)", "(N, L)", "(L)"),
    ],
)
def test_mystery_right(answer: tuple[object, ...]) -> None:
    assert exercises.check_mystery(*answer).correct


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ((), "A is still missing"),
        (("D",), "A: change one entry, and outputs at other places along L move too.\nL is"),
        (("N",), "along L and D move too.\nL and D are missing"),
        (("NLD",), "A: change one entry, and no output elsewhere along N moves.\nLeave N out"),
        (("LD", "NLD"), "B: change one entry, and no output elsewhere along D"),
        (("LD", "N"), "B: change one entry, and outputs at other places along L"),
        (("LD", "NL", "NL"), "C: change one entry, and no output elsewhere along N"),
        (("LD", "NL", "LD"), "C: change one entry, and no output elsewhere along D"),
        (("LD", "NL"), "C is still missing"),
        (("features",), 'A should be letters out of N, L and D, such as "D", but is'),
        (("",), "A should be letters"),
        ((2.5,), "A should be letters"),
        ((7,), "A should be letters"),
    ],
)
def test_mystery_wrong(answer: tuple[object, ...], expected: str) -> None:
    verdict = exercises.check_mystery(*answer)
    assert not verdict.correct
    assert expected in verdict.message
