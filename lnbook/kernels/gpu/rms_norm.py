r"""RMSNorm in Triton: one program per row forward, several rows per program backward.

Notation: :math:`H` is the width of a row, :math:`r = (\overline{x^2} + \epsilon)^{-1/2}`, and
:math:`\hat{x} = r x`. It's `lnbook.kernels.gpu.layer_norm` without centering and without a bias.
"""

from __future__ import annotations

import torch
from torch import Tensor

from lnbook._check import checked_eps
from lnbook._check_tensors import computing_dtype
from lnbook.kernels.gpu._launch import (
    BACKWARD_ROW_BYTES,
    ROW_BYTES,
    WIDE_BLOCK,
    WIDE_WARPS,
    backward_options,
    block_size,
    check_gradient,
    check_launch,
    check_rows,
    check_saved,
    forward_options,
    kernel,
    on_device_of,
    programs_for,
    stored_dtype,
    tl,
    triton_dtype,
    with_dense_rows,
)
from lnbook.kernels.gpu._parts import add_parts, average, inverse_root, load_row

__all__ = ["rms_norm_backward", "rms_norm_forward"]


@kernel
def _forward(
    x: tl.tensor,
    x_stride: tl.tensor,
    weight: tl.tensor,
    y: tl.tensor,
    rstd: tl.tensor,
    eps: tl.constexpr,
    width: tl.constexpr,
    computing: tl.constexpr,
    block: tl.constexpr,
) -> None:
    """Normalize one row. Between its load and its store, the row stays in registers."""
    row = tl.program_id(0).to(tl.int64)  # 32 bits would overflow at two billion elements
    columns = tl.arange(0, block)
    values = load_row(x + row * x_stride, columns, width, computing)
    r = inverse_root(average(values * values, width) + eps)
    result = values * r
    if weight is not None:
        result *= load_row(weight, columns, width, computing)
    tl.store(y + row * width + columns, result, mask=columns < width)
    tl.store(rstd + row, r)


@kernel
def _forward_wide(
    x: tl.tensor,
    x_stride: tl.tensor,
    weight: tl.tensor,
    y: tl.tensor,
    rstd: tl.tensor,
    eps: tl.constexpr,
    width: tl.constexpr,
    computing: tl.constexpr,
    block: tl.constexpr,
) -> None:
    """Normalize one row that doesn't fit in the registers, in two sweeps over its blocks."""
    row = tl.program_id(0).to(tl.int64)
    x += row * x_stride
    total = tl.zeros((block,), computing)
    for first in range(0, width, block):
        values = load_row(x, first + tl.arange(0, block), width, computing)
        total += values * values
    r = inverse_root(average(total, width) + eps)
    for first in range(0, width, block):
        columns = first + tl.arange(0, block)
        result = load_row(x, columns, width, computing) * r
        if weight is not None:
            result *= load_row(weight, columns, width, computing)
        tl.store(y + row * width + columns, result, mask=columns < width)
    tl.store(rstd + row, r)


@kernel
def _backward(
    grad_output: tl.tensor,
    grad_stride: tl.tensor,
    x: tl.tensor,
    x_stride: tl.tensor,
    weight: tl.tensor,
    rstd: tl.tensor,
    grad_input: tl.tensor,
    parts: tl.tensor,
    rows: tl.tensor,
    width: tl.constexpr,
    computing: tl.constexpr,
    block: tl.constexpr,
    stages: tl.constexpr,
) -> None:
    """Write dx for some rows, and, if there are `parts`, those rows' sum for the weight."""
    program = tl.program_id(0).to(tl.int64)
    programs = tl.num_programs(0)
    columns = tl.arange(0, block)
    inside = columns < width
    gamma = tl.full((block,), 1.0, computing)
    if weight is not None:
        gamma = load_row(weight, columns, width, computing)
    grad_weight = tl.zeros((block,), computing)
    for row in tl.range(program, rows, programs, num_stages=stages):
        dy = load_row(grad_output + row * grad_stride, columns, width, computing)
        r = tl.load(rstd + row)
        xhat = load_row(x + row * x_stride, columns, width, computing) * r
        g = gamma * dy
        dx = r * (g - xhat * average(g * xhat, width))
        tl.store(grad_input + row * width + columns, dx, mask=inside)
        if parts is not None:
            grad_weight += dy * xhat
    if parts is not None:
        tl.store(parts + program * width + columns, grad_weight, mask=inside)


