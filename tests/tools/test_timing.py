"""What a script that times code needs."""

import pytest

from benchmarks import timing


@pytest.mark.parametrize(
    ("load", "refused"), [(0.0, False), (1.0, False), (1.1, True), (8.0, True)]
)
def test_a_busy_machine_is_refused(monkeypatch, load: float, refused: bool) -> None:
    monkeypatch.setattr(timing.os, "getloadavg", lambda: (load, 0.0, 0.0))
    reason = timing.busy()
    assert (reason is not None) == refused
    assert reason is None or f"it's {load}" in reason
