"""Time the Triton kernels on an NVIDIA GPU: `make measure NAME=practice/gpu_kernel/norms`.

Times LayerNorm and RMSNorm, forward and backward, at widths from 256 to 16384. PyTorch's own
kernels, PyTorch's functions under `torch.compile`, and `lnbook.kernels.gpu` take turns with a plain
copy of the input. Every kernel's results are compared with float64 before it's timed. Most of the
time goes into compilation, whose results are kept for the next process.
"""

from collections.abc import Callable
from importlib.metadata import version
from typing import Any

import torch
import torch._functorch.config
from torch import Tensor
from torch.nn import functional as native

from benchmarks import gpu_timing
from benchmarks.timing import table
from lnbook import functional
from lnbook.kernels import gpu

__all__ = ["missing"]

PROCESSES = 3
ROUNDS = 31
WIDTHS = (256, 512, 768, 1024, 2048, 4096, 8192, 16384)
ELEMENTS = 2**26  # 128 MB in bfloat16, several times what an L2 cache holds
DTYPES = (torch.bfloat16, torch.float32)
NORMS = ("LayerNorm", "RMSNorm")
ROWS_TO_CHECK = 512
EPS = 1e-5
DEVICE = "cuda"
# Arrays of the input's size that each pass has to move.
ARRAYS = {"forward": 2, "backward": 3}
LARGEST_ERROR = {torch.bfloat16: 2**-7, torch.float32: 1e-4}

missing = gpu_timing.missing
Calls = dict[str, Callable[[], Any]]

# Lets a compiled backward pass run more than once.
torch._functorch.config.donated_buffer = False


class Case:
    """Random tensors of one size on the GPU."""

    def __init__(self, rows: int, width: int, dtype: torch.dtype) -> None:
        generator = torch.Generator(DEVICE).manual_seed(0)

        def random(*shape: int) -> Tensor:
            return torch.randn(shape, generator=generator, device=DEVICE).to(dtype)

        self.rows, self.width, self.dtype = rows, width, dtype
        self.x, self.upstream = random(rows, width), random(rows, width)
        self.weight, self.bias = random(width), random(width)

    def triton(self, norm: str) -> dict[str, Callable[[], tuple[Tensor, ...]]]:
        """Return both passes of a norm in Triton."""
        if norm == "LayerNorm":
            _, statistics = gpu.layer_norm_forward(self.x, self.weight, self.bias, EPS)
            return {
                "forward": lambda: gpu.layer_norm_forward(self.x, self.weight, self.bias, EPS)[:1],
                "backward": lambda: gpu.layer_norm_backward(
                    self.upstream, self.x, self.weight, statistics
                ),
            }
        _, rstd = gpu.rms_norm_forward(self.x, self.weight, EPS)
        return {
            "forward": lambda: gpu.rms_norm_forward(self.x, self.weight, EPS)[:1],
            "backward": lambda: gpu.rms_norm_backward(self.upstream, self.x, self.weight, rstd),
        }

    def ways(self, norm: str) -> dict[str, Calls]:
        """Return the ways to compute each pass of a norm, and a copy of the input."""
        torch.compiler.reset()
        ours = self.triton(norm)
        ways = self._layer_norm() if norm == "LayerNorm" else self._rms_norm()
        target = torch.empty_like(self.x)
        for passes, calls in ways.items():
            calls |= {"Triton": ours[passes], "copy": lambda: target.copy_(self.x)}
        return ways

    def _layer_norm(self) -> dict[str, Calls]:
        shape, parameters = [self.width], (self.weight, self.bias)
        ops = torch.ops.aten
        _, mean, rstd = ops.native_layer_norm(self.x, shape, *parameters, EPS)
        run = torch.compile(lambda x, w, b: native.layer_norm(x, shape, w, b, EPS))
        inputs = tuple(t.detach().requires_grad_() for t in (self.x, *parameters))
        y = run(*inputs)
        return {
            "forward": {
                "native": lambda: ops.native_layer_norm(self.x, shape, *parameters, EPS),
                "compiled": lambda: run(self.x, *parameters),
            },
            "backward": {
                "native": lambda: ops.native_layer_norm_backward(
                    self.upstream, self.x, shape, mean, rstd, *parameters, [True] * 3
                ),
                "compiled": lambda: torch.autograd.grad(
                    y, inputs, self.upstream, retain_graph=True
                ),
            },
        }

    def _rms_norm(self) -> dict[str, Calls]:
        shape, grad = [self.width], torch.autograd.grad
        run = torch.compile(lambda x, w: native.rms_norm(x, shape, w, EPS))
        inputs = tuple(t.detach().requires_grad_() for t in (self.x, self.weight))
        y, y_native = run(*inputs), native.rms_norm(inputs[0], shape, inputs[1], EPS)
        return {
            "forward": {
                "native": lambda: native.rms_norm(self.x, shape, self.weight, EPS),
                "compiled": lambda: run(self.x, self.weight),
            },
            "backward": {
                "native": lambda: grad(y_native, inputs, self.upstream, retain_graph=True),
                "compiled": lambda: grad(y, inputs, self.upstream, retain_graph=True),
            },
        }

    def exact(self, norm: str) -> dict[str, tuple[Tensor, ...]]:
        """Return the correct results, computed in float64 by the plain functions."""
        x, weight, bias, upstream = (
            t.double() for t in (self.x, self.weight, self.bias, self.upstream)
        )
        shape = (self.width,)
        if norm == "LayerNorm":
            y = functional.layer_norm(x, shape, weight, bias, EPS)
            return {
                "forward": (y,),
                "backward": functional.layer_norm_backward(upstream, x, shape, weight, EPS),
            }
        return {
            "forward": (functional.rms_norm(x, shape, weight, EPS),),
            "backward": functional.rms_norm_backward(upstream, x, shape, weight, EPS),
        }


def error(found: tuple[Tensor, ...], exact: tuple[Tensor, ...]) -> float:
    """Return the largest error, as a fraction of the largest value of its tensor."""
    return max(
        float((one.double() - right).abs().max() / right.abs().max())
        for one, right in zip(found, exact, strict=True)
    )


def check(width: int, dtype: torch.dtype) -> None:
    """Raise RuntimeError unless every Triton kernel agrees with float64."""
    case = Case(ROWS_TO_CHECK, width, dtype)
    for norm in NORMS:
        exact = case.exact(norm)
        for passes, ours in case.triton(norm).items():
            found = error(ours(), exact[passes])
            if not found < LARGEST_ERROR[dtype]:
                raise RuntimeError(
                    f"{norm} {passes}, width {width}, {dtype}: expected an error below "
                    f"{LARGEST_ERROR[dtype]}, but got {found}"
                )


def measure() -> list[dict[str, Any]]:
    """Return the times of all functions, sizes and passes."""
    return [one for dtype in DTYPES for width in WIDTHS for one in measure_size(width, dtype)]


def measure_size(width: int, dtype: torch.dtype) -> list[dict[str, Any]]:
    """Return the times of all functions and passes for one width."""
    check(width, dtype)
    case, measurements = Case(ELEMENTS // width, width, dtype), []
    for norm in NORMS:
        for passes, calls in case.ways(norm).items():
            timings = gpu_timing.compare(calls, ROUNDS)
            what = {
                "norm": norm,
                "passes": passes,
                "shape": [case.rows, width],
                "dtype": str(dtype).removeprefix("torch."),
                "device": torch.cuda.get_device_name(),
                "triton": version("triton"),
                "arrays": ARRAYS[passes],
            }
            print("\n", what, "\n", table(timings), sep="", flush=True)
            measurements.append(what | {"timings": timings})
    return measurements