@kernel
def _backward_wide(
    grad_output: tl.tensor,
    grad_stride: tl.tensor,
    x: tl.tensor,
    x_stride: tl.tensor,
    weight: tl.tensor,
    rstd: tl.tensor,
    grad_input: tl.tensor,
    width: tl.constexpr,
    computing: tl.constexpr,
    block: tl.constexpr,
) -> None:
    """Write the gradient of one row that doesn't fit in the registers, in two sweeps."""
    row = tl.program_id(0).to(tl.int64)
    grad_output += row * grad_stride
    x += row * x_stride
    r = tl.load(rstd + row)
    total = tl.zeros((block,), computing)
    for first in range(0, width, block):
        columns = first + tl.arange(0, block)
        g = load_row(grad_output, columns, width, computing)
        if weight is not None:
            g *= load_row(weight, columns, width, computing)
        total += g * (load_row(x, columns, width, computing) * r)
    mean_g_xhat = average(total, width)
    for first in range(0, width, block):
        columns = first + tl.arange(0, block)
        g = load_row(grad_output, columns, width, computing)
        if weight is not None:
            g *= load_row(weight, columns, width, computing)
        xhat = load_row(x, columns, width, computing) * r
        dx = r * (g - xhat * mean_g_xhat)
        tl.store(grad_input + row * width + columns, dx, mask=columns < width)


@kernel
def _parts_of_wide_rows(
    grad_output: tl.tensor,
    grad_stride: tl.tensor,
    x: tl.tensor,
    x_stride: tl.tensor,
    rstd: tl.tensor,
    parts: tl.tensor,
    rows: tl.tensor,
    width: tl.constexpr,
    computing: tl.constexpr,
    block: tl.constexpr,
) -> None:
    """Add up the gradient of the weight over some rows, for one block of columns."""
    program = tl.program_id(1).to(tl.int64)
    programs = tl.num_programs(1)
    columns = tl.program_id(0) * block + tl.arange(0, block)
    grad_weight = tl.zeros((block,), computing)
    for row in range(program, rows, programs):
        dy = load_row(grad_output + row * grad_stride, columns, width, computing)
        values = load_row(x + row * x_stride, columns, width, computing)
        grad_weight += dy * (values * tl.load(rstd + row))
    tl.store(parts + program * width + columns, grad_weight, mask=columns < width)


def rms_norm_forward(x: Tensor, weight: Tensor | None, eps: float) -> tuple[Tensor, Tensor]:
    r"""Divide each row of a matrix by its root mean square.

    .. math::
        y_i = \gamma_i \frac{x_i}{\sqrt{\overline{x^2} + \epsilon}}

    Source: Zhang and Sennrich 2019, eq. 4; values and special cases are the same as
    for `lnbook.functional.rms_norm`. The row is read once and written once if it fits in registers
    (16384 elements, or 8192 in float64).

    Args:
        x: matrix of shape `(N, H)`, float16, bfloat16, float32 or float64, on a CUDA device.
        weight: :math:`\gamma`, of shape `(H,)`; ones if None. Has the dtype of `x`, or float32 for
            a float16 or bfloat16 `x`.
        eps: value added to the mean square, finite and at least 0.

    Returns:
        y, with the shape and dtype of `x`, and :math:`r` of each row, of shape `(N,)`, in float32,
        or float64 for a float64 `x`.

    Raises:
        ImportError: Triton isn't installed.
        TypeError: an argument has the wrong type.
        RuntimeError: the shapes, dtypes or devices don't match, or `x` is on a device that Triton
            doesn't run on; its subclass NotImplementedError if `x` is not floating-point.
        ValueError: `eps` is negative, infinite or NaN.

    On a GPU::

        y, rstd = rms_norm_forward(x, weight, 1e-6)
        grad_input, grad_weight = rms_norm_backward(grad_output, x, weight, rstd)

    Example:
        >>> x = torch.ones(0, 768)  # without rows, nothing is launched
        >>> [one.shape for one in rms_norm_forward(x, None, 1e-6)]
        [torch.Size([0, 768]), torch.Size([0])]
    """
    check_rows(x, "rms_norm_forward", weight=weight)
    eps = checked_eps(eps, "rms_norm_forward")
    x, dtype = with_dense_rows(x), computing_dtype(x.dtype)
    rows, width = x.shape
    y = torch.empty(rows, width, dtype=stored_dtype(x.dtype), device=x.device)
    rstd = torch.empty(rows, dtype=dtype, device=x.device)
    if x.numel() == 0:
        return y.to(x.dtype), rstd.fill_(torch.nan)
    check_launch(x, "rms_norm_forward")
    weight = None if weight is None else weight.contiguous()
    block = block_size(width, dtype, ROW_BYTES)
    run = _forward if block else _forward_wide
    options = forward_options(block, dtype) if block else {"num_warps": WIDE_WARPS}
    sizes = (width, triton_dtype(dtype), block or WIDE_BLOCK)
    with on_device_of(x):
        run[(rows,)](x, x.stride(0), weight, y, rstd, eps, *sizes, **options)
    return y.to(x.dtype), rstd


