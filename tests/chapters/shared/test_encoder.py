"""The experiments measure what they claim to, as checked against PyTorch's layers and NumPy."""

from itertools import pairwise

import numpy as np
import pytest
import torch
from torch import nn

from lnbook import reference
from lnbook.chapters.shared.encoder import (
    ENCODER_STEPS,
    SETTINGS,
    _alike,
    _common,
    at_start,
    make_encoder,
)
from lnbook.transformer import PostLNBlock, PreLNBlock
from tests.helpers.encoders import BLOCKS, data, mean_loss


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("norm_first", [False, True])
def test_at_start_agrees_with_the_layers_of_pytorch(setting: str, norm_first: bool) -> None:
    width, depth, seed = 8, 3, 4
    rng = np.random.default_rng(seed)
    x, words, targets = data(rng, width)
    ours = make_encoder(BLOCKS[norm_first], depth, setting, width=width, rng=rng)
    theorem = setting == "theorem"
    layer = nn.TransformerEncoderLayer(
        width,
        1 if theorem else 4,
        width if theorem else 4 * width,
        0.0,
        norm_first=norm_first,
        batch_first=True,
        dtype=torch.float64,
    )
    final = nn.LayerNorm(width, dtype=torch.float64) if norm_first else None
    theirs = nn.TransformerEncoder(layer, depth, final, enable_nested_tensor=False)
    theirs.load_state_dict(ours.state_dict())

    stream, read = [torch.tensor(x, requires_grad=True)], []
    for part in theirs.layers:
        norm = part.norm2.register_forward_pre_hook(lambda _, inputs: read.append(inputs[0]))
        stream.append(part(stream[-1]))
        stream[-1].retain_grad()
        norm.remove()
    out = stream[-1] if final is None else theirs.norm(stream[-1])
    mean_loss(out, words, targets).backward()

    start = at_start(BLOCKS[norm_first], depth, setting, seed, width=width)
    rows = [s.detach().numpy() for s in stream]
    grads = [s.grad.numpy() for s in stream]
    changes = [
        np.mean(np.linalg.norm(b - a, axis=-1) / np.linalg.norm(a, axis=-1))
        for a, b in pairwise(rows)
    ]
    expected = {
        "weights": [np.linalg.norm(part.linear2.weight.grad) for part in theirs.layers],
        "gradients": [np.linalg.norm(g) for g in grads],
        "stream": [np.mean(np.sum(r**2, axis=-1)) / width for r in rows],
        "before_norm": [np.mean(np.sum(r.detach().numpy() ** 2, -1)) / width for r in read],
        "updates": changes,
    }
    for name, values in expected.items():
        assert getattr(start, name) == pytest.approx(np.array(values), rel=1e-9), name


@pytest.mark.parametrize("norm_first", [False, True])
def test_the_theorem_s_stack_takes_plain_means(norm_first: bool) -> None:
    """The forward pass, written in NumPy from the paper's equations."""
    width, depth, seed = 8, 3, 5
    rng = np.random.default_rng(seed)
    x, _, _ = data(rng, width)
    encoder = make_encoder(BLOCKS[norm_first], depth, width=width, rng=rng)
    stream = [x]
    for layer in encoder.layers:
        w_v, w_1, w_2 = (
            w.detach().numpy()
            for w in (
                layer.self_attn.in_proj_weight[2 * width :],
                layer.linear1.weight,
                layer.linear2.weight,
            )
        )

        def attend(z: np.ndarray, w_v: np.ndarray = w_v) -> np.ndarray:
            return z.mean(axis=1, keepdims=True) @ w_v.T

        def feed(z: np.ndarray, w_1: np.ndarray = w_1, w_2: np.ndarray = w_2) -> np.ndarray:
            return np.maximum(z @ w_1.T, 0) @ w_2.T

        for branch in (attend, feed):
            if norm_first:
                x = x + branch(reference.layer_norm(x, width))
            else:
                x = reference.layer_norm(x + branch(x), width)
        stream.append(x)
    start = at_start(BLOCKS[norm_first], depth, seed=seed, width=width)
    assert start.stream == pytest.approx(np.array([np.mean(s**2) for s in stream]), rel=1e-9)


