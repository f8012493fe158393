"""Checkers for the exercises in "What does LayerNorm normalize?"."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lnbook.chapters.shared.checker import NotYet, as_count, checker, judge, judge_letters

__all__ = [
    "check_counts",
    "check_mystery",
    "check_twice",
    "mystery_a",
    "mystery_b",
    "mystery_c",
]

Array = NDArray[np.float64]

PER_PIXEL = 16 * 32 * 32

# For each layer: its description, the right count, and messages for wrong counts.
COUNTS: dict[str, tuple[str, int, dict[int, str]]] = {
    "vectors": (
        "nn.LayerNorm(512) on (32, 512)",
        32,
        {
            512: "That's one per feature, as in batch normalization. Count the rows.",
            32 * 512: "That's the number of entries. Each row of 512 numbers has one mean.",
            1: "Each row has its own mean. How many rows are there?",
        },
    ),
    "tokens": (
        "nn.LayerNorm(64) on (8, 20, 64)",
        8 * 20,
        {
            8: "That's one per sequence. normalized_shape is 64 alone: one per token.",
            20: "Each of the 8 sequences has its own 20 tokens.",
            64: "That's one per feature, as in batch normalization. Count the tokens.",
            8 * 20 * 64: "That's the number of entries. Each token of 64 numbers has one mean.",
            1: "Each token has its own mean. How many tokens are there?",
        },
    ),
    "sequences": (
        "nn.LayerNorm((20, 64)) on (8, 20, 64)",
        8,
        {
            8 * 20: "That's one per token. normalized_shape now covers the tokens as well.",
            20: "The 20 tokens are averaged over. What's left?",
            20 * 64: "That's the number of values in each mean, and of gammas. Count the means.",
            1: "The axis of the 8 sequences isn't in normalized_shape: each has its own mean.",
        },
    ),
    "images": (
        "nn.LayerNorm((3, 32, 32)) on (16, 3, 32, 32)",
        16,
        {
            16 * 3: "That's one per channel of each image. The channels are in normalized_shape.",
            3: "That's one per channel, as in batch normalization. Count the images.",
            PER_PIXEL: "That's one per pixel, as in LayerNorm2d.",
            3 * 32 * 32: "That's the number of values in each mean. Count the means.",
            1: "Each image has its own mean. How many images are there?",
        },
    ),
    "pixels": (
        "LayerNorm2d(3) on (16, 3, 32, 32)",
        PER_PIXEL,
        {
            32 * 32: "That's the number of pixels in one image. There are 16 images.",
            16: "That's one per image, as in nn.LayerNorm((3, 32, 32)).",
            16 * 3: "That's one per channel of each image. LayerNorm2d averages over channels.",
            3: "That's one per channel, as in batch normalization.",
            3 * PER_PIXEL: "That's the number of entries. The 3 numbers of a pixel share one mean.",
            1: "Each pixel has its own mean. How many pixels are there, in all images?",
        },
    ),
}


@checker
def check_counts(
    vectors: Any = None,
    tokens: Any = None,
    sequences: Any = None,
    images: Any = None,
    pixels: Any = None,
) -> str:
    """Check how many means five layers compute.

    Args:
        vectors: the number for `nn.LayerNorm(512)` on an input of shape (32, 512).
        tokens: for `nn.LayerNorm(64)` on (8, 20, 64).
        sequences: for `nn.LayerNorm((20, 64))` on (8, 20, 64).
        images: for `nn.LayerNorm((3, 32, 32))` on (16, 3, 32, 32).
        pixels: for a LayerNorm over the 3 channels at each pixel, on (16, 3, 32, 32).

    Example:
        >>> check_counts(vectors=1)
        Not yet. vectors: Each row has its own mean. How many rows are there?
    """
    answers = (vectors, tokens, sequences, images, pixels)
    for (name, (layer, right, mistakes)), answer in zip(COUNTS.items(), answers, strict=True):
        if answer is None or answer is ...:
            raise NotYet(f"{name} is still missing: {layer}.")
        judge(
            as_count(answer, name),
            right,
            {f"{name}: {text}": count for count, text in mistakes.items()},
            otherwise=f"{name}: For {layer}, multiply the sizes of the axes that it doesn't "
            "average over.",
        )
    return "All five counts are right."


def _over(x: ArrayLike, axes: tuple[int, ...]) -> Array:
    array = np.asarray(x, dtype=np.float64)
    if array.ndim != 3:
        raise ValueError(f"expected an array of shape (N, L, D), but got {array.shape}")
    centered = array - array.mean(axis=axes, keepdims=True)
    normalized: Array = centered / np.sqrt((centered**2).mean(axis=axes, keepdims=True) + 1e-5)
    return normalized


def mystery_a(x: ArrayLike) -> Array:
    """Normalize `x` of shape `(N, L, D)` over some of its axes; your task is to find out which.

    Example:
        >>> mystery_a(np.zeros((2, 3, 4))).shape
        (2, 3, 4)
    """
    return _over(x, AXES[MYSTERIES["A"]])


def mystery_b(x: ArrayLike) -> Array:
    """Normalize `x` of shape `(N, L, D)` over some of its axes; your task is to find out which.

    Example:
        >>> mystery_b(np.zeros((2, 3, 4))).shape
        (2, 3, 4)
    """
    return _over(x, AXES[MYSTERIES["B"]])


def mystery_c(x: ArrayLike) -> Array:
    """Normalize `x` of shape `(N, L, D)` over some of its axes; your task is to find out which.

    Example:
        >>> mystery_c(np.zeros((2, 3, 4))).shape
        (2, 3, 4)
    """
    return _over(x, AXES[MYSTERIES["C"]])


AXES = {"L": (1,), "NL": (0, 1), "LD": (1, 2)}
MYSTERIES = {"A": "LD", "B": "NL", "C": "L"}


@checker
def check_mystery(A: Any = None, B: Any = None, C: Any = None) -> str:  # noqa: N803
    """Check which axes the three mystery layers compute their statistics over.

    Args:
        A: the axes of `mystery_a`, as letters from N, L and D in any order, such as "D" or "LD".
        B: the axes of `mystery_b`.
        C: the axes of `mystery_c`.

    Example:
        >>> check_mystery(A="D")
        Not yet. A: change one entry, and outputs at other positions along L change too.
        L is missing.
    """
    for name, answer in (("A", A), ("B", B), ("C", C)):
        if answer is None or answer is ...:
            raise NotYet(f"{name} is still missing.")
        letters, right = _letters(answer), set(MYSTERIES[name])
        if not letters:
            wanted = 'one or more of the letters N, L and D, such as "D"'
            raise NotYet(f"{name} should be {wanted}, but is {answer!r}.")
        missing = " and ".join(letter for letter in "NLD" if letter in right - letters)
        if missing:
            raise NotYet(
                f"{name}: change one entry, and outputs at other positions along {missing} "
                f"change too.\n{missing} {'are' if ' ' in missing else 'is'} missing."
            )
        extra = " and ".join(letter for letter in "NLD" if letter in letters - right)
        if extra:
            raise NotYet(
                f"{name}: change one entry, and no output elsewhere along {extra} changes.\n"
                f"Leave {extra} out."
            )
    told = "A is LayerNorm over (L, D), B is batch normalization.\nC normalizes each feature of a"
    return f"{told} sequence by itself: instance normalization."


def _letters(answer: Any) -> set[str]:
    """The axes in an answer: "LD", "l, d", ("L", "D") and (1, 2) mean the same.

    The set is empty if the answer makes no sense.
    """
    if isinstance(answer, (int, np.integer)) and not isinstance(answer, bool):
        answer = (answer,)
    if isinstance(answer, str):
        answer = [letter for letter in answer if letter.isalnum()]
    letters = set()
    for item in answer if isinstance(answer, (list, tuple, set)) else ():
        if isinstance(item, str) and item.upper() in ("N", "L", "D"):
            letters.add(item.upper())
        elif isinstance(item, (int, np.integer)) and -3 <= item < 3:
            letters.add("NLD"[item])
        else:
            return set()
    return letters


TWICE = {
    "a": "(a) belongs in the list. The first norm only shifts and scales each token, and the "
    "second undoes both.",
    "b": "(b) belongs in the list. What are the mean and the variance of a whole sequence if each "
    "of its tokens has mean 0 and variance 1?",
    "c": "(c) doesn't belong in the list. Batch normalization subtracts a different number from "
    "each feature of a token, which changes the token's pattern.",
    "d": "(d) belongs in the list. The second norm gets tokens with mean 0 and variance 1.",
}


@checker
def check_twice(equal: Any = None) -> str:
    """Check which pairs of norms give the same result as a single LayerNorm over D.

    Args:
        equal: the letters of these pairs, such as "cd", in any order.

    Example:
        >>> check_twice("b")
        Not yet. (a) belongs in the list. The first norm only shifts and scales each token, \
and the second undoes both.
    """
    judge_letters(equal, {letter: (letter != "c", why) for letter, why in TWICE.items()})
    return "Only batch normalization changes the pattern of a token."
