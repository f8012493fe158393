"""Checks for the tensors passed to an LSTM step, layer or module."""

import functools
import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from torch import Tensor

from lnbook._check import checked_eps
from lnbook._check_tensors import autocasts, check_tensor
from lnbook.recurrent._autocast import no_autocast
from lnbook.recurrent.parameters import shapes_of

__all__ = [
    "check_features",
    "check_input",
    "check_layer",
    "check_like",
    "checked_state",
    "checked_states",
    "checks_arguments",
]

Parameters: TypeAlias = Mapping[str, Tensor]
Step: TypeAlias = Callable[..., tuple[Tensor, Tensor]]


def checks_arguments(variant: str) -> Callable[[Step], Step]:
    """Decorate a step so that it rejects mismatched arguments; its `__wrapped__` doesn't."""

    def decorate(step: Step) -> Step:
        @functools.wraps(step)
        def checked(
            x: Tensor, h: Tensor, c: Tensor, parameters: Parameters, eps: float = 1e-5
        ) -> tuple[Tensor, Tensor]:
            name = step.__name__
            for letter, tensor in (("x", x), ("h", h), ("c", c)):
                check_tensor(tensor, letter, name)
            _check_matrix(x, "x", "(N, input_size)", name)
            _check_matrix(h, "h", "(N, hidden_size)", name)
            _check_fits(h, (len(x), h.shape[1]), x, "h", name)
            _check_states_and_parameters(variant, x, h, c, parameters, name)
            return step(x, h, c, parameters, checked_eps(eps, name))

        return checked

    return decorate


def check_layer(
    function: str,
    rows: Any,
    batch_sizes: Sequence[int],
    h: Any,
    c: Any,
    parameters: Parameters,
    variant: str,
) -> None:
    """Raise unless the arguments of `plain_layer` are compatible.

    Raises:
        TypeError: an argument is not a tensor.
        KeyError: a weight is missing.
        RuntimeError: a shape, dtype or device doesn't match, or `batch_sizes` is empty or
            increases.
    """
    for name, tensor in (("rows", rows), ("h", h), ("c", c)):
        check_tensor(tensor, name, function)
    _check_matrix(rows, "rows", "(sum(batch_sizes), input_size)", function)
    _check_matrix(h, "h", "(batch_sizes[0], hidden_size)", function)
    sizes = list(batch_sizes)
    grows = any(here < after for here, after in itertools.pairwise(sizes))
    if not sizes or grows or sum(sizes) != len(rows):
        raise RuntimeError(
            f"{function}: expected batch_sizes to be nonempty, never increase and sum to "
            f"{len(rows)}, since rows has shape {tuple(rows.shape)}, but got {sizes}"
        )
    with no_autocast(rows.device):  # as in the loops
        _check_fits(h, (sizes[0], h.shape[1]), rows, "h", function)
        _check_states_and_parameters(variant, rows, h, c, parameters, function)


def check_like(value: Tensor, model: Tensor, name: str, function: str) -> None:
    """Raise unless a tensor has the dtype and device of the `model` parameter.

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


def check_input(
    input: Any, dimensions: tuple[int, int], size: int, model: Tensor, function: str
) -> None:
    """Raise unless a module's input has the right dimensions and features and matches `model`.

    Raises:
        TypeError: it is not a tensor.
        ValueError: the number of dimensions isn't one of the two allowed, or the dtype is wrong.
        RuntimeError: the number of features or the device is wrong.
    """
    check_tensor(input, "input", function)
    if input.ndim not in dimensions:
        raise ValueError(
            f"{function}: expected input to have {dimensions[0]} or {dimensions[1]} dimensions, "
            f"but got shape {tuple(input.shape)}"
        )
    check_features(input, size, model, "input", function)


def check_features(input: Tensor, size: int, model: Tensor, name: str, function: str) -> None:
    """Raise unless a tensor has `size` features and matches the `model` parameter.

    Raises:
        ValueError: the dtype is wrong.
        RuntimeError: the number of features or the device is wrong.
    """
    if input.shape[-1] != size:
        raise RuntimeError(
            f"{function}: expected {name} to have the shape (*, {size}), "
            f"but got {tuple(input.shape)}"
        )
    check_like(input, model, name, function)


def checked_state(
    state: Any, shape: tuple[int, ...], model: Tensor, name: str, function: str
) -> Tensor:
    """Return a state, which must have shape `shape` and match `model`.

    Raises:
        TypeError: it is not a tensor.
        ValueError: its dtype differs from `model`'s.
        RuntimeError: its shape or device is wrong.
    """
    check_tensor(state, name, function)
    given = tuple(state.shape)
    if given != shape:
        raise RuntimeError(
            f"{function}: expected {name} to have the shape {shape}, but got {given}"
        )
    check_like(state, model, name, function)
    checked: Tensor = state
    return checked


def checked_states(
    hx: Any, shape: tuple[int, ...], model: Tensor, function: str
) -> tuple[Tensor, Tensor]:
    """Return the pair of states `hx`, each with shape `shape` and matching `model`.

    Raises:
        TypeError: `hx` is not a pair of tensors.
        ValueError: a dtype differs from `model`'s.
        RuntimeError: a shape or device is wrong.
    """
    if not isinstance(hx, (tuple, list)) or len(hx) != 2:
        given = f"{len(hx)} of them" if isinstance(hx, (tuple, list)) else type(hx).__name__
        raise TypeError(f"{function}: expected hx to be a pair of tensors (h, c), but got {given}")
    for name, state in zip("hc", hx, strict=True):
        checked_state(state, shape, model, name, function)
    return hx[0], hx[1]


def _check_states_and_parameters(
    variant: str, x: Tensor, h: Tensor, c: Tensor, parameters: Parameters, function: str
) -> None:
    _check_fits(c, tuple(h.shape), x, "c", function)
    for name, shape in shapes_of(variant, x.shape[1], h.shape[1], True).items():
        if name in parameters:
            check_tensor(parameters[name], name, function)
            _check_fits(parameters[name], shape, x, name, function)
        elif "bias" not in name:
            raise KeyError(f"{function}: expected a parameter {name!r}, but got {[*parameters]}")


def _check_matrix(tensor: Tensor, name: str, shape: str, function: str) -> None:
    if tensor.ndim != 2:
        raise RuntimeError(
            f"{function}: expected {name} to have the shape {shape}, but got {tuple(tensor.shape)}"
        )


def _check_fits(
    tensor: Tensor, shape: tuple[int, ...], x: Tensor, name: str, function: str
) -> None:
    if tuple(tensor.shape) != shape:
        raise RuntimeError(
            f"{function}: expected {name} to have the shape {shape}, but got {tuple(tensor.shape)}"
        )
    if tensor.device != x.device:
        raise RuntimeError(
            f"{function}: expected {name} to be on the device {x.device} of the input, "
            f"but got {tensor.device}"
        )
    # Under autocast, a step can return a state whose dtype differs from its input's.
    mixes = autocasts(x.device) and tensor.is_floating_point() and x.is_floating_point()
    if tensor.dtype != x.dtype and not mixes:
        raise RuntimeError(
            f"{function}: expected {name} to have the dtype {x.dtype} of the input, "
            f"but got {tensor.dtype}"
        )
