r"""LayerNorm in Triton: one program per row forward, several rows per program backward.

Notation: :math:`H` is the width of a row, :math:`r = (\sigma^2 + \epsilon)^{-1/2}`, and
:math:`\hat{x} = r (x - \mu)`. Every kernel centers a row twice, as `lnbook.functional.layer_norm`
does, so rows with a large mean keep their digits and constant rows become exactly 0. The forward
pass saves three numbers per row: the mean, its rounding error (the mean of the centered row), and
:math:`r`.
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
from lnbook.kernels.gpu._parts import add_parts, average, inverse_root, load_row, two_averages

__all__ = ["layer_norm_backward", "layer_norm_forward"]


@kernel
def _scale_and_shift(
    xhat: tl.tensor,
    weight: tl.tensor,
    bias: tl.tensor,
    columns: tl.tensor,
    width: tl.constexpr,
    computing: tl.constexpr,
) -> tl.tensor:
    y = xhat
    if weight is not None:
        y *= load_row(weight, columns, width, computing)
    if bias is not None:
        y += load_row(bias, columns, width, computing)
    return y


@kernel
def _save(statistics: tl.tensor, mean: tl.tensor, rest: tl.tensor, r: tl.tensor) -> None:
    rows = tl.num_programs(0).to(tl.int64)  # the grid has one program per row
    tl.store(statistics, mean)
    tl.store(statistics + rows, rest)
    tl.store(statistics + 2 * rows, r)


@kernel
def _forward(
    x: tl.tensor,
    x_stride: tl.tensor,
    weight: tl.tensor,
    bias: tl.tensor,
    y: tl.tensor,
    statistics: tl.tensor,
    eps: tl.constexpr,
    width: tl.constexpr,
    computing: tl.constexpr,
    block: tl.constexpr,
) -> None:
    """Normalize one row. Between its load and its store, the row stays in registers."""
    row = tl.program_id(0).to(tl.int64)  # 32 bits would overflow at two billion elements
    columns = tl.arange(0, block)
    inside = columns < width
    values = load_row(x + row * x_stride, columns, width, computing)
    center = average(values, width)
    values = tl.where(inside, values - center, 0.0)
    rest = average(values, width)
    values = tl.where(inside, values - rest, 0.0)
    r = inverse_root(average(values * values, width) + eps)
    _save(statistics + row, center, rest, r)
    result = _scale_and_shift(values * r, weight, bias, columns, width, computing)
    tl.store(y + row * width + columns, result, mask=inside)


@kernel
def _forward_wide(
    x: tl.tensor,
    x_stride: tl.tensor,
    weight: tl.tensor,
    bias: tl.tensor,
    y: tl.tensor,
    statistics: tl.tensor,
    eps: tl.constexpr,
    width: tl.constexpr,
    computing: tl.constexpr,
    block: tl.constexpr,
) -> None:
    """Normalize one row that doesn't fit in the registers, in four sweeps over its blocks."""
    row = tl.program_id(0).to(tl.int64)
    x += row * x_stride
    total = tl.zeros((block,), computing)
    for first in range(0, width, block):
        total += load_row(x, first + tl.arange(0, block), width, computing)
    center = average(total, width)

    total = tl.zeros((block,), computing)
    for first in range(0, width, block):
        columns = first + tl.arange(0, block)
        values = load_row(x, columns, width, computing) - center
        total += tl.where(columns < width, values, 0.0)
    rest = average(total, width)

    total = tl.zeros((block,), computing)
    for first in range(0, width, block):
        columns = first + tl.arange(0, block)
        values = load_row(x, columns, width, computing) - center - rest
        total += tl.where(columns < width, values * values, 0.0)
    r = inverse_root(average(total, width) + eps)

    for first in range(0, width, block):
        columns = first + tl.arange(0, block)
        xhat = (load_row(x, columns, width, computing) - center - rest) * r
        result = _scale_and_shift(xhat, weight, bias, columns, width, computing)
        tl.store(y + row * width + columns, result, mask=columns < width)
    _save(statistics + row, center, rest, r)


