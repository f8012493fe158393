"""The Triton kernels with the signatures of the operators in `lnbook.kernels.operators`.

Importing this module registers nothing; `register` does that, for CUDA tensors.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from lnbook._check_tensors import computing_dtype
from lnbook.kernels import gpu

__all__ = ["register"]


def register(operators: Any) -> None:
    """Make the operators of LayerNorm and RMSNorm run these kernels on CUDA tensors.

    Args:
        operators: the `lnbook.kernels.operators` module, with four operators and `DEVICES`.

    Example:
        >>> from types import SimpleNamespace
        >>> from unittest.mock import MagicMock
        >>> operators = SimpleNamespace(DEVICES=set())
        >>> for norm in ("layer_norm", "rms_norm"):
        ...     setattr(operators, f"{norm}_operator", MagicMock())
        ...     setattr(operators, f"{norm}_backward_operator", MagicMock())
        >>> register(operators)
        >>> operators.DEVICES
        {'cuda'}
    """
    operators.layer_norm_operator.register_kernel("cuda")(layer_norm_forward)
    operators.layer_norm_backward_operator.register_kernel("cuda")(layer_norm_backward)
    operators.rms_norm_operator.register_kernel("cuda")(rms_norm_forward)
    operators.rms_norm_backward_operator.register_kernel("cuda")(rms_norm_backward)
    operators.DEVICES.add("cuda")


def layer_norm_forward(
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None,
    bias: Tensor | None,
    eps: float,
) -> tuple[Tensor, Tensor]:
    """Return y, and the statistics of shape `(3, rows)`: mean, its rounding error, and r."""
    y, statistics = gpu.layer_norm_forward(
        _as_rows(input, normalized_shape), _as_vector(weight), _as_vector(bias), eps
    )
    return y.view(input.shape), statistics


def layer_norm_backward(
    grad_output: Tensor,
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None,
    statistics: Tensor,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the gradients of input, weight and bias, the last two in the statistics' dtype."""
    del eps  # r already includes it
    grad_input, *parameters = gpu.layer_norm_backward(
        _as_rows(grad_output, normalized_shape),
        _as_rows(input, normalized_shape),
        _as_vector(weight, computing_dtype(input.dtype)),
        statistics,
    )
    grad_weight, grad_bias = (
        one.view(tuple(normalized_shape)).to(statistics.dtype) for one in parameters
    )
    return grad_input.view(input.shape), grad_weight, grad_bias


def rms_norm_forward(
    input: Tensor, normalized_shape: Sequence[int], weight: Tensor | None, eps: float
) -> tuple[Tensor, Tensor]:
    """Return y, and the statistics of shape `(1, rows)`: r."""
    y, rstd = gpu.rms_norm_forward(_as_rows(input, normalized_shape), _as_vector(weight), eps)
    return y.view(input.shape), rstd.unsqueeze(0)


def rms_norm_backward(
    grad_output: Tensor,
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None,
    statistics: Tensor,
    eps: float,
) -> tuple[Tensor, Tensor]:
    """Return the gradients of input and weight, the latter in the statistics' dtype."""
    del eps
    grad_input, grad_weight = gpu.rms_norm_backward(
        _as_rows(grad_output, normalized_shape),
        _as_rows(input, normalized_shape),
        _as_vector(weight, computing_dtype(input.dtype)),
        statistics[0],
    )
    grad_weight = grad_weight.view(tuple(normalized_shape)).to(statistics.dtype)
    return grad_input.view(input.shape), grad_weight


def _as_rows(tensor: Tensor, shape: Sequence[int]) -> Tensor:
    width = torch.Size(shape).numel()
    rows = torch.Size(tensor.shape[: tensor.ndim - len(shape)]).numel()
    return tensor.reshape(rows, width)


def _as_vector(parameter: Tensor | None, dtype: torch.dtype | None = None) -> Tensor | None:
    return None if parameter is None else parameter.reshape(-1).to(dtype or parameter.dtype)
