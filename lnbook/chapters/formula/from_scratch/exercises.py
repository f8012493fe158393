"""Checkers for the exercises in "Write LayerNorm from scratch, and test it well"."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from lnbook.chapters.shared.checker import (
    NotYet,
    as_array,
    as_count,
    checker,
    judge,
    running,
)
from lnbook.chapters.shared.wrong_layer_norms import (
    MORE_WRONG,
    WRONG,
    PlainLayerNorm,
    centered,
    variance,
)
from lnbook.layers import LayerNorm

__all__ = ["check_layer_norm_2d", "check_test", "check_when_noticed", "check_wrong_by_hand"]

HINTS = {
    "eps outside the root": "Use rows whose variance isn't large compared to eps.",
    "eps fixed at 1e-5": "Use an eps other than the default.",
    "unbiased variance": "Is your tolerance too wide, or do you never compare values?",
    "one-pass variance": "Use a mean much larger than the standard deviation, and float64.",
    "gamma and beta ignored": "Give the parameters values other than 1 and 0.",
    "(xhat + beta) * gamma": "Give both parameters values other than 1 and 0.",
    "last axis only": "Use a normalized_shape with two or more dimensions.",
    "first axis": "Compare values, on an input with more than one row.",
    "one mean for the whole array": "Use an input with more than one row.",
    "divides by the variance": "Use rows whose variance isn't 1.",
    "std where var belongs": "Use rows whose variance isn't 1.",
    "no eps": "Use rows whose variance isn't large compared to eps.",
}

RIGHT: dict[str, type[nn.Module]] = {
    "nn.LayerNorm": nn.LayerNorm,
    "the LayerNorm of lnbook": LayerNorm,
    # The other two call the same kernel: a test that notices nothing but rounding accepts them.
    "a module that's right in 32 and 64 bits, but rounds differently": PlainLayerNorm,
}
ROUNDING = "Compute in float64, and compare with torch.allclose, which allows for rounding."


@checker
def check_test(test: Callable[[type[nn.Module]], Any]) -> str:
    """Check a test of LayerNorm modules: correct ones must pass, and twelve buggy ones must fail.

    A test accepts a module by returning True, or by returning nothing and raising no error. It
    rejects a module by returning False or by raising an error, as `assert` does.

    Args:
        test: takes a class that's used like `torch.nn.LayerNorm`.

    Example:
        >>> check_test(lambda candidate: True)
        Not yet. Your test lets 12 of 12 wrong modules pass.
        Does it compare the outputs with nn.LayerNorm's, and return the result?
    """
    if not callable(test):
        raise NotYet(f"Pass the function itself, not {test!r}.")
    _check_accepts_the_right(test)
    wrong = {**WRONG, **MORE_WRONG}
    passed = [name for name, candidate in wrong.items() if _failure(test, candidate) is None]
    if passed:
        hint = f"The first: {passed[0]}. {HINTS[passed[0]]}"
        if len(passed) == len(wrong):
            hint = "Does it compare the outputs with nn.LayerNorm's, and return the result?"
        raise NotYet(f"Your test lets {len(passed)} of {len(wrong)} wrong modules pass.\n{hint}")
    for _ in range(3):  # a test that draws new data each time must keep accepting correct modules
        _check_accepts_the_right(test, "\nIt passed before: does your data change?")
    return f"Your test accepts the right modules and rejects all {len(wrong)} wrong ones."


def _check_accepts_the_right(test: Callable[[type[nn.Module]], Any], added: str = "") -> None:
    for name, right in RIGHT.items():
        failure = _failure(test, right)
        if failure is not None:
            unequal = failure.startswith(("it returned", "AssertionError"))
            hint = f"\n{ROUNDING}" if unequal else ""
            raise NotYet(f"Your test rejects {name}:\n{failure}.{hint}{added}")


def _failure(test: Callable[[type[nn.Module]], Any], candidate: type[nn.Module]) -> str | None:
    """Why a test rejects a module, or None if it accepts it."""
    try:
        result = test(candidate)
    except Exception as error:
        return f"{type(error).__name__}: {error}".rstrip(": ")
    if result is None:
        return None
    if getattr(result, "ndim", 0):
        return "it returned an array; return a single True or False"
    return None if bool(result) else f"it returned {result}"


ROW_BY_HAND = np.array([-1.0, 1.0])  # the row [1, 3], normalized


@checker
def check_wrong_by_hand(
    right: Any = None,
    shifted_first: Any = None,
    unbiased: Any = None,
    visible_when_new: Any = None,
) -> str:
    """Check what one right module and two wrong ones return for the row [1, 3].

    All of them have gamma 2 and beta 1, and eps is 0.

    Args:
        right: the output of the right LayerNorm, two numbers.
        shifted_first: the output of "(xhat + beta) * gamma".
        unbiased: the output of "unbiased variance".
        visible_when_new: how many of the two mistakes change the output of a new layer.

    Example:
        >>> check_wrong_by_hand(right=[0, 4])
        Not yet. right: you added beta before you multiplied by gamma.
    """
    xhat, small = ROW_BY_HAND, ROW_BY_HAND / np.sqrt(2.0)
    outputs: dict[str, tuple[Any, Any, dict[str, Any]]] = {
        "right": (
            right,
            2 * xhat + 1,
            {
                "you added beta before you multiplied by gamma.": 2 * (xhat + 1),
                "you divided by H - 1 in the variance.": 2 * small + 1,
                "this is the normalized row. Apply gamma and beta.": xhat,
            },
        ),
        "shifted_first": (
            shifted_first,
            2 * (xhat + 1),
            {"this is the right output. Add beta first, then multiply.": 2 * xhat + 1},
        ),
        "unbiased": (
            unbiased,
            2 * small + 1,
            {
                "this is the right output. Divide by H - 1 = 1 in the variance.": 2 * xhat + 1,
                "this is the normalized row. Apply gamma and beta.": small,
                "you divided by the variance. Divide by its square root.": xhat + 1,
                "this module applies gamma first, then beta.": 2 * (small + 1),
            },
        ),
    }
    for name, (answer, expected, mistakes) in outputs.items():
        judge(
            as_array(answer, (2,), f"`{name}`"),
            expected,
            {f"{name}: {told}": wrong for told, wrong in mistakes.items()},
            otherwise=f"{name}: normalize [1, 3] first, then apply gamma = 2 and beta = 1.",
            tolerance=0.011,
        )
    judge(
        as_count(visible_when_new, "`visible_when_new`"),
        1,
        {"With gamma 1 and beta 0, does the order of scale and shift matter?": 2},
        otherwise="In a new layer, gamma is 1 and beta is 0. Which mistake still shows?",
    )
    return "In a new layer, only the unbiased variance shows."


NOTICED = (np.sqrt(3.0) - 1.0) / 2.0
NOT_NOTICED: dict[str, float] = {
    "This is the variance. Take its square root.": NOTICED**2,
    "You left out the term from 1 / (1 + eps / sigma), which has the opposite sign.": 0.5**0.5,
    "To first order, the difference is zero here. Set it equal to the tolerance.": 0.5,
    "Check the square root: sqrt(1 + t) is about 1 + t / 2, not 1 + t.": (5**0.5 - 1) / 2,
    "Check the sign of 1 / sigma: 1 / (1 + t) is about 1 - t.": (3**0.5 + 1) / 2,
    "At sigma = 1, the difference is only half the tolerance.": 1.0,
    "Here the variance equals eps. The test notices the mistake well above that.": 1e-5**0.5,
}


@checker
def check_when_noticed(sigma: Any = None) -> str:
    """Check the standard deviation below which the usual test notices "eps outside the root".

    Args:
        sigma: one number, to two decimals.

    Example:
        >>> check_when_noticed(sigma=0.134)
        Not yet. This is the variance. Take its square root.
    """
    judge(
        as_array(sigma, (), "Your sigma"),
        NOTICED,
        NOT_NOTICED,
        otherwise="Set eps * (1 / (2 * sigma ** 2) - 1 / sigma) equal to 1e-5, and solve for "
        "sigma.",
        tolerance=0.034,  # two decimals
        relative=True,
    )
    return "Rows of the usual test rarely have such a small standard deviation."


def _normalized(x: Tensor, dims: tuple[int, ...], eps: float) -> Tensor:
    return centered(x, dims) / torch.sqrt(variance(x, dims) + eps)


def _mistakes_2d(x: Tensor, weight: Tensor, bias: Tensor, eps: float) -> dict[str, Tensor]:
    """The outputs of common mistakes for images with as many channels as columns."""
    w, b = weight[:, None, None], bias[:, None, None]
    deviations, v = centered(x, (1,)), variance(x, (1,))
    xhat, along_width = _normalized(x, (1,), eps), _normalized(x, (3,), eps)
    return {
        "It takes one mean per image. Average over the channels of each pixel only.": (
            _normalized(x, (1, 2, 3), eps) * w + b
        ),
        "It takes one mean per channel of each image. Average over the channels instead.": (
            _normalized(x, (2, 3), eps) * w + b
        ),
        "It takes one mean per channel over the batch. That's batch normalization.": (
            _normalized(x, (0, 2, 3), eps) * w + b
        ),
        "It normalizes along the width, the last axis. Average over the channels, axis 1.": (
            along_width * weight + bias
        ),
        "It normalizes along the width, the last axis. Average over axis 1 instead.": (
            along_width * w + b
        ),
        "It applies gamma and beta along the width. They belong to the channels, axis 1.": (
            xhat * weight + bias
        ),
        "It ignores gamma and beta.": xhat,
        "It ignores beta.": xhat * w,
        "It adds beta before it multiplies by gamma. Multiply first.": (xhat + b) * w,
        "It ignores its argument eps.": _normalized(x, (1,), 1e-5) * w + b,
        "It adds eps outside the square root. Add it to the variance, then take the "
        "square root.": deviations / (v.sqrt() + eps) * w + b,
        "It divides by C - 1 in the variance. LayerNorm divides by C.": (
            deviations / torch.sqrt(x.var(1, keepdim=True) + eps) * w + b
        ),
        "It divides by the variance. Divide by the square root of the variance plus eps.": (
            deviations / (v + eps) * w + b
        ),
    }


LARGE_MEAN = 1e5
CANCELS = (
    "It's right on paper, but if a mean is far larger than the standard deviation, it suffers "
    "from cancellation. Subtract the mean before you square."
)


@checker
def check_layer_norm_2d(candidate: Callable[..., nn.Module]) -> str:
    """Check a module that normalizes images of shape (N, C, H, W) over C at each pixel.

    Args:
        candidate: a class, called with the number of channels and `eps=...`, whose modules have
            the parameters `weight` and `bias` of shape `(C,)`.

    Example:
        >>> class Identity(nn.Module):
        ...     def __init__(self, channels, eps=1e-5):
        ...         super().__init__()
        >>> check_layer_norm_2d(Identity)
        Not yet. Your module needs the parameters `weight` and `bias`, but has none.
    """
    rng = np.random.default_rng(2022)
    # The first shape has as many channels as columns, so that mixing them up raises no error.
    # The last x reveals a variance that suffers from cancellation.
    for shape, eps, mean, spread in (
        ((2, 4, 3, 4), 0.5, 1.0, 2.0),
        ((2, 3, 4, 5), 0.25, 1.0, 2.0),
        ((1, 6, 2, 3), 1e-3, 1.0, 2.0),
        ((2, 3, 4, 5), 1e-5, LARGE_MEAN, 0.01),
    ):
        layer = _built(candidate, shape[1], eps)
        x = torch.from_numpy(rng.normal(mean, spread, size=shape))
        with torch.no_grad():
            for parameter in layer.parameters():
                parameter.copy_(torch.from_numpy(rng.normal(size=shape[1])))
        _check_values(_output(layer, x), layer, x, eps)
    return "Your module normalizes each pixel over its channels, with the right parameters."


def _built(candidate: Callable[..., nn.Module], channels: int, eps: float) -> nn.Module:
    if isinstance(candidate, nn.Module):
        raise NotYet("Pass the class itself, not an instance of it.")
    with running("Creating your module"):
        layer = candidate(channels, eps=eps)
    if not isinstance(layer, nn.Module):
        raise NotYet("Your class should inherit from nn.Module.")
    names = {name: tuple(parameter.shape) for name, parameter in layer.named_parameters()}
    if set(names) != {"weight", "bias"}:
        has = ", ".join(names) or "none"
        plain = not names and isinstance(getattr(layer, "weight", None), Tensor)
        hint = " A tensor counts as a parameter only if it is an nn.Parameter." if plain else ""
        raise NotYet(f"Your module needs the parameters `weight` and `bias`, but has {has}.{hint}")
    for name, shape in names.items():
        if shape != (channels,):
            wanted = f"shape {(channels,)}, one entry per channel"
            raise NotYet(f"`{name}` should have {wanted}, not {shape}.")
    if (layer.get_parameter("weight") != 1).any() or layer.get_parameter("bias").any():
        raise NotYet("In a new module, `weight` should be all ones and `bias` all zeros.")
    return layer.double()


def _output(layer: nn.Module, x: Tensor) -> Tensor:
    given, shape = x.clone(), tuple(x.shape)
    with running("Your module", f"x had the shape {shape}"):
        try:
            y = layer(given)
        except NotImplementedError:
            raise NotYet("Your module has no `forward` yet.") from None
    if y is None:
        raise NotYet("Your `forward` returns nothing. Did you forget `return`?")
    if not isinstance(y, Tensor):
        raise NotYet(f"Your `forward` should return a tensor, not {type(y).__name__}.")
    if not torch.equal(given, x):
        raise NotYet("Your module changes its input in place. Compute a new tensor instead.")
    if tuple(y.shape) != shape:
        n, c, h, w = shape
        hints: dict[tuple[int, ...], str] = {
            (n, h, w, c): " Move the channels back to axis 1.",
            (n, w, c, h): " You need a different permute to move the channels back.",
        }
        told = f"The output should have shape {shape}, but has {tuple(y.shape)}."
        raise NotYet(told + hints.get(tuple(y.shape), ""))
    return y.detach().double()


@torch.no_grad()
def _check_values(y: Tensor, layer: nn.Module, x: Tensor, eps: float) -> None:
    weight, bias = layer.get_parameter("weight"), layer.get_parameter("bias")
    right = _normalized(x, (1,), eps) * weight[:, None, None] + bias[:, None, None]
    if x.mean() > LARGE_MEAN / 2:
        judge(y.numpy(), right.numpy(), {}, otherwise=CANCELS)
        return
    if 1e-9 < (y - right).abs().max() <= 1e-5:
        raise NotYet("That's right only to 32-bit precision. Keep the dtype of x.")
    if torch.allclose(y, right.permute(0, 2, 3, 1).reshape(x.shape)):
        raise NotYet("You moved the channels back with reshape or view. Use permute.")
    mistakes = _mistakes_2d(x, weight, bias, eps) if x.shape[1] == x.shape[3] else {}
    judge(
        y.numpy(),
        right.numpy(),
        {text: wrong.numpy() for text, wrong in mistakes.items()},
        otherwise=f"For x of shape {tuple(x.shape)} and eps={eps} the values are off.",
    )