@kernel
def _normalized(
    values: tl.tensor, statistics: tl.tensor, rows: tl.tensor, inside: tl.tensor
) -> tuple[tl.tensor, tl.tensor]:
    """Return xhat of a row from its saved statistics, with 0 outside the row, and r."""
    mean = tl.load(statistics)
    statistics += rows
    rest = tl.load(statistics)
    statistics += rows  # two steps, because 2 * rows could overflow 32 bits
    r = tl.load(statistics)
    centered = values - mean - rest
    return tl.where(inside, centered * r, 0.0), r


@kernel
def _backward(
    grad_output: tl.tensor,
    grad_stride: tl.tensor,
    x: tl.tensor,
    x_stride: tl.tensor,
    weight: tl.tensor,
    statistics: tl.tensor,
    grad_input: tl.tensor,
    parts: tl.tensor,
    rows: tl.tensor,
    width: tl.constexpr,
    computing: tl.constexpr,
    block: tl.constexpr,
    stages: tl.constexpr,
) -> None:
    """Write dx for some rows, and, if there are `parts`, those rows' sums for weight and bias."""
    program = tl.program_id(0).to(tl.int64)
    programs = tl.num_programs(0)
    columns = tl.arange(0, block)
    inside = columns < width
    gamma = tl.full((block,), 1.0, computing)
    if weight is not None:
        gamma = load_row(weight, columns, width, computing)
    grad_weight = tl.zeros((block,), computing)
    grad_bias = tl.zeros((block,), computing)
    for row in tl.range(program, rows, programs, num_stages=stages):
        dy = load_row(grad_output + row * grad_stride, columns, width, computing)
        values = load_row(x + row * x_stride, columns, width, computing)
        xhat, r = _normalized(values, statistics + row, rows, inside)
        g = gamma * dy
        mean_g, mean_g_xhat = two_averages(g, g * xhat, width)
        dx = r * (g - mean_g - xhat * mean_g_xhat)
        tl.store(grad_input + row * width + columns, dx, mask=inside)
        if parts is not None:
            grad_weight += dy * xhat
            grad_bias += dy
    if parts is not None:
        tl.store(parts + program * width + columns, grad_weight, mask=inside)
        tl.store(parts + (programs + program) * width + columns, grad_bias, mask=inside)


@kernel
def _backward_wide(
    grad_output: tl.tensor,
    grad_stride: tl.tensor,
    x: tl.tensor,
    x_stride: tl.tensor,
    weight: tl.tensor,
    statistics: tl.tensor,
    grad_input: tl.tensor,
    width: tl.constexpr,
    computing: tl.constexpr,
    block: tl.constexpr,
) -> None:
    """Write the gradient of one row that doesn't fit in the registers, in two sweeps."""
    row, rows = tl.program_id(0).to(tl.int64), tl.num_programs(0)
    grad_output += row * grad_stride
    x += row * x_stride
    sum_g = tl.zeros((block,), computing)
    sum_g_xhat = tl.zeros((block,), computing)
    for first in range(0, width, block):
        columns = first + tl.arange(0, block)
        g = load_row(grad_output, columns, width, computing)
        if weight is not None:
            g *= load_row(weight, columns, width, computing)
        values = load_row(x, columns, width, computing)
        xhat, _ = _normalized(values, statistics + row, rows, columns < width)
        sum_g += g
        sum_g_xhat += g * xhat
    mean_g, mean_g_xhat = two_averages(sum_g, sum_g_xhat, width)

    for first in range(0, width, block):
        columns = first + tl.arange(0, block)
        g = load_row(grad_output, columns, width, computing)
        if weight is not None:
            g *= load_row(weight, columns, width, computing)
        values = load_row(x, columns, width, computing)
        xhat, r = _normalized(values, statistics + row, rows, columns < width)
        dx = r * (g - mean_g - xhat * mean_g_xhat)
        tl.store(grad_input + row * width + columns, dx, mask=columns < width)


