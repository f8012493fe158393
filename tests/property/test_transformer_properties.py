"""What holds for transformer blocks with any shape and mask: a search for counterexamples."""

import math

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from lnbook.transformer import (
    DeepNormBlock,
    PeriLNBlock,
    PostLNBlock,
    PreLNBlock,
    SelfAttention,
    block_from_torch,
    dot_product_attention,
)
from tests.helpers.searches import search

repeatable = search(40)

seeds = st.integers(0, 2**32 - 1)
kinds = st.sampled_from([PostLNBlock, PreLNBlock, PeriLNBlock, DeepNormBlock])
qk_norms = st.sampled_from([None, "l2", "layer_norm"])


@st.composite
def sizes(draw):
    """Draw batch, length, d_model, nhead and dim_feedforward."""
    heads = draw(st.integers(1, 3))
    return (
        draw(st.integers(1, 3)),
        draw(st.integers(1, 6)),
        heads * draw(st.integers(2, 5)),
        heads,
        draw(st.integers(1, 9)),
    )


@st.composite
def problems(draw):
    """Draw a block of any kind with random parameters, an input for it, and its generator."""
    batch, length, d_model, heads, width = draw(sizes())
    kind, rng = draw(kinds), np.random.default_rng(draw(seeds))
    options = {"num_layers": draw(st.integers(1, 20))} if kind is DeepNormBlock else {}
    block = kind(
        d_model,
        heads,
        width,
        0.0,
        draw(st.sampled_from(["relu", "gelu"])),
        0.01,
        qk_norm=draw(qk_norms),
        bias=draw(st.booleans()),
        dtype=torch.float64,
        **options,
    )
    return randomized(block, rng), random_tensor(rng, batch, length, d_model), rng


def randomized(module, rng):
    with torch.no_grad():
        for _, parameter in sorted(module.named_parameters()):
            parameter.copy_(torch.tensor(0.5 * rng.standard_normal(parameter.shape)))
    return module


def random_tensor(rng, *shape):
    return torch.tensor(rng.standard_normal(shape))


def random_masks(rng, batch, heads, length):
    """Return randomly chosen kinds of masks; any of them may hide all keys from a query."""
    masks = {}
    scores = (length, length) if rng.random() < 0.5 else (batch * heads, length, length)
    for name, shape in (("src_mask", scores), ("src_key_padding_mask", (batch, length))):
        form = rng.choice(["none", "hides", "added", "added with infinity"])
        hidden = torch.tensor(rng.random(shape) < rng.choice([0.2, 0.9]))
        if form == "hides":
            masks[name] = hidden
        elif form != "none":
            added = random_tensor(rng, *shape)
            masks[name] = added.masked_fill(hidden, -math.inf) if "inf" in form else added
    return masks


def close(ours, theirs, tolerance=1e-7):
    torch.testing.assert_close(ours, theirs, rtol=tolerance, atol=tolerance)


@repeatable
@given(sizes(), st.booleans(), st.booleans(), st.booleans(), seeds)
def test_outputs_and_gradients_equal_pytorch_under_any_mask(sizes, norm_first, gelu, bias, seed):
    batch, length, d_model, heads, width = sizes
    rng = np.random.default_rng(seed)
    theirs = nn.TransformerEncoderLayer(
        d_model,
        heads,
        width,
        0.0,
        "gelu" if gelu else "relu",
        0.01,
        batch_first=True,
        norm_first=norm_first,
        bias=bias,
        dtype=torch.float64,
    )
    ours = block_from_torch(randomized(theirs, rng))
    masks = random_masks(rng, batch, heads, length)
    x, upstream = (random_tensor(rng, batch, length, d_model) for _ in range(2))
    # PyTorch expects both masks to have the same type, and warns if they don't.
    added = {
        name: torch.zeros_like(mask, dtype=torch.float64).masked_fill(mask, -math.inf)
        if mask.dtype == torch.bool
        else mask
        for name, mask in masks.items()
    }
    found = []
    for block, given_masks in ((ours, masks), (theirs, added)):
        given_x = x.clone().requires_grad_()
        y = block(given_x, **given_masks)
        parameters = [parameter for _, parameter in sorted(block.named_parameters())]
        found.append([y, *torch.autograd.grad(y, [given_x, *parameters], upstream)])
    for mine, expected in zip(*found, strict=True):
        close(mine, expected)


@repeatable
@given(problems(), st.booleans())
def test_with_and_without_weights_is_the_same_and_nothing_is_nan(problem, is_causal):
    block, x, rng = problem
    batch, length, d_model = x.shape
    masks = random_masks(rng, batch, block.self_attn.num_heads, length)
    x, upstream = x.requires_grad_(), random_tensor(rng, batch, length, d_model)
    found = []
    for need_weights in (False, True):
        result = block(x, **masks, is_causal=is_causal, need_weights=need_weights)
        y = result[0] if need_weights else result
        found.append([y, *torch.autograd.grad(y, [x, *block.parameters()], upstream)])
    for fused, plain in zip(*found, strict=True):
        assert fused.isfinite().all()
        close(fused, plain)
    weights = result[1]
    sums = weights.sum(-1)
    assert bool(((sums - 1.0).abs() < 1e-12).logical_or(sums == 0.0).all())
    assert not is_causal or not weights.triu(1).any()


