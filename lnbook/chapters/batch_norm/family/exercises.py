"""Checkers for the chapter on the family of norms."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import group_norm, layer_norm

from lnbook.chapters.shared.checker import as_array, as_count, checker, judge, run_answer

__all__ = ["check_group_norm_last", "check_layer_norm_2d", "check_moved", "check_offset"]

Array = NDArray[np.float64]

EPS = 1e-5
TOLERANCE = 1e-8

# For an input of shape (16, 32, 7, 7) and GroupNorm with 4 groups: how many outputs change.
PIXELS = 7 * 7
MOVED: dict[str, tuple[int, dict[int, str]]] = {
    "bn": (
        16 * PIXELS,
        {
            PIXELS: "That's one image. Batch normalization uses the channel in all 16.",
            16: "Height and width share the mean as well.",
            16 * 32 * PIXELS: "That's everything. Other channels have their own mean.",
            1: "That's right in evaluation. In training, the batch shares its statistics.",
        },
    ),
    "ln": (
        32 * PIXELS,
        {
            32: "That's one pixel, as for LayerNorm2d. Here, normalized_shape is (32, 7, 7).",
            PIXELS: "That's one channel. All 32 share the mean.",
            16 * 32 * PIXELS: "That's everything. Other images have their own mean.",
        },
    ),
    "gn": (
        8 * PIXELS,
        {
            4 * PIXELS: "Four is the number of groups. How many channels does each group have?",
            8: "Height and width share the mean as well.",
            32 * PIXELS: "That's a single group of all channels. Here there are four groups.",
            PIXELS: "That's one channel, as for instance normalization.",
            16 * 8 * PIXELS: "Other images have their own statistics.",
        },
    ),
    "in_": (
        PIXELS,
        {
            16 * PIXELS: "That's batch normalization. Other images have their own statistics.",
            32 * PIXELS: "That's the whole image. Every channel has its own mean.",
            1: "All pixels of the channel share the mean.",
        },
    ),
    "ln2d": (
        32,
        {
            32 * PIXELS: "That's the whole image. Every pixel has its own mean.",
            PIXELS: "That's one channel. The mean is taken over the channels.",
            1: "The 32 channels of the pixel share the mean.",
        },
    ),
    "dyt": (
        1,
        {
            32: "That's one pixel. DyT has no statistics that the channels could share.",
            0: "The entry itself changes.",
        },
    ),
}


@checker
def check_moved(
    bn: Any = None,
    ln: Any = None,
    gn: Any = None,
    in_: Any = None,
    ln2d: Any = None,
    dyt: Any = None,
) -> str:
    """Check how many outputs change if one entry of a (16, 32, 7, 7) input changes.

    Args:
        bn: the number for `nn.BatchNorm2d(32)` in training.
        ln: for `nn.LayerNorm((32, 7, 7))`.
        gn: for `nn.GroupNorm(4, 32)`.
        in_: for `nn.InstanceNorm2d(32)`.
        ln2d: for LayerNorm2d over the 32 channels.
        dyt: for DyT.

    Example:
        >>> check_moved(bn=16)
        Not yet. bn: Height and width share the mean as well.
    """
    answers = {"bn": bn, "ln": ln, "gn": gn, "in_": in_, "ln2d": ln2d, "dyt": dyt}
    for name, answer in answers.items():
        right, mistakes = MOVED[name]
        judge(
            as_count(answer, name),
            right,
            {f"{name}: {text}": count for count, text in mistakes.items()},
            otherwise=f"{name}: Multiply the sizes of the axes that share the statistics.",
        )
    return "All six counts are right."


SpreadLeft = Callable[[float, float], Any]

ROWS = ((0.0, 1.0), (1.0, 1.0), (3.0, 2.0), (-0.5, 0.25), (10.0, 4.0))  # mean, deviation
KEPT = 0.99

SPREAD_MISTAKES: Mapping[str, Callable[[float, float], float]] = {
    "That's LayerNorm, which leaves a spread of 1 whatever the mean.": lambda m, s: 1.0,
    "That's right only for s = 1.": lambda m, s: 1 / np.sqrt(1 + m**2),
    "That's the variance of the output. Take the square root.": lambda m, s: s**2 / (m**2 + s**2),
    "That's the size of the output's mean. What's its standard deviation?": (
        lambda m, s: abs(m) / np.sqrt(m**2 + s**2)
    ),
    "You divided by the mean square. RMSNorm divides by its square root.": (
        lambda m, s: s / (m**2 + s**2)
    ),
    "Mean and deviation don't just add up. Their squares do.": lambda m, s: s / (abs(m) + s),
}

LARGEST_MISTAKES: Mapping[str, float] = {
    "That's the square of the ratio. Take the square root.": 1 / KEPT**2 - 1,
    "That offset leaves 99 % of the variance. The question is about the standard deviation.": (
        np.sqrt(1 / KEPT - 1)
    ),
    "That's the standard deviation as a multiple of the offset. Take its reciprocal.": (
        1 / np.sqrt(1 / KEPT**2 - 1)
    ),
    "With that offset, only 1 % of the spread is left.": np.sqrt(1 / (1 - KEPT) ** 2 - 1),
}


@checker
def check_offset(spread_left: SpreadLeft, largest: Any = None) -> str:
    r"""Check how an offset shrinks the spread of RMSNorm's output, and how large it can be.

    Compares `spread_left(m, s)` with :math:`s / \sqrt{m^2 + s^2}`.

    Args:
        spread_left: takes the mean and the standard deviation of a row; returns the standard
            deviation of its RMSNorm output.
        largest: the largest offset, in standard deviations, that leaves 99% of the spread.

    Example:
        >>> check_offset(lambda m, s: 1.0, 0.1)
        Not yet. That's LayerNorm, which leaves a spread of 1 whatever the mean.
    """
    answers = [
        as_array(run_answer(spread_left, m, s, context=f"m = {m}, s = {s}"), (), "Your spread")
        for m, s in ROWS
    ]
    judge(
        np.array(answers),
        np.array([s / np.sqrt(m**2 + s**2) for m, s in ROWS]),
        {text: np.array([f(m, s) for m, s in ROWS]) for text, f in SPREAD_MISTAKES.items()},
        otherwise="The output is the row divided by its root mean square. What's the mean square "
        "of a row with mean m and variance s²?",
    )
    judge(
        as_array(largest, (), "largest"),
        np.array(np.sqrt(1 / KEPT**2 - 1)),
        {text: np.array(value) for text, value in LARGEST_MISTAKES.items()},
        otherwise="Your formula is right, but your offset isn't: set the formula to 0.99 and solve "
        "for m / s.",
        tolerance=0.0055,  # two decimals
    )
    return "An offset of a seventh of the standard deviation costs only 1 % of the spread."


def _normalized(
    x: Tensor, axes: tuple[int, ...], eps: float = EPS, correction: int = 0, outside: float = 0.0
) -> Tensor:
    centered = x - x.mean(axes, keepdim=True)
    variance = x.var(axes, correction=correction, keepdim=True)
    return centered / ((variance + eps).sqrt() + outside)


def _norm_2d(
    x: Tensor, weight: Tensor, bias: Tensor, axes: tuple[int, ...] = (1,), **options: Any
) -> Tensor:
    y = _normalized(x, axes, **options)
    return y * weight[:, None, None] + bias[:, None, None]


LayerNorm2dFunction = Callable[[Tensor, Tensor, Tensor], Any]

MISTAKES_2D: Mapping[str, LayerNorm2dFunction] = {
    "It normalizes over (C, H, W), like GroupNorm with one group. Every pixel has its own mean.": (
        partial(_norm_2d, axes=(1, 2, 3))
    ),
    "It normalizes over (H, W), which is instance normalization.": partial(_norm_2d, axes=(2, 3)),
    "It normalizes over (N, H, W), which is batch normalization.": partial(
        _norm_2d, axes=(0, 2, 3)
    ),
    "It normalizes along the width, the last axis. The channels are axis 1.": (
        lambda x, w, b: layer_norm(x, (x.shape[-1],), w, b)
    ),
    "It normalizes over the channels, but scales and shifts along the width. "
    "Give weight and bias the shape (C, 1, 1).": lambda x, w, b: _normalized(x, (1,)) * w + b,
    "The normalized values are right, but scale and shift are missing.": (
        lambda x, w, b: _normalized(x, (1,))
    ),
    "It adds the shift before multiplying by the scale.": (
        lambda x, w, b: (_normalized(x, (1,)) + b[:, None, None]) * w[:, None, None]
    ),
    "It divides the sum of squares by C - 1. LayerNorm divides by C.": partial(
        _norm_2d, correction=1
    ),
    "Epsilon is outside the square root.": partial(_norm_2d, eps=0.0, outside=EPS),
    "Epsilon is missing.": partial(_norm_2d, eps=0.0),
}


@checker
def check_layer_norm_2d(function: LayerNorm2dFunction) -> str:
    """Check a LayerNorm2d, which normalizes over the channels at each pixel.

    Calls `function(x, weight, bias)` with random float64 tensors, including images with as many
    columns as channels, and compares with `torch.nn.functional.layer_norm` of the pixels.

    Args:
        function: takes `x` of shape `(N, C, H, W)`, and `weight` and `bias` of shape `(C,)`.
            Returns an output of the same shape as `x`. Epsilon is 1e-5.

    Example:
        >>> check_layer_norm_2d(lambda x, weight, bias: x)
        Not yet. For x of shape (2, 4, 3, 4) the output differs from LayerNorm of the pixels.
    """
    for shape in ((2, 4, 3, 4), (3, 5, 2, 4)):
        x, weight, bias = _numbers(shape)
        pixels = layer_norm(x.permute(0, 2, 3, 1), (shape[1],), weight, bias, EPS)
        _compare(
            function,
            (x, weight, bias),
            pixels.permute(0, 3, 1, 2),
            MISTAKES_2D if shape[1] == shape[3] else {},  # some need as many scales as columns
            "LayerNorm of the pixels",
        )
    return "Every pixel is normalized over its channels."


GroupNormLast = Callable[[Tensor, int], Any]


def _grouped(x: Tensor, groups: int, axes: tuple[int, ...] = (1, 2, 4), **options: Any) -> Tensor:
    parts = x.reshape(*x.shape[:3], groups, x.shape[3] // groups)
    return _normalized(parts, axes, **options).reshape(x.shape)


def _every_other(x: Tensor, groups: int) -> Tensor:
    parts = x.reshape(*x.shape[:3], x.shape[3] // groups, groups)
    return _normalized(parts, (1, 2, 3)).reshape(x.shape)


def _as_if_first(x: Tensor, groups: int) -> Tensor:
    parts = x.reshape(x.shape[0], groups, -1)
    return _normalized(parts, (2,)).reshape(x.shape)


MISTAKES_LAST: Mapping[str, GroupNormLast] = {
    "It cuts each image into consecutive pieces. That reshape is for channels in axis 1.": (
        _as_if_first
    ),
    "Its groups consist of channels that are far apart. To group neighbors, split C into "
    "(groups, C // groups), in that order.": _every_other,
    "It normalizes each pixel's group separately. All pixels share the mean.": (
        partial(_grouped, axes=(4,))
    ),
    "It uses a single mean for all groups of an image.": lambda x, _: _normalized(x, (1, 2, 3)),
    "It normalizes each channel separately, which is instance normalization.": (
        lambda x, _: _normalized(x, (1, 2))
    ),
    "It also averages over the batch.": partial(_grouped, axes=(0, 1, 2, 4)),
    "It divides the sum of squares by their number minus 1. Use correction=0.": (
        partial(_grouped, correction=1)
    ),
    "Epsilon is outside the square root.": partial(_grouped, eps=0.0, outside=EPS),
    "Epsilon is missing.": partial(_grouped, eps=0.0),
}


@checker
def check_group_norm_last(function: GroupNormLast) -> str:
    """Check a group normalization, without scale and shift, for channels on the last axis.

    Calls `function(x, groups)` with random float64 tensors and compares with
    `torch.nn.functional.group_norm`, with the channels moved to the front.

    Args:
        function: takes `x` of shape `(N, H, W, C)` and the number of groups. Returns an output
            of the same shape as `x`. Epsilon is 1e-5.

    Example:
        >>> check_group_norm_last(lambda x, groups: None)
        Not yet. Your function returns nothing. Did you forget `return`?
    """
    for shape, groups in (((2, 4, 3, 12), 3), ((3, 2, 2, 8), 2)):
        x, _, _ = _numbers(shape)
        first = group_norm(x.permute(0, 3, 1, 2), groups, eps=EPS)
        _compare(
            function,
            (x, groups),
            first.permute(0, 2, 3, 1),
            MISTAKES_LAST,
            f"GroupNorm with {groups} groups",
        )
    return "Neighboring channels share one mean over all their pixels."


def _numbers(shape: tuple[int, ...]) -> tuple[Tensor, Tensor, Tensor]:
    """Return random numbers small enough for epsilon to matter, and parameters for axis 1."""
    rng = np.random.default_rng(shape[1])
    x = 0.05 * rng.normal(0.5, 1.0, shape)
    weight, bias = rng.normal(1.0, 0.5, shape[1]), rng.normal(0.0, 0.5, shape[1])
    return torch.from_numpy(x), torch.from_numpy(weight), torch.from_numpy(bias)


def _compare(
    function: Callable[..., Any],
    given: tuple[Any, ...],
    expected: Tensor,
    mistakes: Mapping[str, Callable[..., Any]],
    what: str,
) -> None:
    shape = tuple(expected.shape)
    answer = run_answer(function, *given, context=f"x had the shape {shape}", hint="a new tensor")
    if isinstance(answer, Tensor):
        answer = answer.detach()
    judge(
        as_array(answer, shape, "Your output"),
        expected.numpy(),
        {text: wrong(*given).numpy() for text, wrong in mistakes.items()},
        otherwise=f"For x of shape {shape} the output differs from {what}.",
        tolerance=TOLERANCE,
    )
