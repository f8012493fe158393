"""The chapter's measurements, as functions that return plain numbers."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor, nn

from lnbook.training import initialize_
from lnbook.transformer import PreLNBlock

__all__ = [
    "ORDERS",
    "growing_stack",
    "half_constants",
    "layer_norm_in_order",
    "sum_errors",
    "tolerances",
]

Array = NDArray[np.float64]
Single = NDArray[np.float32]
U32 = 2.0**-24  # the unit roundoff of float32


def growing_stack(rng: np.random.Generator, factor: float = 4.0) -> nn.Sequential:
    """Return eight Pre-LN blocks, each of which writes larger numbers than the one before.

    Args:
        rng: draws the weights.
        factor: the factor by which the branches of a block are larger than those of the previous
            one.

    Returns:
        Blocks of width 32 in evaluation mode, in float32.

    Example:
        >>> stack = growing_stack(np.random.default_rng(0))
        >>> len(stack), stack(torch.ones(1, 2, 32)).shape
        (8, torch.Size([1, 2, 32]))
    """
    blocks = [PreLNBlock(32, 4, 64, dropout=0.0) for _ in range(8)]
    stack = initialize_(nn.Sequential(*blocks), rng).eval()
    with torch.no_grad():
        for number, block in enumerate(blocks):
            for linear in (block.self_attn.out_proj, block.linear2):
                linear.weight.mul_(12 * factor**number)
    return stack


def _one_by_one(x: Single) -> Single:
    total: Single = np.cumsum(x, axis=-1, dtype=np.float32)[..., -1]
    return total


def _in_lanes(x: Single, lanes: int = 16) -> Single:
    parts = x.reshape(*x.shape[:-1], -1, lanes)
    return _in_pairs(np.cumsum(parts, axis=-2, dtype=np.float32)[..., -1, :])


def _in_pairs(x: Single) -> Single:
    while x.shape[-1] > 1:
        if x.shape[-1] % 2:  # a last number without a neighbor is paired with 0
            x = np.concatenate([x, np.zeros_like(x[..., :1])], axis=-1)
        x = x[..., ::2] + x[..., 1::2]
    return x[..., 0]


#: Three orders for adding the numbers in a row in float32. They round the same way everywhere:
#: one by one; in 16 partial sums that are then added in pairs; and neighbors first, then their
#: sums, and so on.
ORDERS: dict[str, Callable[[Single], Single]] = {
    "one by one": _one_by_one,
    "16 lanes": _in_lanes,
    "pairs": _in_pairs,
}


def sum_errors(lengths: ArrayLike, rows: int, rng: np.random.Generator) -> dict[str, Array]:
    r"""Return the rounding errors of sums for each order of addition.

    The numbers are uniform between 0 and 1, in float32. The exact sum is computed in float64.

    Args:
        lengths: how many numbers are in a sum, shape `(K,)`; multiples of 16.
        rows: how many sums to compute for each length.
        rng: draws the numbers.

    Returns:
        For each of `ORDERS`, the largest error, relative to the sum and in units of
        :math:`u = 2^{-24}`, shape `(K,)`.

    Example:
        >>> errors = sum_errors([64, 4096], 20, np.random.default_rng(0))
        >>> bool(errors["pairs"][1] < errors["one by one"][1])
        True
    """
    errors: dict[str, list[float]] = {name: [] for name in ORDERS}
    for n in np.asarray(lengths, dtype=int):
        x = rng.random((rows, n)).astype(np.float32)
        exact = np.cumsum(x, axis=-1, dtype=np.float64)[..., -1]
        for name, add in ORDERS.items():
            wrong = np.abs(add(x).astype(np.float64) - exact) / exact
            errors[name].append(float(wrong.max()) / U32)
    return {name: np.array(values) for name, values in errors.items()}


def layer_norm_in_order(x: Tensor, order: str, eps: float = 1e-5, ddof: int = 0) -> Tensor:
    r"""Compute LayerNorm in float32 with a given order of addition, as on a different machine.

    .. math::
        y = \frac{x - \mu}{\sqrt{v + \epsilon}}

    Args:
        x: the rows in float32, of shape `(*, H)`.
        order: one of `ORDERS`; "16 lanes" needs H to be a multiple of 16.
        eps: added to the variance.
        ddof: 0 for the biased variance, 1 for the unbiased one (a bug, in LayerNorm).

    Returns:
        The normalized rows, without gamma and beta.

    Example:
        >>> layer_norm_in_order(torch.tensor([[1.0, 2.0, 3.0, 4.0]]), "pairs")
        tensor([[-1.3416, -0.4472,  0.4472,  1.3416]])
    """
    rows: Single = x.numpy()
    add, n = ORDERS[order], rows.shape[-1]
    deviations = rows - (add(rows) / np.float32(n))[..., None]
    variance = add(deviations * deviations) / np.float32(n - ddof)
    return torch.from_numpy(deviations / np.sqrt(variance + np.float32(eps))[..., None])


def tolerances(
    x: Tensor, eps: float = 1e-5, dtype: torch.dtype = torch.float32, steps: float | None = None
) -> tuple[float, float]:
    r"""Return the tolerances within which two LayerNorms of the same rows should agree.

    .. math::
        |\Delta y| \le \underbrace{2 k u \, \max
            \frac{\overline{|x|}}{\sqrt{v + \epsilon}}}_{\text{atol}}
            + \underbrace{2 \left(\left(\tfrac{k}{2} + 6\right) u + u'\right)}_{\text{rtol}} |y|

    with the unit roundoff :math:`u` of float32 (of float64 for rows in float64), the unit roundoff
    :math:`u'` of the output's dtype, and :math:`k` roundings per number in a sum. The tolerances
    hold for :math:`\gamma = 1` and :math:`\beta = 0`.

    Args:
        x: the rows, of shape `(*, H)`.
        eps: the layer's epsilon.
        dtype: the dtype of the output.
        steps: :math:`k`; H if None, which no order of addition exceeds.

    Returns:
        atol and rtol, the part that doesn't depend on the output and the part relative to it.

    Example:
        >>> atol, rtol = tolerances(torch.tensor([[1.0, 2.0, 3.0, 4.0]]))
        >>> f"{atol:.1e} {rtol:.1e}"
        '1.1e-06 1.1e-06'
    """
    rows = x.double()
    u = torch.finfo(torch.float64 if x.dtype == torch.float64 else torch.float32).eps / 2
    k = x.shape[-1] if steps is None else steps
    scale = torch.sqrt(rows.var(-1, correction=0) + eps)
    offset = float((rows.abs().mean(-1) / scale).max())
    return 2 * k * u * offset, 2 * ((k / 2 + 6) * u + torch.finfo(dtype).eps / 2)


def half_constants(model: Any) -> Any:
    """Convert an ONNX model to float16 without regard to what the numbers mean.

    Args:
        model: an ONNX model in float32.

    Returns:
        A copy in which every float32 tensor, input and output is float16. Constants below the
        smallest float16 become 0.

    Example:
        >>> import onnx
        >>> a, b = (onnx.helper.make_tensor_value_info(n, 1, [2]) for n in "ab")
        >>> eps = onnx.numpy_helper.from_array(np.float32(1e-12), "eps")
        >>> graph = onnx.helper.make_graph(
        ...     [onnx.helper.make_node("Add", ["a", "eps"], ["b"])], "add", [a], [b], [eps])
        >>> half = half_constants(onnx.helper.make_model(graph))
        >>> float(onnx.numpy_helper.to_array(half.graph.initializer[0]))
        0.0
    """
    import onnx
    from onnx import TensorProto, numpy_helper

    half = copy.deepcopy(model)

    def convert(tensor: Any) -> None:
        if tensor.data_type == TensorProto.FLOAT:
            values = numpy_helper.to_array(tensor).astype(np.float16)
            tensor.CopyFrom(numpy_helper.from_array(values, tensor.name))

    for tensor in half.graph.initializer:
        convert(tensor)
    for node in half.graph.node:
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.TENSOR:
                convert(attribute.t)
    for value in (*half.graph.input, *half.graph.output, *half.graph.value_info):
        if value.type.tensor_type.elem_type == TensorProto.FLOAT:
            value.type.tensor_type.elem_type = TensorProto.FLOAT16
    return half
