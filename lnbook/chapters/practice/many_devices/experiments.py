"""Several processes on one machine in place of several devices."""

from __future__ import annotations

import math
import multiprocessing
import os
import signal
import socket
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import cache
from pathlib import Path
from typing import Any

import cloudpickle
import torch
import torch.distributed as dist

__all__ = ["run_on"]

# Modules that processes share. DTensor uses dynamo, which alone needs 100 MB.
SHARED = ["torch.distributed.tensor.parallel", "torch._dynamo"]


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
        work = cloudpickle.dumps((function, args))  # pickle can't send what a notebook defines
        try:
            return _results(
                [_processes(size).submit(_on_rank, work, rank, size, store) for rank in range(size)]
            )
        except (BrokenProcessPool, KeyboardInterrupt):
            _processes.cache_clear()
            raise


def _results(calls: Sequence[Future[Any]]) -> list[Any]:
    """Wait for all calls; raise the earliest error, which may have made the others fail."""
    errors = [error for call in calls if (error := call.exception())]
    if errors:
        raise min(errors, key=lambda error: getattr(error, "raised_at", math.inf))
    return [call.result() for call in calls]


@cache
def _processes(size: int) -> ProcessPoolExecutor:
    """As many processes as there are devices.

    On Linux, they're forks of one process that has imported torch and share its memory.
    """
    context = multiprocessing.get_context("forkserver" if sys.platform == "linux" else "spawn")
    if sys.platform == "linux":
        context.set_forkserver_preload(SHARED)
    return ProcessPoolExecutor(size, context, initializer=_end_when_interrupted)


def _end_when_interrupted() -> None:
    # Interrupting a notebook interrupts these processes, too. They end without a traceback.
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def _on_rank(work: bytes, rank: int, size: int, store: str) -> Any:
    function, args = cloudpickle.loads(work)
    torch.set_num_threads(1)
    loopback = [name for _, name in socket.if_nameindex() if name.startswith("lo")]
    if loopback:  # gloo's default looks up the machine's name, which some machines can't resolve
        os.environ.setdefault("GLOO_SOCKET_IFNAME", loopback[0])
    dist.init_process_group("gloo", init_method=store, rank=rank, world_size=size)
    try:
        dist.barrier()  # a process that left early would break the connections of the others
        return function(rank, *args)
    except Exception as error:
        error.raised_at = time.time()  # type: ignore[attr-defined]
        raise
    finally:
        dist.destroy_process_group()
