"""Networks trained side by side match those trained alone; results depend only on the seed."""

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy

from benchmarks.batch_norm.batch_size import controls
from benchmarks.batch_norm.batch_size import runs as recorded
from lnbook import measurements
from lnbook.chapters.batch_norm.batch_size import experiments
from lnbook.data.digits import split
from lnbook.training import fit, minibatches


def alone(norm: str, seed: int, batch_size: int, steps: int, **options: object) -> nn.Sequential:
    """Train a single network by itself."""
    model = experiments.network(norm, seed, **options)
    data = split(seed)
    order = np.random.default_rng([seed, experiments.ORDER])
    fit(
        model,
        minibatches(order, *data.train, batch_size=batch_size, steps=steps),
        lambda model, batch: cross_entropy(model(batch[0]), batch[1]),
        torch.optim.Adam(model.parameters(), lr=0.01),
    )
    return model


def states_agree(one: nn.Module, other: nn.Module) -> bool:
    first, second = one.state_dict(), other.state_dict()
    return first.keys() == second.keys() and all(
        torch.allclose(first[name], second[name], rtol=1e-7, atol=1e-8) for name in first
    )


@pytest.mark.parametrize("norm", experiments.NORMS)
def test_side_by_side_equals_one_by_one(norm: str) -> None:
    """Compares weights, gains and running averages after training at a high learning rate."""
    options = {"depth": 3, "start": "he", "eps": 0.01}
    result = experiments.train(norm, 6, 0.01, steps=30, seeds=[4, 1, 7], **options)
    for seed, model, one in zip((4, 1, 7), result.model.networks(), result.splits, strict=True):
        expected = alone(norm, seed, 6, 30, **options)
        assert states_agree(model, expected)
        assert str(model) == str(expected)
        x, y = one.test
        right = (expected.eval()(x).argmax(1) == y).double().mean().item()
        place = (4, 1, 7).index(seed)
        assert result.test[-1, place] == pytest.approx(right)
        with torch.no_grad():
            loss = cross_entropy(expected(one.train[0]), one.train[1]).item()
        assert result.training_loss[-1, place] == pytest.approx(loss)


def test_the_norms_start_from_the_same_weights() -> None:
    first, *others = (experiments.network(norm, seed=3) for norm in experiments.NORMS)
    for other in others:
        linear = [[m for m in model if isinstance(m, nn.Linear)] for model in (first, other)]
        assert all(torch.equal(a.weight, b.weight) for a, b in zip(*linear, strict=True))
    again = experiments.network("none", seed=4)
    assert not torch.equal(first[0].weight, again[0].weight)


def test_he_initialization() -> None:
    plain, large = (experiments.network("none", depth=4, start=s) for s in ("torch", "he"))
    for one, other in zip(plain, large, strict=True):
        if isinstance(one, nn.Linear):
            assert torch.allclose(6**0.5 * one.weight, other.weight)
            assert not other.bias.any()
    assert large[2].weight.var().item() == pytest.approx(2 / 64, rel=0.1)


def test_a_split_has_every_digit_once() -> None:
    one, other = split(0), split(1)
    parts = (one.train, one.validation, one.test)
    assert [len(y) for _, y in parts] == [1197, 150, 450]
    images = torch.cat([x for x, _ in parts])
    assert len(torch.unique(images, dim=0)) == 1797
    assert not torch.equal(one.test[0], other.test[0])
    assert torch.equal(one.test[0], split(0).test[0])


def test_ghost_is_batch_norm_of_each_part() -> None:
    rng = np.random.default_rng(0)
    x = torch.tensor(rng.normal(size=(6, 3)))
    ghost = experiments.Ghost(nn.BatchNorm1d(3).double(), size=2)
    expected = [nn.BatchNorm1d(3).double()(part) for part in (x[:2], x[2:4], x[4:])]
    assert torch.allclose(ghost(x), torch.cat(expected))
    norm = ghost.norm
    assert norm.num_batches_tracked == 3
    assert torch.allclose(ghost.eval()(x), norm(x))


def test_a_ghost_batch_as_large_as_the_batch_changes_nothing() -> None:
    one = experiments.train("BN", 8, steps=10, seeds=[0])
    other = experiments.train("BN", 8, steps=10, seeds=[0], ghost=8)
    assert states_agree(one.model.networks()[0], other.model.networks()[0])
    assert states_agree(
        one.model.networks()[0],
        experiments.train("BN", 8, steps=10, seeds=[0], counted=8).model.networks()[0],
    )


