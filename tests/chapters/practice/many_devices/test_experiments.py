"""The chapter's experiments."""

import os
import signal
import subprocess
import sys
import time
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

import psutil
import pytest
import torch
import torch.distributed as dist

from lnbook.chapters.practice.many_devices.experiments import run_on


def total(rank: int, values: torch.Tensor) -> tuple[int, int, torch.Tensor]:
    own = values[rank].clone()
    dist.all_reduce(own)
    return rank, dist.get_world_size(), own


def test_every_process_gets_the_sum() -> None:
    values = torch.tensor([[1.0, 2.0], [10.0, 20.0], [100.0, 200.0]])
    results = run_on(3, total, values)
    assert [(rank, size) for rank, size, _ in results] == [(0, 3), (1, 3), (2, 3)]
    assert all(torch.equal(own, torch.tensor([111.0, 222.0])) for *_, own in results)
    again = run_on(3, total, 2 * values)  # the processes are reused
    assert torch.equal(again[2][2], torch.tensor([222.0, 444.0]))


def test_a_process_with_nothing_to_wait_for_does_not_leave_too_early() -> None:
    for _ in range(40):  # without the barrier, it breaks the connections in about one of 15 calls
        assert run_on(2, lambda rank: rank) == [0, 1]


def test_errors_reach_the_caller() -> None:
    def fails(rank: int) -> None:
        if rank == 1:
            raise KeyError(f"from rank {rank}")
        dist.all_reduce(torch.ones(1))  # fails as soon as the other process has left

    for _ in range(5):
        with pytest.raises(KeyError, match="from rank 1"):
            run_on(2, fails)


def test_a_process_that_ends_is_replaced() -> None:
    with pytest.raises(BrokenProcessPool):
        run_on(2, lambda rank: os._exit(1))
    assert run_on(2, lambda rank: rank) == [0, 1]


INTERRUPTED = """
import time
from lnbook.chapters.practice.many_devices.experiments import run_on

def endless(rank):
    time.sleep(3600)

run_on(2, lambda rank: rank)
try:
    print("begins", flush=True)
    run_on(2, endless)
except KeyboardInterrupt:
    print("stopped")
print(run_on(2, lambda rank: rank))
"""


def test_an_interrupt_ends_the_processes_quietly() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        cwd=Path(__file__).resolve().parents[4],
    ) as process:
        assert process.stdout
        process.stdout.readline()
        time.sleep(0.5)
        os.killpg(process.pid, signal.SIGINT)  # as Jupyter does
        out, errors = process.communicate()
    assert (out, errors) == ("stopped\n[0, 1]\n", "")


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has processes that share torch")
def test_processes_share_the_memory_of_torch() -> None:
    run_on(4, lambda rank: rank)
    own = [child.memory_full_info().uss for child in psutil.Process().children(recursive=True)]
    assert sum(own) < 300e6  # about 120 MB; with a torch of its own, each would need 150 MB


def test_bad_size() -> None:
    with pytest.raises(ValueError, match="at least 1, but got 0"):
        run_on(0, total)
