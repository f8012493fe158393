"""The four blocks, checked against PyTorch's layer, NumPy equations and numerical derivatives."""

import copy
import inspect
import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel

from lnbook import layers, reference
from lnbook.transformer import (
    DeepNormBlock,
    PeriLNBlock,
    PostLNBlock,
    PreLNBlock,
    block_from_torch,
)
from lnbook.transformer.normalization import make_norm
from tests.helpers.random_tensors import random_tensor, randomized

N, L, D, HEADS, WIDTH = 2, 5, 12, 3, 16
EPS = 0.01  # large enough that a wrong eps shows


def deep_norm(*args, **options):
    return DeepNormBlock(*args, num_layers=6, **options)


BLOCKS = {"post": PostLNBlock, "pre": PreLNBlock, "peri": PeriLNBlock, "deep": deep_norm}
PYTORCHS = {False: PostLNBlock, True: PreLNBlock}


def make(kind, dropout=0.0, dtype=torch.float64, **options):
    return randomized(BLOCKS[kind](D, HEADS, WIDTH, dropout, "relu", EPS, dtype=dtype, **options))


def pair(norm_first, dropout=0.0, dtype=torch.float64, **options):
    """Return our block and PyTorch's layer with the same random weights."""
    ours = PYTORCHS[norm_first](D, HEADS, WIDTH, dropout, dtype=dtype, **options)
    theirs = nn.TransformerEncoderLayer(
        D, HEADS, WIDTH, dropout, batch_first=True, norm_first=norm_first, dtype=dtype, **options
    )
    theirs.load_state_dict(randomized(ours).state_dict())
    return ours, theirs


PADDING = torch.tensor([[False] * L, [False] * 3 + [True] * 2])
LATER = torch.ones(L, L).triu(1).bool()
MASKS = {
    "none": {},
    "mask": {"src_mask": LATER.T},
    "added": {"src_mask": random_tensor(L, L, seed=2)},
    "added per head": {"src_mask": random_tensor(N * HEADS, L, L, seed=3)},
    "padding": {"src_key_padding_mask": PADDING},
    "a row all padding": {"src_key_padding_mask": torch.tensor([[False] * L, [True] * L])},
    "mask and padding": {"src_mask": LATER, "src_key_padding_mask": PADDING},
}


def results(block, x, upstream, **masks):
    """Return the output and the gradients of the input and, by name, of the parameters."""
    x = x.clone().requires_grad_()
    y = block(x, **masks)
    names, parameters = zip(*sorted(block.named_parameters()), strict=True)
    grads = torch.autograd.grad(y, [x, *parameters], upstream)
    return dict(zip(["y", "x", *names], [y.detach(), *grads], strict=True))


def assert_same(ours, theirs, tolerance):
    assert ours.keys() == theirs.keys()
    for name, expected in theirs.items():
        torch.testing.assert_close(
            ours[name], expected, rtol=tolerance, atol=tolerance, msg=lambda m, n=name: f"{n}: {m}"
        )


# PyTorch's layer


@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
@pytest.mark.parametrize("masks", MASKS.values(), ids=MASKS)
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-9), (torch.float32, 2e-4)])
def test_outputs_and_gradients_equal_pytorch(norm_first, activation, masks, dtype, tolerance):
    ours, theirs = pair(norm_first, dtype=dtype, activation=activation, layer_norm_eps=EPS)
    masks = {
        name: mask if mask.dtype == torch.bool else mask.to(dtype) for name, mask in masks.items()
    }
    x, upstream = random_tensor(N, L, D, dtype=dtype), random_tensor(N, L, D, dtype=dtype, seed=6)
    assert_same(
        results(ours, x, upstream, **masks), results(theirs, x, upstream, **masks), tolerance
    )


@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("bias", [False, True])
def test_options_reach_both_alike(norm_first, bias):
    ours, theirs = pair(norm_first, bias=bias, activation=F.silu)
    x, upstream = random_tensor(N, L, D), random_tensor(N, L, D, seed=6)
    assert_same(results(ours, x, upstream), results(theirs, x, upstream), 1e-9)


