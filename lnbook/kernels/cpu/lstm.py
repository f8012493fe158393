r"""A layer of a layer-normalized LSTM as a CPU kernel: the whole time loop in compiled code.

For each step, the kernel computes the products with both matrices, then takes one row after another
through its norms, gates and cell while they are in the processor's nearest cache. In the backward
pass, it goes through the steps in reverse and recomputes the gates from their normalized inputs.
The gradients of the matrices and of the input don't depend on each other from step to step, so
they're left to three large products afterward, which a library computes best.

What makes it fast: there's no call and no pass over memory between the operations of a step;
sigmoid and tanh are vector instructions (`_vector_math`); the matrices are rearranged once per pass
and not once per product (`_products`); threads divide up the rows of the batch and never wait for
each other.

The results are the same to the last bit in each run with the same number of threads. With a
different number, the gradients of the parameters are added up in a different order.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

__all__ = ["Saved", "backward", "covers", "forward"]

KINDS = {"per-gate": 0, "ba": 1, "carried": 2}
BIASES = ("bias_gates", "norm_ih_bias", "norm_hh_bias")
# With fewer multiplications in total, starting another thread takes longer than it saves.
WORTH_A_THREAD = 2**20

Parameters = Mapping[str, Tensor]


class Saved(NamedTuple):
    """What forward computes for backward; each tensor has a row per step and sequence."""

    output: Tensor
    xhat: Tensor  # the input of the gates after the norm
    r: Tensor
    projected: Tensor  # if there are two norms: the projected input after its own norm
    projected_r: Tensor
    cells: Tensor  # before their norm
    mean: Tensor
    cells_r: Tensor


def is_available() -> bool:
    """Return whether Numba is installed."""
    return find_spec("numba") is not None


def covers(variant: str, tensors: Sequence[Tensor]) -> bool:
    """Return whether the kernel can compute a layer of this variant with these tensors.

    It needs ordinary float32 or float64 tensors on a CPU and at least one sequence. Anything
    that watches torch's operations (a dispatch mode, a trace, forward-mode differentiation)
    wouldn't see the kernel, so it isn't used then.
    """
    rows, h = tensors[:2]
    return (
        variant in KINDS
        and rows.device.type == "cpu"
        and rows.dtype in (torch.float32, torch.float64)
        and len(h) > 0
        and all(type(t) in (Tensor, torch.nn.Parameter) and not t.is_neg() for t in tensors)
        and torch._C._len_torch_dispatch_stack() == 0
        and torch.autograd.forward_ad._current_level < 0
        and not torch._C._is_tracing()
    )


def forward(
    variant: str,
    batch_sizes: Sequence[int],
    eps: float,
    rows: Tensor,
    h: Tensor,
    c: Tensor,
    parameters: Parameters,
    keeps: bool,
) -> tuple[tuple[Tensor, Tensor, Tensor], Saved]:
    """Run a layer over its sequences.

    Args:
        variant: "ba", "per-gate" or "carried".
        batch_sizes: number of rows at each time step, never increasing.
        eps: value added to each variance.
        rows: inputs of shape `(sum(batch_sizes), input_size)`, float32 or float64.
        h: initial hidden states, of shape `(batch_sizes[0], hidden_size)`.
        c: initial cell states, like `h`.
        parameters: tensors by name, as in `lnbook.recurrent.LayerNormLSTMCell`.
        keeps: whether to save what backward needs.

    Returns:
        The hidden states of all steps and the last states, and what was saved.
    """
    size, count = h.shape[1], len(rows)
    kept, joint = count if keeps else 0, variant != "per-gate"

    def new(*shape: int) -> Tensor:
        return rows.new_empty(shape)

    saved = Saved(
        new(count, size),
        new(kept, 4 * size),
        new(kept, 4),
        new(kept if joint else 0, 4 * size),
        new(kept if joint else 0),
        new(kept, size),
        new(kept),
        new(kept),
    )
    h_n, c_n = torch.empty_like(h, memory_format=torch.contiguous_format), new(*h.shape)
    weights = [_in_panels(parameters[name].t()) for name in ("weight_ih", "weight_hh")]
    layer = _layer(variant, batch_sizes, rows, h, c, parameters)
    _run("forward", variant, eps, layer, [*saved, *weights, h_n, c_n], keeps, 0)
    return (saved.output, h_n, c_n), saved


def backward(
    variant: str,
    batch_sizes: Sequence[int],
    eps: float,
    inputs: Parameters,
    saved: Saved,
    upstream: Sequence[Tensor],
) -> tuple[dict[str, Tensor], Tensor, Tensor]:
    """Go back through a layer, up to its products with the matrices.

    Args:
        variant: as for `forward`.
        batch_sizes: as for `forward`.
        eps: as for `forward`.
        inputs: "rows", "h", "c" and the parameters, by name.
        saved: what `forward` saved.
        upstream: gradients of the output and of the last states.

    Returns:
        The gradients of "h", "c", the gains and the biases, by name, and for all rows those of
        the products with `weight_hh` and with `weight_ih`. If one norm follows the sum of both
        products, that's the same tensor twice.
    """
    rows, h = inputs["rows"], inputs["h"]
    size, width, joint = h.shape[1], 4 * h.shape[1], variant != "per-gate"
    layer = _layer(variant, batch_sizes, rows, h, inputs["c"], inputs)
    # If their spacing were a power of two, rows would evict each other from the cache.
    summed = rows.new_empty(len(rows), width + _panel(rows.dtype) // 2)
    projected = torch.empty_like(summed) if joint else summed
    found = [
        rows.new_empty(h.shape),
        rows.new_empty(h.shape),
        summed,
        projected,
        rows.new_zeros((_pieces(rows, h), 18 * size), dtype=torch.float64),
    ]
    given = [gradient.contiguous() for gradient in upstream]
    tensors = [*saved, _in_panels(inputs["weight_hh"]), *given, *found]
    _run("backward", variant, eps, layer, tensors, True, summed.stride(0))
    grads = _gains_and_biases(variant, found[-1].sum(0).to(rows.dtype), width)
    return grads | {"h": found[0], "c": found[1]}, summed[:, :width], projected[:, :width]


def _gains_and_biases(variant: str, sums: Tensor, width: int) -> dict[str, Tensor]:
    gain, shift, input_gain, _ = sums[: 4 * width].view(4, width)
    cell_gain, cell_shift = sums[4 * width :].view(2, -1)
    grads = {"norm_c_weight": cell_gain.clone(), "norm_c_bias": cell_shift.clone()}
    if variant == "per-gate":
        return grads | {"norm_gates_weight": gain.clone(), "norm_gates_bias": shift.clone()}
    grads |= {"norm_hh_weight": gain.clone(), "norm_ih_weight": input_gain.clone()}
    return grads | {name: shift.clone() for name in BIASES}


def _layer(
    variant: str,
    batch_sizes: Sequence[int],
    rows: Tensor,
    h: Tensor,
    c: Tensor,
    parameters: Parameters,
) -> list[Tensor]:
    """Return the tensors that both jobs read, in the order of `_lstm_jobs.Layer`."""
    size = h.shape[1]
    starts = torch.from_numpy(np.concatenate([[0], np.cumsum(batch_sizes)]).astype(np.int64))
    zeros = rows.new_zeros(4 * size)
    if variant == "per-gate":
        gain, input_gain = parameters["norm_gates_weight"], zeros
        shift = parameters.get("norm_gates_bias", zeros)
    else:
        gain, input_gain = parameters["norm_hh_weight"], parameters["norm_ih_weight"]
        shift = sum((parameters[name] for name in BIASES if name in parameters), start=zeros)
    cell_gain = parameters["norm_c_weight"]
    cell_shift = parameters.get("norm_c_bias", zeros[:size])
    given = [starts, rows, h, c, gain, shift, input_gain, cell_gain, cell_shift]
    return [tensor.detach().contiguous() for tensor in given]


def _in_panels(matrix: Tensor) -> Tensor:
    """Return a matrix cut into panels of columns, each contiguous in memory."""
    width = _panel(matrix.dtype)
    missing = -matrix.shape[1] % width
    padded = functional.pad(matrix.detach(), (0, missing)) if missing else matrix.detach()
    panels: Tensor = padded.unflatten(1, (-1, width)).transpose(0, 1)
    return panels.contiguous()


def _pieces(rows: Tensor, h: Tensor) -> int:
    """Return how many threads share the batch, in groups of eight sequences for each product."""
    batch, size = h.shape
    work = len(rows) * 4 * size * (size + rows.shape[1])
    return 1 if work < WORTH_A_THREAD else min(torch.get_num_threads(), (batch + 7) // 8)


def _run(
    way: str,
    variant: str,
    eps: float,
    layer: Sequence[Tensor],
    tensors: Sequence[Tensor],
    keeps: bool,
    line: int,
) -> None:
    from lnbook.kernels.cpu import _compile

    starts, rows, h = layer[:3]
    pieces = _pieces(rows, h)
    sizes = (pieces, len(starts) - 1, *h.shape[:1], rows.shape[1], h.shape[1], KINDS[variant])
    addresses = [tensor.data_ptr() for tensor in (*layer, *tensors)]
    numbers = (0, *sizes, int(keeps), line, _compile.bits(eps), *addresses)
    _compile.run(_job(way, rows.dtype), numbers, pieces)


@cache
def _job(way: str, dtype: torch.dtype) -> Callable[[Any], None]:
    from lnbook.kernels.cpu import _lstm_jobs

    one = np.float32(1) if dtype == torch.float32 else np.float64(1)
    jobs: Any = {"forward": _lstm_jobs.forward_job, "backward": _lstm_jobs.backward_job}
    job: Callable[[Any], None] = jobs[way](one)
    return job


@cache
def _panel(dtype: torch.dtype) -> int:
    """Return how many columns a panel has."""
    from lnbook.kernels.cpu import _products

    return _products.width_in_bytes() // dtype.itemsize
