"""The experiments on transformer blocks measure what they claim to, and depend only on the seed."""

import math

import numpy as np
import pytest
import torch
from torch import nn

from lnbook.chapters.shared import residual_stream
from lnbook.transformer import PostLNBlock, PreLNBlock


@pytest.mark.parametrize("block", [PostLNBlock, PreLNBlock])
def test_stream_sizes_against_pytorch(block: type) -> None:
    """The same weights in PyTorch's layers give the same sizes."""
    rng = np.random.default_rng(3)
    x, stack = residual_stream.random_input(rng), residual_stream.new_stack(block, 3, rng)
    expected = [x.square().mean().sqrt().item()]
    for ours in stack.layers:
        layer = nn.TransformerEncoderLayer(
            64, 4, 256, 0.0, batch_first=True, norm_first=block is PreLNBlock, dtype=torch.float64
        )
        layer.load_state_dict(ours.state_dict())
        x = layer(x)
        expected.append(x.square().mean().sqrt().item())
    assert residual_stream.stream_sizes(block, 3, seed=3) == pytest.approx(expected)


def test_stream_sizes_without_branches_stay() -> None:
    sizes = residual_stream.stream_sizes(PreLNBlock, 4, branch_scale=0.0, seed=1)
    assert sizes == pytest.approx([sizes[0]] * 5)
    whole = residual_stream.stream_sizes(PreLNBlock, 4, seed=1)
    half = residual_stream.stream_sizes(PreLNBlock, 4, branch_scale=0.5, seed=1)
    assert sizes[-1] < half[-1] < whole[-1]


def test_branch_size_sees_the_activation_and_the_seed() -> None:
    relu, gelu = (residual_stream.branch_size(PostLNBlock, name, 1) for name in ("relu", "gelu"))
    assert relu > gelu > 0
    assert relu != residual_stream.branch_size(PostLNBlock, "relu", 2)
    # ReLU halves the mean square of a normal row. Each matrix with Xavier initialization
    # multiplies it by the number of inputs times the variance of the weights, 2 / (64 + 256).
    assert relu == pytest.approx(math.sqrt(0.5 * 64 * 256) * 2 / (64 + 256), rel=0.2)
