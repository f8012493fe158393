"""Time and memory of the norms, beside PyTorch's: `python -m benchmarks.norms`.

Prints tables and records them for the book. A ratio compares with the first line of its
table; in brackets the middle half of the rounds.
"""

import argparse
import functools
import math
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any, TypeAlias

import torch
from torch import Tensor, nn
from torch.nn import functional as native

from benchmarks.timing import (
    compare,
    settle_allocator,
    table,
    threads,
    write_record,
)
from lnbook.experiments.speed import CenteredFunction, kept_bytes, variance_form
from lnbook.functional import LayerNormFunction, RMSNormFunction, layer_norm, rms_norm
from lnbook.layers import LayerNorm
from lnbook.records import machine

# The shape of the input, and how many of its last dimensions are normalized.
LARGE = [((8192, 768), 1), ((2048, 4096), 1), ((32, 512, 512), 1)]
SMALL = [((32, 256), 1)]
# What to call, and the tensors that its result is differentiated by.
Way: TypeAlias = tuple[Callable[[], Tensor], tuple[Tensor, ...]]


class VarianceFunction(CenteredFunction):
    """What one writes first: variance by `var`, division by the deviation, everything kept."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor, eps: float) -> Tensor:
        """Normalize the last dimension."""
        deviation = (x.var(-1, correction=0, keepdim=True) + eps).sqrt()
        xhat = (x - x.mean(-1, keepdim=True)) / deviation
        ctx.save_for_backward(xhat, weight, 1 / deviation)
        return xhat * weight + bias


class Case:
    """Random tensors of one size, and the ways to normalize them."""

    def __init__(self, shape: tuple[int, ...], dims: int, dtype: torch.dtype, device: str) -> None:
        generator = torch.Generator().manual_seed(0)

        def random(size: tuple[int, ...], grad: bool) -> Tensor:
            tensor = torch.randn(size, generator=generator).to(device, dtype)
            return tensor.requires_grad_(grad)

        self.shape, self.dtype, self.device = shape, dtype, device
        self.normalized = shape[-dims:]
        self.x = random(shape, True)
        self.weight, self.bias = random(self.normalized, True), random(self.normalized, True)
        self.upstream = random(shape, False)

    def layer_ways(self) -> dict[str, Way]:
        """Return the modules: PyTorch's, and ours in its default form."""
        options: dict[str, Any] = {"device": self.device, "dtype": self.dtype}
        layers: dict[str, nn.Module] = {
            "nn.LayerNorm": nn.LayerNorm(self.normalized, **options),
            "LayerNorm": LayerNorm(self.normalized, **options),
        }
        return {
            name: (functools.partial(layer, self.x), (self.x, *layer.parameters()))
            for name, layer in layers.items()
        }

    def function_ways(self) -> dict[str, Way]:
        """Return the functions of layer normalization."""
        inputs = (self.x, self.weight, self.bias)
        shaped = (self.x, self.normalized, self.weight, self.bias)
        calls: dict[str, Callable[[], Tensor]] = {
            "native": lambda: native.layer_norm(*shaped),
            "LayerNormFunction": lambda: LayerNormFunction.apply(*shaped),
            "layer_norm, plain": lambda: layer_norm(*shaped),
            "centered Function": lambda: apply(CenteredFunction, *inputs, 1e-5),
            "variance Function": lambda: apply(VarianceFunction, *inputs, 1e-5),
            "variance, autograd": lambda: variance_form(*inputs),
        }
        return {name: (call, inputs) for name, call in calls.items()}

    def rms_ways(self) -> dict[str, Way]:
        """Return the functions of RMS normalization."""
        inputs, shaped = (self.x, self.weight), (self.x, list(self.normalized), self.weight)
        calls: dict[str, Callable[[], Tensor]] = {
            "native": lambda: native.rms_norm(*shaped),
            "RMSNormFunction": lambda: RMSNormFunction.apply(*shaped),
            "rms_norm, plain": lambda: rms_norm(*shaped),
        }
        return {name: (call, inputs) for name, call in calls.items()}


def apply(function: type[torch.autograd.Function], *arguments: Any) -> Tensor:
    """Call a Function."""
    y: Tensor = function.apply(*arguments)
    return y


def with_backward(way: Way, upstream: Tensor) -> Callable[[], Any]:
    """Return a call that also computes the gradients."""
    call, inputs = way
    return lambda: torch.autograd.grad(call(), inputs, upstream)


def measure(case: Case, name: str, count: int, rounds: int) -> list[dict[str, Any]]:
    """Time one family of ways on one case, forward and forward with backward, and print it."""
    ways: dict[str, Way] = getattr(case, f"{name}_ways")()
    both = {key: with_backward(way, case.upstream) for key, way in ways.items()}
    dtype = str(case.dtype).removeprefix("torch.")
    records = []
    for passes, calls in (
        ("forward", {key: call for key, (call, _) in ways.items()}),
        ("forward+backward", both),
    ):
        with threads(count), torch.set_grad_enabled(passes != "forward"):
            awaited = {key: _awaited(call, case.device) for key, call in calls.items()}
            timings = compare(awaited, rounds)
        print(f"\n{name}: {case.shape}, {dtype}, {passes}, threads {count}, {case.device}")
        print(table(timings), flush=True)
        records.append(
            {
                "family": name,
                "shape": list(case.shape),
                "dtype": dtype,
                "passes": passes,
                "threads": count,
                "device": case.device,
                "timings": timings,
            }
        )
    return records