def rms_norm_backward(
    grad_output: Tensor, x: Tensor, weight: Tensor | None, rstd: Tensor
) -> tuple[Tensor, Tensor]:
    r"""Return the gradients of a loss with respect to x and weight.

    With :math:`g = \gamma \, \partial \mathcal{L} / \partial y` and the mean over a row,

    .. math::
        \frac{\partial \mathcal{L}}{\partial x} = r \left( g - \hat{x} \,
        \overline{g \hat{x}} \right), \qquad
        \frac{\partial \mathcal{L}}{\partial \gamma} = \sum \frac{\partial \mathcal{L}}{\partial y}
        \hat{x} ,

    where the sum runs over the rows. Source: the chain rule applied to Zhang and Sennrich 2019,
    eq. 4. The sum is always added up in the same order.

    Args:
        grad_output: :math:`\partial \mathcal{L} / \partial y`, with the shape and dtype of `x`.
        x: matrix of shape `(N, H)`, as in `rms_norm_forward`.
        weight: :math:`\gamma`, of shape `(H,)`; ones if None.
        rstd: :math:`r` of each row, as returned by `rms_norm_forward`.

    Returns:
        The gradient of `x`, in its dtype, and that of the weight, of shape `(H,)`, in the dtype of
        `weight` (or of `x`, if there's none).

    Raises:
        ImportError: Triton isn't installed.
        TypeError: an argument has the wrong type.
        RuntimeError: the shapes, dtypes or devices don't match, or `x` is on a device that Triton
            doesn't run on; its subclass NotImplementedError if `x` is not floating-point.

    Example:
        >>> x, rstd = torch.ones(0, 2), torch.ones(0)  # without rows, nothing is launched
        >>> _, grad_weight = rms_norm_backward(x, x, None, rstd)
        >>> grad_weight
        tensor([0., 0.])
    """
    check_rows(x, "rms_norm_backward", weight=weight)
    check_gradient(grad_output, x, "rms_norm_backward")
    check_saved(rstd, "rstd", x, (len(x),), "rms_norm_backward")
    parameter = x if weight is None else weight
    grad_input = torch.empty(x.shape, dtype=stored_dtype(x.dtype), device=x.device)
    if x.numel() == 0:
        zeros = torch.zeros(x.shape[1], dtype=parameter.dtype, device=x.device)
        return grad_input.to(x.dtype), zeros
    check_launch(x, "rms_norm_backward")
    given = (with_dense_rows(grad_output), with_dense_rows(x), weight)
    with on_device_of(x):
        parts = _first_stage(*given, rstd.contiguous(), grad_input)
        (grad_weight,) = add_parts(parts, parameter.dtype)
    return grad_input.to(x.dtype), grad_weight


def _first_stage(
    grad_output: Tensor, x: Tensor, weight: Tensor | None, rstd: Tensor, grad_input: Tensor
) -> Tensor:
    """Fill `grad_input`, and return the sums for the weight over the rows of each program."""
    (rows, width), dtype = x.shape, computing_dtype(x.dtype)
    weight = None if weight is None else weight.contiguous()
    strided = (grad_output, grad_output.stride(0), x, x.stride(0))
    block = block_size(width, dtype, ROW_BYTES)
    stages, warps = backward_options(block, x.dtype) if block else (1, WIDE_WARPS)
    programs = programs_for(x, warps)
    parts = torch.empty(1, programs, width, dtype=dtype, device=x.device)
    given = (*strided, weight, rstd, grad_input)
    sizes = (width, triton_dtype(dtype), block or WIDE_BLOCK)
    if block_size(width, dtype, BACKWARD_ROW_BYTES):
        _backward[(programs,)](*given, parts, rows, *sizes, stages, num_warps=warps)
        return parts
    if block:
        _backward[(rows,)](*given, None, rows, *sizes, 1, num_warps=warps)
    else:
        _backward_wide[(rows,)](*given, *sizes, num_warps=warps)
    wide, grid = (width, triton_dtype(dtype), WIDE_BLOCK), (-(-width // WIDE_BLOCK), programs)
    _parts_of_wide_rows[grid](*strided, rstd, parts, rows, *wide, num_warps=WIDE_WARPS)
    return parts
