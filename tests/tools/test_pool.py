"""Pooling the measurements of several processes."""

import pytest

from benchmarks.pool import pool


def run(native: float, ours: tuple[float, float, float, float], threads: int = 1):
    names = ("milliseconds", "ratio", "low", "high")
    timings = [
        {"name": "native"} | dict(zip(names, (native, 1.0, 1.0, 1.0), strict=True)),
        {"name": "ours"} | dict(zip(names, ours, strict=True)),
    ]
    return [
        {"family": "function", "shape": [8, 4], "threads": threads, "timings": timings},
        {"family": "memory", "kept_bytes": {"native": int(native)}},
    ]


def test_a_pooled_range_holds_the_range_of_every_process():
    runs = [
        run(2.0, (3.0, 1.5, 1.4, 1.6)),
        run(1.0, (3.1, 3.1, 2.9, 3.3)),
        run(2.1, (3.2, 1.6, 1.3, 1.7)),
    ]
    timed, memory = pool(runs)
    native, ours = timed["timings"]
    assert native == {"name": "native", "milliseconds": 2.0, "ratio": 1.0, "low": 1.0, "high": 1.0}
    assert ours == {"name": "ours", "milliseconds": 3.1, "ratio": 1.6, "low": 1.3, "high": 3.3}
    assert (timed["shape"], timed["threads"]) == ([8, 4], 1)
    assert memory == runs[0][1]


def test_runs_of_different_measurements_are_refused():
    same = (3.0, 1.5, 1.4, 1.6)
    for other in (run(1.0, same, threads=2), run(1.0, same)[:1]):
        with pytest.raises(ValueError, match="runs of the same measurements"):
            pool([run(1.0, same), other])
