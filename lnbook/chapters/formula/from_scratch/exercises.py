"""The wrong LayerNorms and the checkers of the chapter on writing the module.

A wrong module takes the arguments of `torch.nn.LayerNorm` and has its parameters; only one line
of its formula differs. Each was a mistake in code that somebody published or handed in.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from lnbook.chapters.shared.checker import Verdict
from lnbook.chapters.shared.wrong_layer_norms import MORE_WRONG, WRONG, centered, variance
from lnbook.layers import LayerNorm

__all__ = ["check_layer_norm_2d", "check_test"]

HINTS = MappingProxyType(
    {
        "eps outside the root": "Use rows whose variance is not large next to eps.",
        "eps fixed at 1e-5": "Use another eps than the default.",
        "unbiased variance": "Is your tolerance too wide, or does no test look at the values?",
        "one-pass variance": "Use a mean that is much larger than the spread, and float64.",
        "gamma and beta ignored": "Give the parameters other values than 1 and 0.",
        "(xhat + beta) * gamma": "Give both parameters other values than 1 and 0.",
        "last axis only": "Use a normalized_shape of two sizes or more.",
        "first axis": "Compare values, on an input of more than one row.",
        "one mean for the whole array": "Use an input of more than one row.",
        "divides by the variance": "Use rows whose variance is not 1.",
        "std where var belongs": "Use rows whose variance is not 1.",
        "no eps": "Use rows whose variance is not large next to eps.",
    }
)


def check_test(test: Callable[[type[nn.Module]], Any]) -> Verdict:
    """Check a test of LayerNorm modules: right ones must pass it, and twelve wrong ones must not.

    A test passes a module by returning True, or by returning nothing without an error. It fails
    a module by returning False or by raising, as `assert` does.

    Args:
        test: takes a class that is called and used like `torch.nn.LayerNorm`.

    Returns:
        The verdict, with the wrong modules that got through and a hint for the first.

    Example:
        >>> check_test(lambda candidate: True)
        Not yet. Your test lets 12 of 12 wrong modules pass.
        Does it compare the outputs with nn.LayerNorm's, and return the result?
    """
    refused = _refused_right(test)
    if refused is not None:
        return refused
    wrong = {**WRONG, **MORE_WRONG}
    passed = []
    for name, candidate in wrong.items():
        failure = _failure(test, candidate)
        if failure is None:
            passed.append(name)
    if passed:
        count = f"{len(passed)} of {len(wrong)} wrong modules"
        hint = f"The first: {passed[0]}. {HINTS[passed[0]]}"
        if len(passed) == len(wrong):
            hint = "Does it compare the outputs with nn.LayerNorm's, and return the result?"
        return Verdict(False, f"Your test lets {count} pass.\n{hint}")
    for _ in range(3):  # a test that draws other data each time must still accept the right ones
        refused = _refused_right(test)
        if refused is not None:
            return Verdict(False, f"{refused.message}\nIt passed before: does your data change?")
    return Verdict(
        True, f"Your test accepts the right modules and refuses all {len(wrong)} wrong ones."
    )


def _refused_right(test: Callable[[type[nn.Module]], Any]) -> Verdict | None:
    if not callable(test):
        return Verdict(False, f"Give the function itself, not {test!r}.")
    for right, name in ((nn.LayerNorm, "nn.LayerNorm"), (LayerNorm, "the LayerNorm of lnbook")):
        failure = _failure(test, right)
        if failure is not None:
            hint = (
                "\nCompute in float64, or widen the tolerance."
                if failure.startswith(("it returned", "AssertionError"))
                else ""
            )
            return Verdict(False, f"Your test refuses {name}:\n{failure}.{hint}")
    return None


def _failure(test: Callable[[type[nn.Module]], Any], candidate: type[nn.Module]) -> str | None:
    """Why a test fails a module, or None if it passes."""
    try:
        result = test(candidate)
    except Exception as error:
        return f"{type(error).__name__}: {error}".rstrip(": ")
    if result is None:
        return None
    if getattr(result, "ndim", 0):
        return "it returned an array; return one True or False"
    return None if bool(result) else f"it returned {result}"


def _pixels(x: Tensor, weight: Tensor, bias: Tensor, eps: float) -> Tensor:
    last = x.permute(0, 2, 3, 1)
    return nn.functional.layer_norm(last, last.shape[-1:], weight, bias, eps).permute(0, 3, 1, 2)


def _per_channel(value: Tensor) -> Tensor:
    return value[:, None, None]


def _normalized(x: Tensor, dims: tuple[int, ...], eps: float) -> Tensor:
    return centered(x, dims) / torch.sqrt(variance(x, dims) + eps)


PixelFormula = Callable[[Tensor, Tensor, Tensor, float], Tensor]

MISTAKES_2D: Mapping[str, PixelFormula] = MappingProxyType(
    {
        "It takes one mean per image. Average over the channels of each pixel only.": (
            lambda x, w, b, eps: _normalized(x, (1, 2, 3), eps) * _per_channel(w) + _per_channel(b)
        ),
        "It takes one mean per channel of each image. Average over the channels instead.": (
            lambda x, w, b, eps: _normalized(x, (2, 3), eps) * _per_channel(w) + _per_channel(b)
        ),
        "It takes one mean per channel over the batch. That is batch normalization.": (
            lambda x, w, b, eps: _normalized(x, (0, 2, 3), eps) * _per_channel(w) + _per_channel(b)
        ),
        "It normalizes along the width, the last axis. Average over the channels, axis 1.": (
            lambda x, w, b, eps: _normalized(x, (3,), eps) * w + b
        ),
        "It normalizes along the width, the last axis. Average over axis 1 instead.": (
            lambda x, w, b, eps: _normalized(x, (3,), eps) * _per_channel(w) + _per_channel(b)
        ),
        "It applies gamma and beta along the width. They belong to the channels, axis 1.": (
            lambda x, w, b, eps: _normalized(x, (1,), eps) * w + b
        ),
        "It ignores gamma and beta.": lambda x, w, b, eps: _normalized(x, (1,), eps),
        "It ignores beta.": lambda x, w, b, eps: _normalized(x, (1,), eps) * _per_channel(w),
        "It adds beta before it multiplies by gamma. Multiply first.": lambda x, w, b, eps: (
            (_normalized(x, (1,), eps) + _per_channel(b)) * _per_channel(w)
        ),
        "It ignores its argument eps.": lambda x, w, b, eps: _pixels(x, w, b, 1e-5),
        "It adds eps outside the root. Add it to the variance, then take the root.": (
            lambda x, w, b, eps: (
                centered(x, (1,)) / (variance(x, (1,)).sqrt() + eps) * _per_channel(w)
                + _per_channel(b)
            )
        ),
        "It divides by C - 1 in the variance. LayerNorm divides by C.": lambda x, w, b, eps: (
            centered(x, (1,)) / torch.sqrt(x.var(1, keepdim=True) + eps) * _per_channel(w)
            + _per_channel(b)
        ),
        "It divides by the variance. Divide by the root of the variance plus eps.": (
            lambda x, w, b, eps: (
                centered(x, (1,)) / (variance(x, (1,)) + eps) * _per_channel(w) + _per_channel(b)
            )
        ),
    }
)


def check_layer_norm_2d(candidate: Callable[..., nn.Module]) -> Verdict:
    """Check a module that normalizes images of shape (N, C, H, W) over C at each pixel.

    Args:
        candidate: a class, called with the number of channels and `eps=...`, whose modules have
            the parameters `weight` and `bias` of shape `(C,)`.

    Returns:
        The verdict; a known mistake is called by its name.

    Example:
        >>> class Identity(nn.Module):
        ...     def __init__(self, channels, eps=1e-5):
        ...         super().__init__()
        >>> check_layer_norm_2d(Identity)
        Not yet. Your module has no parameters `weight` and `bias`; it has none.
    """
    rng = np.random.default_rng(2022)
    # First as many channels as columns: there also mistakes about the width give an answer.
    for shape, eps in (((2, 4, 3, 4), 0.5), ((2, 3, 4, 5), 0.25), ((1, 6, 2, 3), 1e-3)):
        layer = _built(candidate, shape[1], eps)
        if isinstance(layer, Verdict):
            return layer
        x = torch.from_numpy(rng.normal(1.0, 2.0, size=shape))
        with torch.no_grad():
            for parameter in layer.parameters():
                parameter.copy_(torch.from_numpy(rng.normal(size=shape[1])))
        verdict = _judged(layer, x, eps)
        if verdict is not None:
            return verdict
    return Verdict(True, "Every pixel is normalized over its channels, with the right parameters.")


def _built(candidate: Callable[..., nn.Module], channels: int, eps: float) -> nn.Module | Verdict:
    if isinstance(candidate, nn.Module):
        return Verdict(False, "Give the class, not a module that is made already.")
    try:
        layer = candidate(channels, eps=eps)
    except Exception as error:
        return Verdict(False, f"Making your module raised {type(error).__name__}: {error}")
    if not isinstance(layer, nn.Module):
        return Verdict(False, "Your class should inherit from nn.Module.")
    names = {name: tuple(parameter.shape) for name, parameter in layer.named_parameters()}
    if set(names) != {"weight", "bias"}:
        has = ", ".join(names) or "none"
        hint = (
            " A tensor counts as a parameter only if it is an nn.Parameter."
            if isinstance(getattr(layer, "weight", None), Tensor) and not names
            else ""
        )
        return Verdict(
            False, f"Your module has no parameters `weight` and `bias`; it has {has}.{hint}"
        )
    for name, shape in names.items():
        if shape != (channels,):
            return Verdict(
                False,
                f"`{name}` should have the shape {(channels,)}, one per channel, not {shape}.",
            )
    weight, bias = layer.get_parameter("weight"), layer.get_parameter("bias")
    if not bool((weight == 1).all()) or not bool((bias == 0).all()):
        return Verdict(False, "At the start `weight` should be all ones and `bias` all zeros.")
    return layer.double()


def _judged(layer: nn.Module, x: Tensor, eps: float) -> Verdict | None:
    given = x.clone()
    shape = tuple(x.shape)
    try:
        y = layer(given)
    except NotImplementedError:
        return Verdict(False, "Your module has no `forward` yet.")
    except Exception as error:
        return Verdict(
            False, f"Your module raised {type(error).__name__}: {error} (x had the shape {shape})."
        )
    if y is None:
        return Verdict(False, "Your `forward` returns nothing. Did you forget `return`?")
    if not isinstance(y, Tensor):
        return Verdict(False, f"Your `forward` should return a tensor, not {type(y).__name__}.")
    if not torch.equal(given, x):
        return Verdict(False, "Your module changes its input. Compute a new tensor instead.")
    if tuple(y.shape) != shape:
        moved = tuple(y.shape) == tuple(shape[i] for i in (0, 2, 3, 1))
        twice = tuple(y.shape) == tuple(shape[i] for i in (0, 3, 1, 2))
        hint = " Move the channels back to axis 1." if moved else ""
        hint = " The way back is another permute than the way there." if twice else hint
        return Verdict(
            False, f"The output should have the shape {shape}, but has {tuple(y.shape)}.{hint}"
        )
    weight, bias = layer.get_parameter("weight"), layer.get_parameter("bias")
    with torch.no_grad():
        right = _pixels(x, weight, bias, eps)
        if torch.allclose(y.double(), right, rtol=0.0, atol=1e-9):
            return None
        if torch.allclose(y.double(), right, rtol=0.0, atol=1e-5):
            return Verdict(False, "That is right to 32-bit precision only: keep the dtype of x.")
        if torch.allclose(y.double(), right.permute(0, 2, 3, 1).reshape(shape)):
            return Verdict(False, "You moved the channels back with reshape or view. Use permute.")
        for message, formula in MISTAKES_2D.items():
            wrong = formula(x, weight, bias, eps) if shape[1] == shape[3] else None
            if wrong is not None and torch.allclose(y.double(), wrong, rtol=0.0, atol=1e-9):
                return Verdict(False, message)
    return Verdict(False, f"For x of shape {shape} and eps={eps} the values are off.")
