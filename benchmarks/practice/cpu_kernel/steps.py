"""Time the chapter's kernels, step by step: `make measure NAME=practice/cpu_kernel/steps`.

All steps are timed in turn in one process, next to PyTorch's LayerNorm and a copy.
"""

from collections.abc import Callable
from typing import Any

import numba
import numpy as np
import torch
from torch.nn import functional

from benchmarks.timing import compare, table, threads
from lnbook import reference
from lnbook.chapters.practice.cpu_kernel import experiments as kernels

PROCESSES = 3
SHAPES = [(8192, 768), (2048, 4096)]


class Case:
    """Random float32 arrays of one shape, and the steps as functions without arguments."""

    def __init__(self, shape: tuple[int, int]) -> None:
        rng = np.random.default_rng(0)
        self.x, self.dy = (rng.normal(size=shape).astype(np.float32) for _ in range(2))
        self.weight, self.bias = (rng.normal(size=shape[1]).astype(np.float32) for _ in range(2))
        self.y, self.dx = np.empty_like(self.x), np.empty_like(self.x)
        self.means, self.rstds = (np.empty(shape[0], np.float32) for _ in range(2))
        self.tensors = [torch.tensor(a) for a in (self.x, self.weight, self.bias)]
        self.grad = torch.tensor(self.dy)

    def forward(self, kernel: Callable[..., Any]) -> Callable[[], Any]:
        """Return a function that calls a forward kernel."""
        given = (self.x, self.weight, self.bias, np.float32(1e-5))
        return lambda: kernel(*given, self.y, self.means, self.rstds)

    def both(self, forward: Callable[..., Any], backward: Callable[..., Any]) -> Callable[[], Any]:
        """Return a function that calls a forward and a backward kernel."""
        first = self.forward(forward)
        dweight, dbias = np.zeros_like(self.weight), np.zeros_like(self.bias)
        given = (self.dy, self.x, self.weight, self.means, self.rstds)

        def call() -> None:
            first()
            backward(*given, self.dx, dweight, dbias)

        return call

    def native(self) -> torch.Tensor:
        """Return the result of PyTorch's kernel."""
        x, weight, bias = self.tensors
        return functional.layer_norm(x, x.shape[1:], weight, bias)

    def native_both(self) -> Any:
        """Return the gradients that PyTorch's kernel computes."""
        tensors = [tensor.requires_grad_() for tensor in self.tensors]
        return torch.autograd.grad(self.native(), tensors, self.grad)

    def line_by_line(self) -> torch.Tensor:
        """Return the result of the formula, one operation per line."""
        x, weight, bias = self.tensors
        centered = x - x.mean(1, keepdim=True)
        variance = centered.square().mean(1, keepdim=True)
        xhat = centered / torch.sqrt(variance + 1e-5)
        return weight * xhat + bias

    def line_by_line_both(self) -> Any:
        """Return the gradients of the formula by autograd."""
        tensors = [tensor.requires_grad_() for tensor in self.tensors]
        return torch.autograd.grad(self.line_by_line(), tensors, self.grad)


def ways(case: Case, *, backward: bool) -> dict[str, Callable[[], Any]]:
    """Return the steps, PyTorch's kernel first."""
    target, source = torch.empty_like(case.grad), case.grad
    k = kernels
    if backward:
        return {
            "nn.LayerNorm": case.native_both,
            "formula, line by line": case.line_by_line_both,
            "loops": case.both(k.strict_forward, k.strict_backward),
            "loops, any order": case.both(k.fast_forward, k.fast_backward),
            "reading ahead": case.both(k.fast_forward, k.backward_ahead),
            "blocks": case.both(k.forward_blocks, k.backward_blocks),
            "copy": lambda: target.copy_(source),
        }
    return {
        # Once a backward pass has been timed, autograd would otherwise record these calls, too.
        "nn.LayerNorm": torch.no_grad()(case.native),
        "formula, line by line": torch.no_grad()(case.line_by_line),
        "loops": case.forward(k.strict_forward),
        "loops, any order": case.forward(k.fast_forward),
        "reading ahead": case.forward(k.fast_forward),  # only the backward pass does
        "blocks": case.forward(k.forward_blocks),
        "copy": lambda: target.copy_(source),
    }


def check(case: Case) -> None:
    """Fail if a kernel is wrong: a fast wrong answer is worthless."""
    case.forward(kernels.forward_blocks)()
    expected = reference.layer_norm(case.x, case.x.shape[1:], case.weight, case.bias)
    np.testing.assert_allclose(case.y, expected, rtol=1e-3, atol=1e-4)


def measure() -> list[dict[str, Any]]:
    """Time all steps, forward alone and with backward, with one and two threads."""
    found = []
    for shape in SHAPES:
        case = Case(shape)
        check(case)
        for count in (1, 2):
            numba.set_num_threads(count)
            for passes in ("forward", "forward+backward"):
                with threads(count):
                    timings = compare(ways(case, backward=passes != "forward"))
                print(f"{shape}, {count} thread(s), {passes}\n{table(timings)}", flush=True)
                found.append(
                    {"shape": list(shape), "threads": count, "passes": passes, "timings": timings}
                )
    return found
