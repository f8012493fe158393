"""Runs Triton kernels in separate processes: interpreted on the CPU, or compiled for a GPU.

Triton decides on import whether kernels are interpreted, and in the tests' own process, torch may
already have imported it.
"""

import os
import pickle
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]


class Worker:
    """A process that calls this module's functions.

    Attributes:
        interpret: whether it runs kernels in Triton's interpreter.
    """

    def __init__(self, *, interpret: bool, **variables: str) -> None:
        environment = {**os.environ, "TRITON_INTERPRET": str(int(interpret)), **variables}
        self._process = subprocess.Popen(
            [sys.executable, "-m", __name__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
            cwd=ROOT,
        )

    def __call__(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Call the function in the process, and raise whatever it raises."""
        pickle.dump((function.__name__, args, kwargs), self._process.stdin)
        self._process.stdin.flush()
        raised, result = pickle.load(self._process.stdout)
        if raised:
            raise result
        return result

    def stop(self) -> None:
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()


def serve() -> None:
    """Answer calls until the input ends."""
    calls, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # keep a kernel's printed output from mixing with the answers
    while True:
        try:
            name, args, kwargs = pickle.load(calls)
        except EOFError:
            return
        try:
            answer = (False, globals()[name](*args, **kwargs))
        except Exception as error:
            answer = (True, error)
        pickle.dump(answer, answers)
        answers.flush()


def layer_norm(x, weight, bias, eps, grad_output):
    """The results of both passes: y, the statistics, and the three gradients."""
    from lnbook.kernels import gpu

    y, statistics = gpu.layer_norm_forward(x, weight, bias, eps)
    return y, statistics, *gpu.layer_norm_backward(grad_output, x, weight, statistics)


def rms_norm(x, weight, eps, grad_output):
    """The results of both passes: y, rstd, and the two gradients."""
    from lnbook.kernels import gpu

    y, rstd = gpu.rms_norm_forward(x, weight, eps)
    return y, rstd, *gpu.rms_norm_backward(grad_output, x, weight, rstd)


def on_gpu(name, *args):
    """The results of `layer_norm` or `rms_norm` with tensors on a GPU."""
    import torch

    moved = (arg.cuda() if isinstance(arg, torch.Tensor) else arg for arg in args)
    return [result.cpu() for result in globals()[name](*moved)]


def call(name, *args):
    """Call any function of `lnbook.kernels.gpu`."""
    from lnbook.kernels import gpu

    return getattr(gpu, name)(*args)


def operators(norm, input, shape, parameters, eps, grad_output):
    """The results of both passes, computed with the GPU operators."""
    from lnbook.kernels.gpu import operators as ops

    y, statistics = getattr(ops, f"{norm}_forward")(input, shape, *parameters, eps)
    given = (grad_output, input, shape, parameters[0], statistics, eps)
    return y, statistics, *getattr(ops, f"{norm}_backward")(*given)


def compiled(module, kernel, types, constants, options, architecture):
    """Compile a kernel for an NVIDIA GPU, and report what it loads and what it needs.

    Args:
        module: the module of `lnbook.kernels.gpu`.
        kernel: its name in that module.
        types: Triton's type for each argument that isn't constant, by name.
        constants: the values of the other arguments; the statistics' dtype is given by name. Those
            that the kernel doesn't have are ignored.
        options: how to launch it, for example with how many warps (groups of 32 threads).
        architecture: the GPU's compute capability, for example 90 for an H100.

    Returns:
        The PTX (assembly) instructions that load from global memory; the bytes of stack per
        thread, which are used when registers run out; the approximate instructions; and the bytes
        of shared memory per program.
    """
    import importlib

    import triton
    from triton import language as tl
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    function = getattr(importlib.import_module(f"lnbook.kernels.gpu.{module}"), kernel)
    names = function.arg_names
    constants = {
        name: getattr(tl, value) if name == "computing" else value
        for name, value in constants.items()
        if name in names
    }
    aligned = [n for n in names if types.get(n, "").startswith("*") or n.endswith("_stride")]
    source = ASTSource(
        function,
        {name: "constexpr" if name in constants else types[name] for name in names},
        constexprs={(names.index(name),): value for name, value in constants.items()},
        attrs={
            (names.index(name),): [["tt.divisibility", 16]]
            for name in aligned
            if name not in constants
        },
    )
    target = GPUTarget("cuda", architecture, 32)
    made = triton.compile(source, target=target, options=options)
    assembly = made.asm
    loads = re.findall(r"\bld\.global\S*", assembly["ptx"])
    approximate = re.findall(r"\b(?:div\.full|\w+\.approx)\S*", assembly["ptx"])
    return loads, _stack_bytes(assembly["cubin"]), approximate, made.metadata.shared


def _stack_bytes(program):
    import triton

    tool = Path(triton.__file__).parent / "backends" / "nvidia" / "bin" / "cuobjdump"
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(program)
        file.flush()
        told = subprocess.run(
            [tool, "--dump-resource-usage", file.name], capture_output=True, text=True, check=True
        ).stdout
    return int(re.search(r"\bSTACK:(\d+)", told)[1])


if __name__ == "__main__":
    serve()
