"""Records of measurements that take too long for a chapter or differ between machines.

Each record is a JSON file in its chapter's folder, for example `lstm/training/runs.json`.
`make measure` writes it with the script of the same name in `benchmarks/`, and adds the date, the
versions and the type of machine. Chapters say so when they show a record.
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

__all__ = ["Record", "machine", "names", "read", "write"]

FOLDER = Path(__file__).parent


@dataclass(frozen=True)
class Record:
    """A set of measurements, and the machine they were made on.

    Attributes:
        machine: the date, the versions and the type of machine.
        measurements: one mapping per measurement.

    Example:
        >>> record = Record(machine(), [{"form": "native", "seconds": 0.5}])
        >>> str(record).startswith("recorded on 20")
        True
    """

    machine: dict[str, Any]
    measurements: list[dict[str, Any]]

    def __str__(self) -> str:
        """One line on when and how it was recorded."""
        m = self.machine
        return (
            f"recorded on {m['date']} with torch {m['torch']}, Python {m['python']}, "
            f"on {m['system']}, {m['processor']} with {m['vectors']}, {m['cores']} cores"
        )


def read(name: str) -> Record:
    """Read a record from this version of lnbook.

    Args:
        name: the chapter and the file, without an extension.

    Raises:
        ValueError: there is no record with that name.

    Example:
        >>> record = read("practice/speed/norms")
        >>> sorted(record.machine)[:3], len(record.measurements) > 10
        (['allocator', 'cores', 'date'], True)
    """
    path = FOLDER / f"{name}.json"
    if not path.is_file():
        known = ", ".join(names()) or "none"
        raise ValueError(f"read: expected the name of a record ({known}), but got {name!r}")
    return Record(**json.loads(path.read_text(encoding="utf-8")))


def names() -> list[str]:
    """Return the names of all records.

    Example:
        >>> "lstm/training/runs" in names()
        True
    """
    files = FOLDER.rglob("*.json")
    return sorted(file.relative_to(FOLDER).with_suffix("").as_posix() for file in files)


def write(
    name: str,
    measurements: Sequence[Mapping[str, Any]],
    *,
    plain: Callable[[Any], Any] | None = None,
    **more: Any,
) -> Path:
    """Write measurements, with the date, the versions and the type of this machine.

    Args:
        name: the chapter and the file, without an extension; an existing record is replaced.
        measurements: one mapping per measurement.
        plain: converts objects that JSON doesn't support into ones that it does.
        more: additional facts about the machine, for example its settings.

    Returns:
        The path of the file.

    Example:
        >>> from tempfile import TemporaryDirectory
        >>> from unittest.mock import patch
        >>> with TemporaryDirectory() as folder, patch("lnbook.measurements.FOLDER", Path(folder)):
        ...     path = write("part/chapter/small", [{"seconds": 0.5}], threads=1)
        ...     print(path.name, read("part/chapter/small").measurements)
        small.json [{'seconds': 0.5}]
    """
    record = {"machine": machine() | more, "measurements": list(measurements)}
    path = FOLDER / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(record, indent=1, default=plain) + "\n", encoding="utf-8")
    return path


def machine() -> dict[str, Any]:
    """Return the date, the versions and the type of this machine.

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
