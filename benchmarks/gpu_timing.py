"""Fair timing on an NVIDIA GPU: the functions take turns, each with a cold cache.

A GPU works through a queue. Timing the Python call would measure how long it takes to fill the
queue, so the GPU itself records when each function begins and ends (CUDA events). Before each
sample, a large tensor is overwritten several times: that evicts the function's data from the L2
cache, and takes long enough for Python to put the whole function into the queue. If Python took
longer, the GPU would wait in the middle of the function, and that wait would be timed, too.
"""

from collections.abc import Callable, Mapping
from typing import Any

import torch

from benchmarks.timing import Timing, summarize

FLUSH_BYTES = 2**30  # an L2 cache has 50 MB or so; overwriting this takes a third of a millisecond
FLUSHES = 10  # Python takes up to a millisecond to put a compiled backward pass into the queue
WARM_UP = 5  # calls; the first one compiles


def missing() -> str | None:
    """Return why nothing can be measured on this machine, or None."""
    if not torch.cuda.is_available():
        return "it needs an NVIDIA GPU and a CUDA build of torch, but torch finds no GPU"
    return None


def compare(ways: Mapping[str, Callable[[], Any]], rounds: int) -> list[Timing]:
    """Time the functions in `ways` in turn, and compare each with the first.

    Args:
        ways: the functions to time, keyed by name.
        rounds: how many samples to take of each.

    Returns:
        One timing per function, in the same order.
    """
    flush = torch.empty(FLUSH_BYTES, dtype=torch.int8, device="cuda")
    for way in ways.values():
        for _ in range(WARM_UP):
            way()
    samples: dict[str, list[float]] = {name: [] for name in ways}
    order = list(ways)
    for _ in range(rounds):
        for name in order:
            samples[name].append(_sample(ways[name], flush))
        order.append(order.pop(0))
    base = next(iter(samples.values()))
    return [summarize(name, seconds, base) for name, seconds in samples.items()]


def _sample(way: Callable[[], Any], flush: torch.Tensor) -> float:
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    for _ in range(FLUSHES):
        flush.zero_()
    start.record()
    way()
    end.record()
    torch.cuda.synchronize()
    milliseconds: float = start.elapsed_time(end)
    return 1e-3 * milliseconds
