"""SelfAttention and its plain form, checked against PyTorch, NumPy and numerical derivatives."""

import copy
import inspect
import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel

from lnbook.transformer import SelfAttention, attention, dot_product_attention
from lnbook.transformer.masks import merge_masks
from tests.helpers.random_tensors import random_tensor, randomized

N, L, D, HEADS = 2, 5, 12, 3
FLOATING = [torch.float16, torch.bfloat16, torch.float32, torch.float64]


def all_masks():
    """Return masks by name; every query keeps at least one key."""
    rng = np.random.default_rng(7)
    hidden = torch.tensor(rng.random((L, L)) < 0.4)
    hidden.fill_diagonal_(False)
    per_head = torch.tensor(rng.random((N * HEADS, L, L)) < 0.4)
    per_head[:, range(L), range(L)] = False
    padding = torch.tensor([[False] * L, [False] * 3 + [True] * 2])
    return {
        "none": {},
        "mask": {"attn_mask": hidden},
        "mask per head": {"attn_mask": per_head},
        "added": {"attn_mask": random_tensor(L, L, seed=2)},
        "added per head": {"attn_mask": random_tensor(N * HEADS, L, L, seed=3)},
        "padding": {"key_padding_mask": padding},
        "added padding": {"key_padding_mask": random_tensor(N, L, seed=4)},
        "mask and padding": {
            "attn_mask": torch.ones(L, L, dtype=torch.bool).triu(1),
            "key_padding_mask": padding,
        },
        "added and padding": {
            "attn_mask": random_tensor(L, L, seed=5),
            "key_padding_mask": padding,
        },
    }


MASKS = all_masks()


def numpy_softmax(scores):
    exponentials = np.exp(scores - scores.max(-1, keepdims=True))
    return exponentials / exponentials.sum(-1, keepdims=True)


def as_added(mask):
    """Convert a mask in PyTorch's convention to the one that's added to the scores."""
    mask = mask.numpy()
    return np.where(mask, -np.inf, 0.0) if mask.dtype == bool else mask


def numpy_attention(layer, x, attn_mask=None, key_padding_mask=None):
    """Compute output and weights in NumPy, one sequence and one head at a time."""
    state = {name: value.detach().numpy() for name, value in layer.state_dict().items()}
    width = D // HEADS
    outputs, weights = [], []
    for n, sequence in enumerate(x.numpy()):
        joint = sequence @ state["in_proj_weight"].T + state.get("in_proj_bias", 0.0)
        heads = []
        for head in range(HEADS):
            query, key, value = (
                joint[:, part * D + head * width : part * D + (head + 1) * width]
                for part in range(3)
            )
            scores = query @ key.T / math.sqrt(width)
            if attn_mask is not None:
                added = as_added(attn_mask)
                scores = scores + (added if added.ndim == 2 else added[n * HEADS + head])
            if key_padding_mask is not None:
                scores = scores + as_added(key_padding_mask)[n][None, :]
            weights.append(numpy_softmax(scores))
            heads.append(weights[-1] @ value)
        y = np.concatenate(heads, -1) @ state["out_proj.weight"].T
        outputs.append(y + state.get("out_proj.bias", 0.0))
    return np.array(outputs), np.array(weights).reshape(len(x), HEADS, L, L)


def results(layer, call, x, upstream):
    x = x.clone().requires_grad_()
    y = call(layer, x)
    return [y.detach(), *torch.autograd.grad(y, [x, *layer.parameters()], upstream)]


@pytest.mark.parametrize("masks", MASKS.values(), ids=MASKS)
@pytest.mark.parametrize("need_weights", [False, True])
@pytest.mark.parametrize("bias", [True, False])
def test_output_and_weights_equal_numpy(masks, need_weights, bias):
    layer = randomized(SelfAttention(D, HEADS, bias=bias, dtype=torch.float64))
    x = random_tensor(N, L, D)
    expected, expected_weights = numpy_attention(layer, x, **masks)
    result = layer(x, **masks, need_weights=need_weights)
    y, weights = result if need_weights else (result, None)
    np.testing.assert_allclose(y.detach().numpy(), expected, atol=1e-12)
    if need_weights:
        np.testing.assert_allclose(weights.detach().numpy(), expected_weights, atol=1e-12)


