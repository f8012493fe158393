"""Splitting work among processes doesn't change the order of results or hide errors."""

import math

import pytest

from bookbuild import parallel


@pytest.mark.parametrize("count", [0, 3, 2 * parallel.FEW + 5])
def test_results_are_in_order(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel.os, "cpu_count", lambda: 2)
    assert parallel.map_all(math.sqrt, range(count)) == [math.sqrt(i) for i in range(count)]


@pytest.mark.parametrize("count", [3, 2 * parallel.FEW])
def test_an_error_reaches_the_caller(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel.os, "cpu_count", lambda: 2)
    with pytest.raises(ValueError, match="domain"):
        parallel.map_all(math.sqrt, [*range(count), -1])