def memory(case: Case) -> dict[str, Any]:
    """Count what each form keeps for backward beyond input and parameters, and print it."""
    kept = {}
    for family in ("function", "rms"):
        for name, (call, inputs) in getattr(case, f"{family}_ways")().items():
            kept[f"{family}: {name}"] = kept_bytes(call, *inputs)
    size = case.x.numel() * case.x.element_size()
    print(f"\nkept for backward at {case.shape}: bytes, and as multiples of the input")
    for name, count in kept.items():
        print(f"  {name:32}  {count:12,}  {count / size:6.3f}")
    return {"family": "memory", "shape": list(case.shape), "input_bytes": size, "kept_bytes": kept}


def errors(case: Case) -> dict[str, Any]:
    """Compare output and gradients of native and own forms with float64, and print it."""
    exact = Case(case.shape, len(case.normalized), torch.float64, case.device)
    for name in ("x", "weight", "bias", "upstream"):
        rounded = getattr(case, name).detach().double()
        setattr(exact, name, rounded.requires_grad_(name != "upstream"))

    def results(of: Case, name: str) -> list[Tensor]:
        call, inputs = of.function_ways()[name]
        y = call()
        return [y.detach(), *torch.autograd.grad(y, inputs, of.upstream)]

    right = results(exact, "native")
    found = {}
    for name in ("native", "LayerNormFunction", "layer_norm, plain"):
        ours = results(case, name)
        found[name] = [
            float((a.double() - b).abs().max() / b.abs().max())
            for a, b in zip(ours, right, strict=True)
        ]
    dtype = str(case.dtype).removeprefix("torch.")
    print(f"\nlargest error by largest value at {case.shape}, {dtype}: y, dx, dweight, dbias")
    for name, values in found.items():
        print(f"  {name:20}", "  ".join(f"{value:.1e}" for value in values))
    return {"family": "errors", "shape": list(case.shape), "dtype": dtype, "errors": found}


def imports(rounds: int) -> dict[str, Any]:
    """Time what importing the package adds to importing torch, in fresh processes."""
    seconds: dict[str, list[float]] = {}
    for _ in range(max(3, rounds // 4)):
        for name in ("lnbook", "lnbook.functional", "lnbook.layers"):
            code = f"import time, torch; s = time.perf_counter(); import {name}; "
            code += "print(time.perf_counter() - s)"
            output = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
            seconds.setdefault(name, []).append(float(output.stdout))
    medians = {name: sorted(values)[len(values) // 2] for name, values in seconds.items()}
    print("\nseconds that an import adds to that of torch:", medians)
    return {"family": "import", "seconds": medians}


def copy_limit(case: Case, count: int, rounds: int) -> dict[str, Any]:
    """Time the least traffic of forward and backward: two copies and a half of the input."""
    target = torch.empty_like(case.x)
    way = _awaited(lambda: target.copy_(case.x.detach()), case.device)
    with threads(count):
        timing = compare({"copy": way}, rounds)[0]
    print(
        f"\ncopy of {case.shape} on {case.device}, {count} thread(s): {timing.milliseconds:.3f} ms"
    )
    return {
        "family": "copy",
        "shape": list(case.shape),
        "dtype": str(case.dtype).removeprefix("torch."),
        "device": case.device,
        "threads": count,
        "timings": [timing],
    }


def main() -> None:
    """Measure, print and record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15, help="samples of each way")
    parser.add_argument("--threads", type=int, nargs="*", default=[1, 2])
    parser.add_argument("--families", nargs="*", default=["layer", "function", "rms"])
    parser.add_argument("--device", default="cpu", help="cpu, or cuda where there is a GPU")
    options = parser.parse_args()
    if options.device == "cpu":
        settle_allocator()
    print(machine())
    records = [imports(options.rounds)] if options.device == "cpu" else []
    for count in options.threads:
        for dtype in (torch.float32, torch.bfloat16):
            sizes = [*SMALL, *LARGE] if dtype == torch.float32 else [*SMALL, LARGE[0]]
            for shape, dims in sizes:
                case = Case(shape, dims, dtype, options.device)
                if math.prod(shape) > 2**20:
                    records.append(copy_limit(case, count, options.rounds))
                for name in options.families:
                    records += measure(case, name, count, options.rounds)
    for dtype in (torch.float32, torch.bfloat16):
        case = Case((8192, 768), 1, dtype, options.device)
        records += [memory(case), errors(case)]
    print("\nwrote", write_record(f"norms-{options.device}", records).name)


def _awaited(way: Callable[[], Any], device: str) -> Callable[[], Any]:
    """Wait for the device within each call, where calls return before the work is done."""
    if device == "cpu":
        return way

    def call() -> None:
        way()
        torch.cuda.synchronize()

    return call


if __name__ == "__main__":
    start = time.perf_counter()
    main()
    print(f"took {time.perf_counter() - start:.0f} s")
