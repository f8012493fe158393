"""The steps to a fast layer-normalized LSTM against `nn.LSTM`: `python -m benchmarks.recurrent`.

The steps are those of the chapter on speed (`lnbook.experiments.speed`), each of them with those
before it; "lnbook" is the package's own layer, with a norm for each gate; then come its other
variants. Every variant has its first parameters, and the upstream gradient is random. All of them
are timed in turn.
"""

import argparse
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from benchmarks import timing
from lnbook.experiments import speed
from lnbook.recurrent import LayerNormLSTM

# Batch, steps, input size, hidden size.
SIZES = [(32, 128, 256, 256), (16, 784, 1, 128), (64, 64, 512, 512)]
VARIANTS = {"lnbook": "per-gate", "ba": "ba", "carried": "carried", "no norm": "none"}
Way = tuple[Callable[[], Tensor], list[nn.Parameter]]


def ways(batch: int, steps: int, input_size: int, hidden_size: int) -> dict[str, Way]:
    """Return each layer, with the tensors to differentiate by."""
    x = torch.randn(steps, batch, input_size)
    p = {
        name: nn.Parameter(value.float())
        for name, value in speed.lstm_parameters(input_size, hidden_size).items()
    }
    layers: dict[str, nn.Module] = {"nn.LSTM": nn.LSTM(input_size, hidden_size)}
    for name, variant in VARIANTS.items():
        layers[name] = LayerNormLSTM(input_size, hidden_size, variant=variant)
    found: dict[str, Way] = {
        name: (partial(_outputs, layer, x), list(layer.parameters()))
        for name, layer in layers.items()
    }
    return found | {
        name: (partial(step, x, p), list(p.values())) for name, step in speed.LSTM_STEPS.items()
    }


def _outputs(layer: nn.Module, x: Tensor) -> Tensor:
    y: Tensor = layer(x)[0]
    return y


def measure(size: tuple[int, int, int, int], threads: int, rounds: int) -> list[dict[str, Any]]:
    """Time all layers of one size, without the gradients and with them, and print it."""
    torch.manual_seed(0)
    with timing.threads(threads):
        layers = ways(*size)
        upstream = torch.randn_like(layers["nn.LSTM"][0]())

        def with_gradients(call: Callable[[], Tensor], given: list[nn.Parameter]) -> Any:
            return lambda: torch.autograd.grad(call(), given, upstream)

        kinds: dict[str, dict[str, Callable[[], Any]]] = {
            "forward": {name: call for name, (call, _) in layers.items()},
            "forward+backward": {name: with_gradients(*way) for name, way in layers.items()},
        }
        measurements = []
        for passes, calls in kinds.items():
            with torch.set_grad_enabled(passes != "forward"):
                timings = timing.compare(calls, rounds)
            print(f"\n{size}, {passes}, threads {threads}\n{timing.table(timings)}", flush=True)
            found = {"size": list(size), "passes": passes, "threads": threads}
            measurements.append(found | {"timings": timings})
    return measurements


def main() -> None:
    """Measure, print and record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=11, help="samples of each way")
    options = parser.parse_args()
    timing.settle_allocator()
    start = time.perf_counter()
    measurements = [m for n in (1, 2) for size in SIZES for m in measure(size, n, options.rounds)]
    print("\nwrote", timing.write_record("recurrent", measurements).name)
    print(f"took {time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()
