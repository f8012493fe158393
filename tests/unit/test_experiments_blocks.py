"""The experiments on transformer blocks measure what they say, and follow from their seed."""

import math

import numpy as np
import pytest
import torch
from torch import nn

from lnbook.experiments import blocks as experiments
from lnbook.transformer import PeriLNBlock, PostLNBlock, PreLNBlock

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.mark.parametrize("block", [PostLNBlock, PreLNBlock])
def test_stream_sizes_against_pytorch(block: type) -> None:
    """The same weights in PyTorch's layers give the same sizes."""
    rng = np.random.default_rng(3)
    x, stack = experiments._input(rng), experiments._stack(block, 3, rng)
    expected = [x.square().mean().sqrt().item()]
    for ours in stack.layers:
        layer = nn.TransformerEncoderLayer(
            64, 4, 256, 0.0, batch_first=True, norm_first=block is PreLNBlock, dtype=torch.float64
        )
        layer.load_state_dict(ours.state_dict())
        x = layer(x)
        expected.append(x.square().mean().sqrt().item())
    assert experiments.stream_sizes(block, 3, seed=3) == pytest.approx(expected)


def test_stream_sizes_without_branches_stay() -> None:
    sizes = experiments.stream_sizes(PreLNBlock, 4, branch_scale=0.0, seed=1)
    assert sizes == pytest.approx([sizes[0]] * 5)
    whole = experiments.stream_sizes(PreLNBlock, 4, seed=1)
    half = experiments.stream_sizes(PreLNBlock, 4, branch_scale=0.5, seed=1)
    assert sizes[-1] < half[-1] < whole[-1]


def test_branch_size_sees_the_activation_and_the_seed() -> None:
    relu, gelu = (experiments.branch_size(PostLNBlock, name, 1) for name in ("relu", "gelu"))
    assert relu > gelu > 0
    assert relu != experiments.branch_size(PostLNBlock, "relu", 2)
    # What ReLU passes on of a normal row: half of its square, summed by Xavier's matrices.
    assert relu == pytest.approx(math.sqrt(0.5 * 64 * 256) * 2 / (64 + 256), rel=0.2)


def test_first_loss_is_that_of_a_head_on_the_stack() -> None:
    plain, normed = (experiments.first_loss(norm, depth=12, seed=2) for norm in (False, True))
    assert plain > normed > 0
    assert normed != experiments.first_loss(True, depth=12, seed=3)


@pytest.mark.parametrize("block", [PostLNBlock, PreLNBlock])
@pytest.mark.parametrize("where", ["branch", "stream"])
def test_sameness_under_dropout(block: type, where: str) -> None:
    none = experiments.sameness_under_dropout(block, where, 3, share=0.0, seed=1)
    assert none == pytest.approx(np.ones(4))
    some = experiments.sameness_under_dropout(block, where, 3, share=0.3, seed=1)
    assert some[0] == 1.0
    assert (some[1:] < 0.99).all()


def test_one_branch_dropped_whole_leaves_the_stream() -> None:
    """Nearly all is dropped: what is left of Pre-LN is its input, where branches are dropped."""
    kept = experiments.sameness_under_dropout(PreLNBlock, "branch", 2, share=0.9999, seed=0)
    lost = experiments.sameness_under_dropout(PreLNBlock, "stream", 2, share=0.9999, seed=0)
    assert kept[-1] > 0.9
    assert abs(lost[-1]) < 0.1


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ((PeriLNBlock, "branch"), "expected block to be PostLNBlock or PreLNBlock"),
        ((PreLNBlock, "norm"), "expected where to be 'branch' or 'stream', but got 'norm'"),
        ((PreLNBlock, "branch", 2, 1.0), "less than 1, but got 1.0"),
    ],
)
def test_sameness_refuses(arguments: tuple[object, ...], expected: str) -> None:
    with pytest.raises(ValueError, match=expected):
        experiments.sameness_under_dropout(*arguments)  # type: ignore[arg-type]
