"""Adds noise to torch's sums and approximations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from bookbuild.reproduce.noise.last_bits import EXACT_BITS, UNSIGNED, are_exact, change

# Operations with the same result on every processor: they move or select numbers, or are correctly
# rounded, as IEEE 754 requires. All others get noise.
EXACT = """
_copy_from _local_scalar_dense _reshape_copy _to_copy _unsafe_index _unsafe_index_put _unsafe_view
abs add amax amin aminmax arange as_strided bernoulli bitwise_and cat ceil clamp clamp_max
clamp_min clone constant_pad_nd contiguous copy cummax cummin diag_embed div dropout embedding
empty empty_like empty_strided eye fill flip floor fmod frac full full_like gather hardtanh
hardtanh_backward im2col index index_copy index_fill index_put index_select isnan kthvalue lift
lift_fresh linspace masked_fill masked_scatter masked_select max max_pool2d_with_indices maximum
median min minimum mode mul nan_to_num native_dropout native_dropout_backward neg new_empty
new_empty_strided new_full new_ones new_zeros ones ones_like pad random reciprocal relu remainder
repeat repeat_interleave resize roll rot90 round rsub scalar_tensor scatter select_backward
select_scatter set sgn sign slice_backward slice_scatter sort sqrt stack sub threshold
threshold_backward to topk tril tril_indices triu trunc unfold_backward uniform unique
upsample_nearest2d where zero zeros zeros_like
"""
POWERS = {torch.ops.aten.pow, torch.ops.aten.pow_}
ROUNDED_POWERS = (0, 0.5, 1, 2, -1)  # x**2 is x * x, x**0.5 is sqrt(x)
SUMS = {torch.ops.aten.sum, torch.ops.aten.mean}


class NoisyTorch(TorchDispatchMode):
    """While active, adds noise to the result of every operation that sums or approximates."""

    def __init__(self, seed: int) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._seed, self._exact = seed, frozenset(EXACT.split())
        self._written: dict[Any, list[int] | None] = {}

    def __torch_dispatch__(
        self,
        func: Any,
        types: Any,
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        """Run one operation and change its results."""
        result = func(*args, **(kwargs or {}))
        if func not in self._written:
            self._written[func] = self._arguments_written(func)
        positions = self._written[func]
        if positions is None or _is_exact_here(func, args):
            return result
        changed: set[int] = set()  # a result may be an argument modified in place
        for position in positions:
            if position < len(args):
                self._change_all(args[position], changed)
        for name, value in (kwargs or {}).items():
            if name.startswith("out"):
                self._change_all(value, changed)
        self._change_all(result, changed)
        return result

    def _arguments_written(self, func: Any) -> list[int] | None:
        """Which arguments an operation writes to; None if its results are exact."""
        schema = func._schema
        name = schema.name.split("::")[1].removeprefix("_foreach_").rstrip("_")
        aliases = [returned.alias_info for returned in schema.returns]
        is_view = any(alias is not None and not alias.is_write for alias in aliases)
        if is_view or name in self._exact:
            return None
        written = [argument.alias_info for argument in schema.arguments]
        return [i for i, alias in enumerate(written) if alias is not None and alias.is_write]

    def _change_all(self, value: Any, changed: set[int]) -> None:
        if isinstance(value, (tuple, list)):
            for member in value:
                self._change_all(member, changed)
        elif isinstance(value, Tensor) and id(value) not in changed:
            changed.add(id(value))
            self._change(value)

    def _change(self, tensor: Tensor) -> None:
        if not _has_numbers(tensor):
            return
        numbers = tensor if tensor.is_contiguous() else tensor.detach().contiguous()
        change(_bits(numbers), self._seed, EXACT_BITS[tensor.element_size()])
        if numbers is not tensor:
            tensor.detach().copy_(numbers)


def _bits(tensor: Tensor) -> NDArray[np.unsignedinteger]:
    """A contiguous tensor's bits, sharing its memory."""
    size = tensor.element_size()
    if tensor.requires_grad:
        tensor = tensor.detach()
    if tensor.dtype is torch.bfloat16:  # NumPy doesn't have this dtype
        tensor = tensor.view(torch.int16)
    return tensor.numpy().reshape(-1).view(UNSIGNED[size])


def _has_numbers(tensor: Tensor) -> bool:
    """Whether a tensor holds floating-point numbers and isn't a placeholder used for tracing."""
    own = type(tensor) in (Tensor, torch.nn.Parameter) and not torch._is_functional_tensor(tensor)
    dense = tensor.is_cpu and tensor.layout is torch.strided
    return own and dense and tensor.is_floating_point()


def _is_exact_here(func: Any, args: Sequence[Any]) -> bool:
    """Whether an operation that usually rounds is exact for these arguments."""
    packet = func.overloadpacket
    if packet in POWERS:  # one correctly rounded operation
        return isinstance(args[1], (int, float)) and args[1] in ROUNDED_POWERS
    if packet not in SUMS or not _has_numbers(args[0]):
        return False
    # A sum of numbers with so few bits that it's exact in any order, or a mean of such numbers.
    numbers = args[0].contiguous()
    return are_exact(_bits(numbers), EXACT_BITS[numbers.element_size()])


def start(seed: int) -> None:
    """Make torch compute with noise from now on in this thread."""
    NoisyTorch(seed).__enter__()  # type: ignore[no-untyped-call]
