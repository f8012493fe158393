"""The experiments compute what their docstrings say, and depend only on the seed."""

import copy

import numpy as np
import pytest
import torch
from torch import nn

from lnbook.chapters.batch_norm.train_and_eval import experiments
from lnbook.data.digits import load_digits


@pytest.fixture
def norm() -> nn.BatchNorm1d:
    """A norm that predicts different classes in its two modes."""
    layer = nn.BatchNorm1d(3).double()
    layer.running_mean.copy_(torch.tensor([2.0, 0.0, -2.0]))
    return layer


@pytest.fixture
def x() -> torch.Tensor:
    return torch.from_numpy(np.random.default_rng(3).normal(size=(12, 3)))


def test_digits_network_normalizes_before_relu() -> None:
    for name, kind in experiments.NORMS.items():
        model = experiments.digits_network(name, seed=2)
        kinds = [type(layer) for layer in model]
        assert kinds == [nn.Linear, kind, nn.ReLU] * 2 + [nn.Linear]
        assert {value.dtype for value in model.parameters()} == {torch.float64}
    first, second = (experiments.digits_network(name, seed=2) for name in experiments.NORMS)
    assert torch.equal(first[0].weight, second[0].weight), "both start from the same weights"
    assert not torch.equal(first[0].weight, experiments.digits_network(name, seed=3)[0].weight)
    with pytest.raises(ValueError, match="BatchNorm or LayerNorm, but got 'batch'"):
        experiments.digits_network("batch")


@pytest.mark.parametrize("name", ["BatchNorm", "LayerNorm"])
def test_train_digits_learns_and_is_reproducible(name: str) -> None:
    digits = load_digits()
    model = experiments.train_digits(name, seed=1, steps=60)
    assert not model.training
    assert experiments.accuracy(model, digits.test_x, digits.test_y, training=False) > 0.6
    again = experiments.train_digits(name, seed=1, steps=60)
    assert all(map(torch.equal, model.state_dict().values(), again.state_dict().values())), (
        "the same seed"
    )


def test_accuracy_uses_the_mode_and_the_batches(norm: nn.BatchNorm1d, x: torch.Tensor) -> None:
    y = (x / x.std(dim=0)).argmax(dim=1)
    state = copy.deepcopy(norm.state_dict())
    mean = norm.running_mean
    expected = ((x - mean).argmax(dim=1) == y).double().mean().item()
    assert experiments.accuracy(norm, x, y, training=False) == pytest.approx(expected)

    def normalized(rows: torch.Tensor) -> torch.Tensor:
        return (rows - rows.mean(dim=0)) / rows.std(dim=0, correction=0)

    for size in (4, 12):
        classes = torch.cat([normalized(rows).argmax(dim=1) for rows in x.split(size)])
        got = experiments.accuracy(norm, x, y, training=True, batch_size=size)
        assert got == pytest.approx((classes == y).double().mean().item())
        assert got != pytest.approx(expected)
    assert norm.training
    assert all(map(torch.equal, norm.state_dict().values(), state.values())), "the state changed"
    with pytest.raises(ValueError, match="divide the 12 examples, but got 5"):
        experiments.accuracy(norm, x, y, training=True, batch_size=5)


def test_changed_classes(norm: nn.BatchNorm1d, x: torch.Tensor) -> None:
    assert experiments.changed_classes(norm, x, training=False, batch_size=3) == 0.0
    assert experiments.changed_classes(norm, x, training=True, batch_size=12) == 0.0
    assert experiments.changed_classes(norm, x, training=True, batch_size=3) > 0.2
    assert experiments.changed_classes(nn.Identity(), x, training=True, batch_size=3) == 0.0
    with pytest.raises(ValueError, match="at least 2, but got 1"):
        experiments.changed_classes(norm, x, training=True, batch_size=3, repeats=1)
    with pytest.raises(ValueError, match="changed_classes: expected batch_size to divide"):
        experiments.changed_classes(norm, x, training=True, batch_size=7)


def test_output_gap(norm: nn.BatchNorm1d, x: torch.Tensor) -> None:
    evaluated = (x - norm.running_mean) / np.sqrt(1 + 1e-5)
    mean, var = x.mean(dim=0), x.var(dim=0, correction=0)
    trained = (x - mean) / torch.sqrt(var + 1e-5)
    expected = torch.sqrt((trained - evaluated).square().sum() / evaluated.square().sum())
    got = experiments.output_gap(norm, x, batch_size=12)
    assert got == pytest.approx(expected.item())
    assert experiments.output_gap(norm, x, batch_size=4) != pytest.approx(got)
    assert norm.num_batches_tracked == 0
    with pytest.raises(ValueError, match="output_gap: expected batch_size to divide"):
        experiments.output_gap(norm, x, batch_size=0)


def test_accuracy_by_momentum_agrees_with_separate_training() -> None:
    """Trains separately with each momentum and compares."""
    digits = load_digits()
    run = experiments.accuracy_by_momentum([0.3, None, 0.0], 4, batch_size=8, steps=30, every=15)
    assert run.steps.tolist() == [15, 30]
    weights = []
    for momentum in run.accuracy:
        model = experiments.digits_network("BatchNorm", 4)
        for layer in model:
            if isinstance(layer, nn.BatchNorm1d):
                layer.momentum = momentum
        batches = experiments._batches(digits, 4, 8, 30)
        experiments.fit(model, batches, experiments._loss, experiments._adam(model))
        got = experiments.accuracy(model, digits.test_x, digits.test_y, training=False)
        assert run.accuracy[momentum][-1] == pytest.approx(got)
        weights.append(model[0].weight)
        whole = experiments.accuracy(model, digits.test_x, digits.test_y, training=True)
        assert run.batch_accuracy[-1] == pytest.approx(whole)
    assert all(torch.equal(weights[0], weight) for weight in weights), (
        "training never reads the running averages"
    )
    assert len({tuple(values) for values in run.accuracy.values()}) == 3


@pytest.mark.parametrize("momenta", [[], [0.1, 1.5], [-0.1]])
def test_accuracy_by_momentum_rejects_invalid_momenta(momenta: list[float]) -> None:
    with pytest.raises(ValueError, match="expected momenta from 0 to 1 or None"):
        experiments.accuracy_by_momentum(momenta)


def test_accuracy_by_momentum_rejects_every_below_one() -> None:
    with pytest.raises(ValueError, match="every of at least 1, but got 0"):
        experiments.accuracy_by_momentum([0.1], every=0)
