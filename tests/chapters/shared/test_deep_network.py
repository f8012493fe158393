"""The experiments compute what they claim to, and depend only on the seed."""

import numpy as np
import pytest
import torch

from lnbook.chapters.shared import deep_network


def normalize(z: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.layer_norm(z, z.shape[-1:])


def test_gradient_by_layer_is_the_chain_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    """Works out two layers without normalization by hand."""
    monkeypatch.setattr(deep_network, "DEPTH", 2)
    monkeypatch.setattr(deep_network, "WIDTH", 3)
    monkeypatch.setattr(deep_network, "ROWS", 1)
    rng = np.random.default_rng(5)
    x = rng.normal(size=(1, 3))
    first, second = (rng.normal(size=(3, 3)) * 2.0 / np.sqrt(3) for _ in range(2))
    top = rng.normal(size=(1, 3))
    output = np.tanh(np.tanh(x @ first.T) @ second.T)
    back = (top * (1 - output**2)) @ second
    expected = np.log10(np.linalg.norm(back) / np.linalg.norm(top))
    got = deep_network.gradient_by_layer(lambda z: z, scale=2.0, seed=5)
    assert got == pytest.approx([expected, 0.0])


def test_gradient_by_layer_does_not_see_the_scale_through_a_layer_norm() -> None:
    small, large = (
        deep_network.gradient_by_layer(normalize, scale, seed=1) for scale in (1.0, 9.0)
    )
    assert small == pytest.approx(large, abs=1e-3)
    assert small.shape == (deep_network.DEPTH,)
    plain = deep_network.gradient_by_layer(lambda z: z, 0.5, seed=1)
    assert plain[0] < small[0] - 5


@pytest.mark.parametrize("scale", [0.0, -1.0, np.nan])
def test_gradient_by_layer_refuses(scale: float) -> None:
    with pytest.raises(ValueError, match="expected scale to be positive"):
        deep_network.gradient_by_layer(normalize, scale)


@pytest.mark.parametrize(("optimizer", "lr"), [("SGD", 0.1), ("Adam", 3e-3)])
def test_train_learns_and_repeats(optimizer: str, lr: float) -> None:
    before = deep_network.train(normalize, optimizer, lr, seed=3, steps=0)
    after = deep_network.train(normalize, optimizer, lr, seed=3, steps=40)
    assert after[0] < before[0]
    assert after == deep_network.train(normalize, optimizer, lr, seed=3, steps=40)
    other = deep_network.train(normalize, optimizer, lr, seed=4, steps=40)
    assert after != other
    assert after[0] != after[1], "training and test rows differ"


def test_train_refuses_an_unknown_optimizer() -> None:
    with pytest.raises(ValueError, match="one of SGD, Adam, but got 'adam'"):
        deep_network.train(normalize, "adam")
