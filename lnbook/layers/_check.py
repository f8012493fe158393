"""Checks of what the layers are constructed with."""

import numbers
from collections.abc import Iterable
from typing import Any, Literal, TypeAlias

import torch

from lnbook._check import checked_shape
from lnbook.functional import FLOATING_DTYPES

Device: TypeAlias = torch.device | str | int | None
Form: TypeAlias = Literal["fast", "rows", "plain"]


def checked_form(form: Any, layer: str) -> Form:
    """Return `form`, which must name one of the three; raise ValueError otherwise."""
    for known in ("fast", "rows", "plain"):
        if form == known:
            return known
    raise ValueError(f"{layer}: expected form to be 'fast', 'rows' or 'plain', but got {form!r}")


def checked_normalized_shape(normalized_shape: Any, layer: str) -> tuple[int, ...]:
    """Return `normalized_shape`, an integer or some integers, as a tuple of Python ints.

    Raises:
        TypeError: it is neither, or an element is not an integer.
        RuntimeError: there is no element, or a negative one.
    """
    if isinstance(normalized_shape, numbers.Integral):
        normalized_shape = (normalized_shape,)
    if not isinstance(normalized_shape, Iterable) or isinstance(normalized_shape, (str, bytes)):
        raise TypeError(
            f"{layer}: expected normalized_shape to be an integer or some integers, but got "
            f"{normalized_shape!r} of type {type(normalized_shape).__name__}"
        )
    return checked_shape(normalized_shape, layer)


def check_dtype(dtype: Any, layer: str) -> None:
    """Raise unless `dtype` is None or a dtype that parameters may have.

    Raises:
        TypeError: it is not a dtype.
        RuntimeError: it is another dtype.
    """
    if dtype is None:
        return
    if not isinstance(dtype, torch.dtype):
        raise TypeError(
            f"{layer}: expected dtype to be a torch.dtype, but got {dtype!r} "
            f"of type {type(dtype).__name__}"
        )
    if dtype not in FLOATING_DTYPES:
        raise RuntimeError(
            f"{layer}: expected dtype to be float16, bfloat16, float32 or float64, but got {dtype}"
        )
