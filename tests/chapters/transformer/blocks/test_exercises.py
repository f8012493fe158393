"""The checkers of the chapter on transformer blocks."""

import numpy as np
import pytest
import torch
from torch import nn

from lnbook.chapters.transformer.blocks import exercises

NORMALIZED, TOKEN = [-1, -1, 1, 1], [0, 0, 4, 4]


def silent_stack(norm_first: bool, final: bool) -> list[float]:
    """Six of PyTorch's layers whose branches write 0, on the token of the exercise."""
    layer = nn.TransformerEncoderLayer(
        4,
        1,
        4,
        0.0,
        batch_first=True,
        norm_first=norm_first,
        layer_norm_eps=0.0,
        dtype=torch.float64,
    )
    with torch.no_grad():
        for part in (layer.self_attn.out_proj, layer.linear2):
            part.weight.zero_()
            part.bias.zero_()
    x = torch.tensor([[TOKEN]], dtype=torch.float64)
    for _ in range(6):
        x = layer(x)
    x = nn.functional.layer_norm(x, (4,), eps=0.0) if final else x
    return x[0, 0].tolist()


def test_silent_branches_right() -> None:
    answers = [silent_stack(False, False), silent_stack(True, False), silent_stack(True, True)]
    assert answers == [NORMALIZED, TOKEN, NORMALIZED]
    assert exercises.check_silent_branches(*answers).correct
    assert exercises.check_silent_branches(*(torch.tensor(answer) for answer in answers)).correct


@pytest.mark.parametrize(
    ("name", "wrong", "expected"),
    [
        ("post", ..., "post is still missing"),
        ("post", [0, 0, 0, 0], "the stream still carries the token"),
        ("post", TOKEN, "A norm stands on this stream"),
        ("post", [-2, -2, 2, 2], "only centered"),
        ("post", [-0.5, -0.5, 0.5, 0.5], "not by the variance"),
        ("pre", [0, 0, 0, 0], "the stream still carries the token"),
        ("pre", NORMALIZED, "only in front of the branches"),
        ("pre", [0, 0, 256, 256], "each block adds 0"),
        ("pre", [0, 0, 4096 * 4, 4096 * 4], "each branch adds 0"),
        ("pre_final", TOKEN, "pre_final: that is the token itself"),
        ("pre_final", [1, 2, 3, 4], "Follow the thick line"),
        ("pre_final", [1, 2, 3], "should be numbers of shape (4,)"),
    ],
)
def test_silent_branches_wrong(name: str, wrong: object, expected: str) -> None:
    answers = {"post": NORMALIZED, "pre": TOKEN, "pre_final": NORMALIZED, name: wrong}
    verdict = exercises.check_silent_branches(**answers)
    assert not verdict.correct
    assert expected in repr(verdict)


def merged(attn_mask: torch.Tensor, key_padding_mask: torch.Tensor) -> torch.Tensor:
    return ~(attn_mask | key_padding_mask[:, None, None, :])


def test_merged_mask_right_is_what_pytorch_does() -> None:
    assert exercises.check_merged_mask(merged).correct
    assert exercises.check_merged_mask(lambda m, p: merged(m, p).expand(-1, 2, -1, -1)).correct
    rng = np.random.default_rng(0)
    x = torch.from_numpy(rng.standard_normal((3, 5, 4)))
    attention = nn.MultiheadAttention(4, 2, batch_first=True, dtype=torch.float64)
    hidden, padding = torch.ones(5, 5).triu(1).bool(), torch.zeros(3, 5).bool()
    padding[1, -2:] = True
    expected, _ = attention(x, x, x, attn_mask=hidden, key_padding_mask=padding)
    joint = nn.functional.linear(x, attention.in_proj_weight, attention.in_proj_bias)
    query, key, value = (
        part.unflatten(-1, (2, 2)).transpose(1, 2) for part in joint.chunk(3, dim=-1)
    )
    heads = nn.functional.scaled_dot_product_attention(query, key, value, merged(hidden, padding))
    y = attention.out_proj(heads.transpose(1, 2).flatten(2))
    torch.testing.assert_close(y, expected)


def in_place(attn_mask: torch.Tensor, key_padding_mask: torch.Tensor) -> torch.Tensor:
    attn_mask.logical_not_()
    return attn_mask & ~key_padding_mask[:, None, None, :]


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda m, p: None, "returns nothing"),
        (lambda m, p: m | p, "raised RuntimeError"),
        (lambda m, p: merged(m, p).double(), "should be a bool tensor, but is torch.float64"),
        (lambda m, p: [[True]], "should be a bool tensor, but is list"),
        (lambda m, p: ~(m | p[:, None, :]), "would meet the heads"),
        (lambda m, p: torch.ones(7, dtype=torch.bool), "should have the shape (N, 1, L, L)"),
        (lambda m, p: ~merged(m, p), "True where a key is hidden"),
        (lambda m, p: ~m, "leaves the padding out"),
        (lambda m, p: ~p[:, None, None, :], "leaves attn_mask out"),
        (lambda m, p: ~(m & p[:, None, None, :]), "only where both masks hide it"),
        (lambda m, p: ~(m | p[:, None, :, None]), "hides padded queries"),
        (lambda m, p: ~m & p[:, None, None, :], "inverts only attn_mask"),
        (lambda m, p: m & ~p[:, None, None, :], "inverts only the padding"),
        (lambda m, p: torch.ones_like(merged(m, p)), "shows or hides the wrong keys"),
        (in_place, "changes a mask"),
    ],
)
def test_merged_mask_wrong(function: object, expected: str) -> None:
    verdict = exercises.check_merged_mask(function)  # type: ignore[arg-type]
    assert not verdict.correct
    assert expected in verdict.message