@repeatable
@given(problems(), st.booleans())
def test_is_causal_is_the_causal_mask_beside_any_other(problem, added):
    block, x, rng = problem
    batch, length, _ = x.shape
    masks = random_masks(rng, batch, block.self_attn.num_heads, length)
    y = block(x, **masks, is_causal=True)
    later = torch.ones(length, length, dtype=torch.bool).triu(1)
    mask = masks.pop("src_mask", torch.zeros(length, length, dtype=torch.bool))
    if mask.dtype == torch.bool and added:
        mask = torch.zeros_like(mask, dtype=torch.float64).masked_fill(mask, -math.inf)
    mask = mask | later if mask.dtype == torch.bool else mask.masked_fill(later, -math.inf)
    close(block(x, mask, **masks), y)


@repeatable
@given(problems())
def test_without_a_mask_the_order_of_tokens_only_orders_the_output(problem):
    block, x, rng = problem
    order = torch.tensor(rng.permutation(x.shape[1]))
    close(block(x[:, order]), block(x)[:, order])


@repeatable
@given(problems(), st.booleans())
def test_sequences_do_not_see_each_other_and_padding_is_not_seen(problem, is_causal):
    block, x, rng = problem
    batch, length, _ = x.shape
    lengths = rng.integers(1, length + 1, batch)
    padding = torch.arange(length) >= torch.tensor(lengths)[:, None]
    y = block(x, None, padding, is_causal)
    spoiled = torch.where(padding[..., None], 1e3 * random_tensor(rng, *x.shape), x)
    again = block(spoiled, None, padding, is_causal)
    for n, known in enumerate(lengths):
        close(again[n, :known], y[n, :known])
        close(block(x[n, :known], is_causal=is_causal), y[n, :known])


@repeatable
@given(problems(), st.integers(0, 5))
def test_a_causal_block_is_blind_to_what_comes_later(problem, position):
    block, x, rng = problem
    position = min(position, x.shape[1] - 1)
    changed = x.clone()
    changed[:, position + 1 :] = 1e3 * random_tensor(rng, *changed[:, position + 1 :].shape)
    y = block(x, is_causal=True)
    close(block(changed, is_causal=True)[:, : position + 1], y[:, : position + 1])
    close(block(x[:, : position + 1], is_causal=True), y[:, : position + 1])


@search(80)
@given(sizes(), st.none() | st.floats(0.01, 3.0), st.booleans(), st.booleans(), seeds)
def test_the_plain_attention_equals_the_kernel(sizes, scale, is_causal, masked, seed):
    batch, length, d_model, heads, _ = sizes
    rng = np.random.default_rng(seed)
    query, key, value = (random_tensor(rng, batch, heads, length, d_model) for _ in range(3))
    mask = torch.tensor(rng.random((batch, 1, length, length)) < 0.5)
    if rng.random() < 0.5:
        mask = random_tensor(rng, heads, length, length).masked_fill(mask[:1, 0], -math.inf)
        mask = mask[None].expand(batch, heads, length, length)
    mask = mask if masked and not is_causal else None
    y, weights = dot_product_attention(query, key, value, mask, is_causal=is_causal, scale=scale)
    kernel = F.scaled_dot_product_attention(query, key, value, mask, 0.0, is_causal, scale=scale)
    close(y, kernel, 1e-9)
    close(weights @ value, y, 1e-9)
    sums = weights.sum(-1)
    assert bool(((sums - 1.0).abs() < 1e-12).logical_or(sums == 0.0).all())
    one = tuple(None if t is None else t[0, 0] for t in (query, key, value, mask))
    close(dot_product_attention(*one, is_causal=is_causal, scale=scale), (y[0, 0], weights[0, 0]))
    # An output is a weighted mean of the values, so it stays within their range.
    assert bool((y <= value.amax(-2, keepdim=True).clamp_min(0.0) + 1e-9).all())


@repeatable
@given(sizes(), st.sampled_from(["l2", "layer_norm"]), seeds)
def test_normalized_queries_and_keys_bound_the_scores(sizes, qk_norm, seed):
    batch, length, d_model, heads, _ = sizes
    rng = np.random.default_rng(seed)
    layer = SelfAttention(d_model, heads, qk_norm=qk_norm, qk_scale=2.0, dtype=torch.float64)
    x = 10.0 ** rng.uniform(-3, 6) * random_tensor(rng, batch, length, d_model)
    _, weights = layer(x, need_weights=True)
    width = d_model // heads
    bound = 2.0 if qk_norm == "l2" else math.sqrt(width)
    ratios = weights.amax(-1) / weights.amin(-1)
    assert bool((ratios <= math.exp(2.0 * bound) * (1.0 + 1e-9)).all())
