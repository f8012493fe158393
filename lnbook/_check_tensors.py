"""Checks for tensors, dtypes and modules, with the same wording wherever torch is used."""

from typing import Any, TypeAlias

import torch
from torch import Tensor, nn

from lnbook._check import checked_shape

Device: TypeAlias = torch.device | str | int | None

HALF_DTYPES = (torch.float16, torch.bfloat16)
FLOATING_DTYPES = (*HALF_DTYPES, torch.float32, torch.float64)
KNOWN_DTYPES = "float16, bfloat16, float32 or float64"


def computing_dtype(dtype: torch.dtype) -> torch.dtype:
    """Return the dtype of the statistics: float32 for half precision, otherwise `dtype` itself."""
    return torch.float32 if dtype in HALF_DTYPES else dtype


def check_dtype(dtype: Any, function: str) -> None:
    """Raise unless `dtype` is None or a dtype that parameters can have.

    Raises:
        TypeError: it is not a dtype.
        RuntimeError: it is any other dtype.
    """
    if dtype is not None and not isinstance(dtype, torch.dtype):
        raise TypeError(
            f"{function}: expected dtype to be a torch.dtype, but got {dtype!r} "
            f"of type {type(dtype).__name__}"
        )
    if dtype is not None and dtype not in FLOATING_DTYPES:
        raise RuntimeError(f"{function}: expected dtype to be {KNOWN_DTYPES}, but got {dtype}")


def check_module(value: Any, name: str, function: str) -> None:
    """Raise TypeError unless `value` is a module."""
    if not isinstance(value, nn.Module):
        raise TypeError(
            f"{function}: expected {name} to be a torch module, but got {type(value).__name__}"
        )


def checked_sizes(normalized_shape: Any, function: str) -> tuple[int, ...]:
    """Return `normalized_shape`, a tuple or list of integers, as a tuple of Python ints.

    Raises the same errors as `checked_shape`, and TypeError for a single integer, as PyTorch's
    functions do.
    """
    if not isinstance(normalized_shape, (tuple, list)):
        hint = f"; write ({normalized_shape},)" if isinstance(normalized_shape, int) else ""
        raise TypeError(
            f"{function}: expected normalized_shape to be a tuple or list of integers, but got "
            f"{normalized_shape!r} of type {type(normalized_shape).__name__}{hint}"
        )
    return checked_shape(normalized_shape, function)


def check_tensor(value: Any, name: str, function: str) -> None:
    """Raise TypeError unless `value` is a tensor, and RuntimeError unless it is dense."""
    if not isinstance(value, Tensor):
        raise TypeError(
            f"{function}: expected {name} to be a tensor, but got {type(value).__name__}"
        )
    if value.layout != torch.strided or value.is_nested:
        given = "a nested tensor" if value.is_nested else f"layout {value.layout}"
        raise RuntimeError(f"{function}: expected {name} to be a dense tensor, but got {given}")


def check_floating(value: Any, name: str, function: str) -> None:
    """Raise unless `value` is a dense tensor with a dtype that can be normalized.

    Raises:
        TypeError: it is not a tensor.
        RuntimeError: it is not dense; its subclass NotImplementedError for any other dtype.
    """
    check_tensor(value, name, function)
    if value.dtype not in FLOATING_DTYPES:
        raise NotImplementedError(
            f"{function}: expected {name} to be {KNOWN_DTYPES}, but got {value.dtype}"
        )


def check_last_dimensions(input: Any, shape: tuple[int, ...], function: str) -> None:
    """Raise unless `input` is floating-point and its last dimensions are `shape`.

    Raises:
        TypeError: it is not a tensor.
        RuntimeError: its shape, dtype (NotImplementedError) or layout is wrong.
    """
    check_floating(input, "input", function)
    if tuple(input.shape[-len(shape) :]) != shape:
        raise RuntimeError(
            f"{function}: expected the last dimensions of input to be normalized_shape={shape}, "
            f"but got input of shape {tuple(input.shape)}"
        )


def check_parameters(
    input: Tensor, shape: tuple[int, ...], shape_is: str, function: str, **parameters: Any
) -> None:
    """Raise unless each of the `parameters` is None or compatible with `input`.

    Args:
        input: the tensor to normalize.
        shape: the shape that each parameter must have.
        shape_is: where that shape comes from, for the message.
        function: name of the caller, for the message.
        parameters: tensors or None, keyed by name. They have the dtype of `input`; for half
            precision they can instead all be float32.

    Raises:
        TypeError: a parameter is not a tensor.
        RuntimeError: its shape, dtype, device or layout is wrong.
    """
    allowed = {input.dtype, computing_dtype(input.dtype)}
    for name, parameter in parameters.items():
        if parameter is None:
            continue
        check_tensor(parameter, name, function)
        if tuple(parameter.shape) != shape:
            raise RuntimeError(
                f"{function}: expected {name} to have the shape {shape_is}{shape}, "
                f"but got {name} of shape {tuple(parameter.shape)}"
            )
        if parameter.device != input.device:
            raise RuntimeError(
                f"{function}: expected {name} to be on the device of input, {input.device}, "
                f"but got {name} on {parameter.device}"
            )
        if parameter.dtype not in allowed:
            raise RuntimeError(
                f"{function}: expected {name} to be {' or '.join(sorted(map(str, allowed)))} "
                f"for an input of {input.dtype}, but got {parameter.dtype}"
            )
        allowed = {parameter.dtype}


def autocasts(device: torch.device) -> bool:
    """Return whether autocast is enabled; not every device supports it (`meta` doesn't)."""
    available = torch.amp.is_autocast_available(device.type)
    return available and torch.is_autocast_enabled(device.type)
