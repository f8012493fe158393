"""The checkers for "Why normalize?" accept correct answers and recognize known mistakes."""

import math

import numpy as np
import pytest
import torch

from lnbook.chapters.start.why_normalize import exercises
from tests.helpers.verdicts import verdict_test

RIGHT = {name: right for name, (right, _) in exercises.VERDICTS.items()}


@pytest.mark.parametrize("name", RIGHT)
def test_verdicts_wrong(name: str) -> None:
    right, messages = exercises.VERDICTS[name]
    assert {right, *messages} == set(exercises.WORDS)
    for word, message in messages.items():
        verdict = exercises.check_verdicts(**RIGHT | {name: word})
        assert not verdict.correct
        assert verdict.message == f"{name}: {message}"
    for odd in ("true", ["supported"]):
        verdict = exercises.check_verdicts(**RIGHT | {name: odd})
        assert f"{name} should be one of supported, contradicted" in verdict.message


def rescaled(weights, images):
    weights, h = weights.copy(), images
    for number in range(len(weights)):
        size = np.sqrt(np.mean(np.maximum(h @ weights[number], 0) ** 2))
        weights[number] /= size
        h = np.maximum(h @ weights[number], 0)
    return weights


def rescaled_in_torch(weights, images):
    h, found = torch.tensor(images), []
    for layer in torch.tensor(weights):
        found.append(layer / (h @ layer).relu().square().mean().sqrt())
        h = (h @ found[-1]).relu()
    return torch.stack(found)


def rescaled_in_place(weights, images):
    weights *= 2
    return rescaled(weights, images)


def test_the_factor_is_that_of_two_standard_deviations() -> None:
    rng = np.random.default_rng(0)
    h = np.maximum(rng.normal(size=(200, 400)), 0)
    bound = 400**-0.5  # nn.Linear draws its weights uniformly between -bound and bound
    after = np.maximum(h @ rng.uniform(-bound, bound, (400, 400)), 0)
    found = np.sqrt((after**2).mean() / (h**2).mean())
    assert math.isclose(found, exercises.FACTOR, rel_tol=0.1)


ANSWERS = {
    exercises.check_growth: [
        ("Correct.", 6**-0.5, 6**-15, 6**0.5),
        ("Correct.", 0.41, 0.41**30, 2.45),
        ("Correct.", "0.408", 2e-12, np.float32(2.449)),
        ("factor is still missing", ...),
        ("ratio of the variances", 1 / 6),
        ("upside down: PyTorch's weights", 2.45),
        ("With a ReLU, sqrt(2/n)", 0.577),
        ("Divide PyTorch's standard deviation", 0.9),
        ("What is left is still missing", 0.41),
        ("never to 0", 0.41, 0),
        ("30 times the factor", 0.41, 12.2),
        ("divided by 30", 0.41, 0.0136),
        ("upside down: the signal shrinks", 0.41, 6.0**15),
        ("factor ** 30", 0.41, 1e-6),
        ("cure is still missing", 0.41, 2e-12),
        ("smaller still", 0.41, 2e-12, 0.41),
        ("the weights by its square root", 0.41, 2e-12, 6),
        ("has to become 1", 0.41, 2e-12, 2),
    ],
    exercises.check_start: [
        ("Correct.", rescaled),
        ("Correct.", rescaled_in_torch),
        *exercises.START_MISTAKES.items(),
        ("changes its input", rescaled_in_place),
        ("returns nothing", lambda weights, images: None),
        ("raised TypeError", lambda weights: weights),
        ("the sizes aren't all 1", lambda weights, images: 2 * rescaled(weights, images)),
    ],
    exercises.check_verdicts: [
        ("Correct.", *RIGHT.values()),
        ("a is still missing",),
        ("b is still missing", "contradicted"),
    ],
}

test_answers = verdict_test(ANSWERS)
