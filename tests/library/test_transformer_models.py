"""The stack, the language model and the initial values."""

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from torch import nn

from lnbook import layers
from lnbook.transformer import (
    CausalLanguageModel,
    DeepNormBlock,
    PeriLNBlock,
    PostLNBlock,
    PreLNBlock,
    TransformerEncoder,
    deepnorm_init_,
    xavier_init_,
)
from tests.helpers.random_tensors import random_tensor, randomized

N, L, D, HEADS, WIDTH = 2, 5, 12, 3, 16
BLOCKS = [PostLNBlock, PreLNBlock, PeriLNBlock, DeepNormBlock]
SMALL = {"dim_feedforward": WIDTH, "dropout": 0.0}
PADDING = torch.tensor([[False] * L, [False] * 3 + [True] * 2])
LATER = torch.ones(L, L).triu(1).bool()


def pytorchs_stack(norm_first, has_norm, **options):
    layer = nn.TransformerEncoderLayer(
        D, HEADS, WIDTH, batch_first=True, norm_first=norm_first, dtype=torch.float64, **options
    )
    norm = nn.LayerNorm(D, 0.3, dtype=torch.float64) if has_norm else None
    return randomized(nn.TransformerEncoder(layer, 3, norm, enable_nested_tensor=False))


def loaded(theirs, block, **options):
    """Return our stack with the weights of PyTorch's."""
    ours = TransformerEncoder(
        block, 3, D, HEADS, final_norm=theirs.norm is not None, dtype=torch.float64, **options
    )
    ours.load_state_dict(theirs.state_dict())
    return ours


# The stack


