"""The checkers for the chapter on transformer blocks."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from lnbook.chapters.shared.checker import NotYet, as_array, checker, judge, running
from lnbook.transformer import PostLNBlock, PreLNBlock

__all__ = [
    "check_branch_scale",
    "check_merged_mask",
    "check_pre_block",
    "check_silent_branches",
]

Array = NDArray[np.float64]

D_MODEL, NHEAD, FEED_FORWARD = 8, 2, 12

SILENT_ROW = np.array([0.0, 0.0, 4.0, 4.0])
SILENT_NORMALIZED = np.array([-1.0, -1.0, 1.0, 1.0])
SILENT = "the branches write 0, but the stream still carries the token."
NORMALIZED_MISTAKES = {
    SILENT: 0 * SILENT_ROW,
    "that's the token itself. This stream passes through norms.": SILENT_ROW,
    "that's only centered. Divide by the standard deviation, too.": SILENT_ROW - 2.0,
    "divide by the standard deviation, not by the variance.": (SILENT_ROW - 2.0) / 4.0,
}
PLAIN_MISTAKES = {
    SILENT: 0 * SILENT_ROW,
    "this stream passes through no norm. The norms are inside the branches.": SILENT_NORMALIZED,
    "each block adds 0 to the token, not the token itself.": 2.0**6 * SILENT_ROW,
    "each branch adds 0 to the token, not the token itself.": 2.0**12 * SILENT_ROW,
}


@checker
def check_silent_branches(post: Any = None, pre: Any = None, pre_final: Any = None) -> str:
    r"""Check the output of six blocks for the token [0, 0, 4, 4] if all branches write 0.

    The norms have :math:`\gamma = 1`, :math:`\beta = 0` and :math:`\epsilon = 0`.

    Args:
        post: the output of six Post-LN blocks, four numbers.
        pre: the output of six Pre-LN blocks without a final norm.
        pre_final: the output of six Pre-LN blocks with a final norm.

    Example:
        >>> check_silent_branches(post=[0, 0, 0, 0])
        Not yet. post: the branches write 0, but the stream still carries the token.
    """
    for name, answer, right, mistakes in (
        ("post", post, SILENT_NORMALIZED, NORMALIZED_MISTAKES),
        ("pre", pre, SILENT_ROW, PLAIN_MISTAKES),
        ("pre_final", pre_final, SILENT_NORMALIZED, NORMALIZED_MISTAKES),
    ):
        judge(
            as_array(answer, (4,), name),
            right,
            {f"{name}: {text}": wrong for text, wrong in mistakes.items()},
            otherwise=f"{name} is off. Follow the thick line: does it pass through a norm?",
            tolerance=1e-3,
        )
    return "Norms on the stream change it, and norms inside the branches don't."


VARIANCE_MISTAKES: dict[str, Callable[[int, float], float]] = {
    "The stream starts with a variance of 1. Add it.": lambda k, v: k * v,
    "Variances add up, standard deviations don't.": lambda k, v: (1 + k * v**0.5) ** 2,
    "That's a standard deviation. Leave out the square root.": lambda k, v: (1 + k * v) ** 0.5,
    "Each branch adds v to the variance. It doesn't multiply it by 1 + v.": (
        lambda k, v: (1 + v) ** k
    ),
    "K counts the branches, so don't double it.": lambda k, v: 1 + 2 * k * v,
    "K branches with the same numbers would add K squared times v. These are independent.": (
        lambda k, v: 1 + k**2 * v
    ),
}
FACTOR_MISTAKES: dict[str, Callable[[int], float]] = {
    "A factor s multiplies the variance by s squared, so 1 / K makes the branches too small.": (
        lambda k: 1 / k
    ),
    "Your factor makes the branches larger. Turn it upside down.": lambda k: k**0.5,
    "K counts the branches, two per block, so don't double it.": lambda k: (2 * k) ** -0.5,
    "Only the branches are scaled, not the stream they're added to: leave out the 1.": (
        lambda k: (1 + k) ** -0.5
    ),
}
"""Wrong formulas, keyed by the message for each."""


@checker
def check_branch_scale(variance: Callable[[int, float], Any], factor: Callable[[int], Any]) -> str:
    r"""Check how the variance of a Pre-LN stream grows, and the factor that stops it.

    The stream starts with variance 1, and each of K branches adds independent numbers of
    variance v.

    Args:
        variance: takes K and v, and returns the variance of the stream after all branches.
        factor: takes K, and returns what to multiply each branch by so that the variance ends
            at :math:`1 + v`.

    Example:
        >>> check_branch_scale(lambda K, v: K * v, lambda K: 1 / K)
        Not yet. The stream starts with a variance of 1. Add it.
    """
    for k, v in ((12, 0.25), (96, 2.0), (1, 0.5)):
        with running("stream_variance", context=f"for K = {k} and v = {v}"):
            given = variance(k, v)
        judge(
            as_array(given, (), "What stream_variance returns"),
            1 + k * v,
            {text: wrong(k, v) for text, wrong in VARIANCE_MISTAKES.items()},
            otherwise=f"For K = {k} and v = {v}, the variance should be {1 + k * v:g}.",
            tolerance=1e-6,
        )
    for k in (12, 96, 1):
        with running("branch_factor", context=f"for K = {k}"):
            given = factor(k)
        judge(
            as_array(given, (), "What branch_factor returns"),
            k**-0.5,
            {text: wrong(k) for text, wrong in FACTOR_MISTAKES.items()},
            otherwise=f"For K = {k}, your factor doesn't end at a variance of 1 + v.",
            tolerance=1e-6,
        )
    return "Divided by the square root of their number, the branches add v in total."


Merge = Callable[[Tensor, Tensor], Tensor]

MASK_MISTAKES: dict[str, Merge] = {
    "Your mask is True where a key is hidden. The function expects True where it's visible.": (
        lambda hidden, keys: hidden | keys
    ),
    "Your mask ignores the padding.": lambda hidden, keys: ~hidden,
    "Your mask ignores attn_mask.": lambda hidden, keys: ~keys,
    "Your mask hides later tokens, whatever attn_mask says. Hide what attn_mask hides.": (
        lambda hidden, keys: ~(torch.ones_like(hidden).triu(1) | keys)
    ),
    "Your mask hides a key only where both masks hide it. One is enough.": (
        lambda hidden, keys: ~(hidden & keys)
    ),
    "Your mask hides padded queries. Padding belongs on the last axis, the axis of the keys.": (
        lambda hidden, keys: ~(hidden | keys.mT)
    ),
    "Your mask inverts only attn_mask.": lambda hidden, keys: ~hidden & keys,
    "Your mask inverts only the padding.": lambda hidden, keys: hidden & ~keys,
}
"""Wrong masks, from attn_mask and the padding in the shape `(N, 1, 1, L)`."""


@checker
def check_merged_mask(function: Merge) -> str:
    """Check a function that merges two masks for `nn.MultiheadAttention` into a single one.

    Calls `function(attn_mask, key_padding_mask)` with bool tensors of shapes `(L, L)` and
    `(N, L)`, in which True hides a key.

    Args:
        function: returns a bool tensor in which True makes a key visible, in a shape that
            broadcasts from `(N, 1, L, L)` to `(N, heads, L, L)`.

    Example:
        >>> check_merged_mask(lambda attn_mask, key_padding_mask: ~attn_mask)
        Not yet. Your mask ignores the padding.
    """
    rng = np.random.default_rng(2017)
    for batch, length in ((3, 5), (4, 4)):
        hidden = torch.from_numpy(rng.random((length, length)) < 0.5).fill_diagonal_(False)
        padding = torch.zeros(batch, length, dtype=torch.bool)
        padding[0, -1] = padding[1, -2:] = True
        answer, keys = _merged(function, hidden, padding), padding[:, None, None, :]
        judge(
            answer.double().numpy(),
            _full(~(hidden | keys), answer),
            {text: _full(wrong(hidden, keys), answer) for text, wrong in MASK_MISTAKES.items()},
            otherwise=f"For N={batch} and L={length} your mask shows or hides the wrong keys.",
        )
    return "A key is visible where neither mask hides it."


def _merged(function: Merge, hidden: Tensor, padding: Tensor) -> Tensor:
    """The mask that the reader's function returns, expanded over the heads."""
    mine = hidden.clone(), padding.clone()
    with running(context=f"for shapes {tuple(hidden.shape)} and {tuple(padding.shape)}"):
        answer = function(*mine)
    if answer is None:
        raise NotYet("Your function returns nothing. Did you forget `return`?")
    if not (torch.equal(mine[0], hidden) and torch.equal(mine[1], padding)):
        raise NotYet("Your function modifies a mask that it was given. Compute a new one.")
    if not isinstance(answer, Tensor) or answer.dtype != torch.bool:
        kind = answer.dtype if isinstance(answer, Tensor) else type(answer).__name__
        raise NotYet(f"Your mask should be a bool tensor, but is {kind}.")
    (batch, length), shape = padding.shape, tuple(answer.shape)
    if shape == (batch, length, length):
        raise NotYet(
            f"Your mask has the shape {shape}, so its first axis would line up with the heads, and "
            "you'd get\nno error if there are as many of them. Add an axis: (N, 1, L, L)."
        )
    try:
        return answer.expand(batch, 3, length, length)
    except RuntimeError:
        wanted = f"(N, 1, L, L) = {(batch, 1, length, length)}"
        raise NotYet(f"Your mask should have the shape {wanted}, but has {shape}.") from None


