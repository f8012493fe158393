"""The checkers of the chapter on transformer blocks."""

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

__all__ = ["check_merged_mask", "check_pre_block", "check_silent_branches"]

Array = NDArray[np.float64]

D_MODEL, NHEAD, FEED_FORWARD = 8, 2, 12

SILENT_ROW = np.array([0.0, 0.0, 4.0, 4.0])
SILENT_NORMALIZED = np.array([-1.0, -1.0, 1.0, 1.0])
SILENT = "the branches write 0, but the stream still carries the token."
NORMALIZED_MISTAKES = {
    SILENT: 0 * SILENT_ROW,
    "that is the token itself. A norm stands on this stream.": SILENT_ROW,
    "that is only centered. Divide by the standard deviation, too.": SILENT_ROW - 2.0,
    "divide by the standard deviation, not by the variance.": (SILENT_ROW - 2.0) / 4.0,
}
PLAIN_MISTAKES = {
    SILENT: 0 * SILENT_ROW,
    "no norm stands on this stream, only in front of the branches.": SILENT_NORMALIZED,
    "each block adds 0 to the token, not the token itself.": 2.0**6 * SILENT_ROW,
    "each branch adds 0 to the token, not the token itself.": 2.0**12 * SILENT_ROW,
}


@checker
def check_silent_branches(post: Any = None, pre: Any = None, pre_final: Any = None) -> str:
    r"""Check what six blocks make of the token [0, 0, 4, 4] if all their branches write 0.

    With :math:`\gamma = 1`, :math:`\beta = 0` and :math:`\epsilon = 0`.

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
            otherwise=f"{name} is off. Follow the thick line of the drawing: does it pass a norm?",
            tolerance=1e-3,
        )
    return "Norms on the stream change it; norms in the branches do not."


Merge = Callable[[Tensor, Tensor], Tensor]

MASK_MISTAKES: dict[str, Merge] = {
    "Your mask is True where a key is hidden. The function wants True where it is shown.": (
        lambda hidden, keys: hidden | keys
    ),
    "Your mask leaves the padding out.": lambda hidden, keys: ~hidden,
    "Your mask leaves attn_mask out.": lambda hidden, keys: ~keys,
    "Your mask hides a key only where both masks hide it. One is enough.": (
        lambda hidden, keys: ~(hidden & keys)
    ),
    "Your mask hides padded queries. Padding belongs on the axis of the keys, the last.": (
        lambda hidden, keys: ~(hidden | keys.mT)
    ),
    "Your mask inverts only attn_mask.": lambda hidden, keys: ~hidden & keys,
    "Your mask inverts only the padding.": lambda hidden, keys: hidden & ~keys,
}
"""Wrong masks, from attn_mask and the padding in the shape `(N, 1, 1, L)`."""


@checker
def check_merged_mask(function: Merge) -> str:
    """Check a function that merges two masks of PyTorch's modules for the function of attention.

    Calls `function(attn_mask, key_padding_mask)` with bool tensors of the shapes `(L, L)` and
    `(N, L)`, in which True hides a key.

    Args:
        function: returns a bool tensor in which True shows a key, of a shape that broadcasts
            from `(N, 1, L, L)` to `(N, heads, L, L)`.

    Example:
        >>> check_merged_mask(lambda attn_mask, key_padding_mask: ~attn_mask)
        Not yet. Your mask leaves the padding out.
    """
    for batch, length in ((3, 5), (4, 4)):
        hidden = torch.ones(length, length, dtype=torch.bool).triu(1)
        padding = torch.zeros(batch, length, dtype=torch.bool)
        padding[0, -1] = padding[1, -2:] = True
        answer, keys = _merged(function, hidden, padding), padding[:, None, None, :]
        judge(
            answer.double().numpy(),
            _full(~(hidden | keys), answer),
            {text: _full(wrong(hidden, keys), answer) for text, wrong in MASK_MISTAKES.items()},
            otherwise=f"For N={batch} and L={length} your mask shows or hides the wrong keys.",
        )
    return "A key is shown where no mask hides it."


def _merged(function: Merge, hidden: Tensor, padding: Tensor) -> Tensor:
    """The mask that the reader's function returns, expanded over the heads."""
    mine = hidden.clone(), padding.clone()
    with running(context=f"for shapes {tuple(hidden.shape)} and {tuple(padding.shape)}"):
        answer = function(*mine)
    if answer is None:
        raise NotYet("Your function returns nothing. Did you forget `return`?")
    if not (torch.equal(mine[0], hidden) and torch.equal(mine[1], padding)):
        raise NotYet("Your function changes a mask it was given. Compute a new one.")
    if not isinstance(answer, Tensor) or answer.dtype != torch.bool:
        kind = answer.dtype if isinstance(answer, Tensor) else type(answer).__name__
        raise NotYet(f"Your mask should be a bool tensor, but is {kind}.")
    (batch, length), shape = padding.shape, tuple(answer.shape)
    if shape == (batch, length, length):
        raise NotYet(
            f"Your mask has the shape {shape}: its first axis would meet the heads, and no error "
            "tells you\nif there are as many. Add an axis for them: (N, 1, L, L)."
        )
    try:
        return answer.expand(batch, NHEAD, length, length)
    except RuntimeError:
        wanted = f"(N, 1, L, L) = {(batch, 1, length, length)}"
        raise NotYet(f"Your mask should have the shape {wanted}, but has {shape}.") from None


