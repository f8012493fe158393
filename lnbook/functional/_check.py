"""Checks of the tensors that the operations take, in one wording."""

from typing import Any

import torch
from torch import Tensor

from lnbook._check import checked_shape

HALF_DTYPES = (torch.float16, torch.bfloat16)
FLOATING_DTYPES = (*HALF_DTYPES, torch.float32, torch.float64)


def computing_dtype(dtype: torch.dtype) -> torch.dtype:
    """Return the dtype of statistics: float32 for the half types, else `dtype` itself."""
    return torch.float32 if dtype in HALF_DTYPES else dtype


def checked_normalized_shape(normalized_shape: Any, function: str) -> tuple[int, ...]:
    """Return `normalized_shape`, a tuple or list of integers, as a tuple of Python ints.

    Raises:
        TypeError: it is neither a tuple nor a list, or an element is not an integer.
        RuntimeError: there is no element, or a negative one.
    """
    if not isinstance(normalized_shape, (tuple, list)):
        hint = f"; write ({normalized_shape},)" if isinstance(normalized_shape, int) else ""
        raise TypeError(
            f"{function}: expected normalized_shape to be a tuple or list of integers, but got "
            f"{normalized_shape!r} of type {type(normalized_shape).__name__}{hint}"
        )
    return checked_shape(normalized_shape, function)


def check_is_tensor(value: Any, name: str, function: str) -> None:
    """Raise TypeError unless `value` is a tensor, RuntimeError unless it is a dense one."""
    if not isinstance(value, Tensor):
        raise TypeError(
            f"{function}: expected {name} to be a tensor, but got {type(value).__name__}"
        )
    if value.layout != torch.strided:
        raise RuntimeError(
            f"{function}: expected {name} to be a dense tensor, but got layout {value.layout}"
        )


def check_is_floating(input: Any, function: str, name: str = "input") -> None:
    """Raise unless `input` is a dense tensor of a dtype that can be normalized.

    Raises:
        TypeError: it is not a tensor.
        RuntimeError: it is not dense; for another dtype its subclass NotImplementedError.
    """
    check_is_tensor(input, name, function)
    if input.dtype not in FLOATING_DTYPES:
        raise NotImplementedError(
            f"{function}: expected {name} to be float16, bfloat16, float32 or float64, "
            f"but got {input.dtype}"
        )


def check_last_dimensions(input: Any, shape: tuple[int, ...], function: str) -> None:
    """Raise unless `input` is floating-point and its last dimensions are `shape`.

    Raises:
        TypeError: it is not a tensor.
        RuntimeError: its shape, dtype (NotImplementedError) or layout does not fit.
    """
    check_is_floating(input, function)
    if tuple(input.shape[-len(shape) :]) != shape:
        raise RuntimeError(
            f"{function}: expected the last dimensions of input to be normalized_shape={shape}, "
            f"but got input of shape {tuple(input.shape)}"
        )


def check_parameters(
    input: Tensor, shape: tuple[int, ...], shape_is: str, function: str, **parameters: Any
) -> None:
    """Raise unless each of the `parameters` that is not None fits `input`.

    Args:
        input: the tensor to normalize.
        shape: the shape that each parameter must have.
        shape_is: where that shape comes from, for the message.
        function: who asks, for the message.
        parameters: tensors or None, by name. Their dtype is that of `input`; for a half type
            they may be float32, all of them together.

    Raises:
        TypeError: a parameter is not a tensor.
        RuntimeError: its shape, dtype, device or layout does not fit.
    """
    allowed = {input.dtype, computing_dtype(input.dtype)}
    for name, parameter in parameters.items():
        if parameter is None:
            continue
        check_is_tensor(parameter, name, function)
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
