"""Records: what's written can be read back, and the book's records are complete."""

from pathlib import Path

import pytest

from lnbook import measurements


def test_a_record_is_read_as_it_was_written(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(measurements, "FOLDER", tmp_path)
    taken = [{"name": "a", "ratio": 1.25}]
    assert (
        measurements.write("part/some", taken, allocator="settled") == tmp_path / "part/some.json"
    )
    record = measurements.read("part/some")
    assert record.measurements == taken
    assert record.machine == measurements.machine() | {"allocator": "settled"}
    assert record.machine["date"] in str(record)
    with pytest.raises(ValueError, match=r"name of a record \(part/some\), but got 'other'"):
        measurements.read("other")


@pytest.mark.parametrize("name", measurements.names())
def test_records_of_the_book_tell_what_they_were_taken_on(name: str) -> None:
    record = measurements.read(name)
    assert record.measurements
    assert measurements.machine().keys() <= record.machine.keys()
    assert not {"host", "user", "path"} & record.machine.keys()