def _full(mask: Tensor, like: Tensor) -> Array:
    return np.asarray(mask.expand_as(like), dtype=np.float64)


def _pre_case() -> tuple[nn.TransformerEncoderLayer, Tensor, Tensor, Tensor]:
    """PyTorch's layer with random parameters, an input and two masks."""
    layer = nn.TransformerEncoderLayer(
        D_MODEL, NHEAD, FEED_FORWARD, 0.0, batch_first=True, norm_first=True, dtype=torch.float64
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
        block: a class that is made as `block(d_model, nhead, dim_feedforward, dropout)`, with
            the parameters of `torch.nn.TransformerEncoderLayer`, and called as
            `block(x, attn_mask, key_padding_mask)`.

    Example:
        >>> check_pre_block(torch.nn.Identity)
        Not yet. Your block lacks parameters: self_attn.in_proj_weight and 11 more.
    """
    right, x, hidden, padding = _pre_case()
    with running("Your block"):
        mine = block(D_MODEL, NHEAD, FEED_FORWARD, 0.0).double()
        missing = [name for name in right.state_dict() if name not in mine.state_dict()]
        if missing:
            more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
            raise NotYet(f"Your block lacks parameters: {missing[0]}{more}.")
        mine.load_state_dict(right.state_dict())
        answer = mine(x, hidden, padding)
        dropped = block(D_MODEL, NHEAD, FEED_FORWARD, 1.0).double()(x, hidden, padding)
    if answer is None:
        raise NotYet("Your block returns nothing. Did you forget `return`?")
    if isinstance(answer, Tensor):
        answer = answer.detach()
    judge(
        as_array(answer, tuple(x.shape), "Your output"),
        right(x, src_mask=hidden, src_key_padding_mask=padding).detach().numpy(),
        {text: wrong(right, x, hidden, padding) for text, wrong in PRE_MISTAKES.items()},
        otherwise="Your block differs from PyTorch's. Compare it with the two equations.",
    )
    if not torch.equal(dropped, x):
        raise NotYet(
            "With dropout 1 both branches add nothing, and the output should be the input.\n"
            "Put dropout on what each branch adds, and on nothing else."
        )
    return "It computes what PyTorch's layer computes."


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
    """A Pre-LN block: which norm each branch reads, whether it changes the stream, and the sum."""
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
    "This is Post-LN: the norms stand after the sums.": _post,
    "Two things are wrong.\nThe norm in front of attention changes the stream as well: "
    "add to x, not to norm1(x).\nAnd norm1 stands in front of both branches.": (
        partial(_pre, norms=("norm1", "norm1"), on_stream=(True, False))
    ),
    "The norm in front of attention changes the stream as well: add to x, not to norm1(x).": (
        partial(_pre, on_stream=(True, False))
    ),
    "The norm in front of the feed-forward network changes the stream as well: "
    "add to x, not to norm2(x).": partial(_pre, on_stream=(False, True)),
    "Both norms change the stream as well: add to x, not to what the branch reads.": (
        partial(_pre, on_stream=(True, True))
    ),
    "norm1 stands in front of both branches. The second has its own, norm2.": (
        partial(_pre, norms=("norm1", "norm1"))
    ),
    "norm1 and norm2 have changed places.": partial(_pre, norms=("norm2", "norm1")),
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
    "attn_mask is not handed on to attention.": lambda r, x, _m, p: _pre(r, x, None, p),
    "key_padding_mask is not handed on to attention.": lambda r, x, m, _p: _pre(r, x, m, None),
}
"""Outputs of wrong Pre-LN blocks, by the message that each must get."""
