"""The checkers for the chapter on GPU kernels."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from lnbook import reference
from lnbook.chapters.practice.gpu_kernel.experiments import require_triton
from lnbook.chapters.shared.checker import NotYet, as_array, as_count, checker, judge, running
from lnbook.kernels.gpu._launch import triton

__all__ = ["check_launch", "check_rms_kernel", "check_shrinking"]

Array = NDArray[np.float64]

WIDTH, BLOCK, PROGRAMS = 5000, 8192, 264
PARTS = 2 * PROGRAMS * WIDTH * 4


@checker
def check_launch(block: Any = None, masked: Any = None, parts: Any = None) -> str:
    """Check the launch sizes for rows of 5000 features in bfloat16.

    Args:
        block: the size of a program's block.
        masked: how many of a block's elements are masked.
        parts: bytes of the sums that 264 programs write in the first stage of the backward pass.

    Example:
        >>> check_launch(block=5000)
        Not yet. block: a block has to be a power of two, the smallest one that fits a row.
    """
    judge(
        as_count(block, "block"),
        BLOCK,
        {
            f"block: the row has {WIDTH} elements, and they don't all fit.": BLOCK // 2,
            "block: a smaller power of two is enough.": BLOCK * 2,
        },
        otherwise="block: a block has to be a power of two, the smallest one that fits a row.",
    )
    judge(
        as_count(masked, "masked"),
        BLOCK - WIDTH,
        {"masked: that's how many are not masked.": WIDTH},
        otherwise="masked: the elements of the block that are beyond the end of the row.",
    )
    judge(
        as_count(parts, "parts"),
        PARTS,
        {
            "parts: twice that. Either you counted only one of the two parameters, or you assumed "
            "bfloat16: sums are kept in float32.": PARTS // 2,
            "parts: there are two parameters, and sums are kept in float32, 4 bytes each.": (
                PARTS // 4
            ),
            "parts: masked elements aren't stored.": 2 * PROGRAMS * BLOCK * 4,
            "parts: that's a number of elements of one parameter. How many bytes?": PARTS // 8,
        },
        otherwise="parts: parameters times programs times columns times bytes.",
    )
    return f"{PARTS / 1e6:.1f} MB, however many rows there are."


ROWS, NARROW, NARROW_BLOCK, EPS, GUARD = 3, 6, 8, 0.25, 7.0


@checker
def check_rms_kernel(kernel: Any) -> str:
    """Check a Triton kernel that computes RMSNorm, one row per program.

    Args:
        kernel: takes `(x, weight, y, eps, WIDTH, BLOCK)`, the last three as `tl.constexpr`.

    Raises:
        NoTritonError: Triton isn't installed, or was imported without `TRITON_INTERPRET=1`.

    Example:
        >>> check_rms_kernel(...)
        Not yet. Your kernel is still missing.
    """
    if kernel is ... or kernel is None:
        raise NotYet("Your kernel is still missing.")
    require_triton()
    if not hasattr(kernel, "run"):
        raise NotYet("Your function isn't a kernel yet: put `@triton.jit` above it.")
    rng = np.random.default_rng(8)
    x, weight = rng.normal(1.0, 2.0, (ROWS, NARROW)), rng.normal(size=NARROW)
    # Beyond their ends, the inputs are NaN, and the output has a guard that must stay as it is.
    beyond = np.full(NARROW_BLOCK, np.nan)
    memory = torch.tensor(np.concatenate((x.ravel(), beyond)))
    weights = torch.tensor(np.concatenate((weight, beyond)))
    target = torch.full_like(memory, GUARD)
    with _watched_loads() as addresses, running("Your kernel"), np.errstate(all="ignore"):
        kernel[(ROWS,)](memory, weights, target, EPS, NARROW, NARROW_BLOCK)
    _check_ends(target, addresses, {"x": memory, "weight": weights})
    _judge_rms(target, x, weight)
    return "The values are right, and nothing is read or written past the end of an array."


@contextmanager
def _watched_loads() -> Iterator[set[int]]:
    """Record the addresses that kernels load from in Triton's interpreter.

    If a load has a mask but no `other`, its masked elements are undefined. The interpreter makes
    them 0; here, they become NaN.
    """
    builder = triton.runtime.interpreter.interpreter_builder
    load, addresses = builder.create_masked_load, set[int]()

    def watched(pointers: Any, mask: Any, other: Any, *args: Any, **kwargs: Any) -> Any:
        addresses.update(pointers.data[mask.data != 0].tolist())
        loaded = load(pointers, mask, other, *args, **kwargs)
        if other is None:
            loaded.data[mask.data == 0] = np.nan
        return loaded

    builder.create_masked_load = watched
    try:
        yield addresses
    finally:
        del builder.create_masked_load  # what's left is the method of its class


def _check_ends(target: torch.Tensor, loaded: set[int], inputs: dict[str, torch.Tensor]) -> None:
    if (target == GUARD).all():
        raise NotYet("Your kernel stores nothing.")
    if not (target[ROWS * NARROW :] == GUARD).all():
        raise NotYet("Your kernel writes beyond the end of its row. `tl.store` takes a mask, too.")
    for name, array in inputs.items():
        beyond = array[-NARROW_BLOCK:]
        if not loaded.isdisjoint(range(beyond.data_ptr(), beyond.data_ptr() + beyond.nbytes)):
            raise NotYet(
                f"Your kernel reads beyond the end of `{name}`. Check the addresses of each "
                "`tl.load`, and give it a mask and `other=0.0`."
            )


def _judge_rms(target: torch.Tensor, x: Array, weight: Array) -> None:
    y = target[: ROWS * NARROW].reshape(ROWS, NARROW).numpy()
    if np.isnan(y).any():
        raise NotYet(
            "There's NaN in the result. If a load has a mask but no `other`, its masked elements "
            "are undefined, and NaN here: add `other=0.0`."
        )
    judge(
        y,
        reference.rms_norm(x, NARROW, weight, EPS),
        _wrong_rms(x, weight),
        otherwise="The values are wrong. Compare one row with `reference.rms_norm`.",
    )


def _wrong_rms(x: Array, weight: Array) -> dict[str, Array]:
    total = (x**2).sum(1, keepdims=True)
    square, y = total / NARROW, weight * x
    centered = x - x.mean(1, keepdims=True)
    return {
        "You divided by the size of the block. The mean is over WIDTH elements.": (
            y / np.sqrt(total / NARROW_BLOCK + EPS)
        ),
        "The squares are summed, not averaged: divide by WIDTH.": y / np.sqrt(total + EPS),
        "You subtracted the mean. RMSNorm doesn't.": (
            weight * centered / np.sqrt((centered**2).mean(1, keepdims=True) + EPS)
        ),
        "eps is missing inside the square root.": y / np.sqrt(square),
        "eps belongs inside the square root.": y / (np.sqrt(square) + EPS),
        "The weight is missing.": x / np.sqrt(square + EPS),
        "You divided by the mean square. Take its square root.": y / (square + EPS),
        "You multiplied by the root mean square. Divide by it.": y * np.sqrt(square + EPS),
    }


CASES = np.array([(768, 1024, 1.0, 1.0), (5, 8, 2.0, 0.5), (100, 128, -3.0, 1.5), (64, 64, 9.0, 2)])


@checker
def check_shrinking(factor: Callable[[int, int, float, float], float]) -> str:
    r"""Check a formula for the outputs of a kernel that forgets the mask after centering.

    Args:
        factor: takes the width, the size of the block, and the mean and the standard deviation of a
            row, and returns the standard deviation of the outputs, without :math:`\epsilon`.

    Example:
        >>> check_shrinking(lambda width, block, mean, deviation: 1.0)
        Not yet. A correct kernel gives that. What do the masked elements add to the variance?
    """
    with running("Your formula"):
        answers = [
            as_array(factor(int(w), int(b), float(m), float(s)), (), "Your factor")
            for w, b, m, s in CASES
        ]
    width, block, mean, deviation = CASES.T
    more = (block - width) * mean**2  # what the masked elements add to the sum of squares
    right = deviation / np.sqrt(deviation**2 + more / width)
    judge(
        np.array(answers),
        right,
        {
            "A correct kernel gives that. What do the masked elements add to the variance?": (
                np.ones(4)
            ),
            "That's upside down: a variance that's too large makes the outputs smaller.": 1 / right,
            "That's the ratio's square: outputs are divided by the variance's square root.": right
            ** 2,
            "The kernel divides the sum of squares by the width, not by the size of the block.": (
                deviation / np.sqrt((width * deviation**2 + more) / block)
            ),
            "After centering, a masked element isn't 0, and it isn't the mean: what is 0 - mean, "
            "squared?": deviation / np.sqrt(np.abs(deviation**2 + (block - width) * mean / width)),
            "Every element of the block counts in your formula as if it were masked.": (
                deviation / np.sqrt(deviation**2 + block * mean**2 / width)
            ),
            "The masked elements add to the sum of squares. Divide that by the width.": (
                deviation / np.sqrt(deviation**2 + more)
            ),
        },
        otherwise="Add up the squares of the block after centering: those of the row, and those of "
        "the masked elements. Then divide by the width.",
    )
    return "The further a row's mean is from 0, the smaller its outputs become."
