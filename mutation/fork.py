"""Runs tests in forks, so torch is imported and tests are collected just once."""

import faulthandler
import os
import resource
import signal
import sys
from collections.abc import Callable, Sequence

import pytest

BROKEN = 70  # the exit status of a fork that failed to do its work


class Watch:
    """A pytest plugin that records how long tests took and which ones failed."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self.failed: list[str] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Record a phase of a test: setup, call or teardown."""
        self.seconds[report.nodeid] = self.seconds.get(report.nodeid, 0.0) + report.duration
        if report.failed:
            self.failed.append(report.nodeid)


def run_tests(items: Sequence[pytest.Item], watch: Watch) -> None:
    """Run `items` in order, until one fails that didn't fail before."""
    if not items:
        return
    manager = items[0].config.pluginmanager
    if not manager.is_registered(watch):
        manager.unregister(name="terminalreporter")
        manager.register(watch)
    known = len(watch.failed)
    for item, following in zip(items, [*items[1:], None], strict=True):
        item.ihook.pytest_runtest_protocol(item=item, nextitem=following)
        if len(watch.failed) > known:
            return


def start(work: Callable[[], object], cpu_seconds: float | None = None) -> int:
    """Start `work` in a fork, which exits with 1 if it returns False; return its process id."""
    pid = os.fork()
    if pid:
        return pid
    status = BROKEN
    try:
        if cpu_seconds is not None:
            # CPU time, so that a busy machine doesn't make a good test time out.
            limit = max(1, round(cpu_seconds))
            resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 1))
            signal.alarm(20 * limit)
            faulthandler.disable()  # mutants may crash, and nobody needs the traceback
            null = os.open(os.devnull, os.O_RDWR)
            for stream in (0, 1, 2):
                os.dup2(null, stream)
        status = 1 if work() is False else 0
    except BaseException as error:
        print(f"mutation: {type(error).__name__}: {error}", file=sys.stderr)
    finally:
        os._exit(status)


def in_fork(work: Callable[[], object]) -> None:
    """Do `work` in a fork and wait for it; raise RuntimeError if it fails."""
    _, status = os.waitpid(start(work), 0)
    if status:
        raise RuntimeError(f"the fork ended with status {os.waitstatus_to_exitcode(status)}")