class Parts(nn.Module):
    """What the chapter's `Block` holds, written anew."""

    def __init__(self, d_model: int, nhead: int, width: int, dropout: float) -> None:
        super().__init__()
        self.self_attn = nn.MultiheadAttention(d_model, nhead, dropout, batch_first=True)
        self.linear1, self.linear2 = nn.Linear(d_model, width), nn.Linear(width, d_model)
        self.norm1, self.norm2 = nn.LayerNorm(d_model), nn.LayerNorm(d_model)
        self.drop = nn.Dropout(dropout)

    def attend(self, x, mask=None, padding=None):
        y, _ = self.self_attn(x, x, x, attn_mask=mask, key_padding_mask=padding, need_weights=False)
        return self.drop(y)

    def feed(self, x):
        return self.drop(self.linear2(self.drop(torch.relu(self.linear1(x)))))


def block_of(forward) -> type[nn.Module]:
    return type("Mine", (Parts,), {"forward": forward})


def right(self, x, mask, padding):
    x = x + self.attend(self.norm1(x), mask, padding)
    return x + self.feed(self.norm2(x))


def as_given(self, x, mask, padding):
    x = self.norm1(x)
    x = x + self.attend(x, mask, padding)
    return x + self.feed(self.norm1(x))


def post(self, x, mask, padding):
    x = self.norm1(x + self.attend(x, mask, padding))
    return self.norm2(x + self.feed(x))


def first_on_stream(self, x, mask, padding):
    x = self.norm1(x)
    x = x + self.attend(x, mask, padding)
    return x + self.feed(self.norm2(x))


def second_on_stream(self, x, mask, padding):
    x = self.norm2(x + self.attend(self.norm1(x), mask, padding))
    return x + self.feed(x)


def both_on_stream(self, x, mask, padding):
    x = self.norm1(x)
    x = self.norm2(x + self.attend(x, mask, padding))
    return x + self.feed(x)


def same_norm(self, x, mask, padding):
    x = x + self.attend(self.norm1(x), mask, padding)
    return x + self.feed(self.norm1(x))


def swapped(self, x, mask, padding):
    x = x + self.attend(self.norm2(x), mask, padding)
    return x + self.feed(self.norm1(x))


def no_first_norm(self, x, mask, padding):
    x = x + self.attend(x, mask, padding)
    return x + self.feed(self.norm2(x))


def no_second_norm(self, x, mask, padding):
    x = x + self.attend(self.norm1(x), mask, padding)
    return x + self.feed(x)


def no_first_sum(self, x, mask, padding):
    x = self.attend(self.norm1(x), mask, padding)
    return x + self.feed(self.norm2(x))


def no_second_sum(self, x, mask, padding):
    x = x + self.attend(self.norm1(x), mask, padding)
    return self.feed(self.norm2(x))


def no_mask(self, x, mask, padding):
    return right(self, x, None, padding)


def no_padding(self, x, mask, padding):
    return right(self, x, mask, None)


def dropped_stream(self, x, mask, padding):
    return self.drop(right(self, x, mask, padding))


def another_sum(self, x, mask, padding):
    return right(self, x, mask, padding) + x


def test_pre_block_right() -> None:
    assert exercises.check_pre_block(block_of(right)).correct


@pytest.mark.parametrize(
    ("forward", "expected"),
    [
        (as_given, "Two things are wrong"),
        (post, "This is Post-LN"),
        (first_on_stream, "add to x, not to norm1(x)"),
        (second_on_stream, "add to x, not to norm2(x)"),
        (both_on_stream, "Both norms change the stream"),
        (same_norm, "norm1 stands in front of both branches. The second"),
        (swapped, "have changed places"),
        (no_first_norm, "Attention reads the stream without a norm"),
        (no_second_norm, "feed-forward network reads the stream without a norm"),
        (no_first_sum, "output of attention replaces the stream"),
        (no_second_sum, "output of the feed-forward network replaces the stream"),
        (no_mask, "attn_mask is not handed on"),
        (no_padding, "key_padding_mask is not handed on"),
        (dropped_stream, "With dropout 1"),
        (another_sum, "differs from PyTorch's"),
        (lambda self, x, m, p: None, "returns nothing"),
        (lambda self, x, m, p: x[0], "should be numbers of shape (3, 5, 8)"),
        (lambda self, x, m, p: x @ x, "raised RuntimeError"),
    ],
)
def test_pre_block_wrong(forward: object, expected: str) -> None:
    verdict = exercises.check_pre_block(block_of(forward))
    assert not verdict.correct
    assert expected in verdict.message


def test_pre_block_names_what_is_missing() -> None:
    class NoSecondNorm(Parts):
        def __init__(self, *args: object) -> None:
            super().__init__(*args)  # type: ignore[arg-type]
            del self.norm2

    verdict = exercises.check_pre_block(NoSecondNorm)
    assert verdict.message == "Your block lacks parameters: norm2.weight and 1 more."
