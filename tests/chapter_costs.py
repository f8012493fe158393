"""Measures each chapter while nbval runs it, and fails any that needs too much memory.

`python -m bookbuild costs` shows what was measured.
"""

from collections import defaultdict
from collections.abc import Generator
from typing import Any

import pytest
from nbval.plugin import IPyNbCell

from bookbuild.book import Book
from bookbuild.outputs import costs

PEAK = "peak memory"
FOLDER, SUFFIX = "tests/notebooks/", ".ipynb"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(
    item: pytest.Item, nextitem: pytest.Item | None
) -> Generator[None, None, None]:
    """Ask for the peak after the last cell of a notebook, while its kernel still runs."""
    peak = peak_of_kernel(item) if is_last_cell(item, nextitem) else None
    if peak is not None:
        item.user_properties.append((PEAK, peak))
    yield
    if peak is not None and peak > costs.LARGEST_PEAK:
        pytest.fail(
            f"this chapter needs {peak / 1e6:.0f} MB, but the limit is "
            f"{costs.LARGEST_PEAK / 1e6:.0f} MB, which is all that Binder guarantees",
            pytrace=False,
        )


def is_last_cell(item: pytest.Item, nextitem: pytest.Item | None) -> bool:
    """Whether a test is the last one that its notebook's kernel runs."""
    return isinstance(item, IPyNbCell) and (nextitem is None or nextitem.parent is not item.parent)


def peak_of_kernel(cell: Any) -> int | None:
    """The peak memory of a cell's kernel; None if it has ended or its peak can't be read."""
    kernel = cell.parent.kernel
    if kernel is None or not kernel.is_alive():
        return None
    return costs.peak_memory(kernel.km.provisioner.pid)


class Recorder:
    """Records what the chapters cost in one run."""

    def __init__(self, book: Book) -> None:
        self.book = book
        self.seconds: dict[str, float] = defaultdict(float)
        self.peaks: dict[str, int] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add the time that one part of a cell took."""
        path = report.nodeid.partition("::")[0]
        if not (path.startswith(FOLDER) and path.endswith(SUFFIX)):
            return
        name = path[len(FOLDER) : -len(SUFFIX)]
        self.seconds[name] += report.duration
        for key, value in report.user_properties:
            if key == PEAK:
                self.peaks[name] = value

    def pytest_sessionfinish(self) -> None:
        """Save the costs."""
        found = {name: costs.Cost(self.seconds[name], peak) for name, peak in self.peaks.items()}
        if found:
            costs.keep(self.book, found)


def pytest_configure(config: pytest.Config) -> None:
    """Record costs in the process that collects all reports, not in the workers."""
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Recorder(Book(config.rootpath)))
