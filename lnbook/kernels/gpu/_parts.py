"""Device functions that several kernels call, and the second stage of the parameter gradients."""

from __future__ import annotations

import torch
from torch import Tensor

from lnbook.kernels.gpu._launch import (
    INTERPRETED_TILE,
    TILE,
    is_interpreted,
    kernel,
    stored_dtype,
    tl,
)

__all__ = ["add_parts", "average", "inverse_root", "load_row", "two_averages"]

_INTERPRETED = None if tl is None else tl.constexpr(is_interpreted())


@kernel
def load_row(
    row: tl.tensor, columns: tl.tensor, width: tl.constexpr, computing: tl.constexpr
) -> tl.tensor:
    """Read some columns of a row in the dtype of the statistics, with 0 outside the row."""
    return tl.load(row + columns, mask=columns < width, other=0.0).to(computing)


@kernel
def average(values: tl.tensor, width: tl.constexpr) -> tl.tensor:
    """Return the mean of a row whose block is 0 outside the row.

    On a GPU, `/` approximates float32 division. This division is exact, because centering relies on
    it: what the first centering leaves of a constant row must be equal to its own mean.
    """
    return _divided(tl.sum(values), width)


@kernel
def two_averages(
    first: tl.tensor, second: tl.tensor, width: tl.constexpr
) -> tuple[tl.tensor, tl.tensor]:
    """Return the means of two such blocks, added up as pairs, so that warps wait only once."""
    if _INTERPRETED:  # NumPy would add up the pairs one after the other, which is less accurate
        first_sum, second_sum = tl.sum(first), tl.sum(second)
    else:
        first_sum, second_sum = tl.split(tl.sum(tl.join(first, second), axis=0))
    return _divided(first_sum, width), _divided(second_sum, width)


@kernel
def _divided(total: tl.tensor, width: tl.constexpr) -> tl.tensor:
    return total / width if total.dtype == tl.float64 else tl.div_rn(total, width * 1.0)


@kernel
def inverse_root(square: tl.tensor) -> tl.tensor:
    """Return 1 / sqrt of a mean square, correctly rounded; NaN if it has overflowed."""
    square = tl.where(square == float("inf"), float("nan"), square)
    if square.dtype == tl.float64:
        result = 1.0 / tl.sqrt(square)
    else:
        result = tl.div_rn(1.0, tl.sqrt_rn(square))
    return result


@kernel
def _add_columns(
    parts: tl.tensor,
    count: tl.tensor,
    columns: tl.tensor,
    width: tl.constexpr,
    tile_rows: tl.constexpr,
) -> tl.tensor:
    """Add up `count` rows of `parts` for some columns, a tile of rows at a time."""
    inside = columns < width
    total = tl.zeros((tile_rows, columns.shape[0]), parts.dtype.element_ty)
    for first in range(0, count, tile_rows):
        rows = first + tl.arange(0, tile_rows)
        places = parts + rows[:, None].to(tl.int64) * width + columns[None, :]
        mask = (rows[:, None] < count) & inside[None, :]
        total += tl.load(places, mask=mask, other=0.0)
    return tl.sum(total, axis=0)


@kernel
def _second_stage(
    parts: tl.tensor,
    first_sum: tl.tensor,
    second_sum: tl.tensor,
    count: tl.tensor,
    width: tl.constexpr,
    tile_rows: tl.constexpr,
    tile_columns: tl.constexpr,
) -> None:
    """Add up the sums from all programs in the first stage, for a few columns."""
    columns = tl.program_id(0) * tile_columns + tl.arange(0, tile_columns)
    inside = columns < width
    total = _add_columns(parts, count, columns, width, tile_rows)
    tl.store(first_sum + columns, total, mask=inside)
    if second_sum is not None:
        second_parts = parts + tl.cast(count, tl.int64) * width
        total = _add_columns(second_parts, count, columns, width, tile_rows)
        tl.store(second_sum + columns, total, mask=inside)


def add_parts(parts: Tensor, dtype: torch.dtype) -> list[Tensor]:
    """Return the sums of `parts` over the programs: the second stage.

    Args:
        parts: what each program has added up, of shape `(S, P, H)`: one row for each of P programs
            and each of one or two parameters.
        dtype: the dtype of the result.

    Returns:
        For each parameter, a tensor of shape `(H,)`.
    """
    count, programs, width = parts.shape
    rows, columns = TILE if parts.is_cuda else INTERPRETED_TILE
    own = stored_dtype(dtype)
    sums = [torch.empty(width, dtype=own, device=parts.device) for _ in range(count)]
    pointers = [*sums, None][:2]
    _second_stage[(-(-width // columns),)](parts, *pointers, programs, width, rows, columns)
    return [one.to(dtype) for one in sums]
