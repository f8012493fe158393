"""The language model experiments measure what they claim to, and depend only on the seed."""

import itertools
import math

import numpy as np
import pytest
import torch

from lnbook.chapters.shared import language_model
from lnbook.transformer import (
    DeepNormBlock,
    PostLNBlock,
    PreLNBlock,
    TransformerBlock,
)
from tests.helpers.tiny_language_model import TEXT, TINY, model


def test_baselines_are_the_losses_of_counting() -> None:
    train, test = TEXT.train.tolist(), TEXT.test.tolist()
    alone, after = 0.0, 0.0
    for before, character in itertools.pairwise(test):
        alone -= math.log((train.count(character) + 1) / (len(train) + 4))
        rest = [b for a, b in itertools.pairwise(train) if a == before]
        after -= math.log((rest.count(character) + 1) / (len(rest) + 4))
    found = language_model.baselines(TEXT)
    assert found["unigram"] == pytest.approx(alone / (len(test) - 1))
    assert found["bigram"] == pytest.approx(after / (len(test) - 1))


def test_build_starts_as_it_says() -> None:
    wide = language_model.build(
        50, np.random.default_rng(1), layers=1, width=128, heads=2, length=50
    )
    block = wide.encoder.layers[0]
    assert block.linear1.weight.std().item() == pytest.approx((2 / (128 + 512)) ** 0.5, rel=0.02)
    assert block.linear1.bias.abs().max() == 0
    assert wide.token_embedding.weight.std().item() == pytest.approx(1, rel=0.05)
    small = language_model.build(
        50, np.random.default_rng(1), layers=1, width=128, heads=2, length=50, start="pytorch"
    )
    drawn = small.encoder.layers[0].linear1
    assert drawn.weight.abs().max().item() == pytest.approx(128**-0.5, rel=1e-3)
    assert drawn.bias.abs().max() > 0
    assert torch.equal(small.token_embedding.weight, wide.token_embedding.weight)
    assert {parameter.dtype for parameter in wide.parameters()} == {torch.float64}
    with pytest.raises(ValueError, match="one of xavier, pytorch, deepnorm, but got 'he'"):
        language_model.build(4, np.random.default_rng(0), start="he")


def test_build_gives_blocks_of_one_seed_the_same_weights() -> None:
    post, pre = (model(block).state_dict() for block in (PostLNBlock, PreLNBlock))
    assert set(pre) - set(post) == {"encoder.norm.weight", "encoder.norm.bias"}
    assert all(torch.equal(pre[name], value) for name, value in post.items())
    assert not torch.equal(model(seed=1).head.weight, model().head.weight)


def test_build_scales_deepnorm_down() -> None:
    parts = {"layers": 1, "width": 128, "heads": 2, "length": 4}
    deep = language_model.build(9, np.random.default_rng(0), DeepNormBlock, **parts).encoder.layers[
        0
    ]
    assert isinstance(deep, DeepNormBlock)
    expected = deep.beta * (2 / (128 + 512)) ** 0.5
    assert deep.linear2.weight.std().item() == pytest.approx(expected, rel=0.02)


def test_build_gives_any_block_the_start_of_deepnorm() -> None:
    deep, post = (
        language_model.build(4, np.random.default_rng(0), block, start=start, **TINY).state_dict()
        for block, start in ((DeepNormBlock, "xavier"), (PostLNBlock, "deepnorm"))
    )
    assert set(deep) == set(post)
    assert all(torch.equal(deep[name], value) for name, value in post.items())


def test_options_reach_the_blocks() -> None:
    run = language_model.train(TEXT, steps=0, norm="none", dropout=0.5, **TINY)
    assert not [name for name, _ in run.model.named_parameters() if "norm" in name]
    assert run.model.encoder.layers[0].dropout.p == 0.5


@pytest.mark.parametrize("block", [PostLNBlock, PreLNBlock])
def test_train_learns_repeats_and_differs_by_seed(block: type[TransformerBlock]) -> None:
    run = language_model.train(TEXT, block, steps=60, every=20, lr=0.01, seed=3, **TINY)
    assert run.steps == [20, 40, 60]
    assert len(run.train_losses) == 60
    assert run.final == run.losses[-1] < language_model.baselines(TEXT)["unigram"]
    again = language_model.train(TEXT, block, steps=60, every=20, lr=0.01, seed=3, **TINY)
    assert again.losses == run.losses
    assert language_model.train(TEXT, block, steps=60, lr=0.01, seed=4, **TINY).final != run.final


def test_warm_up_makes_the_first_step_small() -> None:
    start = language_model.train(TEXT, steps=0, **TINY).model
    moved = [
        (run.model.head.weight - start.head.weight).abs().max().item()
        for run in (
            language_model.train(TEXT, steps=1, lr=0.004, **TINY),
            language_model.train(TEXT, steps=1, lr=0.004, warm_up_steps=8, **TINY),
        )
    ]
    assert moved == pytest.approx([0.004, 0.0005], rel=1e-3)


def test_clip_limits_the_gradient_and_not_the_step_of_adam() -> None:
    free, held = (
        language_model.train(TEXT, steps=3, clip=clip, **TINY).train_losses for clip in (None, 1e-9)
    )
    assert free[0] == held[0]
    assert free[2] != held[2]


def test_frequencies_start_near_the_unigram_loss() -> None:
    plain, scaled, counted = (
        language_model.train(TEXT, steps=0, frequencies=wanted, head_scale=scale, **TINY)
        for wanted, scale in ((False, 1.0), (False, 0.1), (True, 0.1))
    )
    assert torch.equal(scaled.model.head.weight, counted.model.head.weight)
    assert torch.equal(scaled.model.head.bias, plain.model.head.bias)
    unigram = language_model.baselines(TEXT)["unigram"]
    assert abs(counted.final - unigram) < 0.05 < abs(plain.final - unigram)
    torch.testing.assert_close(10 * counted.model.head.weight, plain.model.head.weight)
    chances = counted.model.head.bias.exp()
    counts = torch.bincount(TEXT.train) + 1.0
    torch.testing.assert_close(chances, (counts / counts.sum()).double())


def test_a_run_that_breaks_off_ends_at_infinity() -> None:
    run = language_model.train(TEXT, steps=5, lr=math.inf, **TINY)
    assert len(run.train_losses) < 5
    assert run.final == math.inf