def test_only_the_counted_images_affect_the_loss() -> None:
    """Without batch norm, the other images don't matter, so in effect the batches are small."""
    model = experiments.train("LN", 8, 0.01, steps=5, seeds=[0], counted=2).model.networks()[0]
    expected = experiments.network("LN", 0)
    order = np.random.default_rng([0, experiments.ORDER])
    batches = minibatches(order, *split(0).train, batch_size=8, steps=5)
    fit(
        expected,
        ((x[:2], y[:2]) for x, y in batches),
        lambda model, batch: cross_entropy(model(batch[0]), batch[1]),
        torch.optim.Adam(expected.parameters(), lr=0.01),
    )
    assert states_agree(model, expected)


def test_few_images_are_the_first_of_the_training_images() -> None:
    one, whole = controls.few(2, 20), split(2)
    assert torch.equal(one.train[0], whole.train[0][:20])
    assert torch.equal(one.train[1], whole.train[1][:20])
    assert torch.equal(one.test[0], whole.test[0])
    assert len(controls.few(2, None).train[1]) == 1197


def test_measures_over_time() -> None:
    result = experiments.train("GN", 16, steps=30, seeds=[0, 1], every=10)
    assert result.steps.tolist() == [10, 20, 30]
    for name in ("training_loss", "test_loss", "validation", "test"):
        assert getattr(result, name).shape == (3, 2)
    assert result.training_loss[-1].mean() < result.training_loss[0].mean()


@pytest.mark.parametrize("ghost", [None, 4])
def test_accuracy_by_statistics(ghost: int | None) -> None:
    result = experiments.train("BN", 8, steps=20, seeds=[0, 1], ghost=ghost)
    before = [value.clone() for value in result.model.state_dict().values()]
    found = experiments.accuracy_by_statistics(result, [450, 9])
    assert list(found) == ["running averages", "training set", "batches of 450", "batches of 9"]
    after = result.model.state_dict().values()
    assert all(torch.equal(one, other) for one, other in zip(before, after, strict=True))
    assert found["running averages"] == pytest.approx(result.test[-1])
    model, one = result.model.networks()[1], result.splits[1]
    with torch.no_grad():
        own = (model.train()(one.test[0]).argmax(1) == one.test[1]).double().mean().item()
        assert found["batches of 450"][1] == pytest.approx(own)
        for part in model:
            if isinstance(part, nn.BatchNorm1d):
                part.momentum = 1.0
        model(one.train[0])
        right = (model.eval()(one.test[0]).argmax(1) == one.test[1]).double().mean().item()
    assert found["training set"][1] == pytest.approx(right)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"norm": "bn"}, "expected norm to be one of"),
        ({"start": "xavier"}, "expected start to be one of"),
        ({"depth": 0}, "expected depth of at least 1, but got 0"),
        ({"seeds": []}, "at least one seed"),
        ({"ghost": 3}, "a divisor of batch_size 8"),
        ({"ghost": 1}, "expected ghost to be at least 2"),
        ({"norm": "LN", "ghost": 4}, "with norm 'BN', but got 4 with 'LN'"),
        ({"counted": 0}, "expected counted from 1 to 8, but got 0"),
        ({"counted": 9}, "expected counted from 1 to 8, but got 9"),
    ],
)
def test_train_rejects_invalid_arguments(arguments: dict[str, object], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        experiments.train(**({"norm": "BN", "batch_size": 8, "steps": 1} | arguments))


def test_the_record_has_the_settings_of_the_benchmark() -> None:
    names = ("training_loss", "test_loss", "validation", "test", "sources")
    settings = [
        {name: value for name, value in one.items() if name not in names}
        for one in measurements.read("batch_norm/batch_size/runs").measurements
    ]
    assert settings == [{"part": part} | arguments for part, arguments in recorded.cases()]


def test_the_record_of_the_controls_has_the_settings_of_the_benchmark() -> None:
    settings = [
        {name: value for name, value in one.items() if name not in ("reached", "test")}
        for one in measurements.read("batch_norm/batch_size/controls").measurements
    ]
    assert settings == [{"part": part} | arguments for part, arguments in controls.cases()]


def test_reached_finds_the_first_measurement_at_the_loss() -> None:
    result = experiments.train("BN", 64, steps=60, seeds=[0, 1], every=20)
    losses = result.training_loss
    between = (losses[0].max() + losses[1].min()) / 2 if losses[0].max() > losses[1].min() else 0
    assert losses[1].max() < between < losses[0].min()
    found = controls.reached(result, between)
    assert found["steps"] == [40, 40]
    assert found["test_loss"] == pytest.approx(result.test_loss[1], abs=1e-4)
    assert found["test"] == pytest.approx(result.test[1], abs=1e-4)
    never = controls.reached(result, losses[-1].mean())
    assert never["training_loss"] == losses[-1].mean()
    assert never["steps"] is never["test_loss"] is never["test"] is None
