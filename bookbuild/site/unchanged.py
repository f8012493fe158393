"""Checks quickly whether a site is up to date. Imports only the standard library.

Sphinx could check that too, but importing it takes longer than everything else.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

FOLDERS = ("book", "bookbuild", "labs", "lnbook", "tests/notebooks")
FILES = ("_config.yml", "_toc.yml", "constraints.txt", "pyproject.toml", "CITATION.cff")
VARIABLES = ("BOOK_URL", "BOOK_REPOSITORY", "GITHUB_SERVER_URL", "GITHUB_REPOSITORY", "BOOK_PDF")


def is_unchanged(root: Path) -> bool:
    """Whether the site was completely built from the current sources."""
    stamp = _stamp(root)
    if not stamp.exists() or not (root / "_build" / "html" / "index.html").exists():
        return False
    return stamp.read_text(encoding="utf-8") == sources_digest(root)


def forget(root: Path) -> None:
    """Mark the site as possibly out of date."""
    _stamp(root).unlink(missing_ok=True)


def remember(root: Path, digest: str) -> None:
    """Record that the site was built from the sources with this digest."""
    _stamp(root).write_text(digest, encoding="utf-8")


def forget_outdated(root: Path) -> None:
    """Drop pages read before `_toc.yml`, the bibliography or the build's own code changed.

    Their figures and references may have new numbers, which Sphinx gives only to pages it reads,
    and Sphinx doesn't know when the code that writes pages has changed.
    """
    read = _pages(root) / "environment.pickle"
    sources = [root / "_toc.yml", root / "book" / "references.bib"]
    sources += (root / "bookbuild").rglob("*.py")
    changed = max(path.stat().st_mtime for path in sources if path.exists())
    if read.exists() and read.stat().st_mtime < changed:
        forget_pages(root)


def forget_pages(root: Path) -> None:
    """Make Sphinx read every page again."""
    shutil.rmtree(_pages(root), ignore_errors=True)


def sources_digest(root: Path) -> str:
    """The digest of everything that goes into a site."""
    digest = hashlib.sha256()
    for path in _sources(root):
        digest.update(f"{path.relative_to(root).as_posix()}\0".encode())
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    for name in VARIABLES:
        digest.update(f"{name}={os.environ.get(name)}\0".encode())
    return digest.hexdigest()


def _pages(root: Path) -> Path:
    return root / "_build" / ".doctrees"


def _stamp(root: Path) -> Path:
    return root / "_build" / "built-from.txt"


def _sources(root: Path) -> Iterator[Path]:
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                yield path
    yield from (root / name for name in FILES if (root / name).exists())
