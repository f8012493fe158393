"""Sphinx extension: publishes the pages' scripts without their comments and indentation.

A fifth of what a browser would download of them is comments, which readers find in the repository.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rjsmin import jsmin
from sphinx.application import Sphinx

from bookbuild.sphinx.playground import TARGET


def setup(app: Sphinx) -> dict[str, Any]:
    """Shorten the scripts after those that no page loads have been removed."""
    app.connect("build-finished", _finish, priority=950)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def shorten(folder: Path) -> None:
    """Shorten the scripts in a folder, but not those in the folders inside it."""
    for path in folder.glob("*.js"):
        path.write_text(jsmin(path.read_text(encoding="utf-8")), encoding="utf-8")


def _finish(app: Sphinx, error: Exception | None) -> None:
    if error is None and app.builder.format == "html":
        static = Path(app.outdir) / "_static"
        for folder in (static, static / TARGET):
            shorten(folder)
