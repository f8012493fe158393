"""The experiments on when to use LayerNorm do what they say, and depend only on their seeds."""

import numpy as np
import pytest
import torch
from torch import nn

from lnbook.chapters.practice.when_to_use import experiments


def random(*shape: int) -> torch.Tensor:
    return torch.from_numpy(np.random.default_rng(0).normal(size=shape))


@pytest.mark.parametrize(("kind", "layer"), [("LN", nn.LayerNorm), ("BN", nn.BatchNorm1d)])
def test_norms_side_by_side_agree_with_torchs(kind: str, layer: type) -> None:
    """Compares outputs in both modes (with random gains and shifts) and running statistics."""
    many = experiments._Norms(kind, 3, 4)
    with torch.no_grad():
        many.weight.copy_(random(3, 1, 4))
        many.bias.copy_(random(3, 1, 4).flip(0))
    ones = [layer(4).double() for _ in range(3)]
    for number, one in enumerate(ones):
        one.load_state_dict(
            {"weight": many.weight[number, 0], "bias": many.bias[number, 0]}, strict=False
        )
    x = 3 + 2 * random(3, 10, 4)
    for training in (True, True, False):
        many.train(training)
        got = many(x)
        for number, one in enumerate(ones):
            assert torch.allclose(got[number], one.train(training)(x[number])), (kind, training)
        x = x + random(3, 10, 4) ** 2
    if kind == "BN":
        assert torch.allclose(many.mean[1, 0], ones[1].running_mean)
        assert torch.allclose(many.variance[1, 0], ones[1].running_var)


def test_linears_side_by_side_are_initialized_like_torchs() -> None:
    rngs = [np.random.default_rng(seed) for seed in (5, 6)]
    many = experiments._Linears(rngs, 3, 2)
    one = experiments.initialize_(nn.Linear(3, 2).double(), np.random.default_rng(6))
    x = random(2, 7, 3)
    assert torch.allclose(many(x)[1], one(x[1]))
    assert not torch.allclose(many.weight[0], many.weight[1])


def test_dropout_keeps_the_mean_and_stops_in_evaluation() -> None:
    rngs = [np.random.default_rng(seed) for seed in (0, 1)]
    layer, x = experiments._Dropouts(rngs, 0.25), torch.ones(2, 500, 40).double()
    y = layer(x)
    assert sorted(set(y.flatten().tolist())) == [0.0, 1 / 0.75]
    assert torch.allclose(y.mean((1, 2)), torch.ones(2).double(), atol=0.02)
    assert not torch.equal(y[0], y[1])
    assert torch.equal(layer.eval()(x), x)


@pytest.mark.parametrize("gain", [0.0, 0.5, 1.0])
def test_a_residual_block_follows_its_equation(gain: float) -> None:
    block = experiments._Residuals([np.random.default_rng(2)], 4, gain)
    first, _, second, _ = block.branch
    x = random(1, 6, 4)
    h = (x[0] @ first.weight[0] + first.bias[0]).relu() @ second.weight[0] + second.bias[0]
    expected = x[0] + gain * nn.functional.layer_norm(h, (4,))
    assert torch.allclose(block(x)[0], expected)
    assert (gain == 0) == torch.equal(block(x), x)


def captured(monkeypatch: pytest.MonkeyPatch) -> list[nn.Module]:
    """Collect the models instead of training them."""
    models: list[nn.Module] = []

    def fit(model: nn.Module, *_args: object) -> list[float]:
        models.append(model)
        return []

    monkeypatch.setattr(experiments, "_fit", fit)
    return models


def kinds(model: nn.Sequential) -> list[str]:
    return [type(layer).__name__.strip("_") for layer in model]


