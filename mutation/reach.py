"""Measures which tests reach which lines, and how long each test takes."""

import pickle
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import coverage
import pytest

from mutation.fork import Watch, in_fork, run_tests
from mutation.mutants import Mutant


@dataclass
class Reach:
    """The measurements without a mutant.

    Attributes:
        seconds: the duration of each test, keyed by its node id.
        lines: the node ids of the tests that reach each line, keyed by path and line number.
        failed: the tests that fail without a mutant.
    """

    seconds: dict[str, float]
    lines: dict[str, dict[int, set[str]]]
    failed: list[str]

    def of(self, mutant: Mutant) -> list[str]:
        """Return the tests that reach a mutant, fastest first."""
        lines = self.lines.get(str(mutant.place.path), {})
        on_import = mutant.place.function is None
        reached: set[str] = set()
        for line, tests in lines.items():
            if on_import or mutant.first <= line <= mutant.last:
                reached |= tests
        if on_import or mutant.is_default:
            reached |= self._nowhere()  # they may check a value or a signature
        return sorted(reached, key=lambda test: (self.seconds[test], test))

    def _nowhere(self) -> set[str]:
        """Return the tests that don't execute any line of the package."""
        somewhere = (tests for lines in self.lines.values() for tests in lines.values())
        return self.seconds.keys() - set().union(*somewhere)


def measure(items: Sequence[pytest.Item], package: Path) -> Reach:
    """Run every test once, in a fork so that this process doesn't change."""
    with tempfile.TemporaryDirectory() as folder:
        result = Path(folder, "reach")
        in_fork(lambda: result.write_bytes(pickle.dumps(_measured(items, package))))
        reach: Reach = pickle.loads(result.read_bytes())
    return reach


def _measured(items: Sequence[pytest.Item], package: Path) -> Reach:
    tracer = coverage.Coverage(data_file=None, config_file=False, include=[f"{package}/*"])
    watch = Watch()
    tracer.start()
    for number, item in enumerate(items):
        tracer.switch_context(str(number))
        run_tests([item], watch)
    tracer.stop()
    data = tracer.get_data()
    lines = {
        path: {
            line: {items[int(number)].nodeid for number in numbers if number}
            for line, numbers in data.contexts_by_lineno(path).items()
        }
        for path in data.measured_files()
    }
    return Reach(watch.seconds, lines, watch.failed)
