"""Asks git about the book's last commit and what has changed since."""

from __future__ import annotations

import subprocess
from pathlib import Path

from bookbuild.errors import BookError


def changed_files(root: Path) -> list[str]:
    """The tracked files that differ from the last commit.

    Raises:
        BookError: if the folder isn't a git repository, or git isn't installed.
    """
    return _git(root, "diff", "--name-only", "--relative", "HEAD").splitlines()


def committed(root: Path, path: Path) -> str | None:
    """The text of a file in the last commit; None if the commit doesn't have the file.

    Raises:
        BookError: if the folder isn't a git repository, or git isn't installed.
    """
    name = path.relative_to(root).as_posix()
    if not _git(root, "ls-tree", "--name-only", "HEAD", name):
        return None
    return _git(root, "show", f"HEAD:./{name}")


def _git(root: Path, *arguments: str) -> str:
    try:
        done = subprocess.run(
            ["git", "-C", str(root), *arguments], capture_output=True, encoding="utf-8", check=False
        )
    except FileNotFoundError:
        raise BookError("git is not installed: it is needed to read the last commit") from None
    if done.returncode != 0:
        raise BookError(f"git {arguments[0]} failed in {root}: {done.stderr.strip()}")
    return done.stdout
