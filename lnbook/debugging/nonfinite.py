"""Find the first module in a model where a number stops being finite."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from lnbook._check_tensors import check_module

__all__ = ["NonFinite", "first_nonfinite"]


@dataclass(frozen=True)
class NonFinite:
    """A tensor that contains `nan` or `inf`, and where it was seen.

    Attributes:
        module: the path of the module, as in `named_modules`; empty for the model itself.
        kind: the name of the module's class.
        place: "parameter", "buffer", "input", "output", "gradient of a parameter", "gradient of an
            input", "gradient of an output" or "result".
        name: which parameter, buffer or argument; empty for outputs and results.
        nan: how many entries are `nan`.
        inf: how many entries are `inf` or `-inf`.
        shape: the shape of the tensor.
        dtype: its dtype.
        before: for inputs and outputs, the path of the last module whose output was still finite;
            None if there was none.

    Example:
        >>> report = NonFinite("1", "LayerNorm", "input", "x", 0, 2, (4, 8), torch.float16, "0")
        >>> print(report)
        1 (LayerNorm): input 'x' has 0 nan and 2 inf, shape (4, 8), float16; last finite output: 0
    """

    module: str
    kind: str
    place: str
    name: str
    nan: int
    inf: int
    shape: tuple[int, ...]
    dtype: torch.dtype
    before: str | None

    def __str__(self) -> str:
        """One sentence: which tensor of which module, and what came before."""
        owner = f"{self.module or 'the model'} ({self.kind})"
        what = f"{self.place} {self.name!r}" if self.name else self.place
        after = "" if self.before is None else f"; last finite output: {self.before or 'the model'}"
        return (
            f"{owner}: {what} has {self.nan} nan and {self.inf} inf, "
            f"shape {self.shape}, {str(self.dtype).removeprefix('torch.')}{after}"
        )


def first_nonfinite(model: nn.Module, step: Callable[[], Any]) -> NonFinite | None:
    """Run a step with a model, and report the first tensor that isn't finite.

    Looks at all parameters and buffers before the step, at the inputs and outputs of every module
    during its forward pass, and at their gradients and those of the parameters if the step calls
    `backward`. The earliest one is reported:

    - "output": the module turned finite inputs into `nan` or `inf`;
    - "input": the tensor was computed outside any module, such as by a sum in the `forward` of
      the module around it, or it's the data;
    - "gradient of an input": the cause is the module's backward pass, or something else that uses
      the same tensor; "gradient of an output": the cause is something that comes after the module.

    Masks may contain infinities: `-inf` isn't reported in arguments that have "mask" in their name,
    and neither is any infinity in a buffer. The step runs once, to the end, with all its side
    effects. Every check waits for the device, so use this to find an error, not in every step of
    training. The hooks keep `nn.TransformerEncoderLayer` from taking its fused path (in evaluation
    mode, without gradients), so problems that occur only there aren't found.

    Args:
        model: any model. Compiled or scripted parts count as one module.
        step: called once, without arguments. It has to call `model`, and can call `backward` on the
            loss. If it returns a tensor (or something that contains tensors), that's checked last,
            with the place "result".

    Returns:
        The first tensor with an entry that isn't finite, or None.

    Raises:
        TypeError: `model` is not a module, or `step` can't be called.
        Exception: any exception that `step` raises, with the finding as a note if there was one.

    Example:
        >>> model = nn.Sequential(nn.Linear(2, 2), nn.LayerNorm(2))
        >>> _ = nn.init.constant_(model[0].bias, 3e38)
        >>> _ = nn.init.constant_(model[0].weight, 3e38)
        >>> print(first_nonfinite(model, lambda: model(torch.ones(1, 2))))
        0 (Linear): output has 0 nan and 2 inf, shape (1, 2), float32
    """
    check_module(model, "model", "first_nonfinite")
    if not callable(step):
        raise TypeError(
            f"first_nonfinite: expected step to be a function without arguments, but got "
            f"{type(step).__name__}"
        )
    watch = _Watch(model)
    try:
        watch.start()
        result = step()
    except Exception as error:
        if watch.found is not None:
            error.add_note(f"first_nonfinite: {watch.found}")
        raise
    finally:
        watch.stop()
    for tensor in _tensors(result):
        watch.check(tensor, "", model, "result")
    return watch.found


class _Watch:
    """Hooks on all modules and parameters that record the first tensor that isn't finite."""

    def __init__(self, model: nn.Module) -> None:
        self.found: NonFinite | None = None
        self._model = model
        self._before: str | None = None
        self._gradient: Tensor | None = None  # the gradient that was found
        self._handles: list[Any] = []

    def start(self) -> None:
        for path, module in self._model.named_modules():
            for name, tensor in module.named_parameters(recurse=False):
                self.check(tensor, path, module, "parameter", name)
                if tensor.requires_grad:
                    self._watch_gradient(tensor, path, module, "gradient of a parameter", name)
            for name, tensor in module.named_buffers(recurse=False):
                self.check(tensor, path, module, "buffer", name, infinities="any")
            self._handles += [
                module.register_forward_pre_hook(self._inputs_of(path), with_kwargs=True),
                module.register_forward_hook(self._outputs_of(path)),
            ]

    def stop(self) -> None:
        for handle in self._handles:
            handle.remove()

    def check(
        self,
        tensor: Tensor,
        path: str,
        module: nn.Module,
        place: str,
        name: str = "",
        infinities: str = "none",
    ) -> None:
        """Record a tensor if it's the first with entries that it shouldn't have."""
        if self.found is not None or not _can_check(tensor):
            return
        values = tensor.detach()
        nan, inf = int(values.isnan().sum()), int(values.isinf().sum())
        allowed = {"none": 0, "any": inf, "-inf": int(_negative_infinities(values))}[infinities]
        if nan or inf > allowed:
            self.found = NonFinite(
                path,
                type(module).__name__,
                place,
                name,
                nan,
                inf,
                tuple(tensor.shape),
                tensor.dtype,
                self._before if place in ("input", "output") else None,
            )

    def _inputs_of(self, path: str) -> Callable[..., None]:
        def look(module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
            for name, value in _named(module, args, kwargs):
                for tensor in _tensors(value):
                    infinities = "-inf" if "mask" in name.lower() else "none"
                    self.check(tensor, path, module, "input", name, infinities)
                    if tensor.requires_grad and not isinstance(tensor, nn.Parameter):
                        self._watch_gradient(tensor, path, module, "gradient of an input", name)

        return look

    def _outputs_of(self, path: str) -> Callable[..., None]:
        def look(module: nn.Module, args: Any, output: Any) -> None:
            for tensor in _tensors(output):
                self.check(tensor, path, module, "output")
                if tensor.requires_grad and not isinstance(tensor, nn.Parameter):
                    self._watch_gradient(tensor, path, module, "gradient of an output")
            self._before = path

        return look

    def _watch_gradient(
        self, tensor: Tensor, path: str, module: nn.Module, place: str, name: str = ""
    ) -> None:
        def look(gradient: Tensor) -> None:
            # A tensor is an output of one module and an input of the next, with one gradient. The
            # next module computed it, so it's reported there.
            if gradient is self._gradient and place == "gradient of an input":
                self.found = None
            if self.found is None:
                self.check(gradient, path, module, place, name)
                self._gradient = None if self.found is None else gradient

        self._handles.append(tensor.register_hook(look))


def _can_check(tensor: Tensor) -> bool:
    floats = tensor.is_floating_point() or tensor.is_complex()
    return floats and tensor.layout == torch.strided and not tensor.is_meta and not tensor.is_nested


def _negative_infinities(values: Tensor) -> int:
    return 0 if values.is_complex() else int(values.isneginf().sum())


def _named(
    module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Iterator[tuple[str, Any]]:
    """The arguments of a call with the names they have in the module's `forward`."""
    try:
        arguments = inspect.signature(module.forward).bind_partial(*args, **kwargs).arguments
    except (TypeError, ValueError):  # there's no signature, or the call is about to fail
        yield from ((str(place), value) for place, value in enumerate(args))
        yield from kwargs.items()
        return
    for name, value in arguments.items():
        if isinstance(value, Mapping):  # **kwargs, or a batch in a dictionary
            yield from ((str(key), item) for key, item in value.items())
        else:
            yield name, value


def _tensors(value: Any) -> Iterator[Tensor]:
    """All tensors in a value, which can be a tensor or tuples, lists and mappings of them."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, Mapping):
        yield from (tensor for item in value.values() for tensor in _tensors(item))
    elif isinstance(value, (tuple, list)):
        yield from (tensor for item in value for tensor in _tensors(item))
