"""Time LayerNorm LSTMs with and without compilation: `make measure NAME=practice/cpu_kernel/lstm`.

Each variant runs twice, once as a compiled kernel and once as torch operations. All are timed in
turn, next to PyTorch's LSTM without a norm. Every layer keeps its initial parameters, and the
upstream gradient is random. The upstream gradients of the last states are zero. The backward pass
includes the gradient of the input, except for those marked as a first layer, which doesn't need it.
For comparison, it also times just the layer's matrix products, each done for all steps at once.
"""

from collections.abc import Callable
from functools import partial
from typing import Any
from unittest.mock import patch

import torch
from torch import Tensor, nn

from benchmarks import timing
from lnbook.kernels.cpu import lstm
from lnbook.recurrent import LayerNormLSTM

missing = timing.busy
PROCESSES = 3
ROUNDS = 11  # samples per layer
# Batch, steps, input size, hidden size.
SIZES = [(32, 128, 256, 256), (16, 784, 1, 128), (64, 64, 512, 512)]
VARIANTS = ("per-gate", "ba", "carried")
Call = Callable[[], Any]


def layers(input_size: int, hidden_size: int) -> dict[str, nn.Module]:
    """Return PyTorch's layer, and one of each variant."""
    found: dict[str, nn.Module] = {"nn.LSTM": nn.LSTM(input_size, hidden_size)}
    return found | {
        variant: LayerNormLSTM(input_size, hidden_size, variant=variant, implementation="fused")
        for variant in VARIANTS
    }


def run(layer: nn.Module, x: Tensor, upstream: Tensor | None, *, first: bool = False) -> Any:
    """Run a layer forward, and backward if there's an upstream gradient."""
    with torch.set_grad_enabled(upstream is not None):
        x = x.detach().requires_grad_(upstream is not None and not first)
        y = layer(x)[0]
        inputs = [*layer.parameters()] if first else [x, *layer.parameters()]
        return upstream is not None and torch.autograd.grad(y, inputs, upstream)


def products(rows: Tensor, states: Tensor, weights: tuple[Tensor, Tensor], gates: Tensor) -> None:
    """Multiply as often as a layer does; without `gates`, only as in its forward pass."""
    for a, weight in zip((rows, states), weights, strict=True):
        torch.mm(a, weight.t())
        if len(gates):
            torch.mm(gates.t(), a)
            torch.mm(gates, weight)


def in_operations(call: Call) -> Any:
    """Make a call with the compiled kernel turned off."""
    with patch.object(lstm, "covers", return_value=False):
        return call()


def ways(size: tuple[int, int, int, int], *, backward: bool) -> dict[str, Call]:
    """Return what to time, PyTorch's LSTM first."""
    batch, steps, input_size, hidden_size = size
    x = torch.randn(steps, batch, input_size)
    upstream = torch.randn(steps, batch, hidden_size) if backward else None
    made = layers(input_size, hidden_size)
    calls: dict[str, Call] = {
        name: partial(run, layer, x, upstream) for name, layer in made.items()
    }
    calls |= {f"{v}, torch operations": partial(in_operations, calls[v]) for v in VARIANTS}
    rows, states = x.flatten(0, 1), torch.randn(steps * batch, hidden_size)
    weights = torch.randn(4 * hidden_size, input_size), torch.randn(4 * hidden_size, hidden_size)
    gates = torch.randn(steps * batch if backward else 0, 4 * hidden_size)
    calls["products"] = partial(products, rows, states, weights, gates)
    if backward:
        for name in ("nn.LSTM", "per-gate"):
            calls[f"{name}, first layer"] = partial(run, made[name], x, upstream, first=True)
    return calls


def measure() -> list[dict[str, Any]]:
    """Time all layers, forward alone and with backward, with one and two threads."""
    torch.manual_seed(0)
    found = []
    for count in (1, 2):
        for size in SIZES:
            for passes in ("forward", "forward+backward"):
                with timing.threads(count):
                    calls = ways(size, backward=passes != "forward")
                    timings = timing.compare(calls, ROUNDS)
                print(f"{size}, {count} thread(s), {passes}\n{timing.table(timings)}", flush=True)
                found.append(
                    {"size": list(size), "threads": count, "passes": passes, "timings": timings}
                )
    return found
