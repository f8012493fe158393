"""The experiments on variants compute what they claim to, and depend only on the seed."""

import copy

import numpy as np
import pytest
import torch
from scipy.spatial import ConvexHull

from lnbook.chapters.transformer.variants import experiments
from lnbook.data.text import Text
from lnbook.transformer import SelfAttention, xavier_init_


def by_name(**changes: float) -> dict[str, experiments.Start]:
    return {name: experiments.at_start(name, 3, 1, **changes) for name in experiments.VARIANTS}


def test_at_start_tells_the_variants_apart() -> None:
    found = by_name()
    for name, run in found.items():
        assert run.stream.shape == (4,), name
        assert run.gradients.shape == run.logits.shape == (3,), name
        normalized = name in ("Post-LN", "DeepNorm")
        assert np.allclose(run.stream[1:], 1.0, atol=1e-3) == normalized, name
    assert found["QK-norm"].logits.max() <= 4.0 < found["Pre-LN"].logits.max()
    again = experiments.at_start("DyT", 3, 1)
    assert np.array_equal(again.stream, found["DyT"].stream)
    assert not np.array_equal(experiments.at_start("DyT", 3, 2).stream, again.stream)


def test_at_start_scales_inputs_and_weights() -> None:
    first, larger, gained = by_name(), by_name(scale=100.0), by_name(gain=3.0)
    for name, run in first.items():
        assert larger[name].stream[0] == pytest.approx(1e4 * run.stream[0]), name
        assert gained[name].stream[0] == run.stream[0], name
    before, after = first["Pre-LN"].logits[0], gained["Pre-LN"].logits[0]
    assert after == pytest.approx(9 * before), "the gain applies to both query and key, so 3 * 3"
    assert larger["Pre-LN"].logits[0] == pytest.approx(before, rel=1e-3)
    assert larger["none"].logits[0] == pytest.approx(1e4 * first["none"].logits[0])
    growth = {name: gained[name].stream[-1] / first[name].stream[-1] for name in first}
    assert growth["Peri-LN"] < 1.3 < 10 < growth["Pre-LN"]


@pytest.mark.parametrize("norm_first", [False, True])
def test_at_start_matches_the_layers_of_torch(norm_first: bool) -> None:
    """The same random draws, but with PyTorch's layers, gradients and loss."""
    rng = np.random.default_rng(4)
    x = torch.from_numpy(rng.normal(size=(8, 16, 64)))
    embedding = torch.from_numpy(rng.normal(size=(100, 64)) / 8)
    targets = torch.from_numpy(rng.integers(0, 100, 128))
    layer = torch.nn.TransformerEncoderLayer(
        64, 4, 256, 0.0, batch_first=True, norm_first=norm_first, dtype=torch.float64
    )
    layers = torch.nn.ModuleList(copy.deepcopy(layer) for _ in range(2))
    xavier_init_(layers, rng=rng)
    stream = [x]
    for one in layers:
        stream.append(one(stream[-1]))
    out = torch.nn.functional.layer_norm(stream[-1], (64,)) if norm_first else stream[-1]
    log_p = (out @ embedding.T).log_softmax(-1).reshape(128, 100)
    (-log_p[torch.arange(128), targets].mean()).backward()

    run = experiments.at_start("Pre-LN" if norm_first else "Post-LN", 2, 4)
    assert run.stream == pytest.approx([s.square().mean().item() for s in stream])
    gradients = [one.linear2.weight.grad.norm().item() for one in layers]
    assert run.gradients == pytest.approx(gradients)


def test_logits_match_the_attention_weights() -> None:
    """The largest score, whatever its sign, limits how much the weights can differ."""
    rng = np.random.default_rng(0)
    for qk_norm in (None, "l2", "layer_norm"):
        attention = SelfAttention(8, 2, qk_norm=qk_norm, dtype=torch.float64)
        holder = torch.nn.Module()
        holder.layers = torch.nn.ModuleList([torch.nn.Module()])
        holder.layers[0].self_attn = attention
        found = experiments._watch_logits(holder)  # type: ignore[arg-type]
        x = torch.from_numpy(rng.normal(size=(1, 5, 8)))
        _, weights = attention(x, need_weights=True)
        spread = weights.log().amax(-1) - weights.log().amin(-1)
        assert 0.4 * spread.max().item() <= found[0], qk_norm
        assert spread.max().item() <= 2 * found[0] + 1e-9, qk_norm


