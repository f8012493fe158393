"""The chapter's experiments."""

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
        raise KeyError(f"from rank {rank}")

    with pytest.raises(KeyError, match="from rank"):
        run_on(2, fails)


def test_bad_size() -> None:
    with pytest.raises(ValueError, match="at least 1, but got 0"):
        run_on(0, total)
