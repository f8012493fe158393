"""The chapter's checkers accept correct answers and recognize common mistakes."""

import math

from lnbook.chapters.gradient.effective_learning_rate import exercises
from tests.helpers.verdicts import verdict_test


def test_the_recipe() -> None:
    """Compute the angle from the exact formula, and the time from the recursion itself."""
    angle = math.degrees(math.acos(1 - 0.1 * 5e-4))
    fourth, target, steps = 0.0, 0.1 / (5e-4 * (2 - 0.1 * 5e-4)), 0
    while fourth < (1 - math.exp(-1)) * target:  # starts far below the target, with s = 1
        squared = (1 - 0.1 * 5e-4) ** 2 * math.sqrt(fourth) + 0.01 / max(math.sqrt(fourth), 0.1)
        fourth, steps = squared**2, steps + 1
    assert exercises.check_recipe(angle, steps).correct


def exact_decay(lr, decay, factor):
    angle = math.acos(1 - lr * decay)
    return (1 - math.cos(angle / factor)) * factor / lr


ANSWERS = {
    exercises.check_recipe: [
        ("in radians", 0.01, 5000),
        ("left out the square root", math.degrees(1e-4), 5000),
        ("left out the 2", 0.405, 5000),
        ("without the learning rate", 1.81, 5000),
        ("left out the 4", 0.573, 20000),
        ("fourth power", 0.573, 10000),
        ("without the learning rate", 0.573, 500),
        ("then its square root", 0.3, 5000),
        ("1 / (4 * rate", 0.573, 123),
        ("still missing", ..., 5000),
    ],
    exercises.check_new_decay: [
        ("Correct.", lambda lr, decay, factor: decay / factor),
        ("Correct.", exact_decay),
        *exercises.DECAYS.items(),
        ("square of the factor", lambda lr, decay, factor: 7.0),
        ("square of the factor", lambda lr, decay, factor: 1.01 * decay / factor),
    ],
    exercises.check_invariant: [
        ("Correct.", "ab"),
        ("Correct.", "b, a"),
        ("Correct.", "AB"),
        ("GELU", "abc"),
        ("residual stream", "abd"),
        ("bias", "abe"),
        ("removes the factor", "abf"),
        ("LayerNorm with epsilon 0", "b"),
        ("ReLU", "a"),
        ("x isn't one of the letters", "abx"),
        ("still missing", ""),
        ("still missing", ...),
        ("as a string", 3),
    ],
}

test_answers = verdict_test(ANSWERS)
