"""The experiments on blocks measure what they claim to, and depend only on the seed."""

import numpy as np
import pytest

from lnbook.chapters.transformer.blocks import experiments
from lnbook.transformer import PeriLNBlock, PostLNBlock, PreLNBlock


def test_first_loss_matches_a_head_on_the_stack() -> None:
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


def test_dropping_a_whole_branch_leaves_the_stream() -> None:
    """With nearly all branch outputs dropped, a Pre-LN stream stays close to its input."""
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
def test_sameness_rejects_bad_arguments(arguments: tuple[object, ...], expected: str) -> None:
    with pytest.raises(ValueError, match=expected):
        experiments.sameness_under_dropout(*arguments)  # type: ignore[arg-type]
