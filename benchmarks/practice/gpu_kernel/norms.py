"""Time the Triton kernels on an NVIDIA GPU: `make measure NAME=practice/gpu_kernel/norms`.

Times LayerNorm and RMSNorm, forward and backward, at widths from 256 to 16384. PyTorch's own
kernels, PyTorch's functions under `torch.compile`, and `lnbook.kernels.gpu` take turns with a plain
copy of the input. Every kernel's results are compared with float64 before it's timed. Takes about
ten minutes.
"""

from collections.abc import Callable
from typing import Any

import torch
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
EPS = 1e-5
DEVICE = "cuda"
# Arrays of the input's size that each pass has to move.
ARRAYS = {"forward": 2, "backward": 3}
LARGEST_ERROR = {torch.bfloat16: 2**-7, torch.float32: 1e-4}

missing = gpu_timing.missing
Calls = dict[str, Callable[[], Any]]


class Case:
    """Random tensors of one size on the GPU."""

    def __init__(self, rows: int, width: int, dtype: torch.dtype) -> None:
        generator = torch.Generator(DEVICE).manual_seed(0)

        def random(*shape: int) -> Tensor:
            return torch.randn(shape, generator=generator, device=DEVICE).to(dtype)

        self.rows, self.width, self.dtype = rows, width, dtype
        self.x, self.upstream = random(rows, width), random(rows, width)
        self.weight, self.bias = random(width), random(width)

    def layer_norm(self) -> dict[str, Calls]:
        """Return the ways to compute each pass of LayerNorm."""
        torch.compiler.reset()
        shape, parameters = [self.width], (self.weight, self.bias)
        ops = torch.ops.aten
        _, mean, rstd = ops.native_layer_norm(self.x, shape, *parameters, EPS)
        ours = gpu.layer_norm_forward(self.x, *parameters, EPS)
        run = torch.compile(lambda x, w, b: native.layer_norm(x, shape, w, b, EPS))
        inputs = tuple(t.detach().requires_grad_() for t in (self.x, *parameters))
        y = run(*inputs)
        forward: Calls = {
            "native": lambda: ops.native_layer_norm(self.x, shape, *parameters, EPS)[0],
            "compiled": lambda: run(self.x, *parameters),
            "Triton": lambda: gpu.layer_norm_forward(self.x, *parameters, EPS)[0],
        }
        backward: Calls = {
            "native": lambda: ops.native_layer_norm_backward(
                self.upstream, self.x, shape, mean, rstd, *parameters, [True] * 3
            ),
            "compiled": lambda: torch.autograd.grad(y, inputs, self.upstream, retain_graph=True),
            "Triton": lambda: gpu.layer_norm_backward(
                self.upstream, self.x, self.weight, *ours[1:]
            ),
        }
        return {"forward": forward, "backward": backward}

    def rms_norm(self) -> dict[str, Calls]:
        """Return the ways to compute each pass of RMSNorm."""
        torch.compiler.reset()
        shape = [self.width]
        _, rstd = gpu.rms_norm_forward(self.x, self.weight, EPS)
        run = torch.compile(lambda x, w: native.rms_norm(x, shape, w, EPS))
        inputs = tuple(t.detach().requires_grad_() for t in (self.x, self.weight))
        y, y_native = run(*inputs), native.rms_norm(inputs[0], shape, inputs[1], EPS)
        forward: Calls = {
            "native": lambda: native.rms_norm(self.x, shape, self.weight, EPS),
            "compiled": lambda: run(self.x, self.weight),
            "Triton": lambda: gpu.rms_norm_forward(self.x, self.weight, EPS)[0],
        }
        grad = torch.autograd.grad
        backward: Calls = {
            "native": lambda: grad(y_native, inputs, self.upstream, retain_graph=True),
            "compiled": lambda: grad(y, inputs, self.upstream, retain_graph=True),
            "Triton": lambda: gpu.rms_norm_backward(self.upstream, self.x, self.weight, rstd),
        }
        return {"forward": forward, "backward": backward}

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


def error(found: Any, exact: tuple[Tensor, ...]) -> float:
    """Return the largest error, as a fraction of the largest value of its tensor."""
    results = (found,) if isinstance(found, Tensor) else tuple(found)
    return max(
        float((one.double() - right).abs().max() / right.abs().max())
        for one, right in zip(results, exact, strict=True)
    )


def check(width: int, dtype: torch.dtype) -> None:
    """Raise RuntimeError unless every Triton kernel agrees with float64."""
    case = Case(512, width, dtype)
    for norm, ways in (("LayerNorm", case.layer_norm()), ("RMSNorm", case.rms_norm())):
        for passes, exact in case.exact(norm).items():
            found = error(ways[passes]["Triton"](), exact)
            if not found < LARGEST_ERROR[dtype]:
                raise RuntimeError(
                    f"{norm} {passes}, width {width}, {dtype}: expected an error below "
                    f"{LARGEST_ERROR[dtype]}, but got {found}"
                )


def measure() -> list[dict[str, Any]]:
    """Return the times of all functions, sizes and passes."""
    measurements: list[dict[str, Any]] = []
    device = torch.cuda.get_device_name()
    for dtype in DTYPES:
        for width in WIDTHS:
            check(width, dtype)
            case = Case(ELEMENTS // width, width, dtype)
            target = torch.empty_like(case.x)
            for norm, ways in (("LayerNorm", case.layer_norm()), ("RMSNorm", case.rms_norm())):
                for passes, arrays in ARRAYS.items():
                    calls = ways[passes] | {"copy": lambda: target.copy_(case.x)}  # noqa: B023
                    timings = gpu_timing.compare(calls, ROUNDS)
                    what = {
                        "norm": norm,
                        "passes": passes,
                        "shape": [case.rows, width],
                        "dtype": str(dtype).removeprefix("torch."),
                        "device": device,
                        "arrays": arrays,
                    }
                    print("\n", what, "\n", table(timings), sep="", flush=True)
                    measurements.append(what | {"timings": timings})
    return measurements
