"""Norms for sequences do what they say, leaks are found, and only a leak predicts coin flips."""

import numpy as np
import pytest
import torch
from torch import nn

from lnbook import reference
from lnbook.chapters.transformer.sequences import experiments


def normal(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.from_numpy(np.random.default_rng(seed).normal(1.0, 2.0, shape))


def with_random_affine(layer: nn.Module, owner: nn.Module) -> nn.Module:
    with torch.no_grad():
        owner.weight.copy_(normal(*owner.weight.shape, seed=1))
        owner.bias.copy_(normal(*owner.bias.shape, seed=2))
    return layer


def test_batch_norm_over_tokens_treats_every_token_as_an_example() -> None:
    layer = experiments.BatchNormOverTokens(3).double()
    with_random_affine(layer, layer.norm)
    x = normal(4, 5, 3)
    weight, bias = layer.norm.weight.detach().numpy(), layer.norm.bias.detach().numpy()
    expected = reference.batch_norm_forward(x.reshape(20, 3).numpy(), weight=weight, bias=bias).y
    np.testing.assert_allclose(layer(x).detach().numpy().reshape(20, 3), expected, atol=1e-12)
    layer.eval()
    other = normal(4, 5, 3, seed=3)
    together = layer(torch.cat([x, other]))
    torch.testing.assert_close(together[:4], layer(x), atol=1e-14, rtol=0)


def test_layer_norm_over_sequence_matches_torch() -> None:
    layer = experiments.LayerNormOverSequence(3, eps=0.25).double()
    with_random_affine(layer, layer)
    x = normal(4, 5, 3)
    torchs = nn.LayerNorm((5, 3), eps=0.25, dtype=torch.float64)
    with torch.no_grad():
        torchs.weight.copy_(layer.weight.expand(5, 3))
        torchs.bias.copy_(layer.bias.expand(5, 3))
    torch.testing.assert_close(layer(x), torchs(x))
    assert layer(normal(4, 7, 3)).shape == (4, 7, 3), "any length works"


def test_masked_batch_norm_uses_only_real_tokens() -> None:
    x, real = normal(3, 6, 4), torch.ones(3, 6, dtype=torch.bool)
    real[0, 2:] = False
    real[2, 5:] = False
    y = experiments.masked_batch_norm(x, real, eps=0.5)
    expected = reference.batch_norm_forward(x[real].numpy(), eps=0.5).y
    np.testing.assert_allclose(y[real].numpy(), expected, atol=1e-12)
    assert not y[~real].any()
    garbage = torch.where(real[..., None], x, 1e6)
    assert torch.equal(experiments.masked_batch_norm(garbage, real, eps=0.5), y)


def test_masked_batch_norm_rejects_bad_arguments() -> None:
    x, real = normal(3, 6, 4), torch.ones(3, 6, dtype=torch.bool)
    for bad_x, bad_real in ((x[0], real), (x, real[:2]), (x, real.int())):
        with pytest.raises(ValueError, match="expected x of shape"):
            experiments.masked_batch_norm(bad_x, bad_real)
    with pytest.raises(ValueError, match="at least one real token"):
        experiments.masked_batch_norm(x, ~real)


def from_matrix(matrix: np.ndarray) -> object:
    """A layer whose output at position m sums the inputs at each l where matrix[l, m] is set."""
    weights = torch.tensor(matrix, dtype=torch.float64)
    return lambda x: torch.einsum("nld,lm->nmd", x, weights)


def test_reach_finds_any_pattern() -> None:
    pattern = np.random.default_rng(5).integers(0, 2, (6, 6))
    found = experiments.reach(from_matrix(pattern), normal(2, 6, 3), normal(2, 6, 3, seed=1))
    assert found.shape == (6, 2, 6)
    assert np.array_equal(found[:, 0], pattern.astype(bool))
    assert not found[:, 1].any(), "the other sequence doesn't change"


def test_reach_sees_other_sequences_and_takes_token_numbers() -> None:
    x, other = torch.tensor([[0, 1], [2, 3]]), torch.tensor([[4, 5], [6, 7]])
    found = experiments.reach(lambda x: x.double() + x.double().sum(0), x, other)
    assert np.array_equal(found[:, 0], np.eye(2, dtype=bool))
    assert np.array_equal(found[:, 1], np.eye(2, dtype=bool))


def test_reach_ignores_rounding_and_rejects_other_shapes() -> None:
    x, other = normal(1, 4, 3), normal(1, 4, 3, seed=1)
    found = experiments.reach(lambda x: x + 1e-12 * x.sum(1, keepdim=True), x, other)
    assert np.array_equal(found[:, 0], np.eye(4, dtype=bool))
    with pytest.raises(ValueError, match=r"of the shape of x, \(1, 4, 3\), but got \(1, 4\)"):
        experiments.reach(lambda x: x, x, other[..., 0])


def test_coins_are_guessed_only_through_a_leak() -> None:
    honest = experiments.learn_coin_flips(steps=150, batch_size=8)
    leaking = experiments.learn_coin_flips(
        experiments.LayerNormOverSequence, steps=150, batch_size=8
    )
    assert (honest.training > 0.97).all()
    np.testing.assert_allclose(honest.training, honest.generation, atol=1e-9)
    assert leaking.training[:5].mean() < 0.9
    assert leaking.training[5] > 0.97, "the last coin is not among the inputs"
    assert leaking.generation.mean() > 1.0
    np.testing.assert_allclose(leaking.training, leaking.evaluation, atol=1e-9)


def test_batch_norm_has_two_modes() -> None:
    run = experiments.learn_coin_flips(experiments.BatchNormOverTokens, steps=20, batch_size=1)
    assert np.abs(run.training - run.evaluation).max() > 1e-3
    np.testing.assert_allclose(run.evaluation, run.generation, atol=1e-9)


def test_coin_flips_follow_from_the_seed() -> None:
    first, again, other = (experiments.learn_coin_flips(seed=s, steps=3) for s in (1, 1, 2))
    assert np.array_equal(first.training, again.training)
    assert not np.array_equal(first.training, other.training)
    with pytest.raises(ValueError, match="expected batch_size to divide 256, but got 3"):
        experiments.learn_coin_flips(batch_size=3)