@kernel
def _parts_of_wide_rows(
    grad_output: tl.tensor,
    grad_stride: tl.tensor,
    x: tl.tensor,
    x_stride: tl.tensor,
    statistics: tl.tensor,
    parts: tl.tensor,
    rows: tl.tensor,
    width: tl.constexpr,
    computing: tl.constexpr,
    block: tl.constexpr,
) -> None:
    """Add up the gradients of weight and bias over some rows, for one block of columns."""
    program = tl.program_id(1).to(tl.int64)
    programs = tl.num_programs(1)
    columns = tl.program_id(0) * block + tl.arange(0, block)
    inside = columns < width
    grad_weight = tl.zeros((block,), computing)
    grad_bias = tl.zeros((block,), computing)
    for row in range(program, rows, programs):
        dy = load_row(grad_output + row * grad_stride, columns, width, computing)
        values = load_row(x + row * x_stride, columns, width, computing)
        xhat, _ = _normalized(values, statistics + row, rows, inside)
        grad_weight += dy * xhat
        grad_bias += dy
    tl.store(parts + program * width + columns, grad_weight, mask=inside)
    tl.store(parts + (programs + program) * width + columns, grad_bias, mask=inside)


def layer_norm_forward(
    x: Tensor, weight: Tensor | None, bias: Tensor | None, eps: float
) -> tuple[Tensor, Tensor]:
    r"""Normalize each row of a matrix, and return what the backward pass needs.

    .. math::
        y_i = \gamma_i \hat{x}_i + \beta_i, \qquad \hat{x}_i = \frac{x_i - \mu}
        {\sqrt{\sigma^2 + \epsilon}}

    Source: Ba, Kiros and Hinton 2016, eq. 3; values and special cases are the same as
    for `lnbook.functional.layer_norm`. The row is read once and written once if it fits in
    registers (16384 elements, or 8192 in float64).

    Args:
        x: matrix of shape `(N, H)`, float16, bfloat16, float32 or float64, on a CUDA device.
        weight: :math:`\gamma`, of shape `(H,)`; ones if None. Has the dtype of `x`, or float32 for
            a float16 or bfloat16 `x`.
        bias: :math:`\beta`, of shape `(H,)`; zeros if None. Has the dtype of `weight`.
        eps: value added to the variance, finite and at least 0.

    Returns:
        y, with the shape and dtype of `x`; and the statistics of shape `(3, N)`, in float32, or
        float64 for a float64 `x`: the mean of each row, its rounding error, and :math:`r`.

    Raises:
        ImportError: Triton isn't installed.
        TypeError: an argument has the wrong type.
        RuntimeError: the shapes, dtypes or devices don't match, or `x` is on a device that Triton
            doesn't run on; its subclass NotImplementedError if `x` is not floating-point.
        ValueError: `eps` is negative, infinite or NaN.

    On a GPU::

        y, statistics = layer_norm_forward(x, weight, bias, 1e-5)
        grads = layer_norm_backward(grad_output, x, weight, statistics)

    Example:
        >>> x = torch.ones(0, 768)  # without rows, nothing is launched
        >>> [one.shape for one in layer_norm_forward(x, None, None, 1e-5)]
        [torch.Size([0, 768]), torch.Size([3, 0])]
    """
    check_rows(x, "layer_norm_forward", weight=weight, bias=bias)
    eps = checked_eps(eps, "layer_norm_forward")
    x, dtype = with_dense_rows(x), computing_dtype(x.dtype)
    rows, width = x.shape
    y = torch.empty(rows, width, dtype=stored_dtype(x.dtype), device=x.device)
    statistics = torch.empty(3, rows, dtype=dtype, device=x.device)
    if x.numel() == 0:
        return y.to(x.dtype), statistics.fill_(torch.nan)
    check_launch(x, "layer_norm_forward")
    pointers = (None if one is None else one.contiguous() for one in (weight, bias))
    block = block_size(width, dtype, ROW_BYTES)
    run = _forward if block else _forward_wide
    options = forward_options(block, dtype) if block else {"num_warps": WIDE_WARPS}
    sizes = (width, triton_dtype(dtype), block or WIDE_BLOCK)
    with on_device_of(x):
        run[(rows,)](x, x.stride(0), *pointers, y, statistics, eps, *sizes, **options)
    return y.to(x.dtype), statistics


