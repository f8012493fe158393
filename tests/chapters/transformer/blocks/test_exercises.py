"""The checkers for the chapter on transformer blocks."""

from functools import partial

import pytest
import torch
from torch import nn
from torch.nn import functional

from lnbook.chapters.transformer.blocks import exercises
from lnbook.transformer import PreLNBlock
from tests.helpers.verdicts import verdict_test

NORMALIZED, TOKEN = [-1, -1, 1, 1], [0, 0, 4, 4]
RIGHT = lambda k, v: 1 + k * v, lambda k: k**-0.5
TORCH_LAYER = partial(nn.TransformerEncoderLayer, batch_first=True)


def silent_stacks():
    """The exercise's token after six PyTorch layers whose branches write 0."""
    for norm_first, final in ((False, False), (True, False), (True, True)):
        layer = TORCH_LAYER(4, 1, 4, 0.0, norm_first=norm_first, layer_norm_eps=0.0).double()
        for part in (layer.self_attn.out_proj, layer.linear2):
            nn.init.zeros_(part.weight)
            nn.init.zeros_(part.bias)
        x = torch.tensor([[TOKEN]], dtype=torch.float64)
        for _ in range(6):
            x = layer(x)
        yield (functional.layer_norm(x, (4,), eps=0.0) if final else x)[0, 0]


def test_branch_scale_matches_independent_numbers() -> None:
    branches = torch.linspace(0, 1, 400 * 13).mul(1e4).sin().view(400, 13).double()
    branches -= branches.mean(0)
    stream, *rest = torch.linalg.qr(branches)[0].mul(20).T  # uncorrelated, variance 1
    variance, factor = RIGHT
    for scale, expected in ((1.0, variance(12, 0.25)), (factor(12), 1.25)):
        total = stream + sum(scale * 0.5 * branch for branch in rest)
        assert total.var(correction=0).item() == pytest.approx(expected, rel=1e-6)


def merged(attn_mask: torch.Tensor, key_padding_mask: torch.Tensor) -> torch.Tensor:
    return ~(attn_mask | key_padding_mask[:, None, None, :])


def test_merged_mask_matches_pytorch() -> None:
    x = torch.linspace(-1, 1, 60).sin().view(3, 5, 4)
    attention = nn.MultiheadAttention(4, 2, batch_first=True)
    hidden, padding = torch.ones(5, 5).triu(1).bool(), torch.zeros(3, 5).bool()
    padding[1, -2:] = True
    expected, _ = attention(x, x, x, attn_mask=hidden, key_padding_mask=padding)
    joint = functional.linear(x, attention.in_proj_weight, attention.in_proj_bias)
    query_key_value = joint.view(3, 5, 3, 2, 2).permute(2, 0, 3, 1, 4)
    heads = functional.scaled_dot_product_attention(*query_key_value, merged(hidden, padding))
    torch.testing.assert_close(attention.out_proj(heads.transpose(1, 2).flatten(2)), expected)


def without_dropout(name):
    return block(change=lambda parts: setattr(parts, name, nn.Identity()))


def shares_dropout(parts):
    parts.dropout1 = parts.dropout2 = parts.dropout


def drops_what_attention_reads(parts):
    parts.norm1.register_forward_hook(lambda norm, x, y: parts.dropout(y))


def block(
    norms=("norm1", "norm2"),
    on_stream=(),
    unsummed=(),
    without=(),
    end=lambda s, x, y: y,
    change=lambda parts: None,
):
    """A Pre-LN block built from PyTorch's parts, with a bug in half 0 or 1, or without a mask."""

    class Mine(nn.TransformerEncoderLayer):
        def __init__(self, *sizes: float) -> None:
            super().__init__(*sizes, batch_first=True)
            change(self)

        def forward(self, x, mask, padding):
            y = x
            masks = {"attn_mask": mask, "key_padding_mask": padding} | dict.fromkeys(without)
            for half, branch in enumerate((partial(self._sa_block, **masks), self._ff_block)):
                read = getattr(self, norms[half])(y) if norms[half] else y
                stream = read if half in on_stream else y
                y = branch(read) + (0 if half in unsummed else stream)
            return end(self, x, y)

    return Mine


