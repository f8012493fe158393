"""The run itself, a pytest plugin: runs the tests that reach each mutant in a fork."""

import gc
import os
import signal
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import pytest

from mutation.fork import BROKEN, Watch, run_tests, start
from mutation.mutants import Mutant
from mutation.reach import Reach, measure
from mutation.swap import NotImportableError, install

KILLED, SURVIVED, TIMED_OUT = "killed", "survived", "timed out"
PACKAGE = "lnbook"
SPARE = 20.0  # seconds that every mutant gets on top of its tests' normal time


class MutationRun:
    """Replaces pytest's test loop.

    Args:
        mutants: the mutants to try, in this order.
        root: the repository's folder.
        jobs: how many mutants to try at once.
        found: called with each mutant and its outcome: KILLED, TIMED_OUT or SURVIVED.
    """

    def __init__(
        self,
        mutants: Sequence[Mutant],
        root: Path,
        jobs: int,
        found: Callable[[Mutant, str], None],
    ) -> None:
        self.mutants, self.root, self.jobs, self.found = mutants, root, jobs, found
        self.reach: Reach | None = None

    def pytest_configure(self) -> None:
        """Turn off shrinking in Hypothesis: it's slow, and nobody needs the example here."""
        from hypothesis import Phase, settings  # not earlier: pytest has to rewrite its asserts

        phases = [Phase.explicit, Phase.generate]
        settings.register_profile("mutation", phases=phases, database=None, derandomize=True)
        settings.load_profile("mutation")

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Measure what the tests reach, then run them against each mutant."""
        gc.freeze()  # otherwise garbage collection in a fork copies this process's memory
        began = time.monotonic()
        reach = self.reach = measure(session.items, self.root / PACKAGE)
        print(f"{len(session.items)} tests ran in {time.monotonic() - began:.0f} s", flush=True)
        if not reach.failed:
            self._run_all({item.nodeid: item for item in session.items}, reach)
        return True

    def _run_all(self, items: dict[str, pytest.Item], reach: Reach) -> None:
        running: dict[int, Mutant] = {}
        for number, mutant in enumerate(self.mutants, 1):
            tests = reach.of(mutant)
            limit = SPARE + 4 * sum(reach.seconds[test] for test in tests)
            work = partial(self._judge, mutant, [items[test] for test in tests])
            running[start(work, limit)] = mutant
            if len(running) >= self.jobs:
                self._collect(running)
            if sys.stdout.isatty():
                print(f"\r{number} of {len(self.mutants)} mutants", end="", flush=True)
        while running:
            self._collect(running)

    def _judge(self, mutant: Mutant, items: list[pytest.Item]) -> bool:
        """In the fork: return whether every test passes with the mutant."""
        try:
            install(mutant, self.root)
        except NotImportableError:
            return False
        watch = Watch()
        run_tests(items, watch)
        return not watch.failed

    def _collect(self, running: dict[int, Mutant]) -> None:
        pid, status = os.wait()
        mutant, code = running.pop(pid), os.waitstatus_to_exitcode(status)
        if code == BROKEN:
            raise RuntimeError(f"could not try {mutant.before!r} -> {mutant.after!r}")
        late = code in (-signal.SIGXCPU, -signal.SIGKILL, -signal.SIGALRM)
        self.found(mutant, TIMED_OUT if late else KILLED if code else SURVIVED)
