"""What each chapter costs a reader: its running time and its memory.

The tests measure both whenever they execute a reference (tests/chapter_costs.py), and store them
in `_build/costs.json`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import psutil

from bookbuild.book import Book
from bookbuild.errors import BookError

RECORD = "teach/peak-memory.json"  # in the folder with the pages
LARGEST_PEAK = 10**9  # bytes: Binder guarantees 1 GB and may kill anything that uses more


class Cost(NamedTuple):
    """The cost of one run: seconds (including kernel startup) and peak memory in bytes."""

    seconds: float
    peak: int


def peak_memory(process: int) -> int | None:
    """The peak memory of a running process, in bytes, and what its children need now.

    Memory that several children share is divided among them. None if the process has ended, or if
    the system doesn't report a peak; Linux does.
    """
    try:
        status = Path(f"/proc/{process}/status").read_text(encoding="utf-8")
        children = psutil.Process(process).children(recursive=True)
    except (OSError, psutil.NoSuchProcess):
        return None
    found = re.search(r"VmHWM:\s*(\d+)", status)
    return int(found[1]) * 1024 + sum(map(_memory, children)) if found else None


def _memory(process: psutil.Process) -> int:
    try:
        return int(process.memory_full_info().pss)
    except psutil.NoSuchProcess:
        return 0


def path(book: Book) -> Path:
    """Where the costs of the last runs are stored."""
    return book.build / "costs.json"


def read(book: Book) -> dict[str, Cost]:
    """The costs of the last runs, keyed by the chapter's name."""
    if not path(book).exists():
        return {}
    data = json.loads(path(book).read_text(encoding="utf-8"))
    return {name: Cost(**cost) for name, cost in data.items()}


def keep(book: Book, costs: Mapping[str, Cost]) -> None:
    """Add the costs of the chapters that just ran to the earlier ones."""
    path(book).parent.mkdir(parents=True, exist_ok=True)
    data = {name: cost._asdict() for name, cost in {**read(book), **costs}.items()}
    path(book).write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")


def record(book: Book) -> None:
    """Keep the costs of the last runs for the teacher's page, which shows them.

    Raises:
        BookError: if a chapter or a lab hasn't been measured yet.
    """
    costs = read(book)
    names = [chapter.name for chapter in book.notebooks]
    missing = [name for name in names if name not in costs]
    if missing:
        raise BookError(f"not measured yet: {', '.join(missing)}: run 'make test'")
    megabytes = {name: round(costs[name].peak / 1e6) for name in names}
    path = book.source / RECORD
    path.write_text(json.dumps(megabytes, indent=1) + "\n", encoding="utf-8")
    print(f"Wrote the peak memory of {len(names)} chapters and labs to {book.show(path)}")


def recorded(book: Book) -> dict[str, int]:
    """The recorded peak memory of each chapter and lab, in MB."""
    path = book.source / RECORD
    return dict(json.loads(path.read_text(encoding="utf-8"))) if path.exists() else {}


def show(book: Book) -> None:
    """Print what each chapter cost in its last run.

    Raises:
        BookError: if no chapter has been measured yet.
    """
    costs = read(book)
    if not costs:
        raise BookError(f"{book.show(path(book))} does not exist: run 'make test' to measure")
    print("\n".join(table([chapter.name for chapter in book.notebooks], costs)))


def table(names: Iterable[str], costs: Mapping[str, Cost]) -> Iterator[str]:
    """The lines of a table: each chapter, then the total time and the largest peak."""
    rows = {name: costs.get(name) for name in names}
    measured = [cost for cost in rows.values() if cost]
    if measured:
        seconds, peaks = zip(*measured, strict=True)
        rows["all in turn"] = Cost(sum(seconds), max(peaks))
    yield f"{'chapter':32}{'time':>8}{'peak memory':>14}"
    for name, cost in rows.items():
        numbers = f"{cost.seconds:6.1f} s{cost.peak / 1e6:11.0f} MB" if cost else "not measured"
        yield f"{name:32}{numbers:>22}"
