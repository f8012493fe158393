"""The checkers of the chapter on transformer blocks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from lnbook.chapters.shared.checker import Verdict, as_array, judge
from lnbook.transformer import PostLNBlock, PreLNBlock

__all__ = ["check_merged_mask", "check_pre_block", "check_silent_branches"]

Array = NDArray[np.float64]

SILENT_ROW = np.array([0.0, 0.0, 4.0, 4.0])
SILENT_NORMALIZED = np.array([-1.0, -1.0, 1.0, 1.0])
D_MODEL, NHEAD, FEED_FORWARD = 8, 2, 12
TOLERANCE = 1e-9


def check_silent_branches(post: Any = None, pre: Any = None, pre_final: Any = None) -> Verdict:
    r"""Check what six blocks make of the token [0, 0, 4, 4] if all their branches write 0.

    With :math:`\gamma = 1`, :math:`\beta = 0` and :math:`\epsilon = 0`.

    Args:
        post: the output of six Post-LN blocks, four numbers.
        pre: the output of six Pre-LN blocks without a final norm.
        pre_final: the output of six Pre-LN blocks with a final norm.

    Returns:
        The verdict; a known mistake is called by its name.

    Example:
        >>> check_silent_branches(post=[0, 0, 0, 0])
        Not yet. post: the branches write 0, but the stream still carries the token.
    """
    zero = "the branches write 0, but the stream still carries the token."
    normalized = {
        zero: 0 * SILENT_ROW,
        "that is the token itself. A norm stands on this stream.": SILENT_ROW,
        "that is only centered. Divide by the standard deviation, too.": SILENT_ROW - 2.0,
        "divide by the standard deviation, not by the variance.": (SILENT_ROW - 2.0) / 4.0,
    }
    plain = {
        zero: 0 * SILENT_ROW,
        "no norm stands on this stream, only in front of the branches.": SILENT_NORMALIZED,
        "each block adds 0 to the token, not the token itself.": 2.0**6 * SILENT_ROW,
        "each branch adds 0 to the token, not the token itself.": 2.0**12 * SILENT_ROW,
    }
    for name, answer, right, mistakes in (
        ("post", post, SILENT_NORMALIZED, normalized),
        ("pre", pre, SILENT_ROW, plain),
        ("pre_final", pre_final, SILENT_NORMALIZED, normalized),
    ):
        row = as_array(answer, (4,), name)
        if isinstance(row, Verdict):
            return row
        verdict = judge(
            row,
            right,
            {f"{name}: {text}": wrong for text, wrong in mistakes.items()},
            otherwise=f"{name} is off. Follow the thick line of the drawing: does it pass a norm?",
            tolerance=1e-3,
        )
        if verdict is not None:
            return verdict
    return Verdict(True, "Norms on the stream change it; norms in the branches do not.")


def check_merged_mask(function: Callable[[Tensor, Tensor], Tensor]) -> Verdict:
    """Check a function that merges two masks of PyTorch's modules for the function of attention.

    Calls `function(attn_mask, key_padding_mask)` with bool tensors of the shapes `(L, L)` and
    `(N, L)`, in which True hides a key.

    Args:
        function: returns a bool tensor in which True shows a key, of a shape that broadcasts
            from `(N, 1, L, L)` to `(N, heads, L, L)`.

    Returns:
        The verdict; a known mistake is called by its name.

    Example:
        >>> check_merged_mask(lambda attn_mask, key_padding_mask: ~attn_mask)
        Not yet. Your mask leaves the padding out.
    """
    for batch, length in ((3, 5), (4, 4)):
        hidden = torch.ones(length, length, dtype=torch.bool).triu(1)
        padding = torch.zeros(batch, length, dtype=torch.bool)
        padding[0, -1] = padding[1, -2:] = True
        verdict = _check_one_mask(function, hidden, padding)
        if verdict is not None:
            return verdict
    return Verdict(True, "A key is shown where no mask hides it.")


def _check_one_mask(
    function: Callable[[Tensor, Tensor], Tensor], hidden: Tensor, padding: Tensor
) -> Verdict | None:
    (batch, length), mine = padding.shape, (hidden.clone(), padding.clone())
    try:
        answer = function(*mine)
    except Exception as error:
        shapes = f"{tuple(hidden.shape)} and {tuple(padding.shape)}"
        told = f"Your function raised {type(error).__name__}: {error} (for shapes {shapes})."
        return Verdict(False, told)
    if answer is None:
        return Verdict(False, "Your function returns nothing. Did you forget `return`?")
    if not (torch.equal(mine[0], hidden) and torch.equal(mine[1], padding)):
        return Verdict(False, "Your function changes a mask it was given. Compute a new one.")
    if not isinstance(answer, Tensor) or answer.dtype != torch.bool:
        kind = answer.dtype if isinstance(answer, Tensor) else type(answer).__name__
        return Verdict(False, f"Your mask should be a bool tensor, but is {kind}.")
    shape = tuple(answer.shape)
    if shape == (batch, length, length):
        return Verdict(
            False,
            f"Your mask has the shape {shape}: its first axis would meet the heads, and no error "
            "tells you\nif there are as many. Add an axis for them: (N, 1, L, L).",
        )
    try:
        full = answer.expand(batch, 2, length, length)
    except RuntimeError:
        wanted = f"(N, 1, L, L) = {(batch, 1, length, length)}"
        return Verdict(False, f"Your mask should have the shape {wanted}, but has {shape}.")
    keys = padding[:, None, None, :]
    mistakes = {
        "Your mask is True where a key is hidden. The function wants True where it is shown.": (
            hidden | keys
        ),
        "Your mask leaves the padding out.": ~hidden[None, None],
        "Your mask leaves attn_mask out.": ~keys,
        "Your mask hides a key only where both masks hide it. One is enough.": ~(hidden & keys),
        "Your mask hides padded queries. Padding belongs on the axis of the keys, the last.": (
            ~(hidden | padding[:, None, :, None])
        ),
        "Your mask inverts only attn_mask.": ~hidden & keys,
        "Your mask inverts only the padding.": hidden & ~keys,
    }
    return judge(
        full.double().numpy(),
        _full(~(hidden | keys), full),
        {text: _full(wrong, full) for text, wrong in mistakes.items()},
        otherwise=f"For N={batch} and L={length} your mask shows or hides the wrong keys.",
        tolerance=0.0,
    )


def _full(mask: Tensor, like: Tensor) -> Array:
    array: Array = mask.expand_as(like).double().numpy()
    return array


def check_pre_block(block: type[nn.Module]) -> Verdict:
    """Check a Pre-LN block against PyTorch's layer.

    Args:
        block: a class that is made as `block(d_model, nhead, dim_feedforward, dropout)`, with
            the parameters of `torch.nn.TransformerEncoderLayer`, and called as
            `block(x, attn_mask, key_padding_mask)`.

    Returns:
        The verdict; a known mistake is called by its name.

    Example:
        >>> check_pre_block(torch.nn.Identity)
        Not yet. Your block lacks parameters: self_attn.in_proj_weight and 11 more.
    """
    right = nn.TransformerEncoderLayer(
        D_MODEL, NHEAD, FEED_FORWARD, 0.0, batch_first=True, norm_first=True, dtype=torch.float64
    )
    rng = np.random.default_rng(2020)
    with torch.no_grad():
        for parameter in right.parameters():
            parameter.copy_(torch.from_numpy(0.5 * rng.standard_normal(tuple(parameter.shape))))
    x = torch.from_numpy(rng.standard_normal((3, 5, D_MODEL)))
    hidden = torch.ones(5, 5, dtype=torch.bool).triu(1)
    padding = torch.zeros(3, 5, dtype=torch.bool)
    padding[1, -2:] = True
    try:
        mine = block(D_MODEL, NHEAD, FEED_FORWARD, 0.0).double()
        missing = [name for name in right.state_dict() if name not in mine.state_dict()]
        if missing:
            more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
            return Verdict(False, f"Your block lacks parameters: {missing[0]}{more}.")
        mine.load_state_dict(right.state_dict())
        answer = mine(x, hidden, padding)
        dropped = block(D_MODEL, NHEAD, FEED_FORWARD, 1.0).double()(x, hidden, padding)
    except Exception as error:
        return Verdict(False, f"Your block raised {type(error).__name__}: {error}.")
    if answer is None:
        return Verdict(False, "Your block returns nothing. Did you forget `return`?")
    output = as_array(_detached(answer), tuple(x.shape), "Your output")
    if isinstance(output, Verdict):
        return output
    verdict = judge(
        output,
        right(x, src_mask=hidden, src_key_padding_mask=padding).detach().numpy(),
        {text: wrong(right, x, hidden, padding) for text, wrong in PRE_MISTAKES.items()},
        otherwise="Your block differs from PyTorch's. Compare it with the two equations.",
        tolerance=TOLERANCE,
    )
    if verdict is None and not torch.equal(dropped, x):
        verdict = Verdict(
            False,
            "With dropout 1 both branches add nothing, and the output should be the input.\n"
            "Put dropout on what each branch adds, and on nothing else.",
        )
    return verdict or Verdict(True, "It computes what PyTorch's layer computes.")


def _detached(answer: Any) -> Any:
    return answer.detach() if isinstance(answer, Tensor) else answer


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
    parts: Any = PreLNBlock(D_MODEL, NHEAD, FEED_FORWARD, 0.0, dtype=torch.float64)
    parts.load_state_dict(right.state_dict())
    branches = (lambda h: parts.self_attn(h, hidden, padding), parts.feed_forward)
    for branch, norm, changed, added in zip(branches, norms, on_stream, residual, strict=True):
        read = x if norm is None else getattr(parts, norm)(x)
        stream = read if changed else x
        x = branch(read) + (stream if added else 0.0)
    array: Array = x.detach().numpy()
    return array


def _post(right: nn.TransformerEncoderLayer, x: Tensor, hidden: Tensor, padding: Tensor) -> Array:
    block = PostLNBlock(D_MODEL, NHEAD, FEED_FORWARD, 0.0, dtype=torch.float64)
    block.load_state_dict(right.state_dict())
    output = block(x, hidden, padding)
    assert isinstance(output, Tensor)
    array: Array = output.detach().numpy()
    return array


PRE_MISTAKES: dict[str, Callable[[Any, Tensor, Tensor, Tensor], Array]] = {
    "This is Post-LN: the norms stand after the sums.": _post,
    "Two things are wrong.\nThe norm in front of attention changes the stream as well: "
    "add to x, not to norm1(x).\nAnd norm1 stands in front of both branches.": (
        lambda r, x, m, p: _pre(r, x, m, p, norms=("norm1", "norm1"), on_stream=(True, False))
    ),
    "The norm in front of attention changes the stream as well: add to x, not to norm1(x).": (
        lambda r, x, m, p: _pre(r, x, m, p, on_stream=(True, False))
    ),
    "The norm in front of the feed-forward network changes the stream as well: "
    "add to x, not to norm2(x).": lambda r, x, m, p: _pre(r, x, m, p, on_stream=(False, True)),
    "Both norms change the stream as well: add to x, not to what the branch reads.": (
        lambda r, x, m, p: _pre(r, x, m, p, on_stream=(True, True))
    ),
    "norm1 stands in front of both branches. The second has its own, norm2.": (
        lambda r, x, m, p: _pre(r, x, m, p, norms=("norm1", "norm1"))
    ),
    "norm1 and norm2 have changed places.": (
        lambda r, x, m, p: _pre(r, x, m, p, norms=("norm2", "norm1"))
    ),
    "Attention reads the stream without a norm.": (
        lambda r, x, m, p: _pre(r, x, m, p, norms=(None, "norm2"))
    ),
    "The feed-forward network reads the stream without a norm.": (
        lambda r, x, m, p: _pre(r, x, m, p, norms=("norm1", None))
    ),
    "The output of attention replaces the stream. Add it to x.": (
        lambda r, x, m, p: _pre(r, x, m, p, residual=(False, True))
    ),
    "The output of the feed-forward network replaces the stream. Add it to x.": (
        lambda r, x, m, p: _pre(r, x, m, p, residual=(True, False))
    ),
    "attn_mask is not handed on to attention.": lambda r, x, _m, p: _pre(r, x, None, p),
    "key_padding_mask is not handed on to attention.": lambda r, x, m, _p: _pre(r, x, m, None),
}
"""Outputs of wrong Pre-LN blocks, by the message that each must get."""
