"""Starts notebook kernels with noise."""

from __future__ import annotations

import os
from pathlib import Path

from IPython.core.getipython import get_ipython

FIRST = """\
from bookbuild.reproduce.noise.kernel import start
start({seed}, {folder!r})
del start
"""
STARTED = "started-"


def write_profile(folder: Path, seed: int, root: Path) -> dict[str, str]:
    """Write an IPython profile whose kernels start with noise.

    Args:
        folder: where to write it.
        seed: the noise's seed.
        root: the folder that contains the bookbuild package.

    Returns:
        The environment variables that make IPython use it.
    """
    path = folder / "profile_default" / "startup" / "noise.py"
    path.parent.mkdir(parents=True)
    path.write_text(FIRST.format(seed=seed, folder=str(folder)), encoding="utf-8")
    found = [*filter(None, [os.environ.get("PYTHONPATH")]), str(root)]
    return {"IPYTHONDIR": str(folder), "PYTHONPATH": os.pathsep.join(found)}


def started(folder: Path) -> int:
    """How many kernels started with noise; if one fails to, IPython just logs it and continues."""
    return len(list(folder.glob(f"{STARTED}*")))


def start(seed: int, folder: str) -> None:
    """Make this kernel compute with noise from now on."""
    from bookbuild.reproduce.noise import in_numpy, in_torch  # slow, so only here

    shell = get_ipython()
    assert shell is not None, "IPython starts the noise"
    shell.ast_transformers.append(in_numpy.start(seed))
    in_torch.start(seed)
    (Path(folder) / f"{STARTED}{os.getpid()}").touch()
