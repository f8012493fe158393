"""Chooses how a kernel and its client exchange messages.

Over TCP, the client looks for free ports, and the kernel opens them a second later. If another
program opens one of them in between, the kernel dies. A socket in a file has a name that only one
kernel uses, so kernels that start at the same time can't take each other's.
"""

import tempfile
from pathlib import Path
from uuid import uuid4

import zmq


def connection(folder: str | None = None) -> dict[str, str]:
    """Return a new kernel's settings for jupyter_client's KernelManager.

    They are empty, for TCP, if sockets can't be files here, or if the files' names are too long.

    Args:
        folder: where the files are; None for the system's temporary folder.
    """
    name = str(Path(folder or tempfile.gettempdir()) / f"kernel-{uuid4().hex}")
    fits = len(f"{name}-1") <= zmq.IPC_PATH_MAX_LEN  # jupyter_client appends the number
    return {"transport": "ipc", "ip": name} if zmq.has("ipc") and fits else {}
