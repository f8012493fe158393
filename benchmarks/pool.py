"""Pool the measurements of several processes: medians of times, and ranges that cover all of them.

Times and ratios become medians over the processes. Each range goes from the lowest to the highest
bound, so it covers the middle half of every process's rounds.
"""

import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import Any

OVER: dict[str, Callable[[Sequence[float]], float]] = {
    "milliseconds": statistics.median,
    "ratio": statistics.median,
    "low": min,
    "high": max,
}
Measurement = dict[str, Any]


def pool(runs: Sequence[Sequence[Measurement]]) -> list[Measurement]:
    """Return the measurements of the first run, with timings pooled over all runs.

    Raises:
        ValueError: if the runs don't have the same measurements in the same order.
    """
    if len({tuple(_what(one) for one in run) for run in runs}) != 1:
        raise ValueError("pool: expected runs of the same measurements, but they differ")
    pooled = []
    for same in zip(*runs, strict=True):
        ways = zip(*(one.get("timings", []) for one in same), strict=True)
        timings = [_over(way) for way in ways]
        pooled.append(same[0] | ({"timings": timings} if timings else {}))
    return pooled


def _what(measurement: Measurement) -> tuple[str, ...]:
    names = [timing["name"] for timing in measurement.get("timings", [])]
    what = {key: value for key, value in measurement.items() if key != "timings"}
    return (*names, *(f"{k}={v}" for k, v in what.items() if isinstance(v, str | list | int)))


def _over(way: Sequence[Mapping[str, Any]]) -> Measurement:
    numbers = {key: round(over([run[key] for run in way]), 4) for key, over in OVER.items()}
    return {"name": way[0]["name"], **numbers}
