"""Several processes on one machine in place of several devices."""

from __future__ import annotations

import math
import multiprocessing
import os
import signal
import socket
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import cloudpickle
import torch
import torch.distributed as dist

__all__ = ["run_on"]

# Modules that processes share. DTensor uses dynamo, which alone needs 100 MB.
SHARED = ["torch.distributed.tensor.parallel", "torch._dynamo"]


class _Outcome(NamedTuple):
    """What a call returned, or the error that it raised, and when it ended."""

    result: Any
    error: Exception | None
    ended: float


def run_on(size: int, function: Callable[..., Any], *args: Any) -> list[Any]:
    """Call a function in several processes that can send each other tensors.

    The processes form a process group of `torch.distributed` with the gloo backend, which works on
    a CPU. Each uses one thread. They're kept for the next call, so only the first one is slow.

    Args:
        size: the number of processes, the "devices".
        function: called as `function(rank, *args)` in each, with rank 0, 1, ..., size - 1. It can
            be defined in a notebook. In a script, call `run_on` below `if __name__ == "__main__":`.
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
    processes = _processes(size)
    work = cloudpickle.dumps((function, args))  # pickle can't send what a notebook defines
    try:
        with tempfile.TemporaryDirectory() as folder:
            store = (Path(folder) / "store").as_uri()
            calls = [processes.submit(_on_rank, work, rank, size, store) for rank in range(size)]
            outcomes = [cloudpickle.loads(call.result()) for call in calls]
    except BaseException:  # a process has ended, or the user has interrupted
        _processes.cache_clear()
        _end(processes)
        raise
    # The earliest error may have made the others fail.
    first = min(outcomes, key=lambda outcome: outcome.ended if outcome.error else math.inf)
    if first.error:
        raise first.error
    return [outcome.result for outcome in outcomes]


@cache
def _processes(size: int) -> ProcessPoolExecutor:
    """As many processes as there are devices.

    On Linux, they're forks of one process that has imported torch and share its memory.
    """
    context = multiprocessing.get_context("forkserver" if sys.platform == "linux" else "spawn")
    if sys.platform == "linux":
        context.set_forkserver_preload(SHARED)
    return ProcessPoolExecutor(size, context, initializer=_end_with_the_others)


def _end(pool: ProcessPoolExecutor) -> None:
    """End a pool's processes, even if they wait for each other."""
    for process in list((pool._processes or {}).values()):  # from Python 3.14: terminate_workers
        process.terminate()
    pool.shutdown(wait=False, cancel_futures=True)


def _end_with_the_others() -> None:
    """End this process, without a traceback, if the notebook is interrupted or ends."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    threading.Thread(target=_end_with_the_notebook, daemon=True).start()


def _end_with_the_notebook() -> None:
    notebook = multiprocessing.parent_process()
    if notebook:
        notebook.join()
        os._exit(0)


def _on_rank(work: bytes, rank: int, size: int, store: str) -> bytes:
    function, args = cloudpickle.loads(work)
    torch.set_num_threads(1)
    loopback = [name for _, name in socket.if_nameindex() if name.startswith("lo")]
    if loopback:  # gloo's default looks up the machine's name, which some machines can't resolve
        os.environ.setdefault("GLOO_SOCKET_IFNAME", loopback[0])
    dist.init_process_group("gloo", init_method=store, rank=rank, world_size=size)
    result, failed = None, None
    try:
        dist.barrier()  # a process that left early would break the connections of the others
        result = function(rank, *args)
    except Exception as error:
        error.add_note(f"In the process of rank {rank}:\n{traceback.format_exc()}")
        failed = error
    ended = time.time()
    dist.destroy_process_group()
    return bytes(cloudpickle.dumps(_Outcome(result, failed, ended)))