def test_plain_networks_have_norms_in_the_right_place(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    models = captured(monkeypatch)
    for place in experiments.PLACES:
        experiments.train_plain(place, depth=2, seeds=[0])
    experiments.train_plain("none", depth=2, start="he", seeds=[0])
    none, before, after, he = models
    assert kinds(none) == ["Linears", "ReLU"] * 2 + ["Linears"]
    assert kinds(before) == ["Linears", "Norms", "ReLU"] * 2 + ["Linears"]
    assert kinds(after) == ["Linears", "ReLU", "Norms"] * 2 + ["Linears"]
    assert torch.equal(before[0].weight, none[0].weight)
    assert torch.equal(after[3].weight, none[2].weight)
    assert torch.allclose(he[2].weight, 6**0.5 * none[2].weight)
    assert not he[2].bias.any()


def test_dropout_is_in_the_right_place(monkeypatch: pytest.MonkeyPatch) -> None:
    models = captured(monkeypatch)
    for order in experiments.ORDERS:
        experiments.train_with_dropout("LN", order, seeds=[0])
    before, after, last = map(kinds, models)
    assert before == ["Linears", "ReLU", "Dropouts", "Norms"] * 2 + ["Linears"]
    assert after == ["Linears", "ReLU", "Norms", "Dropouts"] * 2 + ["Linears"]
    assert last == ["Linears", "ReLU", "Norms"] * 2 + ["Dropouts", "Linears"]


def test_gains_have_the_right_initial_values(monkeypatch: pytest.MonkeyPatch) -> None:
    models = captured(monkeypatch)
    for gain in experiments.GAINS:
        experiments.train_deep_residual(gain, depth=4, seeds=[0])
    starts = [[block.branch[-1].weight.unique().tolist() for block in m[1:-2]] for m in models]
    assert starts == [[[1.0]] * 4, [[0.5]] * 4, [[0.0]] * 4]
    assert all(kinds(m)[-2:] == ["Norms", "Linears"] for m in models)


def test_runs_depend_only_on_their_seeds() -> None:
    both = experiments.train_plain("before", 1, steps=30, seeds=[1, 2])
    alone = experiments.train_plain("before", 1, steps=30, seeds=[2])
    assert both[1] == alone[0]
    assert both[0] != both[1]
    first = experiments.train_with_dropout("BN", "before each norm", steps=20, seeds=[3, 4])
    again = experiments.train_with_dropout("BN", "before each norm", steps=20, seeds=[4])
    assert np.isclose(first.loss[1], again.loss[0], rtol=1e-9)


def test_variance_shift_is_measured_where_there_is_one() -> None:
    shifted = experiments.train_with_dropout("BN", "before each norm", steps=100, seeds=[0, 1])
    plain = experiments.train_with_dropout("BN", "before each norm", 0.0, steps=100, seeds=[0, 1])
    assert (shifted.ratio < 0.85).all()
    assert (abs(plain.ratio - 1) < 0.1).all()
    assert (shifted.remeasured < shifted.loss).all()
    assert np.isnan(experiments.train_with_dropout("LN", "before each norm", steps=1).ratio).all()


def test_critics_with_a_norm_are_bounded() -> None:
    near, far = experiments.critic_values(True, [1e3, 1e6]).T
    assert (far < 64**0.5 + 1 / 8).all()
    assert np.allclose(near, far, rtol=1e-3)
    one, ten = experiments.critic_values(False, [1e5, 1e6], seeds=[7])[0]
    assert np.isclose(ten / one, 10, rtol=1e-3)


def test_unknown_names_are_rejected() -> None:
    with pytest.raises(ValueError, match="expected place to be one of .* but got 'behind'"):
        experiments.train_plain("behind", 2)
    with pytest.raises(ValueError, match="expected start to be one of .* but got 'xavier'"):
        experiments.train_plain("none", 2, start="xavier")
    with pytest.raises(ValueError, match="expected depth of at least 1, but got 0"):
        experiments.train_plain("none", 0)
    with pytest.raises(ValueError, match="expected gain to be one of .* but got 'two'"):
        experiments.train_deep_residual("two")
    with pytest.raises(ValueError, match="expected norm to be one of .* but got 'GN'"):
        experiments.train_with_dropout("GN", "after each norm")
    with pytest.raises(ValueError, match="expected order to be one of .* but got 'first'"):
        experiments.train_with_dropout("LN", "first")
    with pytest.raises(ValueError, match="share to be at least 0 and less than 1, but got 1"):
        experiments.train_with_dropout("LN", "after each norm", 1.0)
