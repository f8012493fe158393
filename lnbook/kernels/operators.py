"""LayerNorm and RMSNorm as PyTorch operators: "lnbook::layer_norm" and the like.

`torch.compile` and `torch.export` don't look into these kernels, but they can put an operator into
a graph: its fake kernel tells them the shapes and dtypes of the results. On a CPU, the operators
run the kernels of `lnbook.kernels.cpu`, and on a GPU with Triton, those of `lnbook.kernels.gpu`.
`lnbook.functional` registers their derivatives. `torch.vmap` calls them once per example; the
functions and layers, which give it torch operations instead, don't have that problem.

A call through an operator takes longer than a direct call to the kernel. So, on a CPU, the
functions `layer_norm_forward` and so on call the kernel itself, unless something has to see the
operator: a tracer, a dispatch mode such as PyTorch's operation counter, a tensor subclass, or a
tensor that doesn't hold its values as they are, such as a lazy negation.
"""

import importlib.util
import math
import sys
import warnings
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from lnbook._check_tensors import computing_dtype
from lnbook.kernels import cpu

# Device types on which the operators are known to run.
DEVICES: set[str] = set()
_WITHOUT: set[str] = set()  # types on which they don't run; each is reported at most once


# Each operator has its function's signature.
layer_norm_operator = torch.library.custom_op(
    "lnbook::layer_norm", cpu.layer_norm_forward, mutates_args=(), device_types="cpu"
)
rms_norm_operator = torch.library.custom_op(
    "lnbook::rms_norm", cpu.rms_norm_forward, mutates_args=(), device_types="cpu"
)
rms_norm_backward_operator = torch.library.custom_op(
    "lnbook::rms_norm_backward", cpu.rms_norm_backward, mutates_args=(), device_types="cpu"
)


@torch.library.custom_op("lnbook::layer_norm_backward", mutates_args=(), device_types="cpu")
def layer_norm_backward_operator(
    grad_output: Tensor,
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None,
    statistics: Tensor,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the gradients of input, weight and bias, the last two in the statistics' dtype."""
    given = (grad_output, input, normalized_shape, weight, statistics, eps)
    grad_input, grad_weight, grad_bias = cpu.layer_norm_backward(*given)
    return grad_input, grad_weight.clone(), grad_bias.clone()  # they must not share memory


# The shapes and dtypes of the results, for tracers.


@layer_norm_operator.register_fake
def _(
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None,
    bias: Tensor | None,
    eps: float,
) -> tuple[Tensor, Tensor]:
    return _like(input), _statistics(input, normalized_shape, 3)


@rms_norm_operator.register_fake
def _(
    input: Tensor, normalized_shape: Sequence[int], weight: Tensor | None, eps: float
) -> tuple[Tensor, Tensor]:
    return _like(input), _statistics(input, normalized_shape, 1)


@layer_norm_backward_operator.register_fake
def _(
    grad_output: Tensor,
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None,
    statistics: Tensor,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor]:
    grad_weight, grad_bias = (statistics.new_empty(list(normalized_shape)) for _ in range(2))
    return _like(input), grad_weight, grad_bias


@rms_norm_backward_operator.register_fake
def _(
    grad_output: Tensor,
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None,
    statistics: Tensor,
    eps: float,
) -> tuple[Tensor, Tensor]:
    return _like(input), statistics.new_empty(list(normalized_shape))


def _like(input: Tensor) -> Tensor:
    return torch.empty_like(input, memory_format=torch.contiguous_format)


def _statistics(input: Tensor, shape: Sequence[int], kinds: int) -> Tensor:
    rows = math.prod(input.shape[: input.ndim - len(shape)])
    return input.new_empty(kinds, rows, dtype=computing_dtype(input.dtype))


# The kernels themselves, or the operators.


def layer_norm_forward(
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None,
    bias: Tensor | None,
    eps: float,
) -> tuple[Tensor, Tensor]:
    """Return what `layer_norm_operator` returns, but faster if nothing has to see the operator."""
    direct = _direct(input, weight, bias)
    call = cpu.layer_norm_forward if direct else layer_norm_operator
    return call(input, normalized_shape, weight, bias, eps)


def layer_norm_backward(
    grad_output: Tensor,
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None,
    statistics: Tensor,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return what `layer_norm_backward_operator` returns, but faster if nothing has to see it."""
    direct = _direct(input, weight, grad_output)
    call = cpu.layer_norm_backward if direct else layer_norm_backward_operator
    return call(grad_output, input, normalized_shape, weight, statistics, eps)


def rms_norm_forward(
    input: Tensor, normalized_shape: Sequence[int], weight: Tensor | None, eps: float
) -> tuple[Tensor, Tensor]:
    """Return what `rms_norm_operator` returns, but faster if nothing has to see the operator."""
    call = cpu.rms_norm_forward if _direct(input, weight) else rms_norm_operator
    return call(input, normalized_shape, weight, eps)


def rms_norm_backward(
    grad_output: Tensor,
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None,
    statistics: Tensor,
    eps: float,
) -> tuple[Tensor, Tensor]:
    """Return what `rms_norm_backward_operator` returns, but faster if nothing has to see it."""
    direct = _direct(input, weight, grad_output)
    call = cpu.rms_norm_backward if direct else rms_norm_backward_operator
    return call(grad_output, input, normalized_shape, weight, statistics, eps)


def _direct(input: Tensor, *others: Tensor | None) -> bool:
    """Return whether a kernel can read the memory of these tensors directly."""
    if torch.compiler.is_compiling() or torch._C._len_torch_dispatch_stack() or not input.is_cpu:
        return False
    return all(
        tensor is None
        or (
            (type(tensor) in (Tensor, nn.Parameter))
            and not (tensor.is_neg() or tensor._is_zerotensor())
        )
        for tensor in (input, *others)
    )


def runs_on(device: str) -> bool:
    """Return whether the operators run on a type of device; if they don't, warn once.

    Args:
        device: the type, for example `"cpu"`.

    Example:
        >>> runs_on("meta")  # where nothing is computed
        False
    """
    if device in DEVICES:
        return True
    if device in _WITHOUT:
        return False
    reason = _reason(device)
    if reason is None:
        DEVICES.add(device)
        return True
    _WITHOUT.add(device)
    if device != "meta":
        warnings.warn(
            f"lnbook: fused norms fall back to slower torch operations, because {reason}",
            stacklevel=3,
        )
    return False


# The same as `torch.compiler.assume_constant_result`, which would import the compiler.
runs_on._dynamo_marked_constant = True  # type: ignore[attr-defined]


def _reason(device: str) -> str | None:
    """Return why the operators don't run on a type of device, or None if they do."""
    if device == "cpu":
        missing = cpu.missing()
        return missing and f"the CPU kernels need Numba ({missing}); pip install numba"
    if device != "cuda":
        return f"there are no kernels for the device {device!r}"
    if importlib.util.find_spec("triton") is None:
        return 'the GPU kernels need Triton; on Linux, pip install "lnbook[gpu]"'
    from lnbook.kernels.gpu import operators

    operators.register(sys.modules[__name__])
    return None