def test_the_three_starts() -> None:
    def make(setting):
        rng = np.random.default_rng(0)
        return make_encoder(PreLNBlock, 2, setting, rng=rng).layers[1]

    theorem, xavier, pytorch = (make(setting) for setting in SETTINGS)
    assert theorem.linear2.weight.shape == (64, 64)
    assert theorem.linear1.weight.std().item() == pytest.approx(64**-0.5, rel=0.05)
    assert not theorem.self_attn.in_proj_weight[:128].any()
    assert theorem.self_attn.in_proj_weight[128:].std().item() == pytest.approx(1 / 8, rel=0.05)
    assert torch.equal(theorem.self_attn.out_proj.weight, torch.eye(64, dtype=torch.float64))
    assert not theorem.linear1.bias.any()
    assert xavier.linear2.weight.shape == (64, 256)
    assert xavier.linear2.weight.std().item() == pytest.approx((2 / 320) ** 0.5, rel=0.05)
    assert xavier.self_attn.in_proj_weight[:64].std().item() == pytest.approx(1 / 8, rel=0.05)
    torch.manual_seed(0)
    theirs = nn.TransformerEncoderLayer(64, 4, 256)
    for (name, ours), other in zip(pytorch.named_parameters(), theirs.parameters(), strict=True):
        largest = other.abs().max().item()
        assert ours.abs().max().item() == pytest.approx(largest, rel=0.08), name
        if ours.ndim == 2:
            assert ours.std().item() == pytest.approx(other.std().item(), rel=0.05), name


def test_both_blocks_start_alike_and_a_seed_decides() -> None:
    encoders = [
        make_encoder(block, 2, "xavier", width=8, rng=np.random.default_rng(1))
        for block in (PostLNBlock, PreLNBlock)
    ]
    post, pre = (encoder.layers.state_dict() for encoder in encoders)
    assert all(torch.equal(post[name], pre[name]) for name in post)
    one, same, other = (at_start(PreLNBlock, 2, seed=s, width=8) for s in (1, 1, 2))
    assert np.array_equal(one.weights, same.weights)
    assert not np.allclose(one.weights, other.weights)


def test_the_final_norm_can_be_left_out() -> None:
    with_norm = at_start(PreLNBlock, 12, width=16)
    without = at_start(PreLNBlock, 12, width=16, final_norm=False)
    assert with_norm.stream == pytest.approx(without.stream)
    assert without.weights[-1] > 2 * with_norm.weights[-1]


def test_alike_common_and_factors() -> None:
    row = torch.tensor([[1.0, 2.0, -2.0]])
    assert _alike(row.repeat(2, 4, 1)) == pytest.approx(1.0)
    assert _alike(torch.stack([row, -3 * row], dim=-2)) == pytest.approx(-1.0)
    assert _alike(torch.eye(4)[None]) == pytest.approx(0.0, abs=1e-7)
    assert _common(row.repeat(2, 4, 1)) == pytest.approx(1.0)
    assert _common(torch.stack([row, -row], dim=-2)) == pytest.approx(0.0)
    assert _common(torch.eye(4)[None]) == pytest.approx(1 / 4)
    start = at_start(PostLNBlock, 5, "xavier", width=16)
    assert start.factors.shape == (5, len(ENCODER_STEPS))
    # Block l's four steps take the gradient from the block's output back to its input.
    expected = start.gradients[:-1] / start.gradients[1:]
    assert start.factors.prod(axis=1) == pytest.approx(expected)
    assert start.alike[-1] > start.alike[0]
    assert at_start(PreLNBlock, 2, width=8).factors.shape == (0, 4)


def test_a_norm_takes_what_its_branch_gives() -> None:
    """In the theorem's setting, the feed-forward factor is sqrt(3/2); its norm's is sqrt(2/3)."""
    runs = [at_start(PostLNBlock, 12, seed=seed) for seed in range(3)]
    _, _, feed, norm = np.exp(np.mean([np.log(run.factors) for run in runs], axis=(0, 1)))
    assert feed == pytest.approx(1.5**0.5, rel=0.03)
    assert norm == pytest.approx((2 / 3) ** 0.5, rel=0.03)


def test_refusals() -> None:
    with pytest.raises(ValueError, match="one of theorem, xavier, pytorch, but got 'real'"):
        at_start(PreLNBlock, 2, "real")
    with pytest.raises(ValueError, match="multiple of nhead"):
        at_start(PreLNBlock, 2, "xavier", width=6)