@pytest.mark.parametrize("call", [experiments.at_start, experiments.train_variant])
def test_an_unknown_variant(call: object) -> None:
    ab = torch.tensor([0, 1] * 50)
    first = () if call is experiments.at_start else (Text("ab", ab, ab),)
    last = (1,) if call is experiments.at_start else ()
    with pytest.raises(ValueError, match="one of Pre-LN, Post-LN, .*, but got 'pre'"):
        call(*first, "pre", *last)  # type: ignore[operator]


def test_train_variant_learns_and_repeats() -> None:
    ab = torch.tensor([0, 1] * 50)
    text = Text("ab", ab, ab)
    for name in experiments.VARIANTS:
        run = experiments.train_variant(text, name, layers=1, steps=15)
        assert run.loss < 0.6, name
        assert run == experiments.train_variant(text, name, layers=1, steps=15), name
    broke = experiments.train_variant(text, "none", layers=8, lr=1e6, steps=6)
    assert np.isinf(broke.loss)
    assert np.isnan(broke.logit)


@pytest.mark.parametrize(("n", "d"), [(6, 2), (20, 2), (12, 3), (30, 3), (12, 4)])
def test_unselectable_keys_are_not_corners_of_the_hull(n: int, d: int) -> None:
    rng = np.random.default_rng(n + d)
    keys = rng.normal(size=(n, d)) + 5.0
    corners = set(ConvexHull(keys).vertices.tolist())
    assert set(np.flatnonzero(~experiments.unselectable(keys)).tolist()) == corners


def test_margins_against_many_queries() -> None:
    rng = np.random.default_rng(0)
    keys = rng.normal(size=(7, 3))
    found = experiments.margins(keys)
    queries = rng.uniform(-1, 1, size=(20_000, 3))
    scores = np.sort(queries @ keys.T, axis=1)
    best = np.zeros(7)
    np.maximum.at(best, (queries @ keys.T).argmax(1), scores[:, -1] - scores[:, -2])
    assert (best <= found + 1e-9).all()
    assert (best >= 0.8 * found - 0.05).all()


def test_margins_ignore_the_offset_and_follow_the_scale() -> None:
    keys = np.random.default_rng(1).normal(size=(9, 2))
    found = experiments.margins(keys)
    assert experiments.margins(keys + 7.0) == pytest.approx(found, abs=1e-9)
    assert experiments.margins(1e-3 * keys) == pytest.approx(1e-3 * found, abs=1e-9)
    assert np.array_equal(experiments.unselectable(keys), experiments.unselectable(1e-3 * keys))


def test_equal_keys_hide_each_other() -> None:
    assert experiments.unselectable([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]).tolist() == [
        True,
        True,
        False,
    ]


@pytest.mark.parametrize("keys", [[1.0, 2.0], [[1.0, 2.0]]])
def test_margins_reject_bad_keys(keys: list[object]) -> None:
    with pytest.raises(ValueError, match=r"expected keys of shape \(n, d\), n at least 2"):
        experiments.margins(keys)


def test_xor_needs_three_features_with_layer_norm_and_two_with_rms_norm() -> None:
    assert not experiments.xor_solved(2, steps=300).any()
    assert experiments.xor_solved(3, steps=300).sum() > 10
    assert not experiments.xor_solved(1, "rms_norm", steps=300).any()
    assert experiments.xor_solved(2, "rms_norm", steps=300).sum() > 10
    assert not experiments.xor_solved(8, "none", steps=300).any()


def test_xor_networks_are_independent_and_match_torch() -> None:
    several = experiments._XorNetworks("layer_norm", 3, 4, np.random.default_rng(0))
    x = torch.from_numpy(np.random.default_rng(1).normal(size=(6, 2)))
    scores = several(x)
    for run in range(4):
        h = torch.nn.functional.linear(x, several.w1[run].T, several.b1[run, 0])
        y = torch.nn.functional.layer_norm(h, (3,)) @ several.w2[run, :, 0] + several.b2[run, 0, 0]
        assert torch.allclose(scores[run], y)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"width": 3, "norm": "batch"}, "expected norm to be 'layer_norm', 'rms_norm' or 'none'"),
        ({"width": 0}, "expected width and runs of at least 1, but got 0 and 20"),
        ({"width": 3, "runs": 0}, "but got 3 and 0"),
    ],
)
def test_xor_rejects_bad_arguments(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        experiments.xor_solved(**arguments)  # type: ignore[arg-type]
