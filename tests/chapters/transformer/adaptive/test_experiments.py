"""The chapter's experiments."""

import numpy as np
import pytest
import torch

from lnbook.chapters.transformer.adaptive import experiments
from lnbook.data.digits import load_digits
from lnbook.layers import AdaLayerNorm


@pytest.mark.parametrize("variant", experiments.VARIANTS)
def test_variants_start_and_differ_as_they_say(variant: str) -> None:
    model, rng = experiments.build(variant, 1), np.random.default_rng(0)
    x, c = (torch.tensor(rng.normal(size=shape)) for shape in ((2, 16, 32), (2, 32)))
    block = model.blocks[0]
    y = block(x, c)
    opens = {"adaLN-Zero", "added, zero gate"}
    assert torch.equal(y, x) == (variant in opens)
    # Only the variants that don't start at zero respond to the condition inside a block.
    sees = not torch.equal(y, block(x, -c))
    assert sees == ("default init" in variant)
    assert any(isinstance(m, AdaLayerNorm) for m in model.modules()) == ("added" not in variant)


def test_a_block_is_its_equations() -> None:
    block, rng = experiments.Block(zero_init=False).double(), np.random.default_rng(0)
    x, c = (torch.tensor(rng.normal(size=shape)) for shape in ((2, 16, 32), (2, 32)))
    stream = x
    for ada, branch in ((block.norm1, block.attention), (block.norm2, block.mlp)):
        shift, scale, gate = ada.modulation(c)[:, None].chunk(3, dim=-1)
        xhat = torch.nn.functional.layer_norm(stream, (32,), eps=1e-6)
        stream = stream + gate * branch(xhat * (1 + scale) + shift)
    torch.testing.assert_close(block(x, c), stream)


def test_the_wider_control_has_as_many_parameters() -> None:
    counts = {
        name: sum(p.numel() for p in experiments.build(name, 0).parameters())
        for name in ("adaLN-Zero", "added", "added, wider")
    }
    assert counts["added, wider"] == pytest.approx(counts["adaLN-Zero"], rel=0.01)
    assert counts["added"] < 0.6 * counts["adaLN-Zero"]


def test_images_survive_being_cut_into_patches() -> None:
    x = torch.arange(128.0).reshape(2, 64)
    tokens = experiments._patches(x)
    assert tokens[0, 1].tolist() == [2.0, 3.0, 10.0, 11.0]
    assert torch.equal(experiments._image(tokens), x)


def test_the_loss_is_zero_for_the_true_velocity() -> None:
    x, noise = (torch.tensor(np.random.default_rng(s).normal(size=(3, 64))) for s in (0, 1))
    t, y = torch.tensor([0.1, 0.5, 1.0]).double(), torch.tensor([1, 2, 3])

    def model(noisy, level, classes):
        torch.testing.assert_close(noisy, (1 - t[:, None]) * x + t[:, None] * noise)
        assert level is t
        assert classes is y
        return noise - x

    assert experiments.flow_loss(model, x, t, noise, y).item() == 0.0


def test_sampling_follows_the_velocity() -> None:
    """If the velocity points from a fixed image to the noise, sampling ends at that image."""
    target = torch.tensor(np.random.default_rng(5).normal(size=(2, 64)))

    def model(x, t, y):
        return (x - target) / t[:, None]

    y = torch.tensor([0, 1])
    torch.testing.assert_close(experiments.sample(model, y, steps=7), target)
    start = np.ones((2, 64))
    one_step = experiments.sample(lambda x, t, y: x - 3.0, y, start, steps=1)
    torch.testing.assert_close(one_step, torch.full((2, 64), 3.0).double())


def test_training_lowers_the_loss_and_accuracy_counts() -> None:
    run = experiments.train("adaLN-Zero", 0, 20, layers=1, every=10)
    assert run.steps == [10, 20]
    assert run.losses[1] < run.losses[0]
    digits = load_digits()
    wrong = (digits.test_y + 1) % 10
    assert experiments.accuracy(2 * digits.test_x - 1, wrong) < 0.02


def test_gradients_arrive_one_part_after_another() -> None:
    model = experiments.build("adaLN-Zero", 0)
    torch.nn.init.zeros_(model.write.weight)
    parts = [len(found) for found in experiments.trained_parts(model, 3)]
    assert parts == [1, 2, 5]
    default = experiments.build("adaLN-Zero, default init", 0)
    assert experiments.trained_parts(default, 1)[0] == set(experiments.PARTS)


def test_no_variant_of_an_unknown_name() -> None:
    with pytest.raises(ValueError, match="expected one of adaLN-Zero, .* but got 'adaIN'"):
        experiments.build("adaIN", 0)