def _full(mask: Tensor, like: Tensor) -> Array:
    return np.asarray(mask.expand_as(like), dtype=np.float64)


def _pre_case(dropout: float = 0.0) -> tuple[nn.TransformerEncoderLayer, Tensor, Tensor, Tensor]:
    """PyTorch's layer with random parameters, an input and two masks."""
    sizes = D_MODEL, NHEAD, FEED_FORWARD
    layer = nn.TransformerEncoderLayer(
        *sizes, dropout, batch_first=True, norm_first=True, dtype=torch.float64
    )
    rng = np.random.default_rng(2020)
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.copy_(torch.from_numpy(0.5 * rng.standard_normal(tuple(parameter.shape))))
    x = torch.from_numpy(rng.standard_normal((3, 5, D_MODEL)))
    hidden = torch.ones(5, 5, dtype=torch.bool).triu(1)
    padding = torch.zeros(3, 5, dtype=torch.bool)
    padding[1, -2:] = True
    return layer, x, hidden, padding


@checker
def check_pre_block(block: type[nn.Module]) -> str:
    """Check a Pre-LN block against PyTorch's layer.

    Args:
        block: a class that is instantiated as `block(d_model, nhead, dim_feedforward, dropout)`,
            with the parameters of `torch.nn.TransformerEncoderLayer`, and called as
            `block(x, attn_mask, key_padding_mask)`.

    Example:
        >>> check_pre_block(torch.nn.Identity)
        Not yet. Your block is missing parameters: self_attn.in_proj_weight and 11 more.
    """
    right, x, hidden, padding = _pre_case()
    with running("Your block"):
        mine = block(D_MODEL, NHEAD, FEED_FORWARD, 0.0).double()
        missing = [name for name in right.state_dict() if name not in mine.state_dict()]
        if missing:
            more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
            raise NotYet(f"Your block is missing parameters: {missing[0]}{more}.")
        mine.load_state_dict(right.state_dict())
        answer = mine(x, hidden, padding)
        dropping = block(D_MODEL, NHEAD, FEED_FORWARD, 1.0).double()
        dropping.load_state_dict(right.state_dict())
        dropped = dropping(x, hidden, padding)
    if answer is None:
        raise NotYet("Your block returns nothing. Did you forget `return`?")
    if isinstance(answer, Tensor):
        answer = answer.detach()
    judge(
        as_array(answer, tuple(x.shape), "Your output"),
        right(x, src_mask=hidden, src_key_padding_mask=padding).detach().numpy(),
        {text: wrong(right, x, hidden, padding) for text, wrong in PRE_MISTAKES.items()},
        otherwise="Your block's output differs from PyTorch's. Compare it with the two equations.",
    )
    if not torch.equal(dropped, x):
        raise NotYet(
            "With a dropout of 1, the branches add nothing, so the output should equal the input.\n"
            "Apply dropout to what each branch adds, not to the stream, nor to what a branch reads."
        )
    _compare_dropout(block)
    return "Your block computes exactly what PyTorch's layer computes."