ANSWERS = {
    exercises.check_silent_branches: [
        ("Correct.", NORMALIZED, TOKEN, NORMALIZED),
        ("Correct.", *silent_stacks()),
        (
            "post: the branches write 0, but the stream",
            [0, 0, 0, 0],
            TOKEN,
            NORMALIZED,
        ),
        ("This stream passes through norms", TOKEN, TOKEN, NORMALIZED),
        ("only centered", [-2, -2, 2, 2], TOKEN, NORMALIZED),
        ("not by the variance", [-0.5, -0.5, 0.5, 0.5], TOKEN, NORMALIZED),
        ("the stream still carries the token", NORMALIZED, [0, 0, 0, 0], NORMALIZED),
        ("norms are inside the branches", NORMALIZED, NORMALIZED, NORMALIZED),
        ("each block adds 0", NORMALIZED, [0, 0, 256, 256], NORMALIZED),
        ("each branch adds 0", NORMALIZED, [0, 0, 4096 * 4, 4096 * 4], NORMALIZED),
        ("pre_final: that's the token itself", NORMALIZED, TOKEN, TOKEN),
        ("Follow the thick line", NORMALIZED, TOKEN, [-1, -1, 1, 1.005]),
    ],
    exercises.check_branch_scale: [
        ("Correct.", lambda k, v: 1 + k * v, lambda k: k**-0.5),
        ("Correct.", lambda n, v: torch.tensor(1 + n * v), lambda n: torch.tensor(1 / n).sqrt()),
        *((words, wrong, RIGHT[1]) for words, wrong in exercises.VARIANCE_MISTAKES.items()),
        *((words, RIGHT[0], wrong) for words, wrong in exercises.FACTOR_MISTAKES.items()),
        ("the variance should be 4", lambda k, v: 1 + k * v + 5e-6, RIGHT[1]),
        ("doesn't end at a variance of 1 + v", RIGHT[0], lambda k: k**-0.5 + 5e-6),
        ("What stream_variance returns is still missing", lambda *_: None, lambda *_: None),
        ("What branch_factor returns is still missing", RIGHT[0], lambda *_: ...),
        ("branch_factor raised ZeroDivisionError", RIGHT[0], lambda *_: 1 / 0),
    ],
    exercises.check_merged_mask: [
        ("Correct.", merged),
        ("returns nothing", lambda m, p: None),
        ("should be a bool tensor, but is torch.float64", lambda m, p: merged(m, p).double()),
        ("should be a bool tensor, but is list", lambda m, p: [[True]]),
        ("would line up with the heads", lambda m, p: ~(m | p[:, None, :])),
        ("should have the shape (N, 1, L, L)", lambda m, p: torch.ones(7, dtype=torch.bool)),
        ("but has (3, 2, 5, 5)", lambda m, p: merged(m, p).expand(-1, 2, -1, -1)),
        ("True where a key is hidden", lambda m, p: ~merged(m, p)),
        ("ignores the padding", lambda m, p: ~m),
        ("ignores attn_mask", lambda m, p: ~p[:, None, None, :]),
        ("hides later tokens, whatever", lambda m, p: merged(torch.ones_like(m).triu(1), p)),
        ("only where both masks hide it", lambda m, p: ~(m & p[:, None, None, :])),
        ("hides padded queries", lambda m, p: ~(m | p[:, None, :, None])),
        ("inverts only attn_mask", lambda m, p: ~m & p[:, None, None, :]),
        ("inverts only the padding", lambda m, p: m & ~p[:, None, None, :]),
        ("shows or hides the wrong keys", lambda m, p: torch.ones_like(merged(m, p))),
        ("modifies a mask", lambda m, p: ~merged(m, p.logical_not_())),
        ("modifies a mask", lambda m, p: ~merged(m.logical_not_(), p)),
    ],
    exercises.check_pre_block: [
        ("Correct.", block()),
        ("Correct.", partial(TORCH_LAYER, norm_first=True)),
        ("Correct.", PreLNBlock),
        ("Correct.", block(change=shares_dropout)),
        ("Two things are wrong", block(("norm1", "norm1"), on_stream=[0])),
        ("This is Post-LN", TORCH_LAYER),
        ("add to x, not to norm1(x)", block(on_stream=[0])),
        ("add to x, not to norm2(x)", block(on_stream=[1])),
        ("Both norms change the stream", block(on_stream=[0, 1])),
        ("norm1 is used in both branches. The second", block(("norm1", "norm1"))),
        ("norm1 and norm2 are swapped", block(("norm2", "norm1"))),
        ("Attention reads the stream without a norm", block((None, "norm2"))),
        ("feed-forward network reads the stream without a norm", block(("norm1", None))),
        ("output of attention replaces the stream", block(unsummed=[0])),
        ("output of the feed-forward network replaces the stream", block(unsummed=[1])),
        ("attn_mask isn't passed on", block(without=["attn_mask"])),
        ("key_padding_mask isn't passed on", block(without=["key_padding_mask"])),
        ("With a dropout of 1", block(end=lambda self, x, y: self.dropout(y))),
        ("With a dropout of 1", without_dropout("dropout1")),
        ("With a dropout of 1", without_dropout("dropout2")),
        ("Dropout after the ReLU is missing", without_dropout("dropout")),
        (
            "Dropout on the attention weights is missing",
            block(change=lambda parts: setattr(parts.self_attn, "dropout", 0.0)),
        ),
        ("Without dropout, your block is right", block(change=drops_what_attention_reads)),
        ("differs from PyTorch's", block(end=lambda self, x, y: y + 2e-5)),
        ("returns nothing", block(end=lambda self, x, y: None)),
        (
            "parameters: self_attn.in_proj_bias and 5 more.",
            partial(TORCH_LAYER, bias=False),
        ),
    ],
}

test_answers = verdict_test(ANSWERS)
