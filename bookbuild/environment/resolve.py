"""Asks uv, in a temporary folder, for the newest compatible versions."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from bookbuild.book import Book
from bookbuild.environment import pins
from bookbuild.environment.bootstrap import OLDEST, cause
from bookbuild.errors import BookError

# The first group comes with torch's CUDA builds, at the versions that torch requires; the second
# belongs to the environment, not to the book. Triton is pinned: torch's CPU builds don't require
# it, so pip would otherwise install the newest version with them.
NOT_PINNED = re.compile(r"(nvidia|cuda)\b|(pip|setuptools|wheel)$")
UNREACHABLE = re.compile("error sending request|dns error|Failed to fetch|[Cc]onnection")


def newest(book: Book, packages: Sequence[str] = (), index: str = "") -> pins.Pins:
    """The newest compatible versions for the oldest Python that the book supports.

    Args:
        book: its pyproject.toml states the requirements, and its constraints state the current
            versions.
        packages: upgrade only these and their dependencies; if empty, upgrade everything.
        index: the URL of an extra package index, for example torch's CPU builds.

    Raises:
        BookError: if the package index can't be reached, or no versions are compatible.
    """
    with tempfile.TemporaryDirectory() as folder:
        uv = _install_uv(Path(folder))
        output = Path(folder) / "constraints.txt"
        output.write_text(book.constraints.read_text(encoding="utf-8"), encoding="utf-8")
        command = [str(uv), "pip", "compile", str(book.project), "--all-extras", "--quiet"]
        command += ["--no-header", "--no-annotate", "--cache-dir", str(Path(folder) / "cache")]
        command += ["--python-version", ".".join(map(str, OLDEST)), "--output-file", str(output)]
        command += [f"--upgrade-package={name}" for name in packages] or ["--upgrade"]
        if index:
            command += ["--index", index, "--index-strategy", "unsafe-best-match"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise BookError(why(done.stderr))
        return wanted(pins.read(output))


def wanted(found: pins.Pins) -> pins.Pins:
    """The pins from a resolution, without build labels (as in `2.13.0+cpu`)."""
    return {
        name: version.partition("+")[0]
        for name, version in found.items()
        if not NOT_PINNED.match(name)
    }


def why(told: str) -> str:
    """A readable version of uv's error message."""
    if UNREACHABLE.search(told):
        return "the package index cannot be reached: check the network and run the command again"
    return f"no compatible versions: {' '.join(told.split())}"


def _install_uv(folder: Path) -> Path:
    command = [sys.executable, "-m", "pip", "install", "--disable-pip-version-check", "--retries=1"]
    command += ["--target", str(folder / "uv"), "uv"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise BookError(cause(done.stdout + done.stderr))
    return folder / "uv" / "bin" / "uv"
