"""What all timing scripts do: refuse to run on a busy machine, and name the processor."""

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


def test_a_record_names_the_processor_and_its_caches(monkeypatch, tmp_path) -> None:
    about = tmp_path / "cpuinfo"
    about.write_text("processor\t: 0\nmodel name\t: Some CPU @ 2 GHz\nmodel name\t: Other\n")
    for number, (level, kind, size) in enumerate([("1", "Data", "32K"), ("2", "Unified", "1024K")]):
        folder = tmp_path / f"index{number}"
        folder.mkdir()
        for name, text in (("level", level), ("type", kind), ("size", size)):
            (folder / name).write_text(f"{text}\n")
    monkeypatch.setattr(timing, "ABOUT", about)
    monkeypatch.setattr(timing, "CACHES", tmp_path)
    found = timing.conditions()
    assert found["model"] == "Some CPU @ 2 GHz"
    assert found["caches"] == {"L1 Data": "32K", "L2 Unified": "1024K"}


def test_a_record_says_that_the_processor_is_unknown(monkeypatch, tmp_path) -> None:
    monkeypatch.setattr(timing, "ABOUT", tmp_path / "missing")
    monkeypatch.setattr(timing, "CACHES", tmp_path / "missing")
    found = timing.conditions()
    assert found["model"] == "unknown"
    assert found["caches"] == {}
