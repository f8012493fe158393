"""Several processes on one machine in place of several devices."""

from __future__ import annotations

import os
import socket
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from joblib import Parallel, delayed

__all__ = ["run_on"]


def run_on(size: int, function: Callable[..., Any], *args: Any) -> list[Any]:
    """Call a function in several processes that can send each other tensors.

    The processes form a process group of `torch.distributed` with the gloo backend, which works on
    a CPU. Each uses one thread. They're kept for the next call, so only the first one is slow.

    Args:
        size: the number of processes, the "devices".
        function: called as `function(rank, *args)` in each, with rank 0, 1, ..., size - 1. It can
            be defined in a notebook. What it returns has to be picklable.
        args: sent to every process.

    Returns:
        What the processes returned, by rank.

    Raises:
        ValueError: `size` is below 1.

    Example:
        >>> run_on(2, lambda rank, x: rank + x, 10)
        [10, 11]
    """
    if size < 1:
        raise ValueError(f"run_on: expected size to be at least 1, but got {size}")
    with tempfile.TemporaryDirectory() as folder:
        store = (Path(folder) / "store").as_uri()
        calls = (delayed(_on_rank)(function, rank, size, store, args) for rank in range(size))
        # Each process waits for the others, so all calls have to run at the same time.
        results: list[Any] = Parallel(n_jobs=size, batch_size=1, pre_dispatch="all")(calls)
    return results


def _on_rank(
    function: Callable[..., Any], rank: int, size: int, store: str, args: tuple[Any, ...]
) -> Any:
    torch.set_num_threads(1)
    loopback = [name for _, name in socket.if_nameindex() if name.startswith("lo")]
    if loopback:  # gloo's default looks up the machine's name, which some machines can't resolve
        os.environ.setdefault("GLOO_SOCKET_IFNAME", loopback[0])
    dist.init_process_group("gloo", init_method=store, rank=rank, world_size=size)
    try:
        dist.barrier()  # a process that left early would break the connections of the others
        return function(rank, *args)
    finally:
        dist.destroy_process_group()
