"""The convnets have the right layers, start from the same weights, and depend only on the seed."""

import pytest
import torch
from torch import nn

from lnbook.chapters.batch_norm.family import experiments
from lnbook.data.digits import load_digits
from lnbook.layers import DyT, LayerNorm2d, RMSNorm


def drawn(model: nn.Sequential) -> list[torch.Tensor]:
    """Return the weights that don't belong to the norms."""
    return [
        parameter
        for layer in model
        if isinstance(layer, (nn.Conv2d, nn.Linear))
        for parameter in layer.parameters()
    ]


@pytest.mark.parametrize("head", experiments.HEADS)
def test_all_kinds_start_from_the_same_weights(head: str) -> None:
    models = {kind: experiments.convnet(kind, head, seed=3) for kind in experiments.KINDS}
    for kind, model in models.items():
        pairs = zip(drawn(model), drawn(models["none"]), strict=True)
        assert all(torch.equal(a, b) for a, b in pairs), kind
        for norm in (model[1], model[4], model[7]):
            for name, parameter in norm.named_parameters():
                start = {"weight": 1.0, "bias": 0.0, "alpha": 0.5}[name.rpartition(".")[2]]
                assert (parameter == start).all(), f"{kind}: {name}"
    other = experiments.convnet("none", head, seed=4)
    assert not torch.equal(drawn(other)[0], drawn(models["none"])[0])


@pytest.mark.parametrize(
    ("kind", "layer", "gammas"),
    [
        ("BN", nn.BatchNorm2d, 12),
        ("LN", nn.LayerNorm, 12 * 4 * 4),
        ("GN(1)", nn.GroupNorm, 12),
        ("GN(4)", nn.GroupNorm, 12),
        ("IN", nn.InstanceNorm2d, 12),
        ("LN2d", LayerNorm2d, 12),
        ("RMS2d", RMSNorm, 12),
        ("DyT", DyT, 12),
        ("none", experiments.ScaleAndShift, 12),
    ],
)
def test_each_kind_has_the_layer_of_its_name(kind: str, layer: type, gammas: int) -> None:
    model = experiments.convnet(kind)
    found = [part for part in model.modules() if type(part) is layer]
    assert len(found) == 3
    assert all(part.weight.numel() == gammas for part in found)
    assert all(part.eps == 1e-5 for part in found if hasattr(part, "eps"))
    groups = {"GN(1)": 1, "GN(4)": 4}
    assert all(part.num_groups == groups[kind] for part in found if kind in groups)


def test_channels_last_normalizes_the_channels_of_each_pixel() -> None:
    x = torch.arange(24.0).reshape(1, 2, 3, 4) ** 2
    got = experiments.ChannelsLast(nn.LayerNorm(2, eps=0.0))(x)
    assert got.shape == x.shape
    assert torch.allclose(got[:, 0], torch.tensor(-1.0))
    assert torch.allclose(got[:, 1], torch.tensor(1.0))


def test_scale_and_shift_is_per_channel() -> None:
    layer = experiments.ScaleAndShift(2)
    with torch.no_grad():
        layer.weight.copy_(torch.tensor([2.0, 3.0]))
        layer.bias.copy_(torch.tensor([0.0, 1.0]))
    assert layer(torch.ones(1, 2, 1, 2)).flatten().tolist() == [2.0, 2.0, 4.0, 4.0]


def test_signed_is_pooled_with_fixed_signs() -> None:
    """The linear layer is the same; only the signs of the pixels differ."""
    pooled, signed, flat = (experiments.convnet("LN", head, seed=5) for head in experiments.HEADS)
    heads = [drawn(model)[-2:] for model in (pooled, signed, flat)]
    assert [sum(p.numel() for p in head) for head in heads] == [130, 130, 1930]
    assert all(torch.equal(a, b) for a, b in zip(heads[0], heads[1], strict=True))
    (end,) = [layer for layer in signed if isinstance(layer, experiments.SignedMean)]
    assert not list(end.parameters())
    assert sorted(end.signs.unique().tolist()) == [-1.0, 1.0]
    x = torch.arange(2 * 12 * 16.0).view(2, 12, 4, 4).double()
    assert torch.allclose(end(x * end.signs), x.mean(dim=(2, 3)))
    again = experiments.convnet("BN", "signed", seed=5)
    assert torch.equal(again.state_dict()["9.signs"], end.signs)
    assert not torch.equal(experiments.convnet("LN", "signed", seed=6)[9].signs, end.signs)


def test_train_learns_and_is_reproducible() -> None:
    run = experiments.train("GN(1)", "flat", seed=1, steps=40, every=20)
    again = experiments.train("GN(1)", "flat", seed=1, steps=40, every=20)
    assert run.steps == [20, 40]
    assert run.accuracies == again.accuracies
    assert run.accuracies[-1] > 0.7
    assert not run.model.training
    other = experiments.train("GN(1)", "flat", seed=2, steps=40, every=20)
    assert other.accuracies != run.accuracies


def test_accuracy_counts_correct_predictions_on_changed_images() -> None:
    digits = load_digits()

    class Cheat(nn.Module):
        """Knows the test digits by heart, as long as they aren't changed."""

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            known = torch.cdist(x.flatten(1), digits.test_x) < 1e-6
            return known.double() @ nn.functional.one_hot(digits.test_y, 10).double()

    assert experiments.accuracy(Cheat()) == 1.0
    assert experiments.accuracy(Cheat(), lambda x: x + 1.0) < 0.2
    assert experiments.digit_images().shape == (450, 1, 8, 8)


def test_contrast_is_ignored_as_the_chapter_says() -> None:
    x = experiments.digit_images()[:20]
    for kind in ("LN", "GN(1)", "GN(4)", "IN", "BN", "none"):
        model = experiments.train(kind, "flat", steps=2).model
        same = torch.allclose(model(x), model(x / 4), rtol=0, atol=5e-2)
        assert same == (kind not in ("BN", "none")), kind


def test_unknown_names_raise() -> None:
    with pytest.raises(ValueError, match="expected kind to be one of .*'BN'.* but got 'bn'"):
        experiments.convnet("bn")
    with pytest.raises(ValueError, match="expected head to be one of .* but got 'mean'"):
        experiments.train("BN", "mean")