@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("has_norm", [False, True])
@pytest.mark.parametrize(
    "masks", [{}, {"mask": LATER}, {"src_key_padding_mask": PADDING}], ids=["none", "mask", "pad"]
)
def test_a_loaded_stack_equals_pytorchs(norm_first, has_norm, masks):
    options = {"dropout": 0.0, "activation": "gelu"}
    theirs = pytorchs_stack(norm_first, has_norm, **options)
    block = PreLNBlock if norm_first else PostLNBlock
    ours = loaded(theirs, block, dim_feedforward=WIDTH, **options)
    if has_norm:
        ours.norm.eps = theirs.norm.eps
    assert ours.state_dict().keys() == theirs.state_dict().keys()
    assert type(ours.norm) is (layers.LayerNorm if has_norm else type(None))
    found = []
    for stack in (ours, theirs):
        x = random_tensor(N, L, D).requires_grad_()
        y = stack(x, **masks)
        names, parameters = zip(*sorted(stack.named_parameters()), strict=True)
        upstream = random_tensor(N, L, D, seed=6)
        grads = torch.autograd.grad(y, [x, *parameters], upstream)
        found.append(dict(zip(["y", "x", *names], [y, *grads], strict=True)))
    for name, expected in found[1].items():
        torch.testing.assert_close(found[0][name], expected, rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize("block", BLOCKS)
@pytest.mark.parametrize("final_norm", [None, False, True])
def test_the_stack_is_its_blocks_and_the_final_norm(block, final_norm):
    stack = TransformerEncoder(
        block, 3, D, HEADS, final_norm=final_norm, layer_norm_eps=0.1, dtype=torch.float64, **SMALL
    )
    randomized(stack)
    expects_norm = block in (PreLNBlock, PeriLNBlock) if final_norm is None else final_norm
    assert (stack.norm is not None) == expects_norm
    x = random_tensor(N, L, D)
    for masks in ((None, None, False), (LATER, PADDING, False), (None, PADDING, True)):
        expected, all_weights = x, []
        for part in stack.layers:
            assert type(part) is block
            expected, weights = part(expected, *masks, need_weights=True)
            all_weights.append(weights)
        if expects_norm:
            expected = F.layer_norm(expected, (D,), stack.norm.weight, stack.norm.bias, 0.1)
        torch.testing.assert_close(stack(x, *masks), expected, rtol=1e-10, atol=1e-10)
        y, given = stack(x, *masks, need_weights=True)
        torch.testing.assert_close(y, expected, rtol=1e-10, atol=1e-10)
        assert len(given) == 3
        for mine, theirs in zip(given, all_weights, strict=True):
            torch.testing.assert_close(mine, theirs)


def test_options_reach_the_blocks_and_the_final_norm():
    stack = TransformerEncoder(
        PreLNBlock,
        2,
        D,
        HEADS,
        dim_feedforward=WIDTH,
        dropout=0.25,
        activation="gelu",
        norm="rms_norm",
        layer_norm_eps=0.5,
        qk_norm="l2",
        qk_scale=3.0,
        bias=False,
        dtype=torch.bfloat16,
    )
    assert type(stack.norm) is layers.RMSNorm
    assert stack.norm.eps == 0.5
    assert {p.dtype for p in stack.parameters()} == {torch.bfloat16}
    assert not any(name.endswith("bias") for name in stack.state_dict())
    for block in stack.layers:
        assert (block.dropout.p, block.activation) == (0.25, F.gelu)
        assert (block.self_attn.qk_norm, float(block.self_attn.scale.detach())) == ("l2", 3.0)
    stack = TransformerEncoder(PeriLNBlock, 1, D, HEADS, bias=False)
    assert not any(name.endswith("bias") for name in stack.state_dict())
    stack = TransformerEncoder(DeepNormBlock, 5, D, HEADS)
    assert all(math.isclose(block.alpha**4, 10.0) for block in stack.layers)


def test_blocks_start_from_different_weights():
    stack = TransformerEncoder(PreLNBlock, 2, D, HEADS, **SMALL)
    for name in ("linear1.weight", "self_attn.in_proj_weight"):
        first, second = (block.get_parameter(name) for block in stack.layers)
        assert not torch.isclose(first, second).any()


def test_pre_ln_without_its_final_norm_grows_with_depth():
    x = random_tensor(N, L, 64)
    for block, least, most in [(PreLNBlock, 2.0, 10.0), (PeriLNBlock, 10.0, 30.0)]:
        stack = TransformerEncoder(
            block, 12, 64, 4, final_norm=False, dropout=0.0, dtype=torch.float64
        )
        xavier_init_(stack, zero_query_key=True, rng=np.random.default_rng(0))
        size = float(stack(x).square().mean().detach())
        assert least < size < most


# The language model


def small_model(block=PreLNBlock, **options):
    return CausalLanguageModel(7, 6, D, HEADS, 2, block, **{**SMALL, **options})


@pytest.mark.parametrize("block", BLOCKS)
def test_scores_see_the_past_and_their_own_token_only(block):
    model = randomized(small_model(block, dtype=torch.float64))
    tokens = torch.tensor([[1, 2, 3, 4, 5], [6, 5, 4, 3, 2]])
    scores = model(tokens)
    assert scores.shape == (2, 5, 7)
    changed = tokens.clone()
    changed[:, 2] = 0
    after = model(changed)
    torch.testing.assert_close(after[:, :2], scores[:, :2], rtol=1e-11, atol=1e-11)
    assert not torch.isclose(after[:, 2:], scores[:, 2:]).all(-1).any()
    torch.testing.assert_close(model(tokens[:, :3]), scores[:, :3], rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(model(tokens[1]), scores[1], rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(model(tokens.int()), scores, rtol=1e-12, atol=1e-12)


def test_scores_are_those_of_the_parts():
    model = randomized(small_model(dtype=torch.float64, bias=False))
    tokens = torch.tensor([[3, 3, 3, 0]])
    x = model.token_embedding.weight[tokens] + model.position_embedding.weight[:4]
    causal = torch.ones(4, 4).triu(1).bool()
    expected = model.encoder(x, causal) @ model.head.weight.T
    torch.testing.assert_close(model(tokens), expected, rtol=1e-10, atol=1e-10)
    assert model.head.bias is None
    assert len(set(expected[0, :3].argmax(-1).tolist() + expected[0, :3, 0].tolist())) > 3


def test_model_options_and_an_empty_batch():
    model = small_model(final_norm=False, norm="rms_norm", dtype=torch.bfloat16)
    assert model.encoder.norm is None
    assert {p.dtype for p in model.parameters()} == {torch.bfloat16}
    model = randomized(small_model())
    assert model(torch.zeros(0, 3, dtype=torch.int64)).shape == (0, 3, 7)


# Initial values


def weights_of(model):
    query, key, value = model.self_attn.in_proj_weight.detach().chunk(3)
    return {
        "query": query,
        "key": key,
        "value": value,
        "out": model.self_attn.out_proj.weight.detach(),
        "linear1": model.linear1.weight.detach(),
        "linear2": model.linear2.weight.detach(),
    }


@pytest.mark.parametrize("pytorchs", [False, True])
@pytest.mark.parametrize("rng", [None, 0])
@pytest.mark.parametrize("beta", [None, 0.3])
def test_starting_values_have_the_variance_of_their_own_shape(pytorchs, rng, beta):
    torch.manual_seed(1)
    model = (nn.TransformerEncoderLayer if pytorchs else PostLNBlock)(256, 4, 512)
    randomized(model)
    norms = {name: p.clone() for name, p in model.named_parameters() if "norm" in name}
    generator = None if rng is None else np.random.default_rng(rng)
    if beta is None:
        assert xavier_init_(model, rng=generator) is model
    else:
        assert deepnorm_init_(model, beta, rng=generator) is model
    for name, weight in weights_of(model).items():
        gain = 1.0 if beta is None or name in ("query", "key") else beta
        std = gain * math.sqrt(2.0 / sum(weight.shape))
        assert math.isclose(float(weight.std()), std, rel_tol=0.02)
        assert abs(float(weight.mean())) < 0.02 * std
        kurtosis = float((weight / weight.std()).pow(4).mean())
        assert abs(kurtosis - 3.0) < 0.1  # normal, not uniform
    for name, parameter in model.named_parameters():
        if "norm" in name:
            assert torch.equal(parameter, norms[name])
        elif "bias" in name:
            assert not parameter.any()


@pytest.mark.parametrize("rng", [None, 0])
def test_queries_and_keys_of_zero_attend_to_all_keys_alike(rng):
    model = PreLNBlock(D, HEADS, **SMALL)
    found = []
    for zero in (False, True):
        torch.manual_seed(2)
        generator = None if rng is None else np.random.default_rng(rng)
        xavier_init_(model, zero_query_key=zero, rng=generator)
        found.append({name: weight.clone() for name, weight in weights_of(model).items()})
    for name in found[0]:
        assert found[0][name].any()
        if name in ("query", "key"):
            assert not found[1][name].any()
        else:
            assert torch.equal(found[0][name], found[1][name])
    _, weights = model(random_tensor(N, L, D, dtype=torch.float32), need_weights=True)
    torch.testing.assert_close(weights, torch.full_like(weights, 1.0 / L))


def test_a_numpy_generator_gives_the_same_weights_whatever_torch_drew():
    first, second = (
        xavier_init_(small_model(dtype=dtype), rng=np.random.default_rng(5))
        for dtype in (torch.float64, torch.float32)
    )
    for a, b in zip(first.encoder.parameters(), second.encoder.parameters(), strict=True):
        assert torch.equal(a.float(), b)
    assert first.head.weight.any()
    assert not first.head.bias.any()
    assert all(parameter.requires_grad for parameter in first.parameters())


def test_the_residual_stream_at_the_start_is_within_the_bounds_of_xiong_et_al():
    # Lemma 2: with Q = K = 0, d x d matrices and unit-variance inputs.
    d, depth = 256, 8
    stack = TransformerEncoder(
        PreLNBlock, depth, d, 1, dim_feedforward=d, dropout=0.0, dtype=torch.float64
    )
    xavier_init_(stack, zero_query_key=True, rng=np.random.default_rng(0))
    x = random_tensor(4, 1, d)
    x = x * math.sqrt(d) / x.norm(dim=-1, keepdim=True)
    for layer, block in enumerate(stack.layers, start=1):
        x = block(x)
        size = float(x.square().sum(-1).mean().detach()) / d
        assert 0.9 * (1 + layer / 2) <= size <= 1.1 * (1 + 3 * layer / 2)


def test_the_final_norm_has_the_defaults_of_the_blocks():
    norm = TransformerEncoder(PreLNBlock, 1, 8, 2).norm
    assert (norm.eps, norm.bias is None) == (1e-5, False)
