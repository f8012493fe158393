"""Time lnbook's CPU kernels next to PyTorch's: `make measure NAME=practice/cpu_kernel/targets`.

For each size, everything is timed in turn in a single process. Numbers are relative to PyTorch's
LayerNorm; for RMSNorm, divide the numbers for `F.rms_norm` by ours. "cached" is our LayerNorm with
ordinary stores in the forward pass, and without loading the next row early. For the small input,
two more calls show where the time goes: an autograd function that computes nothing, and the kernels
without autograd and argument checks.
"""

from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import torch
from torch import Tensor
from torch.nn import functional as native

from benchmarks.timing import busy, compare, table, threads
from lnbook.functional import LayerNormFunction, RMSNormFunction
from lnbook.kernels import cpu
from lnbook.kernels.cpu import norms

missing = busy
PROCESSES = 3
ROUNDS = 21
LARGE = [(8192, 768), (2048, 4096), (32, 512, 512)]
SMALL = (32, 256)
CASES = [(shape, torch.float32) for shape in (SMALL, *LARGE)]
CASES += [(shape, torch.bfloat16) for shape in (SMALL, *LARGE)]


class Nothing(torch.autograd.Function):
    """Saves and returns as many tensors as LayerNorm in Python, but computes nothing."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, shape: Any, weight: Tensor, bias: Tensor) -> Tensor:
        """Return an uninitialized tensor."""
        ctx.save_for_backward(x, weight, bias, x.new_empty(3, len(x)))
        return torch.empty_like(x)

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor | None, ...]:
        """Return uninitialized tensors."""
        x, weight, bias, _ = ctx.saved_tensors
        return torch.empty_like(x), None, torch.empty_like(weight), torch.empty_like(bias)


def ways(shape: tuple[int, ...], dtype: torch.dtype) -> dict[str, Callable[[bool], Any]]:
    """Return the functions to time, PyTorch's LayerNorm first; pass them True for gradients."""
    generator = torch.Generator().manual_seed(0)

    def random(*size: int) -> Tensor:
        return torch.randn(size, generator=generator).to(dtype)

    features = shape[-1:]
    x, weight, bias = (t.requires_grad_() for t in (random(*shape), *random(2, *features)))
    upstream, target = random(*shape), torch.empty(shape, dtype=dtype)

    def norm(call: Callable[..., Tensor], *inputs: Tensor) -> Callable[[bool], Any]:
        def run(backward: bool) -> Any:
            y = call(inputs[0], features, *inputs[1:])
            return torch.autograd.grad(y, inputs, upstream) if backward else y

        return run

    def kernels(backward: bool) -> Any:
        given = x.detach(), features, weight.detach()
        y, statistics = cpu.layer_norm_forward(*given, bias.detach(), 1e-5)
        return cpu.layer_norm_backward(upstream, *given, statistics, 1e-5) if backward else y

    def cached(backward: bool) -> Any:
        with patch.object(norms, "CACHE", float("inf")):
            return calls["fused"](backward)

    overhead = {"nothing": norm(Nothing.apply, x, weight, bias), "kernels": kernels}
    calls = {
        "native": norm(native.layer_norm, x, weight, bias),
        "fused": norm(LayerNormFunction.apply, x, weight, bias),
        "F.rms_norm": norm(native.rms_norm, x, weight),
        "fused RMSNorm": norm(RMSNormFunction.apply, x, weight),
        "copy": lambda backward: target.copy_(x.detach()),
        "x + 1": lambda backward: x.detach() + 1,
        "cached": cached,
    }
    return calls | (overhead if shape == SMALL else {})


def check(calls: dict[str, Callable[[bool], Any]], dtype: torch.dtype) -> None:
    """Fail if a kernel is wrong. The first calls also compile it."""
    tolerance = 64 * torch.finfo(dtype).eps
    for name, other in (("fused", "native"), ("fused RMSNorm", "F.rms_norm")):
        torch.testing.assert_close(
            calls[name](False), calls[other](False), rtol=0.1, atol=tolerance
        )
        for ours, theirs in zip(calls[name](True), calls[other](True), strict=True):
            scale = float(theirs.abs().max())
            torch.testing.assert_close(ours, theirs, rtol=0.1, atol=scale * tolerance)


def measure() -> list[dict[str, Any]]:
    """Time everything, forward alone and with backward, with one and two threads."""
    found: list[dict[str, Any]] = []
    for shape, dtype in CASES:
        calls = ways(shape, dtype)
        check(calls, dtype)
        for count in (1, 2):
            for passes in ("forward", "forward+backward"):
                backward = passes != "forward"
                now = {name: (lambda c=call, b=backward: c(b)) for name, call in calls.items()}
                with threads(count), torch.set_grad_enabled(backward):
                    timings = compare(now, ROUNDS)
                what = {"shape": list(shape), "dtype": str(dtype).removeprefix("torch.")}
                print(f"\n{what}, {count} thread(s), {passes}\n{table(timings)}", flush=True)
                found.append(what | {"threads": count, "passes": passes, "timings": timings})
    return found
