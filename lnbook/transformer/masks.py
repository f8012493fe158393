"""Attention masks in PyTorch's convention, merged into the single mask that the kernel takes."""

import functools
import math
import operator
from typing import Any

import torch
from torch import Tensor

from lnbook._check_tensors import check_tensor

__all__ = ["merge_masks"]


def merge_masks(
    query: Tensor,
    attn_mask: Tensor | None,
    key_padding_mask: Tensor | None,
    is_causal: bool,
) -> tuple[Tensor | None, bool]:
    r"""Merge everything that hides keys into one mask for `scaled_dot_product_attention`.

    In the input masks, as in `torch.nn.MultiheadAttention`, True **hides** a key, and floats are
    added to the scores. In the merged mask, as in `scaled_dot_product_attention`, True makes a key
    **visible**. A key is visible only if no mask hides it.

    Args:
        query: the projected queries, of shape `(N, nhead, L, head_dim)`.
        attn_mask: bool or floating-point, of shape `(L, L)` (query, key) or `(N * nhead, L, L)`.
        key_padding_mask: bool or floating-point, of shape `(N, L)`.
        is_causal: whether later keys are hidden from a query.

    Returns:
        The mask, and whether the kernel should hide later keys itself. The mask is None if none was
        given: causality alone needs no tensor.

    Raises:
        TypeError: a mask is not a tensor.
        RuntimeError: the dtype, shape or device of a mask is wrong.

    Example:
        >>> padding = torch.tensor([[False, False, True]])
        >>> mask, is_causal = merge_masks(torch.zeros(1, 1, 3, 2), None, padding, True)
        >>> mask.int().tolist(), is_causal
        ([[[[1, 0, 0], [1, 1, 0], [1, 1, 0]]]], False)
        >>> merge_masks(torch.zeros(1, 1, 3, 2), None, None, True)
        (None, True)
    """
    batch, nhead, length, _ = query.shape
    masks = []
    if attn_mask is not None:
        _check_mask(attn_mask, "mask", query, [(length, length), (batch * nhead, length, length)])
        masks.append(attn_mask if attn_mask.dim() == 2 else attn_mask.unflatten(0, (batch, nhead)))
    if key_padding_mask is not None:
        _check_mask(key_padding_mask, "key padding mask", query, [(batch, length)])
        masks.append(key_padding_mask[:, None, None, :])
    if not masks:
        return None, is_causal
    if is_causal:
        masks.append(torch.ones(length, length, dtype=torch.bool, device=query.device).triu(1))
    if all(mask.dtype == torch.bool for mask in masks):
        return ~functools.reduce(operator.or_, masks), False
    return functools.reduce(operator.add, (_additive(mask, query.dtype) for mask in masks)), False


def _additive(mask: Tensor, dtype: torch.dtype) -> Tensor:
    if mask.dtype != torch.bool:
        return mask.to(dtype)
    return torch.zeros_like(mask, dtype=dtype).masked_fill_(mask, -math.inf)


def _check_mask(mask: Any, name: str, query: Tensor, shapes: list[tuple[int, ...]]) -> None:
    check_tensor(mask, f"the {name}", "attention")
    if mask.dtype != torch.bool and not mask.is_floating_point():
        raise RuntimeError(
            f"attention: expected the {name} to be bool or floating, but got {mask.dtype}"
        )
    if tuple(mask.shape) not in shapes:
        expected = " or ".join(map(str, shapes))
        raise RuntimeError(
            f"attention: expected the {name} to have the shape {expected}, "
            f"but got {tuple(mask.shape)}"
        )
    if mask.device != query.device:
        raise RuntimeError(
            f"attention: expected the {name} to be on the device of the input, {query.device}, "
            f"but it's on {mask.device}"
        )
