"""The experiments in "Why normalize?" match PyTorch's layers and depend only on their seeds."""

import numpy as np
import pytest
import torch
from torch import nn

from lnbook.chapters.start.why_normalize import experiments
from lnbook.chapters.start.why_normalize.experiments import DeepNetworks, train


def alone(networks: DeepNetworks, number: int, *, norm: bool) -> nn.Sequential:
    """One of the networks, built from PyTorch's layers."""
    layers: list[nn.Module] = []
    for weight, bias in zip(networks.weights, networks.biases, strict=True):
        linear = nn.Linear(*weight.shape[1:]).double()
        linear.load_state_dict({"weight": weight[number].T, "bias": bias[number, 0]})
        layers += [linear, *([nn.LayerNorm(64).double()] if norm else []), nn.ReLU()]
    return nn.Sequential(*layers[: -2 if norm else -1])


@pytest.mark.parametrize("kind", experiments.KINDS)
def test_networks_side_by_side_are_torchs_own(kind: str) -> None:
    networks = DeepNetworks(kind, 1.3, depth=3, seeds=[4, 5])
    rng = np.random.default_rng(0)
    with torch.no_grad():
        for bias in networks.biases:
            bias.copy_(torch.from_numpy(rng.normal(size=tuple(bias.shape))))
    x = torch.from_numpy(rng.normal(size=(2, 7, 64)))
    for number in range(2):
        expected = alone(networks, number, norm=kind == "LayerNorm")(x[number])
        assert torch.allclose(networks(x)[number], expected)


def test_both_kinds_have_the_same_parameters() -> None:
    one, other = (DeepNetworks(kind, 0.7, 2, [3]).state_dict() for kind in experiments.KINDS)
    assert one.keys() == other.keys()
    assert all(torch.equal(one[name], other[name]) for name in one)


def test_weights_have_the_size_that_is_asked_for() -> None:
    networks = DeepNetworks("no norm", 0.5, depth=2, seeds=range(4))
    spreads = [weight.std().item() for weight in networks.weights]
    assert spreads == pytest.approx([0.5 * 32**-0.5, 0.5 * 32**-0.5, 1 / 8], rel=0.05)
    assert not any(bias.any() for bias in networks.biases)


def test_doubling_the_weights_doubles_the_signal_in_each_layer() -> None:
    """Without a norm, the scores are multiplied by 2 ** L; with one, they hardly change."""
    x = torch.from_numpy(np.random.default_rng(1).uniform(size=(1, 5, 64)))
    for kind, ratio in (("no norm", 2.0**8), ("LayerNorm", 1.0)):
        one, two = (DeepNetworks(kind, factor, 8, [0])(x) for factor in (0.6, 1.2))
        assert torch.allclose(two, ratio * one, rtol=1e-3, atol=1e-3 * two.abs().max().item())


@pytest.mark.parametrize("kind", experiments.KINDS)
def test_runs_follow_from_their_seeds_and_do_not_see_each_other(kind: str) -> None:
    settings = {"depth": 2, "steps": 30}
    both = train(kind, 1.0, 0.01, seeds=[1, 2], **settings)
    again = train(kind, 1.0, 0.01, seeds=[2], **settings)
    assert both[1] == again[0]
    assert both[0] != both[1]


def test_a_network_that_breaks_leaves_the_others_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = {"depth": 2, "steps": 30}
    expected = train("no norm", 1.0, 0.01, seeds=[2], **settings)

    class Broken(DeepNetworks):
        def __init__(self, *arguments: object) -> None:
            super().__init__(*arguments)
            if len(self.weights[0]) == 2:
                with torch.no_grad():
                    self.weights[0][0] = torch.inf

    monkeypatch.setattr(experiments, "DeepNetworks", Broken)
    found = train("no norm", 1.0, 0.01, seeds=[1, 2], **settings)
    assert found.tolist() == [0.0, *expected]


def test_what_is_not_known_is_refused() -> None:
    with pytest.raises(ValueError, match="expected kind to be one of .* but got 'LN'"):
        train("LN", 1.0, 0.1)
    with pytest.raises(ValueError, match="expected factor to be positive, but got 0"):
        train("no norm", 0.0, 0.1)
    with pytest.raises(ValueError, match="expected depth of at least 1, but got 0"):
        train("no norm", 1.0, 0.1, depth=0)
