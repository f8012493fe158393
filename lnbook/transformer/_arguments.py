"""Checks of arguments that the transformer's classes share."""

import numbers
from typing import Any

import torch
from torch import Tensor

from lnbook._check import checked_count


def checked_size(value: Any, name: str, owner: str) -> int:
    """Return `value` as a Python int of at least 1; the errors are those of `checked_count`."""
    return checked_count(value, name, owner, least=1)


def checked_number(value: Any, name: str, owner: str, least: float, most: float) -> float:
    """Return `value` as a float between `least` and `most`, both allowed.

    Raises:
        TypeError: `value` is not a real number (a bool and a tensor are not).
        ValueError: `value` is NaN or outside the interval.
    """
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise TypeError(
            f"{owner}: expected {name} to be a real number, but got {value!r} "
            f"of type {type(value).__name__}"
        )
    number = float(value)
    if not least <= number <= most:
        raise ValueError(
            f"{owner}: expected {name} to be between {least} and {most}, but got {value!r}"
        )
    return number


def check_sequence(src: Any, d_model: int, weight: Tensor, owner: str) -> None:
    """Check that `src` is a sequence, or a batch of them, that fits a layer's `weight`.

    Raises:
        TypeError: `src` is not a tensor.
        RuntimeError: its shape, dtype or device does not fit. Under autocast any floating dtype
            does.
    """
    if not isinstance(src, Tensor):
        raise TypeError(f"{owner}: expected src to be a tensor, but got {type(src).__name__}")
    if src.dim() not in (2, 3) or src.shape[-1] != d_model:
        raise RuntimeError(
            f"{owner}: expected src of shape (N, L, {d_model}) or (L, {d_model}), "
            f"but got {tuple(src.shape)}"
        )
    if src.device != weight.device:
        raise RuntimeError(
            f"{owner}: expected src on the device of the parameters, {weight.device}, "
            f"but got src on {src.device}"
        )
    if src.dtype != weight.dtype and not (src.is_floating_point() and _autocasts(src.device)):
        raise RuntimeError(
            f"{owner}: expected src of the parameters' dtype, {weight.dtype}, but got {src.dtype}"
        )


def _autocasts(device: torch.device) -> bool:
    # Not every device has autocast: `meta` has none.
    available = torch.amp.is_autocast_available(device.type)
    return available and torch.is_autocast_enabled(device.type)
