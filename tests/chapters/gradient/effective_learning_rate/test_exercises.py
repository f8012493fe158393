"""The chapter's checkers accept correct answers and recognize common mistakes."""

import math

import pytest

from lnbook.chapters.gradient.effective_learning_rate import exercises


def test_the_recipe() -> None:
    """Compute the angle from the exact formula, and the time from the recursion itself."""
    angle = math.degrees(math.acos(1 - 0.1 * 5e-4))
    fourth, target, steps = 0.0, 0.1 / (5e-4 * (2 - 0.1 * 5e-4)), 0
    while fourth < (1 - math.exp(-1)) * target:  # starts far below the target, with s = 1
        squared = (1 - 0.1 * 5e-4) ** 2 * math.sqrt(fourth) + 0.01 / max(math.sqrt(fourth), 0.1)
        fourth, steps = squared**2, steps + 1
    assert exercises.check_recipe(angle, steps).correct


@pytest.mark.parametrize(
    ("degrees", "steps", "told"),
    [
        (0.01, 5000, "in radians"),
        (math.degrees(1e-4), 5000, "left out the square root"),
        (0.405, 5000, "left out the 2"),
        (1.81, 5000, "without the learning rate"),
        (0.573, 20000, "left out the 4"),
        (0.573, 10000, "fourth power"),
        (0.573, 500, "without the learning rate"),
        (0.3, 5000, "then its square root"),
        (0.573, 123, "1 / (4 * rate"),
        (..., 5000, "still missing"),
    ],
)
def test_mistakes_with_the_recipe(degrees: object, steps: object, told: str) -> None:
    verdict = exercises.check_recipe(degrees, steps)
    assert not verdict.correct
    assert told in verdict.message


def test_the_new_decay() -> None:
    assert exercises.check_new_decay(lambda lr, decay, factor: decay / factor).correct
    for text, mistake in exercises.DECAYS.items():
        assert exercises.check_new_decay(mistake).message == text
    assert "square of the factor" in exercises.check_new_decay(lambda lr, d, f: 7.0).message


@pytest.mark.parametrize("letters", ["ab", "b, a", "AB"])
def test_invariant_layers(letters: str) -> None:
    assert exercises.check_invariant(letters).correct


@pytest.mark.parametrize(
    ("letters", "told"),
    [
        ("abc", "GELU"),
        ("abd", "residual stream"),
        ("abe", "bias"),
        ("abf", "removes the factor"),
        ("b", "LayerNorm with epsilon 0"),
        ("a", "ReLU"),
        ("abx", "x isn't one of the letters"),
        ("", "still missing"),
        (..., "still missing"),
        (3, "as a string"),
    ],
)
def test_layers_that_are_not_invariant(letters: object, told: str) -> None:
    verdict = exercises.check_invariant(letters)
    assert not verdict.correct
    assert told in verdict.message
