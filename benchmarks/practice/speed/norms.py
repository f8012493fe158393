"""Time and memory of all forms of LayerNorm and RMSNorm: `make measure NAME=practice/speed/norms`.

Everything the book compares is timed in turn in one process, so each form has a single time. The
numbers are relative to PyTorch's LayerNorm. Compiling needs a C++ compiler and a few minutes.
"""

import re
from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

import torch
from torch import Tensor
from torch._inductor.utils import run_and_get_code
from torch.nn import functional as native

from benchmarks.timing import compare, table, threads
from lnbook.chapters.practice.speed.experiments import (
    BlockedFunction,
    CenteredFunction,
    kept_bytes,
    variance_form,
)
from lnbook.functional import BlockedLayerNormFunction, RMSNormFunction, layer_norm, rms_norm

PROCESSES = 3
ROUNDS = 15  # samples per implementation
LARGE = [(8192, 768), (2048, 4096), (32, 512, 512)]
SMALL = (32, 256)
COMPILED = LARGE[:2]  # in float32
BLOCK = 2**19  # numbers in a block: 2 MB in float32
PASSES = ("forward", "forward+backward")
# What to call, and the tensors to differentiate its result with respect to.
Way: TypeAlias = tuple[Callable[[], Tensor], tuple[Tensor, ...]]


class Case:
    """Random tensors of one size and the ways to normalize their last dimension."""

    def __init__(self, shape: tuple[int, ...], dtype: torch.dtype) -> None:
        generator = torch.Generator().manual_seed(0)

        def random(size: tuple[int, ...], grad: bool) -> Tensor:
            tensor = torch.randn(size, generator=generator).to(dtype)
            return tensor.requires_grad_(grad)

        self.shape, self.dtype = shape, dtype
        self.x, self.upstream = random(shape, True), random(shape, False)
        self.weight, self.bias = random(shape[-1:], True), random(shape[-1:], True)

    def ways(self) -> dict[str, Way]:
        """Return all forms of both norms, starting with PyTorch's LayerNorm."""
        features = self.shape[-1:]
        inputs, scaled = (self.x, self.weight, self.bias), (self.x, self.weight)
        shaped, rms_shaped = (self.x, features, *inputs[1:]), (self.x, list(features), self.weight)
        layer_forms: dict[str, Callable[[], Tensor]] = {
            "native": lambda: native.layer_norm(*shaped),
            "LayerNormFunction": lambda: BlockedLayerNormFunction.apply(*shaped),
            "layer_norm, plain": lambda: layer_norm(*shaped),
            "centered Function": lambda: _apply(CenteredFunction, *inputs, 1e-5),
            "variance, autograd": lambda: variance_form(*inputs),
        }
        if len(self.shape) == 2:
            rows, height = self.shape[0], max(1, BLOCK // self.shape[1])
            steps = {"in place": rows, "in blocks": min(rows, height)}
            for name, lines in steps.items():
                layer_forms[name] = partial(_apply, BlockedFunction, *inputs, 1e-5, lines)
        if self.dtype == torch.float32 and self.shape in COMPILED:
            torch.compiler.reset()  # discard code compiled for other sizes or thread counts
            layer_forms["compiled"] = partial(torch.compile(layer_norm), *shaped)
        rms_forms: dict[str, Callable[[], Tensor]] = {
            "RMSNorm, native": lambda: native.rms_norm(*rms_shaped),
            "RMSNormFunction": lambda: RMSNormFunction.apply(*rms_shaped),
            "rms_norm, plain": lambda: rms_norm(*rms_shaped),
        }
        ways = {name: (call, inputs) for name, call in layer_forms.items()}
        return ways | {name: (call, scaled) for name, call in rms_forms.items()}


def _apply(function: type[torch.autograd.Function], *arguments: Any) -> Tensor:
    y: Tensor = function.apply(*arguments)
    return y


def with_backward(way: Way, upstream: Tensor) -> Callable[[], Any]:
    """Return a function that also computes the gradients."""
    call, inputs = way
    return lambda: torch.autograd.grad(call(), inputs, upstream)


def times(case: Case, count: int) -> list[dict[str, Any]]:
    """Time all forms of one case, and a copy of its input, with and without gradients."""
    measurements = []
    target, source = torch.empty_like(case.x).detach(), case.x.detach()
    with threads(count):
        ways = case.ways()
        for passes in PASSES:
            backward = passes != "forward"
            calls: dict[str, Callable[[], Any]] = {
                name: with_backward(way, case.upstream) if backward else way[0]
                for name, way in ways.items()
            }
            calls["copy"] = lambda: target.copy_(source)
            with torch.set_grad_enabled(backward):
                timings = compare(calls, ROUNDS)
            measurements.append(_what(case) | {"passes": passes, "threads": count})
            print("\n", measurements[-1], "\n", table(timings), sep="", flush=True)
            measurements[-1]["timings"] = timings
    return measurements


def _what(case: Case) -> dict[str, Any]:
    dtype = str(case.dtype).removeprefix("torch.")
    return {"what": "time", "shape": list(case.shape), "dtype": dtype, "device": "cpu"}


def memory(case: Case) -> dict[str, Any]:
    """Measure what each form saves for the backward pass besides its input and parameters."""
    size = case.x.numel() * case.x.element_size()
    kept = {name: kept_bytes(call, *inputs) for name, (call, inputs) in case.ways().items()}
    return _what(case) | {"what": "memory", "input_bytes": size, "kept_bytes": kept}


def kernels(case: Case) -> dict[str, Any]:
    """Count the kernels that the compiled form calls, with and without gradients."""
    found: dict[str, Any] = _what(case) | {"what": "kernels"}
    for passes in PASSES:
        backward = passes != "forward"
        way = case.ways()["compiled"]  # compiled again, since cached code isn't logged
        run = with_backward(way, case.upstream) if backward else way[0]
        with torch.set_grad_enabled(backward):
            _, codes = run_and_get_code(run)
        found[passes] = sum(len(re.findall(r"^ +cpp_fused\w*\(", code, re.M)) for code in codes)
    return found


def measure() -> list[dict[str, Any]]:
    """Return times on one core and on two, the saved memory, and kernel counts."""
    torch.manual_seed(0)
    sizes = [(shape, torch.float32) for shape in (SMALL, *LARGE)]
    sizes += [(shape, torch.bfloat16) for shape in (SMALL, LARGE[0])]
    cases = [Case(*size) for size in sizes]
    measurements = [m for n in (1, 2) for case in cases for m in times(case, n)]
    measurements += [memory(case) for case in cases if case.shape == LARGE[0]]
    with threads(1):
        measurements.append(kernels(Case(LARGE[0], torch.float32)))
    return measurements
