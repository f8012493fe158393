"""The chapter's experiments."""

import math

import numpy as np
import pytest
import torch

from lnbook.chapters.gradient.effective_learning_rate import experiments

LAYER_BY_HAND = {True: lambda z: (z - z.mean(1)[:, None]) / z.std(1)[:, None], False: lambda z: z}


@pytest.mark.parametrize("norm", [True, False])
def test_the_network_is_that_of_the_chapter(norm: bool) -> None:
    rng = np.random.default_rng(1)
    weights = [rng.normal(size=shape) for shape in ((32, 8), (32, 32), (3, 32))]
    x = rng.normal(size=(5, 8))
    hidden = x
    for weight in weights[:2]:
        hidden = np.maximum(LAYER_BY_HAND[norm](hidden @ weight.T), 0)
    found = experiments.logits([torch.tensor(w) for w in weights], torch.tensor(x), norm)
    np.testing.assert_allclose(found.numpy(), hidden @ weights[2].T, rtol=1e-10)


def test_small_angles_keep_their_digits() -> None:
    one = torch.tensor([[1.0, 0.0]], dtype=torch.float64)
    other = torch.tensor([[3.0, 3.0 * math.tan(1e-9)]], dtype=torch.float64)
    assert experiments.turn(one, other) == pytest.approx(1e-9, rel=1e-6)
    assert experiments.turn(one, -one) == pytest.approx(math.pi)


def test_a_step_is_the_triangle_of_the_chapter() -> None:
    """With orthogonal gradients, the norms before and after a step determine the angle."""
    lr, decay = 0.5, 0.02
    run = experiments.train(lr, decay, seed=3, steps=20)
    cosines = (1 - lr * decay) * run.norms[:-1] / run.norms[1:]
    np.testing.assert_allclose(np.cos(run.angles[1:]), cosines, rtol=1e-10)
    without = experiments.train(lr, decay, seed=3, steps=20, norm=False)
    cosines = (1 - lr * decay) * without.norms[:-1] / without.norms[1:]
    assert np.abs(np.cos(without.angles[1:]) / cosines - 1).max() > 1e-4


def test_the_start_may_be_scaled_and_the_rate_may_change() -> None:
    small, large = (experiments.train(0.0, 0.0, 0, 1, factor=f) for f in (1.0, 3.0))
    np.testing.assert_allclose(large.norms, 3 * small.norms)
    assert small.losses == pytest.approx(large.losses)
    run = experiments.train([0.0, 0.1], 0.0, 0, 2)
    assert run.angles[0] == pytest.approx(0.0, abs=1e-12)
    assert (run.angles[1] > 0).all()


def test_labels_are_partly_random() -> None:
    inputs, labels = experiments.noisy_task(0)
    again, same = experiments.noisy_task(0)
    assert torch.equal(inputs, again)
    assert torch.equal(labels, same)
    assert not torch.equal(labels, experiments.noisy_task(1)[1])


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: experiments.train([0.1], 0.0, 0, 2), "expected one lr or 2"),
        (
            lambda: experiments.train(0.1, 0.0, 0, 2, optimizer="Adam"),
            "'SGD' or 'AdamW', but got 'Adam'",
        ),
        (lambda: experiments.windows(np.ones(5), 2), "multiple of size=2, but got 5"),
    ],
)
def test_bad_input(call, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        call()
