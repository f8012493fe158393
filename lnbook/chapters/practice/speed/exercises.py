"""The checkers for the chapter on speed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from lnbook import reference
from lnbook.chapters.practice.speed.experiments import Operation, operations
from lnbook.chapters.shared.checker import NotYet, as_array, checker, judge, running

__all__ = ["Bench", "check_fused", "check_rms_blocks", "check_rms_traffic", "check_timer"]

Array = NDArray[np.float64]
Way = Callable[[], None]

ROWS, FEATURES, ITEM = 4096, 1024, 2
ARRAY = float(ROWS * FEATURES * ITEM)
# Replies to wrong numbers of arrays.
FORWARD_MISTAKES = {
    "that's one array. The input is read and the output is written.": 1,
    "that's one pass too many. A row that was read for its statistics is still in "
    "the cache when it is normalized.": 3,
}
BACKWARD_MISTAKES = {
    "that's one array. Two are read, and one is written.": 1,
    "that's two arrays. Two are read, x and dL/dy, and one is written.": 2,
    "that's one array too many. x-hat doesn't have to be stored: it's recomputed from x.": 4,
}


@checker
def check_rms_traffic(forward: Any = None, backward: Any = None) -> str:
    r"""Check the fewest bytes that RMSNorm can move for 4096 rows of 1024 features in bfloat16.

    Args:
        forward: bytes of the forward pass, without the weight and the numbers per row.
        backward: bytes of the backward pass, counted the same way.

    Example:
        >>> check_rms_traffic(forward=4096 * 1024 * 2)
        Not yet. Forward: that's one array. The input is read and the output is written.
    """
    _check_bytes("Forward", forward, 2, FORWARD_MISTAKES)
    _check_bytes("Backward", backward, 3, BACKWARD_MISTAKES)
    return "Two arrays forward and three backward, as for LayerNorm."


def _check_bytes(name: str, given: Any, arrays: int, mistakes: Mapping[str, int]) -> None:
    right = arrays * ARRAY
    wrong = {text: number * ARRAY for text, number in mistakes.items()} | {
        "bfloat16 takes 2 bytes, not 4.": 2 * right,
        "that's the number of elements. How many bytes does each have?": right / ITEM,
        "that's a number of arrays. How many bytes does each have?": float(arrays),
    }
    judge(
        as_array(given, (), name),
        np.array(right),
        {f"{name}: {text}": np.array(value) for text, value in wrong.items()},
        otherwise=f"{name}: count the arrays that are read and written, times their bytes.",
        tolerance=0.5,
    )


SEPARATE, FUSED = 5.0, 4.0


@checker
def check_fused(separate: Any = None, fused: Any = None, speedup: Any = None) -> str:
    """Check what fusing a residual sum with the norm after it can save.

    Args:
        separate: arrays moved by s = x + f and y = LN(s) in two kernels.
        fused: arrays moved by one kernel that outputs both s and y.
        speedup: how many times faster the fused kernel can be at most, if memory is the limit.

    Example:
        >>> check_fused(separate=4)
        Not yet. separate: that leaves out an array. Does the norm read s again?
    """
    judge(
        as_array(separate, (), "separate"),
        np.array(SEPARATE),
        {
            "separate: that leaves out an array. Does the norm read s again?": np.array(4.0),
            "separate: that's the norm alone. The sum is a kernel, too.": np.array(2.0),
            "separate: that's the sum alone. The norm is a kernel, too.": np.array(3.0),
        },
        otherwise="separate: add up what each of the two kernels reads and writes.",
        tolerance=0.01,
    )
    judge(
        as_array(fused, (), "fused"),
        np.array(FUSED),
        {
            "fused: s is needed later, so it has to be written, too.": np.array(3.0),
            "fused: the row of s doesn't have to be read again; it was just computed.": np.array(
                SEPARATE
            ),
        },
        otherwise="fused: which arrays come in, and which go out?",
        tolerance=0.01,
    )
    judge(
        as_array(speedup, (), "speedup"),
        np.array(SEPARATE / FUSED),
        {
            "speedup: that's the fraction of the time that is left. Turn it around.": np.array(
                FUSED / SEPARATE
            ),
            "speedup: that's the fraction that is saved. How many times faster is that?": np.array(
                1 - FUSED / SEPARATE
            ),
        },
        otherwise="speedup: if memory is the limit, times are in proportion to the arrays moved.",
        tolerance=0.01,
    )
    return "Four arrays instead of five: at most 1.25 times as fast."


@checker
def check_rms_blocks(function: Callable[..., Any]) -> str:
    """Check a function that computes RMSNorm block by block, into a given tensor.

    Args:
        function: takes `(x, weight, eps, height, out)`, fills `out`, which has the shape `(N, H)`
            of `x`, and works on `height` rows at a time.

    Example:
        >>> check_rms_blocks(lambda x, weight, eps, height, out: None)
        Not yet. Your function didn't fill `out`, or filled only part of it.
    """
    # Two sizes, since a number in the code, such as a height of 4, can be right for one of them.
    for rows, features, height in ((23, 64, 4), (17, 48, 5)):
        _check_rms_blocks(function, rows, features, height)
    return "The values are right, and no operation works on more than a block."


def _check_rms_blocks(
    function: Callable[..., Any], rows: int, features: int, height: int, eps: float = 0.25
) -> None:
    rng = np.random.default_rng(5)
    x = torch.tensor(rng.normal(1.0, 2.0, (rows, features)))
    weight = torch.tensor(rng.normal(size=features))
    given, out = x.clone(), torch.full_like(x, torch.nan)
    with running():
        found = operations(lambda: function(given, weight, eps, height, out))
    if not torch.equal(given, x):
        raise NotYet("Your function changed x. Only `out` is yours to write into.")
    missing, over = out.isnan().any(1), rows % height
    if missing.all() or (missing.any() and not missing[-over:].all()):
        raise NotYet("Your function didn't fill `out`, or filled only part of it.")
    if missing.any():
        raise NotYet(f"The last {over} of {rows} rows are missing. They form a block, too.")
    judge(
        out.numpy(),
        reference.rms_norm(x.numpy(), features, weight.numpy(), eps),
        _wrong_rms(x.numpy(), weight.numpy(), eps),
        otherwise=f"The values in `out` are wrong for x with the shape {(rows, features)}. "
        "Compare one row with `reference.rms_norm`.",
    )
    _check_sizes(found, height * features * x.element_size(), rows / height)
    largest = max((operation.written for operation in found), default=0)
    if largest < height * features * x.element_size():
        raise NotYet(
            f"The values are right, but with height = {height}, no torch operation writes {height} "
            "rows. Process `height` rows at a time: more calls take more time."
        )


def _wrong_rms(x: Array, weight: Array, eps: float) -> dict[str, Array]:
    square = (x**2).mean(1, keepdims=True)
    centered = x - x.mean(1, keepdims=True)
    y = weight * x
    return {
        "You subtracted the mean. RMSNorm doesn't.": (
            weight * centered / np.sqrt((centered**2).mean(1, keepdims=True) + eps)
        ),
        "eps is missing inside the square root.": y / np.sqrt(square),
        "eps belongs inside the square root.": y / (np.sqrt(square) + eps),
        "The squares are summed, not averaged: divide by the number of features.": (
            y / np.sqrt((x**2).sum(1, keepdims=True) + eps)
        ),
        "The weight is missing.": x / np.sqrt(square + eps),
        "You divided by the mean square. Take its square root.": y / (square + eps),
    }


def _check_sizes(found: list[Operation], block: int, blocks: float) -> None:
    for operation in found:
        # At most two blocks go in, and one comes out.
        if operation.read > 2 * block or operation.written > block:
            raise NotYet(
                f"The values are right, but an operation reads {operation.read:,} bytes and writes "
                f"{operation.written:,}, where a block has {block:,}."
            )
    passes = sum(operation.written for operation in found) / (block * blocks)
    if passes > 2.5:
        raise NotYet(
            f"The values are right, but your operations write {passes:.0f} arrays of the size of "
            "x. Two are enough: multiply into `out` with `torch.mul(..., out=...)`, then in place."
        )


class Bench:
    """A simulated machine with two programs and a clock, for trying out a timer.

    The second program takes 1.5 times as long as the first. The machine keeps getting slower,
    the first call of each program takes much longer, and now and then one of them is interrupted.

    Attributes:
        first: the program to compare with.
        second: the program to measure.
        clock: the time, in seconds.

    Example:
        >>> bench = Bench()
        >>> start = bench.clock()
        >>> bench.first()
        >>> bench.clock() > start
        True
    """

    RATIO = 1.5

    def __init__(
        self,
        slowdown: float = 0.01,
        first_call: float = 500.0,
        pause: float = 200.0,
        interrupted: float = RATIO,
    ) -> None:
        self._now, self._calls = 0.0, {1.0: 0, self.RATIO: 0}
        self._slowdown, self._first_call, self._pause = slowdown, first_call, pause
        self._interrupted = interrupted

    def first(self) -> None:
        """Run the first program."""
        self._run(1.0)

    def second(self) -> None:
        """Run the second program."""
        self._run(self.RATIO)

    def clock(self) -> float:
        """Return the time."""
        return self._now

    def _run(self, work: float) -> None:
        self._calls[work] += 1
        seconds = work * (1 + self._slowdown * sum(self._calls.values()))
        if self._calls[work] == 1:
            seconds += self._first_call
        if work == self._interrupted and self._calls[work] % 7 == 5:
            seconds += self._pause
        self._now += seconds


Measure = Callable[[Way, Way, Callable[[], float], int], Any]

ROUNDS = 21
INTERRUPTIONS = (
    "Single interruptions ruin it: compare within a round, and take the median of these "
    "ratios, not a mean, a sum or a minimum."
)
# Replies to a timer that's right once certain problems are removed.
TROUBLES: Mapping[str, Mapping[str, float]] = {
    "The first calls ruin it: run each program once before you measure.": {"first_call": 0.0},
    INTERRUPTIONS: {"pause": 0.0},
    "The machine gets slower while you measure: take turns, and compare within a round.": {
        "slowdown": 0.0
    },
    "First calls and interruptions both ruin it: run each program once before, and take "
    "the median.": {"first_call": 0.0, "pause": 0.0},
}


@checker
def check_timer(measure: Measure) -> str:
    """Check a function that measures how long one program takes compared to another.

    It's tried on a simulated machine (`Bench`) whose right answer is known.

    Args:
        measure: takes `(first, second, clock, rounds)`, calls the two programs and returns the
            time of the second as a multiple of the first.

    Example:
        >>> check_timer(lambda first, second, clock, rounds: 1.0)
        Not yet. Your function never called the two programs.
    """
    bench = Bench()
    ratio = _measured(measure, bench)
    if _near(ratio):
        if min(bench._calls.values()) < ROUNDS:
            raise NotYet(
                "Your timer finds the ratio, but from too few rounds, so an interruption could "
                "ruin it. Measure `rounds` times, and take the median of the ratios."
            )
        # Interruptions of the second program make ratios larger, so a minimum avoids them.
        if not _near(_measured(measure, Bench(interrupted=1.0))):
            raise NotYet(INTERRUPTIONS)
        return f"Your timer finds {ratio:.2f}; the truth is {Bench.RATIO}."
    if ratio and _near(1 / ratio):
        raise NotYet("Your ratio is upside down: divide the second by the first.")
    for message, calm in TROUBLES.items():
        if _near(_measured(measure, Bench(**calm))):
            raise NotYet(message)
    raise NotYet(
        f"Your timer finds {ratio:.2f}, but the truth is {Bench.RATIO}. Warm up, take turns, "
        "and take the median of the ratios."
    )


def _measured(measure: Measure, bench: Bench) -> float:
    with running():
        ratio = measure(bench.first, bench.second, bench.clock, ROUNDS)
    if not any(bench._calls.values()):
        raise NotYet("Your function never called the two programs.")
    return float(as_array(ratio, (), "Your ratio"))


def _near(ratio: float) -> bool:
    return abs(ratio / Bench.RATIO - 1) < 0.04
