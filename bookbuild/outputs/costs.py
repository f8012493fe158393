"""What each chapter costs a reader: how long it runs, and how much memory it needs.

The tests measure both whenever they execute a reference (tests/chapter_costs.py), and keep them in
`_build/costs.json`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from bookbuild.book import Book
from bookbuild.errors import BookError

LARGEST_PEAK = 10**9  # bytes: Binder promises a reader 1 GB, and may end what takes more


@dataclass(frozen=True)
class Cost:
    """What one run of a chapter cost.

    Attributes:
        seconds: how long it took, with the start of its kernel.
        peak: the most memory that the kernel held at once, in bytes.
    """

    seconds: float
    peak: int


def peak_memory(process: int) -> int | None:
    """The most memory that a running process has held at once, in bytes.

    None where the system does not tell (it is Linux that does).
    """
    try:
        lines = Path(f"/proc/{process}/status").read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return None
    sizes = [line.split()[1] for line in lines if line.startswith("VmHWM:")]
    return int(sizes[0]) * 1024 if sizes else None


def record(book: Book) -> Path:
    """Where the costs of the last runs are kept."""
    return book.build / "costs.json"


def keep(book: Book, costs: Mapping[str, Cost]) -> None:
    """Keep the costs of the chapters that ran, beside those of earlier runs."""
    path = record(book)
    path.parent.mkdir(parents=True, exist_ok=True)
    all_costs = {**kept(book), **costs}
    data = {name: asdict(cost) for name, cost in sorted(all_costs.items())}
    path.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")


def kept(book: Book) -> dict[str, Cost]:
    """The costs of the last runs, by the name of the chapter."""
    path = record(book)
    if not path.exists():
        return {}
    data = json.loads(path.read_text(encoding="utf-8"))
    return {name: Cost(**cost) for name, cost in data.items()}


def show(book: Book) -> None:
    """Print what each chapter cost in its last run.

    Raises:
        BookError: if no chapter has been measured yet.
    """
    costs = kept(book)
    if not costs:
        raise BookError(f"{book.show(record(book))} is not there: run 'make test' to measure")
    print("\n".join(table([chapter.name for chapter in book.chapters], costs)))


def table(names: Iterable[str], costs: Mapping[str, Cost]) -> Iterator[str]:
    """The lines of a table: each chapter, then the sum of the times and the largest peak."""
    yield f"{'chapter':32}{'time':>8}{'peak memory':>14}"
    measured = {name: costs[name] for name in names if name in costs}
    for name in names:
        if name in measured:
            yield _row(name, measured[name].seconds, measured[name].peak)
        else:
            yield f"{name:32}{'not measured':>22}"
    if measured:
        values = measured.values()
        seconds, peak = sum(cost.seconds for cost in values), max(cost.peak for cost in values)
        yield _row("all in turn", seconds, peak)


def _row(name: str, seconds: float, peak: int) -> str:
    return f"{name:32}{seconds:6.1f} s{peak / 1e6:11.0f} MB"
