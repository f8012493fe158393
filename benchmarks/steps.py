"""What each step to the fast LSTM and to the fast LayerNorm brings: `python -m benchmarks.steps`.

The steps are those of the chapter on speed (`lnbook.experiments.speed`), each of them with those
before it; the last line is the package's own. Records `lstm-steps`, `norm-steps` and, with what
`torch.compile` makes of the plain form, `norm-compiled`. Compiling takes a C++ compiler, and a
minute.
"""

import argparse
import re
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch._inductor.utils import run_and_get_code
from torch.nn import functional

from benchmarks import timing
from benchmarks.recurrent import SIZES
from lnbook.experiments import speed
from lnbook.functional import LayerNormFunction, layer_norm
from lnbook.recurrent import LayerNormLSTM

NORM_SIZES = [(8192, 768), (2048, 4096)]
COMPILED_SIZES = [(8192, 768), (2048, 4096), (32, 256)]
BLOCK = 2**19  # elements
Call = Callable[[], Tensor]


def lstm_ways(
    batch: int, steps: int, input_size: int, hidden_size: int
) -> dict[str, tuple[Call, list[Tensor]]]:
    """Return each step of the LSTM, with the tensors to differentiate by."""
    x = torch.randn(steps, batch, input_size)
    native, ours = (
        nn.LSTM(input_size, hidden_size),
        LayerNormLSTM(input_size, hidden_size, variant="per-gate"),
    )
    p = {
        name: value.float().requires_grad_()
        for name, value in speed.lstm_parameters(input_size, hidden_size).items()
    }
    ways: dict[str, tuple[Call, list[Tensor]]] = {
        "nn.LSTM": (lambda: native(x)[0], list(native.parameters()))
    }
    for name, step in speed.LSTM_STEPS.items():
        ways[name] = (partial(step, x, p), list(p.values()))
    ways["lnbook"] = (lambda: ours(x)[0], list(ours.parameters()))
    return ways


def norm_ways(rows: int, features: int) -> dict[str, tuple[Call, list[Tensor]]]:
    """Return each step of LayerNorm, with the tensors to differentiate by."""
    x, w, b = (
        torch.randn(*shape).requires_grad_() for shape in ((rows, features), *[(features,)] * 2)
    )
    inputs, shape, height = [x, w, b], (features,), BLOCK // features
    return {
        "native": (lambda: functional.layer_norm(x, shape, w, b), inputs),
        "with var": (lambda: speed.variance_form(x, w, b), inputs),
        "centered": (lambda: _apply(speed.CenteredFunction, x, w, b, 1e-5), inputs),
        "in place": (lambda: _apply(speed.BlockedFunction, x, w, b, 1e-5, rows), inputs),
        "in blocks": (lambda: _apply(speed.BlockedFunction, x, w, b, 1e-5, height), inputs),
        "lnbook": (lambda: LayerNormFunction.apply(x, shape, w, b), inputs),
    }


def compiled_ways(rows: int, features: int) -> dict[str, tuple[Call, list[Tensor]]]:
    """Return LayerNorm compiled, beside forms that are not, with what to differentiate by."""
    ways = norm_ways(rows, features)
    x, w, b = ways["native"][1]
    # What was compiled for one size, or one number of threads, serves no other.
    torch.compiler.reset()
    compiled = torch.compile(layer_norm)
    return {
        "native": ways["native"],
        "compiled": (lambda: compiled(x, (features,), w, b), [x, w, b]),
        "lnbook": ways["lnbook"],
        "centered": ways["centered"],
    }


def kernels(rows: int, features: int) -> dict[str, Any]:
    """Count the kernels that the compiled form calls forward, and forward with backward."""
    call, inputs = compiled_ways(rows, features)["compiled"]
    found: dict[str, Any] = {"family": "kernels", "size": (rows, features)}
    upstream = torch.randn(rows, features)
    for passes in ("forward", "forward+backward"):
        torch.compiler.reset()  # what is compiled already would show no code
        backward = passes != "forward"
        with torch.set_grad_enabled(backward):
            run = (lambda: torch.autograd.grad(call(), inputs, upstream)) if backward else call
            _, codes = run_and_get_code(run)
        found[passes] = sum(len(re.findall(r"^ +cpp_fused\w*\(", code, re.M)) for code in codes)
    print(f"\n({rows}, {features}), compiled, kernels: {found}")
    return found


def measure(
    size: tuple[int, ...], ways: dict[str, tuple[Call, list[Tensor]]], threads: int, rounds: int
) -> list[dict[str, Any]]:
    """Time all ways at one size, forward and with the gradients, and print it."""
    upstream = torch.randn_like(next(iter(ways.values()))[0]())

    def with_gradients(call: Call, inputs: list[Tensor]) -> Callable[[], Any]:
        return lambda: torch.autograd.grad(call(), inputs, upstream)

    kinds: dict[str, dict[str, Callable[[], Any]]] = {
        "forward": {name: call for name, (call, _) in ways.items()},
        "forward+backward": {name: with_gradients(*way) for name, way in ways.items()},
    }
    measurements = []
    for passes, calls in kinds.items():
        with timing.threads(threads), torch.set_grad_enabled(passes != "forward"):
            timings = timing.compare(calls, rounds)
        print(f"\n{size}, {passes}, threads {threads}\n{timing.table(timings)}", flush=True)
        found = {"size": size, "passes": passes, "threads": threads, "rounds": rounds}
        measurements.append(found | {"timings": timings})
    return measurements


def _apply(function: type[torch.autograd.Function], *arguments: Any) -> Tensor:
    y: Tensor = function.apply(*arguments)
    return y


def main() -> None:
    """Measure, print and record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=11, help="samples of each way")
    parser.add_argument("--threads", type=int, nargs="*", default=[1, 2])
    parser.add_argument("--names", nargs="*", default=["norm-steps", "lstm-steps", "norm-compiled"])
    options = parser.parse_args()
    timing.settle_allocator()
    torch.manual_seed(0)
    for name, sizes, ways_of in (
        ("norm-steps", NORM_SIZES, norm_ways),
        ("lstm-steps", SIZES, lstm_ways),
        ("norm-compiled", COMPILED_SIZES, compiled_ways),
    ):
        if name not in options.names:
            continue
        found = []
        for count in options.threads:
            for size in sizes:
                found += measure(size, ways_of(*size), count, options.rounds)
        if name == "norm-compiled":
            found += [kernels(*size) for size in sizes]
        print("\nwrote", timing.write_record(name, found).name)


if __name__ == "__main__":
    main()
