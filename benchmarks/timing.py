"""Fair timing of several ways to compute the same thing, and a record of the measurements.

The functions take turns, round after round, in one process, and are compared within each round, so
other load on the machine slows all of them down alike. A ratio is the median over the rounds; its
spread covers the middle half of them.
"""

import os
import re
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

# Otherwise large tensors get fresh memory from the system each time, and page faults dominate the
# measurements.
ALLOCATOR = ":".join(
    [
        "glibc.malloc.mmap_threshold=4294967296",
        "glibc.malloc.trim_threshold=8589934592",
        "glibc.malloc.top_pad=268435456",
    ]
)
SAMPLE_SECONDS = 2e-3
# Where Linux describes the processor.
ABOUT = Path("/proc/cpuinfo")
CACHES = Path("/sys/devices/system/cpu/cpu0/cache")
# The load average at the start shows whether a record was made on a busy machine.
LOAD = round(os.getloadavg()[0], 1)
QUIET = 1.0
# An idle second core takes a tenth of a second or more to get up to speed.
WARM_UP_SECONDS = 0.3


@dataclass(frozen=True)
class Timing:
    """How long one function took, and how that compares with the first one.

    Attributes:
        name: what the function is called.
        milliseconds: the median time of one call.
        ratio: its time divided by that of the first one; the median over the rounds.
        low: a quarter of the ratios are below this.
        high: a quarter of the ratios are above this.
    """

    name: str
    milliseconds: float
    ratio: float
    low: float
    high: float


def busy() -> str | None:
    """Return why this machine is too busy for timing, or None if it isn't.

    A script that needs a quiet machine uses this as its `missing`: a kernel that uses both cores
    can't be compared while something else uses one of them.
    """
    load = os.getloadavg()[0]
    if load > QUIET:
        return f"it needs an idle machine (load average at most {QUIET}), but it's {load:.1f}"
    return None


def settle_allocator() -> None:
    """Restart the program so that the process keeps freed memory, unless it already does.

    Call this first. It does nothing if the C library isn't glibc.
    """
    if sys.platform == "linux" and os.environ.get("GLIBC_TUNABLES") != ALLOCATOR:
        environment = {**os.environ, "GLIBC_TUNABLES": ALLOCATOR}
        os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], environment)


@contextmanager
def threads(count: int) -> Iterator[None]:
    """Have torch use `count` threads inside the block."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def compare(ways: Mapping[str, Callable[[], Any]], rounds: int = 21) -> list[Timing]:
    """Time the functions in `ways` in turn, and compare each with the first.

    All of them get an untimed warm-up first.

    Args:
        ways: the functions to time, keyed by name. Calls that take less than about two milliseconds
            are repeated within a sample.
        rounds: how many samples to take of each.

    Returns:
        One timing per function, in the same order.
    """
    _warm_up(ways)
    calls = {name: _calls_in_a_sample(way) for name, way in ways.items()}
    samples: dict[str, list[float]] = {name: [] for name in ways}
    order = list(ways)
    for _ in range(rounds):
        for name in order:
            samples[name].append(_sample(ways[name], calls[name]))
        order.append(order.pop(0))  # so that no function always runs after the same one
    base = next(iter(samples.values()))
    return [summarize(name, seconds, base) for name, seconds in samples.items()]


def table(timings: Sequence[Timing]) -> str:
    """Return the timings as a table for the terminal."""
    width = max(len(timing.name) for timing in timings)
    return "\n".join(
        f"  {timing.name:{width}}  {timing.milliseconds:9.3f} ms  {timing.ratio:6.2f} "
        f"({timing.low:.2f} to {timing.high:.2f})"
        for timing in timings
    )


def conditions() -> dict[str, Any]:
    """Return everything else that affects timings, besides the type of machine.

    That's the processor's model and the sizes of its caches (on Linux), the allocator, and the load
    average.
    """
    allocator = "settled" if os.environ.get("GLIBC_TUNABLES") == ALLOCATOR else "as it is"
    return {"model": _model(), "caches": _caches(), "allocator": allocator, "load": LOAD}


def _model() -> str:
    found = re.search(r"model name\s*: (.+)", ABOUT.read_text()) if ABOUT.exists() else None
    return found.group(1) if found else "unknown"


def _caches() -> dict[str, str]:
    """Return the sizes of the first core's caches, for example `{"L2 Unified": "1024K"}`."""
    found = {}
    for folder in sorted(CACHES.glob("index*")):
        level, kind, size = (
            (folder / name).read_text().strip() for name in ("level", "type", "size")
        )
        found[f"L{level} {kind}"] = size
    return found


def plain(value: Any) -> Any:
    """Return a `Timing` as a dictionary, for a record."""
    if isinstance(value, Timing):
        rounded = asdict(value).items()
        return {key: round(item, 4) if key != "name" else item for key, item in rounded}
    raise TypeError(f"expected plain values and timings, but got {type(value).__name__}")


def _warm_up(ways: Mapping[str, Callable[[], Any]]) -> None:
    end = time.perf_counter() + WARM_UP_SECONDS
    while True:
        for way in ways.values():
            way()
        if time.perf_counter() > end:
            return


def _calls_in_a_sample(way: Callable[[], Any]) -> int:
    fastest = min(_sample(way, 1) for _ in range(3))
    return max(1, round(SAMPLE_SECONDS / fastest))


def _sample(way: Callable[[], Any], calls: int) -> float:
    start = time.perf_counter()
    for _ in range(calls):
        way()
    return (time.perf_counter() - start) / calls


def summarize(name: str, seconds: Sequence[float], base: Sequence[float]) -> Timing:
    """Return the median of some samples, and their ratios to those of the first function."""
    ratios = [mine / others for mine, others in zip(seconds, base, strict=True)]
    low, middle, high = statistics.quantiles(ratios, n=4, method="inclusive")
    return Timing(name, 1e3 * statistics.median(seconds), middle, low, high)