def layer_norm_backward(
    grad_output: Tensor, x: Tensor, weight: Tensor | None, statistics: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    r"""Return the gradients of a loss with respect to x, weight and bias.

    With :math:`g = \gamma \, \partial \mathcal{L} / \partial y` and means over a row,

    .. math::
        \frac{\partial \mathcal{L}}{\partial x} = r \left( g - \overline{g} - \hat{x} \,
        \overline{g \hat{x}} \right), \qquad
        \frac{\partial \mathcal{L}}{\partial \gamma} = \sum \frac{\partial \mathcal{L}}{\partial y}
        \hat{x}, \qquad
        \frac{\partial \mathcal{L}}{\partial \beta} = \sum \frac{\partial \mathcal{L}}{\partial y} ,

    where the two sums run over the rows. Source: the chain rule applied to Ba, Kiros and Hinton
    2016, eq. 3. The sums are always added up in the same order, so the result is the same each time
    on the same device.

    Args:
        grad_output: :math:`\partial \mathcal{L} / \partial y`, with the shape and dtype of `x`.
        x: matrix of shape `(N, H)`, as in `layer_norm_forward`.
        weight: :math:`\gamma`, of shape `(H,)`; ones if None.
        statistics: of shape `(3, N)`, as returned by `layer_norm_forward`.

    Returns:
        The gradient of `x`, in its dtype, and those of weight and bias, of shape `(H,)`, in the
        dtype of `weight` (or of `x`, if there's none).

    Raises:
        ImportError: Triton isn't installed.
        TypeError: an argument has the wrong type.
        RuntimeError: the shapes, dtypes or devices don't match, or `x` is on a device that Triton
            doesn't run on; its subclass NotImplementedError if `x` is not floating-point.

    Example:
        >>> x, statistics = torch.ones(0, 2), torch.ones(3, 0)  # without rows, nothing is launched
        >>> _, grad_weight, grad_bias = layer_norm_backward(x, x, None, statistics)
        >>> grad_weight
        tensor([0., 0.])
    """
    check_rows(x, "layer_norm_backward", weight=weight)
    check_gradient(grad_output, x, "layer_norm_backward")
    check_saved(statistics, "statistics", x, (3, len(x)), "layer_norm_backward")
    parameter = x if weight is None else weight
    grad_input = torch.empty(x.shape, dtype=stored_dtype(x.dtype), device=x.device)
    if x.numel() == 0:
        zeros = torch.zeros(x.shape[1], dtype=parameter.dtype, device=x.device)
        return grad_input.to(x.dtype), zeros, zeros.clone()
    check_launch(x, "layer_norm_backward")
    given = (with_dense_rows(grad_output), with_dense_rows(x), weight)
    with on_device_of(x):
        parts = _first_stage(*given, statistics.contiguous(), grad_input)
        grad_weight, grad_bias = add_parts(parts, parameter.dtype)
    return grad_input.to(x.dtype), grad_weight, grad_bias


def _first_stage(
    grad_output: Tensor, x: Tensor, weight: Tensor | None, statistics: Tensor, grad_input: Tensor
) -> Tensor:
    """Fill `grad_input`, and return the sums for weight and bias over the rows of each program."""
    (rows, width), dtype = x.shape, computing_dtype(x.dtype)
    weight = None if weight is None else weight.contiguous()
    strided = (grad_output, grad_output.stride(0), x, x.stride(0))
    block = block_size(width, dtype, ROW_BYTES)
    stages, warps = backward_options(block, x.dtype) if block else (1, WIDE_WARPS)
    programs = programs_for(x, warps)
    parts = torch.empty(2, programs, width, dtype=dtype, device=x.device)
    given = (*strided, weight, statistics, grad_input)
    sizes = (width, triton_dtype(dtype), block or WIDE_BLOCK)
    if block_size(width, dtype, BACKWARD_ROW_BYTES):
        _backward[(programs,)](*given, parts, rows, *sizes, stages, num_warps=warps)
        return parts
    if block:
        _backward[(rows,)](*given, None, rows, *sizes, 1, num_warps=warps)
    else:
        _backward_wide[(rows,)](*given, *sizes, num_warps=warps)
    wide, grid = (width, triton_dtype(dtype), WIDE_BLOCK), (-(-width // WIDE_BLOCK), programs)
    _parts_of_wide_rows[grid](*strided, statistics, parts, rows, *wide, num_warps=WIDE_WARPS)
    return parts