def _compare_dropout(block: type[nn.Module]) -> None:
    """Compare how much dropout varies each output, because the random numbers may differ."""
    with torch.random.fork_rng(devices=[]):  # leave the reader's random numbers alone
        right, no_hidden, no_weights = (_pre_case(0.3)[0] for _ in range(3))
        no_hidden.dropout.p = no_weights.self_attn.dropout = 0.0
        with running("Your block"):
            mine = block(D_MODEL, NHEAD, FEED_FORWARD, 0.3).double()
            mine.load_state_dict(right.state_dict())
            varied = _varied(mine)
        judge(
            varied,
            _varied(right),
            {
                "Dropout after the ReLU is missing.": partial(_varied, no_hidden),
                "Dropout on the attention weights is missing.": partial(_varied, no_weights),
            },
            otherwise="Without dropout, your block is right, but dropout changes its outputs more "
            "or less than\nthose of PyTorch's layer. Apply it once to the attention weights, to "
            "what attention adds,\nafter the ReLU and to what the feed-forward network adds.",
            tolerance=0.15,
            relative=True,
        )


@torch.no_grad()
def _varied(block: nn.Module) -> Array:
    """The standard deviation of each output over many copies of the input."""
    _, x, hidden, padding = _pre_case()
    torch.manual_seed(0)
    y = block(x.repeat(2000, 1, 1), hidden, padding.repeat(2000, 1))
    return np.asarray(y.unflatten(0, (2000, -1)).std(0))


