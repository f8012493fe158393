"""The chapter's experiments."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
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


def test_an_error_says_in_which_process_it_was_raised() -> None:
    class OwnError(Exception):
        """A class that other processes can't import."""

    def fails(rank: int) -> None:
        raise OwnError

    with pytest.raises(OwnError) as caught:
        run_on(1, fails)
    (note,) = caught.value.__notes__
    assert note.startswith("In the process of rank 0:\nTraceback")
    assert "raise OwnError" in note


def test_results_may_need_a_gradient_and_have_a_class_of_their_own() -> None:
    class Own:
        value = torch.ones(2, requires_grad=True)

    (own,) = run_on(1, lambda rank: Own())
    assert own.value.tolist() == [1.0, 1.0]
    (product,) = run_on(1, lambda rank: 2 * torch.nn.Parameter(torch.ones(2)))
    assert product.tolist() == [2.0, 2.0]


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


@pytest.mark.parametrize("stop", [os.kill, os.killpg], ids=["on Windows", "elsewhere"])
def test_an_interrupt_ends_the_processes_quietly(stop: Callable[[int, int], None]) -> None:
    """Jupyter interrupts a notebook's whole process group, but on Windows only its kernel."""
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
        stop(process.pid, signal.SIGINT)
        out, errors = process.communicate()
    assert (out, errors) == ("stopped\n[0, 1]\n", "")


def test_the_processes_end_with_the_notebook() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED],
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).resolve().parents[4],
    ) as process:
        assert process.stdout
        process.stdout.readline()
        children = psutil.Process(process.pid).children(recursive=True)
        process.kill()
    assert len(children) >= 2
    _, alive = psutil.wait_procs(children, timeout=600)
    assert not alive


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has processes that share torch")
def test_processes_share_the_memory_of_torch() -> None:
    run_on(4, lambda rank: rank)
    own = [child.memory_full_info().uss for child in psutil.Process().children(recursive=True)]
    assert sum(own) < 300e6  # about 120 MB; with a torch of its own, each would need 150 MB


def test_bad_size() -> None:
    with pytest.raises(ValueError, match="at least 1, but got 0"):
        run_on(0, total)