@pytest.mark.parametrize("norm_first", [False, True])
def test_causality_equals_pytorch(norm_first):
    ours, theirs = pair(norm_first)
    x, upstream = random_tensor(N, L, D), random_tensor(N, L, D, seed=6)
    expected = results(theirs, x, upstream, src_mask=LATER, is_causal=True)
    assert_same(results(ours, x, upstream, is_causal=True), expected, 1e-9)
    both = results(ours, x, upstream, src_mask=LATER, is_causal=True)
    assert_same(both, expected, 1e-9)


@pytest.mark.parametrize("norm_first", [False, True])
def test_pytorchs_fast_path_in_evaluation(norm_first):
    ours, theirs = pair(norm_first, 0.5, torch.float32, activation="gelu")
    x = random_tensor(N, L, D, dtype=torch.float32)
    with torch.no_grad():
        torch.testing.assert_close(ours.eval()(x), theirs.eval()(x), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("norm_first", [False, True])
def test_dropout_falls_where_it_falls_in_pytorch(norm_first):
    ours, theirs = pair(norm_first, 0.5)
    # Just one sequence: PyTorch lays out batches differently, and dropout draws in memory order.
    x, upstream = random_tensor(1, L, D), random_tensor(1, L, D, seed=6)
    assert ours.training
    for seed in range(4):
        torch.manual_seed(seed)
        expected = results(theirs, x, upstream)
        torch.manual_seed(seed)
        assert_same(results(ours, x, upstream), expected, 1e-9)
    for place in range(4):
        for block in (ours, theirs):
            block.self_attn.dropout = 0.5 if place == 0 else 0.0
            parts = [block.dropout, block.dropout1, block.dropout2]
            for number, part in enumerate(parts, start=1):
                part.p = 0.5 if place == number else 0.0
        torch.manual_seed(9)
        expected = theirs(x)
        assert not torch.isclose(expected, copy.deepcopy(theirs).eval()(x)).all()
        torch.manual_seed(9)
        torch.testing.assert_close(ours(x), expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("norm_first", [False, True])
def test_the_same_seed_gives_the_same_weights(norm_first):
    torch.manual_seed(4)
    ours = PYTORCHS[norm_first](D, HEADS, WIDTH)
    torch.manual_seed(4)
    theirs = nn.TransformerEncoderLayer(D, HEADS, WIDTH, norm_first=norm_first)
    assert ours.state_dict().keys() == theirs.state_dict().keys()
    for name, value in theirs.state_dict().items():
        assert torch.equal(ours.state_dict()[name], value)


def test_argument_names_and_defaults_are_those_of_pytorch():
    theirs = inspect.signature(nn.TransformerEncoderLayer).parameters
    for cls in (PostLNBlock, PreLNBlock):
        ours = inspect.signature(cls).parameters
        assert list(ours)[:6] == list(theirs)[:6]
        for name in ours.keys() & theirs.keys() - {"activation"}:
            assert ours[name].default == theirs[name].default
    x = random_tensor(N, L, D, dtype=torch.float32)
    default = theirs["activation"].default
    torch.testing.assert_close(PreLNBlock(D, HEADS).activation(x), default(x))
    ours = list(inspect.signature(PreLNBlock.forward).parameters)
    assert ours[:5] == list(inspect.signature(nn.TransformerEncoderLayer.forward).parameters)


@pytest.mark.parametrize("norm_first", [False, True])
def test_conversion_copies_weights_and_settings(norm_first):
    layer = nn.TransformerEncoderLayer(
        D, HEADS, WIDTH, 0.3, "gelu", 0.5, batch_first=True, norm_first=norm_first, bias=False,
        dtype=torch.float64,
    )  # fmt: skip
    layer = randomized(layer).eval()
    layer.norm2.eps, layer.dropout1.p, layer.self_attn.dropout = 0.7, 0.1, 0.2
    block = block_from_torch(layer)
    assert type(block) is PYTORCHS[norm_first]
    assert not any(part.training for part in block.modules())
    x, upstream = random_tensor(N, L, D), random_tensor(N, L, D, seed=6)
    assert_same(results(block, x, upstream), results(layer, x, upstream), 1e-9)
    torch.manual_seed(0)
    expected = layer.train()(x[:1])
    torch.manual_seed(0)
    torch.testing.assert_close(block.train()(x[:1]), expected, rtol=1e-9, atol=1e-9)
    with torch.no_grad():
        layer.linear1.weight.zero_()
    assert block.linear1.weight.all()


# The equations


def numpy_norm(block, name, x):
    norm = getattr(block, name)
    return reference.layer_norm(x, D, norm.weight.detach(), norm.bias.detach(), EPS)


def numpy_attention(block, x, hidden):
    """Compute attention in NumPy, for all heads of all sequences at once; `hidden` is (N, L, L)."""
    state = {name: value.numpy() for name, value in block.self_attn.state_dict().items()}
    joint = x @ state["in_proj_weight"].T + state["in_proj_bias"]
    query, key, value = joint.reshape(N, L, 3, HEADS, -1).transpose(2, 0, 3, 1, 4)
    scores = np.einsum("nhid,nhjd->nhij", query, key) / math.sqrt(D // HEADS)
    exponentials = np.where(hidden[:, None], 0.0, np.exp(scores))
    heads = np.einsum("nhij,nhjd->nihd", exponentials / exponentials.sum(-1, keepdims=True), value)
    return heads.reshape(N, L, D) @ state["out_proj.weight"].T + state["out_proj.bias"]


def numpy_feed_forward(block, x):
    state = {name: value.numpy() for name, value in block.state_dict().items()}
    hidden = np.maximum(x @ state["linear1.weight"].T + state["linear1.bias"], 0.0)
    return hidden @ state["linear2.weight"].T + state["linear2.bias"]


def numpy_block(kind, block, x, hidden):
    def attention(x):
        return numpy_attention(block, x, hidden)

    def network(x):
        return numpy_feed_forward(block, x)

    def norm(name, x):
        return numpy_norm(block, name, x)

    if kind == "post":
        x = norm("norm1", x + attention(x))
        return norm("norm2", x + network(x))
    if kind == "pre":
        x = x + attention(norm("norm1", x))
        return x + network(norm("norm2", x))
    if kind == "peri":
        x = x + norm("norm1_out", attention(norm("norm1", x)))
        return x + norm("norm2_out", network(norm("norm2", x)))
    alpha = 12.0**0.25  # six layers
    x = norm("norm1", alpha * x + attention(x))
    return norm("norm2", alpha * x + network(x))


@pytest.mark.parametrize("kind", BLOCKS)
@pytest.mark.parametrize("is_causal", [False, True])
@pytest.mark.parametrize("padded", [False, True])
def test_blocks_equal_their_equations_in_numpy(kind, is_causal, padded):
    block, x = make(kind), random_tensor(N, L, D)
    hidden = np.zeros((N, L, L), dtype=bool)
    if is_causal:
        hidden |= LATER.numpy()
    if padded:
        hidden |= PADDING.numpy()[:, None, :]
    padding = PADDING if padded else None
    y = block(x, None, padding, is_causal)
    np.testing.assert_allclose(
        y.detach().numpy(), numpy_block(kind, block, x.numpy(), hidden), rtol=1e-10, atol=1e-10
    )
    again, weights = block(x, None, padding, is_causal, need_weights=True)
    torch.testing.assert_close(again, y, rtol=1e-11, atol=1e-11)
    assert weights.shape == (N, HEADS, L, L)
    np.testing.assert_allclose(weights.sum(-1).detach().numpy(), 1.0, atol=1e-12)
    assert not weights.detach().numpy()[np.broadcast_to(hidden[:, None], weights.shape)].any()


@pytest.mark.parametrize("kind", BLOCKS)
def test_gradients_equal_finite_differences_of_numpy(kind):
    block, x, upstream = make(kind), random_tensor(N, L, D), random_tensor(N, L, D, seed=6)
    grads = results(block, x, upstream, is_causal=True)
    hidden, step = np.broadcast_to(LATER.numpy(), (N, L, L)), 1e-5
    direction = np.random.default_rng(8).standard_normal(x.shape)

    def loss(x):
        return float((numpy_block(kind, block, x, hidden) * upstream.numpy()).sum())

    slope = (loss(x.numpy() + step * direction) - loss(x.numpy() - step * direction)) / (2 * step)
    assert math.isclose(slope, float((grads["x"].numpy() * direction).sum()), rel_tol=1e-6)
    for name in grads.keys() - {"x", "y"}:
        parameter = block.get_parameter(name)
        change = random_tensor(*parameter.shape, seed=10)
        losses = []
        for sign in (1.0, -1.0):
            with torch.no_grad():
                parameter.add_(sign * step * change)
            losses.append(loss(x.numpy()))
            with torch.no_grad():
                parameter.add_(-sign * step * change)
        slope = (losses[0] - losses[1]) / (2 * step)
        exact = float((grads[name] * change).sum())
        assert math.isclose(slope, exact, rel_tol=1e-5, abs_tol=1e-6), name


@pytest.mark.parametrize("norm_first", [False, True])
def test_second_derivatives_equal_pytorch(norm_first):
    upstream = random_tensor(N, L, D, seed=6)
    found = []
    for block in pair(norm_first, activation="gelu"):
        x = random_tensor(N, L, D).requires_grad_()
        with sdpa_kernel(SDPBackend.MATH):
            (grad,) = torch.autograd.grad(block(x), x, upstream, create_graph=True)
            penalty = (grad * upstream.roll(1, 0)).sum()
            names, parameters = zip(*sorted(block.named_parameters()), strict=True)
            second = torch.autograd.grad(penalty, [x, *parameters], allow_unused=True)
        found.append(dict(zip(["x", *names], second, strict=True)))
    for name, expected in found[1].items():
        torch.testing.assert_close(found[0][name], expected, rtol=1e-7, atol=1e-7)


# How the blocks differ


def test_the_residual_of_pre_and_peri_blocks_is_untouched():
    x = 1e3 * random_tensor(N, L, D)
    for kind in ("pre", "peri"):
        block = BLOCKS[kind](D, HEADS, WIDTH, 1.0, dtype=torch.float64)
        assert torch.equal(block(x), x)
        assert block.needs_final_norm
    for kind in ("post", "deep"):
        block = BLOCKS[kind](D, HEADS, WIDTH, 1.0, dtype=torch.float64)
        torch.testing.assert_close(block(x), F.layer_norm(x, (D,)), rtol=1e-5, atol=1e-5)
        assert not block.needs_final_norm


def test_what_a_peri_branch_adds_does_not_grow_with_its_weights():
    block = PeriLNBlock(D, HEADS, WIDTH, 0.0, dtype=torch.float64)
    x = random_tensor(N, L, D)
    with torch.no_grad():
        for part in (block.linear2, block.self_attn.out_proj):
            part.weight *= 1e6
    assert float((block(x) - x).norm(dim=-1).max().detach()) <= 2 * math.sqrt(D)


def test_dropout_of_a_peri_block_comes_after_its_norms():
    block, x = make("peri", dropout=0.5), random_tensor(N, L, D)
    block.self_attn.dropout = block.dropout.p = 0.0
    attention = block.norm1_out(block.self_attn(block.norm1(x)))
    block.dropout2.p = 1.0
    shares = [(block(x) - x) / attention]
    block.dropout1.p, block.dropout2.p = 1.0, 0.5
    shares.append((block(x) - x) / block.norm2_out(block.feed_forward(block.norm2(x))))
    for share in shares:
        kept = share.abs() > 1e-9
        assert 0 < int(kept.sum()) < kept.numel()
        torch.testing.assert_close(share[kept], torch.full_like(share[kept], 2.0))


@pytest.mark.parametrize("depth", [1, 6, 100])
def test_deep_norm_constants_and_start(depth):
    torch.manual_seed(0)
    block = DeepNormBlock(256, 4, 512, num_layers=depth)
    assert math.isclose(block.alpha**4, 2 * depth)
    assert math.isclose(block.beta**-4, 8 * depth)
    query, key, value = block.self_attn.in_proj_weight.detach().chunk(3)
    square, wide = (2 / 512) ** 0.5, (2 / 768) ** 0.5
    for weight, std in [
        (query, square),
        (key, square),
        (value, block.beta * square),
        (block.self_attn.out_proj.weight, block.beta * square),
        (block.linear1.weight, block.beta * wide),
        (block.linear2.weight, block.beta * wide),
    ]:
        assert math.isclose(float(weight.detach().std()), std, rel_tol=0.02)
    for name, parameter in block.named_parameters():
        if name.endswith("bias"):
            assert not parameter.any()
    assert f"alpha={(2 * depth) ** 0.25:.4f}" in repr(block)


@pytest.mark.parametrize("kind", BLOCKS)
def test_norms_by_name_and_by_factory(kind):
    for norm, expected in [
        ("layer_norm", layers.LayerNorm),
        ("rms_norm", layers.RMSNorm),
        ("dyt", layers.DyT),
        ("none", nn.Identity),
        (nn.RMSNorm, nn.RMSNorm),
        (lambda features: nn.LayerNorm(features, eps=0.5), nn.LayerNorm),
    ]:
        block = make(kind, norm=norm)
        names = block.norm_names
        assert len(names) == (4 if kind == "peri" else 2)
        norms = [getattr(block, name) for name in names]
        assert all(type(module) is expected for module in norms)
        assert len(set(map(id, norms))) == len(names)
        assert all(p.dtype == torch.float64 for module in norms for p in module.parameters())
        found = results(block, random_tensor(N, L, D), random_tensor(N, L, D, seed=6))
        assert all(value.isfinite().all() for value in found.values())
        for name, value in found.items():  # every norm contributes to the output
            assert "norm" not in name or value.any()
    assert make(kind).norm1.eps == EPS
    assert make(kind, norm="rms_norm").norm1.eps == EPS
    for norm in ("layer_norm", "dyt"):
        assert make(kind, norm=norm, bias=False).norm1.bias is None
        assert make_norm(norm, D).bias is not None


def test_a_pre_ln_block_with_rms_norm_equals_pytorchs_with_its_rms_norm():
    ours = make("pre", norm="rms_norm")
    theirs = make("pre", norm=lambda features: nn.RMSNorm(features, eps=EPS))
    theirs.load_state_dict(ours.state_dict())
    x, upstream = random_tensor(N, L, D), random_tensor(N, L, D, seed=6)
    assert_same(results(ours, x, upstream), results(theirs, x, upstream), 1e-9)


# Masks, kinds of input, and settings


@pytest.mark.parametrize("kind", BLOCKS)
def test_one_sequence_without_a_batch(kind):
    block, x = make(kind, qk_norm="layer_norm"), random_tensor(N, L, D)
    y, weights = block(x, None, PADDING, True, True)
    alone, alone_weights = block(x[1], None, PADDING[1], True, True)
    torch.testing.assert_close(alone, y[1], rtol=1e-11, atol=1e-11)
    torch.testing.assert_close(alone_weights, weights[1], rtol=1e-11, atol=1e-11)
    torch.testing.assert_close(block(x[1], None, PADDING[1], True), y[1], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("kind", BLOCKS)
def test_cpu_autocast(kind):
    block, x = make(kind, dtype=torch.float32), random_tensor(N, L, D, dtype=torch.float32)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = block(x, LATER, PADDING)
        half = block(x.bfloat16(), LATER, PADDING)
    expected = block(x, LATER, PADDING)
    for result in (y, half):
        error = (result.float() - expected).abs().max() / expected.abs().max()
        assert float(error.detach()) < 0.05


def test_blocks_serve_in_pytorchs_stack():
    block = make("pre")
    stack = nn.TransformerEncoder(block, 2, enable_nested_tensor=False)
    x = random_tensor(N, L, D)
    y = stack(x, mask=LATER.double().masked_fill(LATER, -math.inf), is_causal=True)
    expected = block(block(x, is_causal=True), is_causal=True)
    torch.testing.assert_close(y, expected, rtol=1e-11, atol=1e-11)
