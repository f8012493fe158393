"""Record measurements for the book: `make measure NAME=practice/speed/norms`.

Without NAME, all of them are recorded.

Each script is named after its record and has a `measure()` function that returns the measurements.
A script that times code sets `PROCESSES`: it runs that many times, a few minutes apart, and the
records are pooled. How a process got its memory and which cores it runs on can affect times more
than anything that happens during the run, and the machine's load changes from minute to minute, so
the spread within one process isn't enough.

A script that needs a special machine has a `missing()` function, which returns what this machine
lacks, or None.
"""

import argparse
import importlib
import subprocess
import sys
import time
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

from benchmarks import timing
from benchmarks.pool import pool
from lnbook import measurements

FOLDER = Path(__file__).parent
PAUSE = 300  # seconds between processes


def names() -> list[str]:
    """Return the names of all records."""
    scripts = (path.relative_to(FOLDER).with_suffix("") for path in FOLDER.glob("*/*/[a-z]*.py"))
    return sorted(script.as_posix() for script in scripts)


def measure(name: str, script: ModuleType) -> None:
    """Run a script in this process, and record its result."""
    timed = hasattr(script, "PROCESSES")
    if timed:
        timing.settle_allocator()
    else:
        torch.set_num_threads(1)
    more = timing.conditions() if timed else {}
    measurements.write(name, script.measure(), plain=timing.plain, **more)


def measure_again_and_again(name: str, processes: int, pause: float) -> None:
    """Run a script in several processes, and pool their records."""
    runs = []
    for number in range(processes):
        time.sleep(pause if number else 0)
        subprocess.run([sys.executable, "-m", "benchmarks", name, "--once"], check=True)
        runs.append(measurements.read(name))
    more: dict[str, Any] = {
        **{key: runs[0].machine[key] for key in ("model", "caches", "allocator")},
        "load": max(run.machine["load"] for run in runs),
        "processes": processes,
    }
    measurements.write(name, pool([run.measurements for run in runs]), **more)


def main() -> None:
    """Measure the named records, or all of them."""
    parser = argparse.ArgumentParser(prog="make measure", description=__doc__)
    parser.add_argument("name", nargs="*", choices=[[], *names()], help="the record")
    parser.add_argument("--once", action="store_true", help="use a single process for a first look")
    parser.add_argument("--pause", type=float, default=PAUSE, help="seconds between processes")
    options = parser.parse_args()
    for name in options.name or names():
        start = time.perf_counter()
        script = importlib.import_module(f"benchmarks.{name.replace('/', '.')}")
        reason = script.missing() if hasattr(script, "missing") else None
        if reason is not None and options.name:
            sys.exit(f"error: {name} was not measured: {reason}")
        if reason is not None:
            print(f"{name}: not measured, since {reason}", flush=True)
            continue
        if hasattr(script, "PROCESSES") and not options.once:
            measure_again_and_again(name, script.PROCESSES, options.pause)
        else:
            measure(name, script)
        print(f"{name}: recorded after {time.perf_counter() - start:.0f} s", flush=True)


if __name__ == "__main__":
    main()
