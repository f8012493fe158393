"""The checkers of the chapter on speed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from lnbook import reference
from lnbook.chapters.practice.speed.experiments import operations
from lnbook.chapters.shared.checker import Verdict, as_array, judge

__all__ = ["Bench", "check_rms_blocks", "check_rms_traffic", "check_timer"]

Array = NDArray[np.float64]
Way = Callable[[], None]

ROWS, FEATURES, ITEM = 4096, 1024, 2


def check_rms_traffic(forward: Any = None, backward: Any = None) -> Verdict:
    r"""Check the least bytes that RMSNorm moves for 4096 rows of 1024 features in bfloat16.

    Args:
        forward: bytes of the forward pass, the weight and the numbers per row left aside.
        backward: bytes of the backward pass, under the same rule.

    Returns:
        The verdict; a known mistake is called by its name.

    Example:
        >>> check_rms_traffic(forward=4096 * 1024 * 2)
        Not yet. Forward: that is one array. The input is read and the output is written.
    """
    array = float(ROWS * FEATURES * ITEM)
    for name, given, arrays, more in (
        (
            "Forward",
            forward,
            2,
            {
                1: "that is one array. The input is read and the output is written.",
                3: "that is a pass too many. A row that was read for its statistics is still in "
                "the cache when it is normalized.",
            },
        ),
        (
            "Backward",
            backward,
            3,
            {
                1: "that is one array. Two are read, and one is written.",
                2: "that is two arrays. Two are read, x and dL/dy, and one is written.",
                4: "that is an array too many. x-hat need not be stored: it is made from x again.",
            },
        ),
    ):
        answer = as_array(given, (), name)
        if isinstance(answer, Verdict):
            return answer
        mistakes: dict[str, Any] = {f"{name}: {text}": n * array for n, text in more.items()}
        mistakes |= {
            f"{name}: bfloat16 takes 2 bytes, not 4.": np.array(2 * arrays * array),
            f"{name}: that is the number of elements. How many bytes has each?": np.array(
                arrays * array / ITEM
            ),
            f"{name}: that is a number of arrays. How many bytes has each?": np.array(
                float(arrays)
            ),
        }
        verdict = judge(
            answer,
            np.array(arrays * array),
            {text: np.array(wrong) for text, wrong in mistakes.items()},
            otherwise=f"{name}: count the arrays that are read and written, times their bytes.",
            tolerance=0.5,
        )
        if verdict is not None:
            return verdict
    return Verdict(True, "Two arrays forward and three backward, as for LayerNorm.")


def check_rms_blocks(function: Callable[..., Any]) -> Verdict:
    """Check a function that computes RMSNorm block by block, into a given tensor.

    Args:
        function: takes `(x, weight, eps, height, out)`, fills `out`, of the shape `(N, H)` of
            `x`, and works on `height` rows at a time.

    Returns:
        The verdict; a known mistake is called by its name.

    Example:
        >>> check_rms_blocks(lambda x, weight, eps, height, out: None)
        Not yet. Nothing was written into `out`, or not all of it.
    """
    rng = np.random.default_rng(5)
    rows, features, height, eps = 23, 64, 4, 0.25
    x = torch.tensor(rng.normal(1.0, 2.0, (rows, features)))
    weight = torch.tensor(rng.normal(size=features))
    given, out = x.clone(), torch.full_like(x, torch.nan)
    try:
        found = operations(lambda: function(given, weight, eps, height, out))
    except Exception as error:
        return Verdict(False, f"Your function raised {type(error).__name__}: {error}")
    if not torch.equal(given, x):
        return Verdict(False, "Your function changed x. Only `out` is yours to write into.")
    missing = out.isnan().any(1)
    if missing.all() or (missing.any() and not missing[rows // height * height :].all()):
        return Verdict(False, "Nothing was written into `out`, or not all of it.")
    if missing.any():
        return Verdict(
            False, f"The last {rows % height} of {rows} rows are missing: they are a block, too."
        )
    verdict = judge(
        out.numpy(),
        reference.rms_norm(x.numpy(), features, weight.numpy(), eps),
        _wrong_rms(x.numpy(), weight.numpy(), eps),
        otherwise="The values in `out` are off. Compare one row with `reference.rms_norm`.",
        tolerance=1e-9,
    )
    if verdict is not None:
        return verdict
    return _judge_sizes(found, height * features * x.element_size(), rows / height) or Verdict(
        True, "Right values, no array of the size of x but `out`, and nothing larger than a block."
    )


def _wrong_rms(x: Array, weight: Array, eps: float) -> dict[str, Array]:
    square = (x**2).mean(1, keepdims=True)
    centered = x - x.mean(1, keepdims=True)
    total = (x**2).sum(1, keepdims=True)
    return {
        "You subtracted the mean. RMSNorm does not.": weight
        * centered
        / np.sqrt((centered**2).mean(1, keepdims=True) + eps),
        "eps is missing under the root.": weight * x / np.sqrt(square),
        "eps stands outside the root.": weight * x / (np.sqrt(square) + eps),
        "The squares are summed, not averaged: divide by the number of features.": weight
        * x
        / np.sqrt(total + eps),
        "The weight is missing.": x / np.sqrt(square + eps),
        "You divided by the mean square. Take its root.": weight * x / (square + eps),
    }


def _judge_sizes(found: list[Any], block: int, blocks: float) -> Verdict | None:
    largest = max(max(operation.read, operation.written) for operation in found)
    if largest > 2 * block:
        return Verdict(
            False,
            f"The values are right, but an operation works on {largest:,} bytes at once, where a "
            f"block has {block:,}.",
        )
    passes = sum(operation.written for operation in found) / (block * blocks)
    if passes > 2.5:
        return Verdict(
            False,
            f"The values are right, but your operations write {passes:.0f} arrays of the size of "
            "x. Two suffice: multiply into `out` with `torch.mul(..., out=...)`, then in place.",
        )
    return None


class Bench:
    """A made-up machine with two programs and a clock, to try a way of measuring on.

    The second program takes 1.5 times as long as the first. The machine gets slower all the time,
    the first call of each program takes much longer, and now and then something else comes in
    between.

    Attributes:
        first: the program to compare with.
        second: the program to measure.
        clock: what time it is, in seconds.

    Example:
        >>> bench = Bench()
        >>> start = bench.clock()
        >>> bench.first()
        >>> bench.clock() > start
        True
    """

    RATIO = 1.5

    def __init__(
        self, slowdown: float = 0.01, first_call: float = 500.0, pause: float = 200.0
    ) -> None:
        self._now, self._calls = 0.0, {1.0: 0, self.RATIO: 0}
        self._slowdown, self._first_call, self._pause = slowdown, first_call, pause

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
        if work == self.RATIO and self._calls[work] % 7 == 5:
            seconds += self._pause
        self._now += seconds


def check_timer(measure: Callable[[Way, Way, Callable[[], float], int], Any]) -> Verdict:
    """Check a function that measures how long one program takes beside another.

    It is tried on a made-up machine (`Bench`) whose right answer is known.

    Args:
        measure: takes `(first, second, clock, rounds)`, calls the two programs and returns the
            time of the second as a multiple of that of the first.

    Returns:
        The verdict; a known mistake is called by its name.

    Example:
        >>> check_timer(lambda first, second, clock, rounds: 1.0)
        Not yet. Your function never called the two programs.
    """
    rounds = 21

    def tried(timer: Callable[..., Any], **options: float) -> tuple[Any, Bench]:
        bench = Bench(**options)
        return timer(bench.first, bench.second, bench.clock, rounds), bench

    try:
        given, bench = tried(measure)
    except Exception as error:
        return Verdict(False, f"Your function raised {type(error).__name__}: {error}")
    if not any(bench._calls.values()):
        return Verdict(False, "Your function never called the two programs.")
    answer = as_array(given, (), "Your ratio")
    if isinstance(answer, Verdict):
        return answer
    if _near(answer):
        return Verdict(True, f"Your timer finds {answer:.2f}; the truth is {Bench.RATIO}.")
    if _near(1 / answer):
        return Verdict(False, "Your ratio is upside down: divide the second by the first.")
    # Which trouble can be taken away so that the answer becomes right?
    for message, calm in (
        (
            "The first calls spoil it: run each program once before you measure.",
            {"first_call": 0.0},
        ),
        (
            "Single interruptions spoil it: compare within a round, and take the median of these "
            "ratios, not a mean or a sum.",
            {"pause": 0.0},
        ),
        (
            "The machine gets slower while you measure: run the two in turn, and compare within "
            "a round.",
            {"slowdown": 0.0},
        ),
        (
            "First calls and interruptions both spoil it: run each program once before, and take "
            "the median.",
            {"first_call": 0.0, "pause": 0.0},
        ),
    ):
        if _near(np.asarray(tried(measure, **calm)[0], dtype=np.float64)):
            return Verdict(False, message)
    return Verdict(
        False,
        f"Your timer finds {answer:.2f}, where the truth is {Bench.RATIO}. Warm up, run the two in "
        "turn, and take the median of the ratios.",
    )


def _near(answer: Array | float) -> bool:
    return bool(abs(float(answer) / Bench.RATIO - 1) < 0.04)
