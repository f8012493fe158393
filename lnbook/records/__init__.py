"""Measurements that take too long for a chapter, or differ between machines, as they were recorded.

Each record is a JSON file in this folder, written by a documented command (`make bench`,
`make sweep`) with the date, the versions and the kind of machine. A chapter that shows one says so.
"""

from __future__ import annotations

import datetime
import json
import os
import platform
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

__all__ = ["Record", "machine", "read", "write"]

FOLDER = Path(__file__).parent


@dataclass(frozen=True)
class Record:
    """What was measured, and on what.

    Attributes:
        machine: the date, the versions and the kind of machine.
        measurements: one mapping for each measurement.

    Example:
        >>> record = Record(machine(), [{"form": "native", "seconds": 0.5}])
        >>> str(record).startswith("recorded on 20")
        True
    """

    machine: dict[str, Any]
    measurements: list[dict[str, Any]]

    def __str__(self) -> str:
        """One line on when, with what and on what it was recorded."""
        m = self.machine
        return (
            f"recorded on {m['date']} with torch {m['torch']}, Python {m['python']}, "
            f"on {m['system']}, {m['processor']} with {m['vectors']}, {m['cores']} cores"
        )


def read(name: str) -> Record:
    """Read a record of this version of lnbook.

    Args:
        name: its name, without an ending.

    Raises:
        ValueError: there is no record of that name.

    Example:
        >>> record = read("norms-cpu")
        >>> sorted(record.machine)[:3], len(record.measurements) > 10
        (['allocator', 'cores', 'date'], True)
    """
    path = FOLDER / f"{name}.json"
    if not path.is_file():
        known = ", ".join(sorted(file.stem for file in FOLDER.glob("*.json"))) or "none"
        raise ValueError(f"read: expected the name of a record ({known}), but got {name!r}")
    return Record(**json.loads(path.read_text(encoding="utf-8")))


def write(
    name: str,
    measurements: Sequence[Mapping[str, Any]],
    *,
    plain: Callable[[Any], Any] | None = None,
    **more: Any,
) -> Path:
    """Write measurements, with the date, the versions and the kind of this machine.

    Args:
        name: name of the record, without an ending.
        measurements: one mapping for each measurement.
        plain: turns what JSON does not know into what it knows.
        more: what else to tell of the machine, for example its settings.

    Returns:
        Where the record stands.

    Example:
        >>> from tempfile import TemporaryDirectory
        >>> from unittest.mock import patch
        >>> with TemporaryDirectory() as folder, patch("lnbook.records.FOLDER", Path(folder)):
        ...     path = write("small", [{"seconds": 0.5}], threads=1)
        ...     print(path.name, read("small").measurements)
        small.json [{'seconds': 0.5}]
    """
    record = {"machine": machine() | more, "measurements": list(measurements)}
    path = FOLDER / f"{name}.json"
    path.write_text(json.dumps(record, indent=1, default=plain) + "\n", encoding="utf-8")
    return path


def machine() -> dict[str, Any]:
    """Return the date, the versions and the kind of this machine.

    Example:
        >>> machine()["torch"] == torch.__version__.partition("+")[0]
        True
    """
    return {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "python": platform.python_version(),
        "torch": torch.__version__.partition("+")[0],
        "numpy": np.__version__,
        "system": platform.system(),
        "processor": platform.machine(),
        "vectors": torch.backends.cpu.get_cpu_capability(),
        "cores": os.cpu_count(),
    }