@pytest.mark.parametrize("masks", MASKS.values(), ids=MASKS)
@pytest.mark.parametrize("need_weights", [False, True])
def test_outputs_and_gradients_equal_pytorch(masks, need_weights):
    ours = randomized(SelfAttention(D, HEADS, dtype=torch.float64))
    theirs = nn.MultiheadAttention(D, HEADS, batch_first=True, dtype=torch.float64)
    theirs.load_state_dict(ours.state_dict())
    x, upstream = random_tensor(N, L, D), random_tensor(N, L, D, seed=6)

    def our_call(layer, x):
        result = layer(x, **masks, need_weights=need_weights)
        return result[0] if need_weights else result

    def their_call(layer, x):
        added = {name: torch.tensor(as_added(mask)) for name, mask in masks.items()}
        return layer(x, x, x, **added, need_weights=False)[0]

    for tensor, expected in zip(
        results(ours, our_call, x, upstream), results(theirs, their_call, x, upstream), strict=True
    ):
        torch.testing.assert_close(tensor, expected, rtol=1e-10, atol=1e-11)


def test_weights_of_each_head_equal_pytorch():
    ours = randomized(SelfAttention(D, HEADS, dtype=torch.float64))
    theirs = nn.MultiheadAttention(D, HEADS, batch_first=True, dtype=torch.float64)
    theirs.load_state_dict(ours.state_dict())
    x = random_tensor(N, L, D)
    _, weights = ours(x, need_weights=True)
    _, expected = theirs(x, x, x, average_attn_weights=False)
    torch.testing.assert_close(weights, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("bias", [True, False])
def test_state_dicts_and_starting_weights_are_those_of_pytorch(bias):
    torch.manual_seed(3)
    ours = SelfAttention(D, HEADS, bias=bias)
    torch.manual_seed(3)
    theirs = nn.MultiheadAttention(D, HEADS, bias=bias)
    assert list(ours.state_dict()) == list(theirs.state_dict())
    for name, value in theirs.state_dict().items():
        assert torch.equal(ours.state_dict()[name], value)
    theirs.load_state_dict(randomized(ours).state_dict())


# Causality and masks


@pytest.mark.parametrize("need_weights", [False, True])
@pytest.mark.parametrize("name", MASKS)
def test_is_causal_equals_the_causal_mask(name, need_weights):
    layer = randomized(SelfAttention(D, HEADS, dtype=torch.float64))
    x, masks = random_tensor(N, L, D), dict(MASKS[name])
    y = layer(x, **masks, is_causal=True, need_weights=need_weights)
    later = torch.ones(L, L).triu(1).bool()
    added = torch.tensor(as_added(masks.pop("attn_mask", torch.zeros(L, L, dtype=torch.bool))))
    expected, weights = numpy_attention(layer, x, added.masked_fill(later, -math.inf), **masks)
    np.testing.assert_allclose((y[0] if need_weights else y).detach().numpy(), expected, atol=1e-12)
    if need_weights:
        np.testing.assert_allclose(y[1].detach().numpy(), weights, atol=1e-12)
        assert not y[1][..., later].any()


def test_causality_alone_builds_no_mask_and_nothing_of_length_squared():
    length, sizes = 64, []
    layer = randomized(SelfAttention(8, 2))
    x = random_tensor(1, length, 8, dtype=torch.float32).requires_grad_()
    query = torch.zeros(1, 2, length, 4)
    assert merge_masks(query, None, None, True) == (None, True)
    with torch.autograd.graph.saved_tensors_hooks(
        lambda tensor: sizes.append(tensor.untyped_storage().nbytes()) or tensor, lambda t: t
    ):
        layer(x, is_causal=True)
    assert 0 < max(sizes) < 4 * length * length


def test_weights_are_computed_on_request_only(monkeypatch):
    def refuse(*args, **options):
        raise AssertionError("the weights were computed")

    monkeypatch.setattr(attention, "dot_product_attention", refuse)
    layer = SelfAttention(D, HEADS, dtype=torch.float64)
    x = random_tensor(N, L, D)
    for masks in MASKS.values():
        assert isinstance(layer(x, **masks), torch.Tensor)
    with pytest.raises(AssertionError, match="computed"):
        layer(x, need_weights=True)


@pytest.mark.parametrize("need_weights", [False, True])
@pytest.mark.parametrize("added", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_a_token_that_sees_no_key_gets_zero_weights_and_nothing_becomes_nan(
    need_weights, added, dtype
):
    layer = randomized(SelfAttention(D, HEADS, dtype=dtype))
    x = random_tensor(N, L, D, dtype=dtype).requires_grad_()
    padding = torch.tensor([[False] * L, [True] * L])
    mask = torch.tensor(as_added(padding)).to(dtype) if added else padding
    result = layer(x, key_padding_mask=mask, need_weights=need_weights)
    y = result[0] if need_weights else result
    assert torch.equal(y[1], layer.out_proj.bias.expand(L, D))
    tolerance = 4 * D * torch.finfo(dtype).eps  # four sums of D products, in any order
    torch.testing.assert_close(y[0], layer(x[0]), rtol=tolerance, atol=tolerance)
    if need_weights:
        assert not result[1][1].any()
    grads = torch.autograd.grad(y, [x, *layer.parameters()], random_tensor(N, L, D, dtype=dtype))
    assert all(grad.isfinite().all() for grad in grads)
    assert not grads[0][1].any()


def test_gradient_of_an_added_mask():
    layer = randomized(SelfAttention(D, HEADS, dtype=torch.float64))
    x, upstream = random_tensor(N, L, D), random_tensor(N, L, D, seed=6)
    mask = random_tensor(L, L, seed=2).requires_grad_()
    fused, plain = (
        torch.autograd.grad(y, mask, upstream)[0]
        for y in (layer(x, mask), layer(x, mask, need_weights=True)[0])
    )
    torch.testing.assert_close(fused, plain, rtol=1e-10, atol=1e-12)
    assert torch.autograd.gradcheck(lambda mask: layer(x, mask), [mask])


# Derivatives


@pytest.mark.parametrize("qk_norm", [None, "l2", "layer_norm", "rms_norm"])
@pytest.mark.parametrize("need_weights", [False, True])
def test_first_and_second_derivatives(qk_norm, need_weights):
    layer = randomized(SelfAttention(4, 2, qk_norm=qk_norm, dtype=torch.float64), seed=5)
    x = random_tensor(1, 3, 4).requires_grad_()
    names, parameters = zip(*layer.named_parameters(), strict=True)

    def function(x, *parameters):
        arguments = {"is_causal": True, "need_weights": need_weights}
        state = dict(zip(names, parameters, strict=True))
        return torch.func.functional_call(layer, state, (x,), arguments)

    with sdpa_kernel(SDPBackend.MATH):  # the fused kernel has no second derivative
        assert torch.autograd.gradgradcheck(function, (x, *parameters), fast_mode=True)
    assert torch.autograd.gradcheck(function, (x, *parameters))


# The plain form


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_the_plain_form_rounds_half_precision_once(dtype):
    query, key, value = (random_tensor(2, 64, 32, dtype=dtype, seed=seed) for seed in range(3))
    y, weights = dot_product_attention(query, key, value)
    assert (y.dtype, weights.dtype) == (dtype, dtype)
    exact, _ = dot_product_attention(query.double(), key.double(), value.double())
    unit = torch.finfo(dtype).eps
    assert bool(((y - exact).abs() <= 0.5 * unit * exact.abs() + 4e-6).all())


# Query and key norms


def test_unit_queries_and_keys_as_henry_et_al():
    layer = randomized(SelfAttention(D, HEADS, qk_norm="l2", qk_scale=7.0, dtype=torch.float64))
    assert float(SelfAttention(D, HEADS, qk_norm="l2", qk_scale=7.0).scale.detach()) == 7.0
    x = random_tensor(N, L, D)
    joint = F.linear(x, layer.in_proj_weight, layer.in_proj_bias).detach().numpy()
    query, key, value = joint.reshape(N, L, 3, HEADS, -1).transpose(2, 0, 3, 1, 4)
    query, key = (part / np.linalg.norm(part, axis=-1, keepdims=True) for part in (query, key))
    cosines = np.einsum("nhid,nhjd->nhij", query, key)
    assert np.abs(cosines).max() <= 1.0 + 1e-12
    weights = numpy_softmax(float(layer.scale.detach()) * cosines)
    heads = np.einsum("nhij,nhjd->nihd", weights, value).reshape(N, L, D)
    expected = layer.out_proj(torch.tensor(heads))
    torch.testing.assert_close(layer(x), expected, rtol=1e-11, atol=1e-11)
    y, ours = layer(x, need_weights=True)
    torch.testing.assert_close(y, expected, rtol=1e-11, atol=1e-11)
    np.testing.assert_allclose(ours.detach().numpy(), weights, atol=1e-12)


@pytest.mark.parametrize("qk_norm", ["layer_norm", "rms_norm"])
def test_normalized_queries_and_keys_as_in_vit_22b(qk_norm):
    layer = randomized(SelfAttention(D, HEADS, qk_norm=qk_norm, dtype=torch.float64))
    width = D // HEADS
    extra = {name for name, _ in layer.named_parameters()} - set(
        SelfAttention(D, HEADS).state_dict()
    )
    assert extra == {"q_norm.weight", "k_norm.weight"}
    x = random_tensor(N, L, D)
    joint = F.linear(x, layer.in_proj_weight, layer.in_proj_bias)
    query, key, value = joint.reshape(N, L, 3, HEADS, width).permute(2, 0, 3, 1, 4)
    norm = F.layer_norm if qk_norm == "layer_norm" else F.rms_norm
    query = norm(query, (width,), layer.q_norm.weight, eps=1e-5)
    key = norm(key, (width,), layer.k_norm.weight, eps=1e-5)
    heads = F.scaled_dot_product_attention(query, key, value)
    expected = layer.out_proj(heads.transpose(1, 2).reshape(N, L, D))
    torch.testing.assert_close(layer(x), expected, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("qk_norm", ["l2", "layer_norm", "rms_norm"])
def test_the_scale_of_the_query_projection_does_not_matter(qk_norm):
    layer = randomized(SelfAttention(D, HEADS, qk_norm=qk_norm, dtype=torch.float64))
    x = 100.0 * random_tensor(N, L, D)
    before = layer(x)
    with torch.no_grad():
        layer.in_proj_weight[: 2 * D] *= 30.0
        layer.in_proj_bias[: 2 * D] *= 30.0
    torch.testing.assert_close(layer(x), before, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("dtype", FLOATING)
def test_queries_and_keys_of_zero_are_no_nan(dtype):
    layer = SelfAttention(D, HEADS, qk_norm="l2", dtype=dtype)
    with torch.no_grad():
        layer.in_proj_weight[: 2 * D] = 0.0
    x = random_tensor(N, L, D, dtype=dtype).requires_grad_()
    y, weights = layer(x, need_weights=True)
    torch.testing.assert_close(weights, torch.full_like(weights, 1.0 / L))
    (grad,) = torch.autograd.grad(y, x, random_tensor(N, L, D, dtype=dtype, seed=2))
    assert grad.isfinite().all()


# Dropout


def test_dropout_acts_on_the_weights_in_training_only():
    layer = randomized(SelfAttention(D, HEADS, dropout=0.5, dtype=torch.float64))
    theirs = nn.MultiheadAttention(D, HEADS, 0.5, batch_first=True, dtype=torch.float64)
    theirs.load_state_dict(layer.state_dict())
    x = random_tensor(N, L, D)
    for seed in range(3):
        torch.manual_seed(seed)
        y = layer(x)
        torch.manual_seed(seed)
        expected, _ = theirs(x, x, x, need_weights=False)
        torch.testing.assert_close(y, expected, rtol=1e-12, atol=1e-12)
        torch.manual_seed(seed)
        plain, weights = layer(x, need_weights=True)
        torch.testing.assert_close(plain, expected, rtol=1e-12, atol=1e-12)
        torch.testing.assert_close(weights.sum(-1), torch.ones(N, HEADS, L).double())
    layer.eval()
    torch.testing.assert_close(layer(x), layer(x))
    np.testing.assert_allclose(layer(x).detach(), numpy_attention(layer, x)[0], atol=1e-12)


# Kinds of input


@pytest.mark.parametrize("need_weights", [False, True])
def test_one_sequence_without_a_batch(need_weights):
    layer = randomized(SelfAttention(D, HEADS, dtype=torch.float64))
    x, padding = random_tensor(N, L, D)[1], MASKS["padding"]["key_padding_mask"][1]
    per_head = MASKS["mask per head"]["attn_mask"][HEADS:]
    batched = layer(x[None], per_head, padding[None], need_weights=need_weights)
    alone = layer(x, per_head, padding, need_weights=need_weights)
    for tensor, expected in zip(
        alone if need_weights else [alone], batched if need_weights else [batched], strict=True
    ):
        torch.testing.assert_close(tensor, expected[0])


@pytest.mark.parametrize(("batch", "length"), [(0, 4), (2, 1), (1, 1)])
@pytest.mark.parametrize("is_causal", [False, True])
def test_small_and_empty_batches(batch, length, is_causal):
    layer = randomized(SelfAttention(D, HEADS))
    x = torch.ones(batch, length, D, requires_grad=True)
    y, weights = layer(x, is_causal=is_causal, need_weights=True)
    assert weights.shape == (batch, HEADS, length, length)
    fused = layer(x, is_causal=is_causal)
    torch.testing.assert_close(fused, y)
    assert torch.autograd.grad(fused.sum(), x)[0].shape == x.shape


@pytest.mark.parametrize("dtype", FLOATING)
@pytest.mark.parametrize("qk_norm", [None, "l2", "layer_norm"])
def test_dtypes(dtype, qk_norm):
    layer = randomized(SelfAttention(D, HEADS, qk_norm=qk_norm, dtype=dtype), seed=2)
    exact = copy.deepcopy(layer).double()
    x = random_tensor(N, L, D, dtype=dtype)
    padding = MASKS["padding"]["key_padding_mask"]
    y = layer(x, None, padding)
    assert y.dtype == dtype
    expected = exact(x.double(), None, padding)
    error = (y - expected).abs().max() / expected.abs().max()
    assert float(error.detach()) < 4 * torch.finfo(dtype).eps


@pytest.mark.parametrize("qk_norm", [None, "l2", "layer_norm"])
def test_cpu_autocast(qk_norm):
    layer = randomized(SelfAttention(D, HEADS, qk_norm=qk_norm))
    x = random_tensor(N, L, D, dtype=torch.float32)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        for masks in ({}, MASKS["mask and padding"], {"attn_mask": torch.zeros(L, L)}):
            y, weights = layer(x, **masks, need_weights=True)
            fused = layer(x, **masks)
            assert fused.dtype == y.dtype == weights.dtype == torch.bfloat16
            torch.testing.assert_close(fused, y, rtol=0.05, atol=0.05)
    torch.testing.assert_close(layer(x), fused.float(), rtol=0.1, atol=0.1)


@pytest.mark.parametrize("need_weights", [False, True])
def test_compiles_without_a_break(need_weights):
    layer = randomized(SelfAttention(D, HEADS))
    compiled = torch.compile(layer, backend="eager", fullgraph=True)
    x = random_tensor(N, L, D, dtype=torch.float32)
    padding = MASKS["padding"]["key_padding_mask"]
    ours = compiled(x, None, padding, True, need_weights)
    expected = layer(x, None, padding, True, need_weights)
    torch.testing.assert_close(ours, expected)


def test_inputs_are_left_as_they_were():
    layer = randomized(SelfAttention(D, HEADS, dtype=torch.float64))
    x, masks = random_tensor(N, L, D), all_masks()
    for name, given in MASKS.items():
        layer(x, **given, is_causal=True)
        layer(x, **given, is_causal=True, need_weights=True)
        for key, mask in given.items():
            assert torch.equal(mask, masks[name][key])
    assert torch.equal(x, random_tensor(N, L, D))


def test_argument_names_are_those_of_pytorch():
    ours, theirs = inspect.signature(SelfAttention), inspect.signature(nn.MultiheadAttention)
    for name in ("embed_dim", "num_heads", "dropout", "bias"):
        assert ours.parameters[name].default == theirs.parameters[name].default
    assert list(ours.parameters)[:4] == ["embed_dim", "num_heads", "dropout", "bias"]
    assert repr(SelfAttention(4, 2, 0.5, qk_norm="l2")).startswith(
        "SelfAttention(\n  4, 2, dropout=0.5, qk_norm='l2'"
    )


def test_the_attention_says_that_the_batch_comes_first():
    # PyTorch's encoder stack reads this attribute.
    assert SelfAttention(4, 2).batch_first is True


def test_values_may_have_another_width_than_keys():
    query, key, value = random_tensor(2, 3, 4), random_tensor(2, 5, 4), random_tensor(2, 5, 7)
    y, weights = dot_product_attention(query, key, value)
    assert (y.shape, weights.shape) == ((2, 3, 7), (2, 3, 5))
    torch.testing.assert_close(y, F.scaled_dot_product_attention(query, key, value))
