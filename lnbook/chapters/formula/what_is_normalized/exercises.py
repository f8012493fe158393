"""The checkers of the chapter on what is normalized."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lnbook.chapters.shared.checker import NotYet, as_count, checker

__all__ = ["check_counts", "check_mystery", "mystery_a", "mystery_b", "mystery_c"]

Array = NDArray[np.float64]

PER_PIXEL = 16 * 32 * 32

# For each question what it is called, the right number, and what other numbers would count.
COUNTS: dict[str, tuple[str, int, dict[int, str]]] = {
    "vectors": (
        "nn.LayerNorm(512) on (32, 512)",
        32,
        {
            512: "That is one per feature, as in batch normalization. Count the rows.",
            32 * 512: "That counts the numbers. Each row of 512 numbers has one mean.",
            1: "Not one for all: every row has its own.",
        },
    ),
    "tokens": (
        "nn.LayerNorm(64) on (8, 20, 64)",
        8 * 20,
        {
            8: "That is one per sequence. normalized_shape is 64 alone: one per token.",
            20: "Each of the 8 sequences has its own 20 tokens.",
            64: "That is one per feature, as in batch normalization. Count the tokens.",
            8 * 20 * 64: "That counts the numbers. Each token of 64 numbers has one mean.",
            1: "Not one for all: every token has its own.",
        },
    ),
    "sequences": (
        "nn.LayerNorm((20, 64)) on (8, 20, 64)",
        8,
        {
            8 * 20: "That is one per token. normalized_shape now covers the tokens as well.",
            20: "The 20 tokens are averaged over. What is left over?",
            20 * 64: "That is the number of values in each mean, and of gammas. Count the means.",
            1: "Not one for all: the 8 sequences are not in normalized_shape.",
        },
    ),
    "images": (
        "nn.LayerNorm((3, 32, 32)) on (16, 3, 32, 32)",
        16,
        {
            16 * 3: "That is one per channel of each image. The channels are in normalized_shape.",
            3: "That is one per channel, as in batch normalization. Count the images.",
            PER_PIXEL: "That is one per pixel, as in LayerNorm2d.",
            3 * 32 * 32: "That is the number of values in each mean. Count the means.",
            1: "Not one for all: every image has its own.",
        },
    ),
    "pixels": (
        "LayerNorm2d(3) on (16, 3, 32, 32)",
        PER_PIXEL,
        {
            32 * 32: "That is the number of pixels in one image. There are 16 images.",
            16: "That is one per image, as in nn.LayerNorm((3, 32, 32)).",
            16 * 3: "That is one per channel of each image. LayerNorm2d averages over channels.",
            3: "That is one per channel, as in batch normalization.",
            3 * PER_PIXEL: "That counts the numbers. The 3 numbers of a pixel have one mean.",
            1: "Not one for all: every pixel has its own.",
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
    """Check how many means five layers take.

    Args:
        vectors: of `nn.LayerNorm(512)` on an input of shape (32, 512).
        tokens: of `nn.LayerNorm(64)` on (8, 20, 64).
        sequences: of `nn.LayerNorm((20, 64))` on (8, 20, 64).
        images: of `nn.LayerNorm((3, 32, 32))` on (16, 3, 32, 32).
        pixels: of a LayerNorm over the 3 channels at each pixel on (16, 3, 32, 32).

    Example:
        >>> check_counts(vectors=1)
        Not yet. vectors: Not one for all: every row has its own.
    """
    answers = (vectors, tokens, sequences, images, pixels)
    for (name, (layer, right, mistakes)), answer in zip(COUNTS.items(), answers, strict=True):
        if answer is None or answer is ...:
            raise NotYet(f"{name} is still missing: {layer}.")
        count = as_count(answer, name)
        if count != right:
            otherwise = f"For {layer}, multiply the sizes that are not averaged over."
            raise NotYet(f"{name}: {mistakes.get(count, otherwise)}")
    return "All five counts are right."


def _over(x: ArrayLike, axes: tuple[int, ...]) -> Array:
    array = np.asarray(x, dtype=np.float64)
    if array.ndim != 3:
        raise ValueError(f"expected an array of shape (N, L, D), but got {array.shape}")
    centered = array - array.mean(axis=axes, keepdims=True)
    normalized: Array = centered / np.sqrt((centered**2).mean(axis=axes, keepdims=True) + 1e-5)
    return normalized


def mystery_a(x: ArrayLike) -> Array:
    """Normalize `x` of shape `(N, L, D)` over some of its axes; which ones is the question.

    Example:
        >>> mystery_a(np.zeros((2, 3, 4))).shape
        (2, 3, 4)
    """
    return _over(x, AXES[MYSTERIES["A"]])


def mystery_b(x: ArrayLike) -> Array:
    """Normalize `x` of shape `(N, L, D)` over some of its axes; which ones is the question.

    Example:
        >>> mystery_b(np.zeros((2, 3, 4))).shape
        (2, 3, 4)
    """
    return _over(x, AXES[MYSTERIES["B"]])


def mystery_c(x: ArrayLike) -> Array:
    """Normalize `x` of shape `(N, L, D)` over some of its axes; which ones is the question.

    Example:
        >>> mystery_c(np.zeros((2, 3, 4))).shape
        (2, 3, 4)
    """
    return _over(x, AXES[MYSTERIES["C"]])


AXES = {"L": (1,), "NL": (0, 1), "LD": (1, 2)}
MYSTERIES = {"A": "LD", "B": "NL", "C": "L"}


@checker
def check_mystery(A: Any = None, B: Any = None, C: Any = None) -> str:  # noqa: N803
    """Check over which axes the three mystery layers take their statistics.

    Args:
        A: letters out of N, L and D for `mystery_a`, such as "D" or "LD", in any order.
        B: the same for `mystery_b`.
        C: the same for `mystery_c`.

    Example:
        >>> check_mystery(A="D")
        Not yet. A: change one entry, and outputs at other places along L move too.
        L is missing.
    """
    for name, answer in (("A", A), ("B", B), ("C", C)):
        if answer is None or answer is ...:
            raise NotYet(f"{name} is still missing.")
        letters, right = _letters(answer), set(MYSTERIES[name])
        if not letters:
            wanted = 'letters out of N, L and D, such as "D"'
            raise NotYet(f"{name} should be {wanted}, but is {answer!r}.")
        missing = " and ".join(letter for letter in "NLD" if letter in right - letters)
        if missing:
            raise NotYet(
                f"{name}: change one entry, and outputs at other places along {missing} move "
                f"too.\n{missing} {'are' if ' ' in missing else 'is'} missing."
            )
        extra = " and ".join(letter for letter in "NLD" if letter in letters - right)
        if extra:
            raise NotYet(
                f"{name}: change one entry, and no output elsewhere along {extra} moves.\n"
                f"Leave {extra} out."
            )
    told = "A is LayerNorm over (L, D), B batch normalization.\nC takes each feature of a sequence"
    return f"{told} on its own: instance normalization."


def _letters(answer: Any) -> set[str]:
    """The axes that were named: "LD", "l, d", ("L", "D") and (1, 2) are the same.

    The set is empty if the answer can't be read.
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
