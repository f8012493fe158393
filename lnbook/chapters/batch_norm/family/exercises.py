"""The checkers of the chapter on the family."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import group_norm, layer_norm

from lnbook.chapters.shared.checker import NotYet, as_array, as_count, checker, judge, run_answer

__all__ = ["check_group_norm_last", "check_layer_norm_2d", "check_moved"]

Array = NDArray[np.float64]

EPS = 1e-5
TOLERANCE = 1e-8

# For an input of shape (16, 32, 7, 7) and GroupNorm with 4 groups: how many outputs move.
PIXELS = 7 * 7
MOVED: dict[str, tuple[int, dict[int, str]]] = {
    "bn": (
        16 * PIXELS,
        {
            PIXELS: "That is one image. Batch normalization takes the channel of all 16.",
            16: "Height and width share the mean as well.",
            16 * 32 * PIXELS: "That is everything. Other channels have their own mean.",
            1: "That holds in evaluation. In training the batch shares its statistics.",
        },
    ),
    "ln": (
        32 * PIXELS,
        {
            32: "That is one pixel, as for LayerNorm2d. Here normalized_shape is (32, 7, 7).",
            PIXELS: "That is one channel. All 32 share the mean.",
            16 * 32 * PIXELS: "That is everything. Other images have their own mean.",
        },
    ),
    "gn": (
        8 * PIXELS,
        {
            4 * PIXELS: "Four is the number of groups. How many channels does each have?",
            8: "Height and width share the mean as well.",
            32 * PIXELS: "That is one group of all channels. Here there are four.",
            PIXELS: "That is one channel, as for instance normalization.",
            16 * 8 * PIXELS: "Other images have their own statistics.",
        },
    ),
    "in_": (
        PIXELS,
        {
            16 * PIXELS: "That is batch normalization. Other images have their own statistics.",
            32 * PIXELS: "That is the whole image. Every channel has its own mean.",
            1: "All pixels of the channel share the mean.",
        },
    ),
    "ln2d": (
        32,
        {
            32 * PIXELS: "That is the whole image. Every pixel has its own mean.",
            PIXELS: "That is one channel. The mean runs over channels.",
            1: "The 32 channels of the pixel share the mean.",
        },
    ),
    "dyt": (
        1,
        {
            32: "That is one pixel. DyT has no statistics that the channels could share.",
            0: "The entry itself moves.",
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
    """Check how many outputs move when one entry of an input of shape (16, 32, 7, 7) does.

    Args:
        bn: of `nn.BatchNorm2d(32)` in training.
        ln: of `nn.LayerNorm((32, 7, 7))`.
        gn: of `nn.GroupNorm(4, 32)`.
        in_: of `nn.InstanceNorm2d(32)`.
        ln2d: of LayerNorm2d over the 32 channels.
        dyt: of DyT.

    Example:
        >>> check_moved(bn=16)
        Not yet. bn: Height and width share the mean as well.
    """
    answers = {"bn": bn, "ln": ln, "gn": gn, "in_": in_, "ln2d": ln2d, "dyt": dyt}
    for name, answer in answers.items():
        right, mistakes = MOVED[name]
        count = as_count(answer, name)
        if count != right:
            otherwise = "Multiply the sizes of the axes that share the statistics."
            raise NotYet(f"{name}: {mistakes.get(count, otherwise)}")
    return "All six counts are right."


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
    "It normalizes over (H, W): that is instance normalization.": partial(_norm_2d, axes=(2, 3)),
    "It normalizes over (N, H, W): that is batch normalization.": partial(_norm_2d, axes=(0, 2, 3)),
    "It normalizes along the width, the last axis. The channels are axis 1.": (
        lambda x, w, b: layer_norm(x, (x.shape[-1],), w, b)
    ),
    "It normalizes over the channels, but scales and shifts along the width. "
    "Give weight and bias the shape (C, 1, 1).": lambda x, w, b: _normalized(x, (1,)) * w + b,
    "The normalized values are right; scale and shift are missing.": (
        lambda x, w, b: _normalized(x, (1,))
    ),
    "The shift is added before the scale.": (
        lambda x, w, b: (_normalized(x, (1,)) + b[:, None, None]) * w[:, None, None]
    ),
    "It divides the squares by C - 1. LayerNorm divides by C.": partial(_norm_2d, correction=1),
    "Epsilon stands outside the root.": partial(_norm_2d, eps=0.0, outside=EPS),
    "Epsilon is missing.": partial(_norm_2d, eps=0.0),
}


@checker
def check_layer_norm_2d(function: LayerNorm2dFunction) -> str:
    """Check a LayerNorm2d: over the channels, at each pixel.

    Calls `function(x, weight, bias)` with random float64 tensors, among them images with as many
    columns as channels, and compares with `torch.nn.functional.layer_norm` of the pixels.

    Args:
        function: takes `x` of shape `(N, C, H, W)`, `weight` and `bias` of shape `(C,)`; returns
            the output of the shape of `x`. Epsilon is 1e-5.

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
            MISTAKES_2D if shape[1] == shape[3] else {},  # some need a scale as long as the width
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
    "It cuts each image into groups of rows: the reshape is that of channels in front.": (
        _as_if_first
    ),
    "Its groups take channels that lie apart. Neighbors belong together: split C into "
    "(groups, C // groups), in this order.": _every_other,
    "It normalizes each pixel's group alone. Height and width share the mean.": (
        partial(_grouped, axes=(4,))
    ),
    "It takes one mean for all groups of an image.": lambda x, _: _normalized(x, (1, 2, 3)),
    "It normalizes each channel alone: that is instance normalization.": (
        lambda x, _: _normalized(x, (1, 2))
    ),
    "It also averages over the batch.": partial(_grouped, axes=(0, 1, 2, 4)),
    "It divides the squares by their number minus 1. Use correction=0.": (
        partial(_grouped, correction=1)
    ),
    "Epsilon stands outside the root.": partial(_grouped, eps=0.0, outside=EPS),
    "Epsilon is missing.": partial(_grouped, eps=0.0),
}


@checker
def check_group_norm_last(function: GroupNormLast) -> str:
    """Check a group normalization, without scale and shift, for channels in the last axis.

    Calls `function(x, groups)` with random float64 tensors and compares with
    `torch.nn.functional.group_norm`, with the channels moved to the front.

    Args:
        function: takes `x` of shape `(N, H, W, C)` and the number of groups; returns the output
            of the shape of `x`. Epsilon is 1e-5.

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
    return "Neighboring channels share a mean with all their pixels."


def _numbers(shape: tuple[int, ...]) -> tuple[Tensor, Tensor, Tensor]:
    """Small random numbers, so that epsilon counts, and a weight and a bias for axis 1."""
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
