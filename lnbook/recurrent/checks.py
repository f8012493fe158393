"""Checks of arguments that the LSTM and its cell share."""

import math
import numbers
from typing import Any

import torch
from torch import Tensor

from lnbook.functional import FLOATING_DTYPES

__all__ = [
    "check_dtype",
    "check_like",
    "check_tensor",
    "checked_forget_bias",
    "checked_states",
    "checked_variant",
]

VARIANTS = ("ba", "per-gate", "carried", "none")


def checked_variant(variant: Any, function: str) -> str:
    """Return the name of the variant, "none" for None.

    Raises:
        ValueError: there is no such variant.
    """
    name = "none" if variant is None else variant
    if not isinstance(name, str) or name not in VARIANTS:
        expected = ", ".join(f'"{name}"' for name in VARIANTS)
        raise ValueError(
            f"{function}: expected variant to be one of {expected} or None, but got {variant!r}"
        )
    return name


def checked_forget_bias(forget_bias: Any, bias: bool, function: str) -> float:
    """Return the forget bias as a float; None stands for 1 with a bias and 0 without.

    Raises:
        TypeError: `forget_bias` is neither None nor a real number.
        ValueError: `forget_bias` is not finite, or not 0 where there is no bias.
    """
    if forget_bias is None:
        return 1.0 if bias else 0.0
    if isinstance(forget_bias, bool) or not isinstance(forget_bias, numbers.Real):
        raise TypeError(
            f"{function}: expected forget_bias to be a real number or None, but got "
            f"{forget_bias!r} of type {type(forget_bias).__name__}"
        )
    value = float(forget_bias)
    if not math.isfinite(value):
        raise ValueError(f"{function}: expected forget_bias to be finite, but got {forget_bias!r}")
    if value and not bias:
        raise ValueError(
            f"{function}: expected forget_bias to be 0 or None without bias, "
            f"but got forget_bias={forget_bias!r} and bias=False"
        )
    return value


def check_dtype(dtype: Any, function: str) -> None:
    """Refuse what is neither None nor a floating-point dtype of lnbook.

    Raises:
        TypeError: `dtype` is not a torch.dtype.
        RuntimeError: `dtype` is another one.
    """
    if dtype is not None and not isinstance(dtype, torch.dtype):
        raise TypeError(
            f"{function}: expected dtype to be a torch.dtype, but got {dtype!r} "
            f"of type {type(dtype).__name__}"
        )
    if dtype is not None and dtype not in FLOATING_DTYPES:
        raise RuntimeError(
            f"{function}: expected dtype to be float16, bfloat16, float32 or float64, "
            f"but got {dtype}"
        )


def check_tensor(value: Any, name: str, function: str) -> None:
    """Refuse what is not a dense tensor.

    Raises:
        TypeError: `value` is not a tensor.
        RuntimeError: `value` is a sparse or nested tensor.
    """
    if not isinstance(value, Tensor):
        raise TypeError(
            f"{function}: expected {name} to be a tensor, but got {type(value).__name__}"
        )
    if value.layout != torch.strided or value.is_nested:
        raise RuntimeError(
            f"{function}: expected {name} to be a dense tensor, but got layout {value.layout}"
        )


def check_like(value: Tensor, model: Tensor, name: str, function: str) -> None:
    """Refuse a tensor that has not the dtype and device of the parameter `model`.

    Raises:
        ValueError: the dtype differs.
        RuntimeError: the device differs.
    """
    if value.dtype != model.dtype:
        raise ValueError(
            f"{function}: expected {name} to have the dtype {model.dtype} of the weights, "
            f"but got {value.dtype}"
        )
    if value.device != model.device:
        raise RuntimeError(
            f"{function}: expected {name} to be on the device {model.device} of the weights, "
            f"but got {value.device}"
        )


def checked_states(
    hx: Any, shape: tuple[int, ...], model: Tensor, function: str
) -> tuple[Tensor, Tensor]:
    """Return the pair of states `hx`, each of the shape `shape` and like `model`.

    Raises:
        TypeError: `hx` is not a pair of tensors.
        ValueError: a dtype differs from that of `model`.
        RuntimeError: a shape or device does not fit.
    """
    if not isinstance(hx, (tuple, list)) or len(hx) != 2:
        given = f"{len(hx)} of them" if isinstance(hx, (tuple, list)) else type(hx).__name__
        raise TypeError(f"{function}: expected hx to be a pair of tensors (h, c), but got {given}")
    for name, state in zip("hc", hx, strict=True):
        check_tensor(state, name, function)
        if tuple(state.shape) != shape:
            raise RuntimeError(
                f"{function}: expected {name} to have the shape {shape}, "
                f"but got {tuple(state.shape)}"
            )
        check_like(state, model, name, function)
    return hx[0], hx[1]