def _pre(
    right: nn.TransformerEncoderLayer,
    x: Tensor,
    hidden: Tensor | None,
    padding: Tensor | None,
    *,
    norms: tuple[str | None, str | None] = ("norm1", "norm2"),
    on_stream: tuple[bool, bool] = (False, False),
    residual: tuple[bool, bool] = (True, True),
) -> Array:
    """A Pre-LN block, possibly with bugs in the norms, in the stream, or in the sums."""
    parts = PreLNBlock(D_MODEL, NHEAD, FEED_FORWARD, 0.0, dtype=torch.float64)
    parts.load_state_dict(right.state_dict())
    branches: tuple[Callable[[Tensor], Tensor], ...]
    branches = (lambda h: parts.self_attn(h, hidden, padding), parts.feed_forward)
    for branch, norm, changed, added in zip(branches, norms, on_stream, residual, strict=True):
        read = x if norm is None else getattr(parts, norm)(x)
        stream = read if changed else x
        x = branch(read) + (stream if added else 0.0)
    return np.asarray(x.detach())


def _post(right: nn.TransformerEncoderLayer, x: Tensor, hidden: Tensor, padding: Tensor) -> Array:
    block = PostLNBlock(D_MODEL, NHEAD, FEED_FORWARD, 0.0, dtype=torch.float64)
    block.load_state_dict(right.state_dict())
    return np.asarray(block(x, hidden, padding).detach())


PRE_MISTAKES: dict[str, Callable[[Any, Tensor, Tensor, Tensor], Array]] = {
    "This is Post-LN: the norms come after the sums.": _post,
    "Two things are wrong.\nThe norm before attention changes the stream as well: "
    "add to x, not to norm1(x).\nAnd norm1 is used in both branches.": (
        partial(_pre, norms=("norm1", "norm1"), on_stream=(True, False))
    ),
    "The norm before attention changes the stream as well: add to x, not to norm1(x).": (
        partial(_pre, on_stream=(True, False))
    ),
    "The norm before the feed-forward network changes the stream as well: "
    "add to x, not to norm2(x).": partial(_pre, on_stream=(False, True)),
    "Both norms change the stream as well: add to x, not to what the branch reads.": (
        partial(_pre, on_stream=(True, True))
    ),
    "norm1 is used in both branches. The second branch has its own norm, norm2.": (
        partial(_pre, norms=("norm1", "norm1"))
    ),
    "norm1 and norm2 are swapped.": partial(_pre, norms=("norm2", "norm1")),
    "Attention reads the stream without a norm.": partial(_pre, norms=(None, "norm2")),
    "The feed-forward network reads the stream without a norm.": (
        partial(_pre, norms=("norm1", None))
    ),
    "The output of attention replaces the stream. Add it to x.": (
        partial(_pre, residual=(False, True))
    ),
    "The output of the feed-forward network replaces the stream. Add it to x.": (
        partial(_pre, residual=(True, False))
    ),
    "attn_mask isn't passed on to attention.": lambda r, x, _m, p: _pre(r, x, None, p),
    "key_padding_mask isn't passed on to attention.": lambda r, x, m, _p: _pre(r, x, m, None),
}
"""Outputs of wrong Pre-LN blocks, keyed by the message for each."""
