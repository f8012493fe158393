"""Run a benchmark in several processes, and pool its records: `python -m benchmarks.repeat norms`.

What memory a process gets, and on which cores it runs, can change a time more than all that
happens while it runs; and what else the host does changes from minute to minute. So the spread
within one process says too little, and the processes start some minutes apart. In a pooled record,
times and ratios are medians over the processes; each range reaches from the lowest to the highest,
and so holds the middle half of the rounds of every process. What follows the name is the
benchmark's.
"""

import argparse
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from lnbook import records

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
        ValueError: the runs did not measure the same, in the same order.
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


def main() -> None:
    """Run, pool what was recorded anew, and record it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name", choices=["norms", "recurrent"], help="the benchmark")
    parser.add_argument("--processes", type=int, default=3)
    parser.add_argument("--pause", type=float, default=300, help="seconds between them")
    options, rest = parser.parse_known_args()
    found: dict[str, list[records.Record]] = {}
    for number in range(options.processes):
        time.sleep(options.pause if number else 0)
        before = _contents()
        subprocess.run([sys.executable, "-m", f"benchmarks.{options.name}", *rest], check=True)
        for name, text in _contents().items():
            if text != before.get(name):
                found.setdefault(name, []).append(records.read(name))
    for name, runs in found.items():
        load = max(run.machine["load"] for run in runs)
        more = {"allocator": runs[0].machine["allocator"], "load": load, "processes": len(runs)}
        records.write(name, pool([run.measurements for run in runs]), **more)
        print(f"pooled {len(runs)} runs: {name}")


def _contents() -> dict[str, str]:
    return {file.stem: file.read_text() for file in records.FOLDER.glob("*.json")}


if __name__ == "__main__":
    main()
