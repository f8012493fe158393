"""Compare each step toward a fast layer-normalized LSTM with `nn.LSTM`.

`make measure NAME=practice/speed/recurrent`. The steps are the ones in the chapter on speed; each
one builds on the ones before it. "lnbook" is the package's own layer in torch operations, with a
norm for each gate; its other variants follow. (`practice/cpu_kernel/lstm` times its kernel.) "one
chunk" is "lnbook" with the local derivatives of all steps computed at once, as in the last step.
Every variant keeps its initial parameters, and the upstream gradient is random. With gradients, all
of them compute those of the parameters and of the input. All of them are timed in turn.
"""

import sys
from collections.abc import Callable
from functools import partial
from typing import Any
from unittest.mock import patch

import torch
from torch import Tensor, nn

from benchmarks import timing
from lnbook.chapters.practice.speed import experiments
from lnbook.kernels.cpu import lstm
from lnbook.recurrent import LayerNormLSTM, _backward

PROCESSES = 3
ROUNDS = 11  # samples per layer
# Batch, steps, input size, hidden size.
SIZES = [(32, 128, 256, 256), (16, 784, 1, 128), (64, 64, 512, 512)]
VARIANTS = {"lnbook": "per-gate", "ba": "ba", "carried": "carried", "no norm": "none"}
Way = tuple[Callable[[], Tensor], list[Tensor]]


def ways(batch: int, steps: int, input_size: int, hidden_size: int) -> dict[str, Way]:
    """Return each layer, with the tensors to differentiate with respect to."""
    x = torch.randn(steps, batch, input_size, requires_grad=True)
    p = {
        name: nn.Parameter(value.float())
        for name, value in experiments.lstm_parameters(input_size, hidden_size).items()
    }
    layers: dict[str, nn.Module] = {"nn.LSTM": nn.LSTM(input_size, hidden_size)}
    for name, variant in VARIANTS.items():
        layers[name] = LayerNormLSTM(input_size, hidden_size, variant=variant)
    found: dict[str, Way] = {
        name: (partial(_outputs, layer, x), [x, *layer.parameters()])
        for name, layer in layers.items()
    }
    return found | {
        name: (partial(step, x, p), [x, *p.values()])
        for name, step in experiments.LSTM_STEPS.items()
    }


def _outputs(layer: nn.Module, x: Tensor) -> Tensor:
    y: Tensor = layer(x)[0]
    return y


def times(size: tuple[int, int, int, int], threads: int) -> list[dict[str, Any]]:
    """Time all layers of one size with and without gradients, and print the times."""
    torch.manual_seed(0)
    with timing.threads(threads):
        layers = ways(*size)
        upstream = torch.randn_like(layers["nn.LSTM"][0]())

        def with_gradients(call: Callable[[], Tensor], given: list[Tensor]) -> Any:
            return lambda: torch.autograd.grad(call(), given, upstream)

        def in_one_chunk() -> Any:
            with patch.object(_backward, "CHUNK_ELEMENTS", sys.maxsize):
                return with_gradients(*layers["lnbook"])()

        both = {name: with_gradients(*way) for name, way in layers.items()}
        kinds: dict[str, dict[str, Callable[[], Any]]] = {
            "forward": {name: call for name, (call, _) in layers.items()},
            "forward+backward": both | {"one chunk": in_one_chunk},
        }
        measurements = []
        for passes, calls in kinds.items():
            with torch.set_grad_enabled(passes != "forward"):
                timings = timing.compare(calls, ROUNDS)
            print(f"\n{size}, {passes}, threads {threads}\n{timing.table(timings)}", flush=True)
            found = {"size": list(size), "passes": passes, "threads": threads}
            measurements.append(found | {"timings": timings})
    return measurements


def measure() -> list[dict[str, Any]]:
    """Return the times of all layers at all sizes, on one core and on two."""
    with patch.object(lstm, "covers", return_value=False):
        return [found for threads in (1, 2) for size in SIZES for found in times(size, threads)]
