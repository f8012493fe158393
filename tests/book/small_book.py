"""A small book with two pages in a temporary folder, for tests to break."""

import contextlib
import gc
import io
import os
import shutil
import subprocess
import sys
import warnings
from dataclasses import dataclass
from pathlib import Path

import pytest

from bookbuild.__main__ import main
from bookbuild.book import Book
from tests.helpers.this_book import ROOT, STARTUP

# These commands don't run Sphinx, which leaves a lot of state behind, so they can run in this
# process. In a new one, they'd spend seconds on imports.
HERE = ("differences", "notebooks", "update-pins")

INDEX = """\
---
myst:
  html_meta:
    description: "The first page of a small book, with a term and an equation to refer to."
---

# A small book

A {term}`row` of numbers, and equation {eq}`sum` in [the chapter](part/chapter.md).

```{math}
:label: sum
s = a + b
```

```{glossary}
row
  One example.
```
"""

FRONT_MATTER = """\
---
jupytext:
  text_representation: {extension: .md, format_name: myst, format_version: 0.13}
kernelspec: {name: python3, display_name: Python 3, language: python}
myst:
  html_meta:
    description: "DESCRIPTION"
---

"""


def chapter_text(description: str, text: str) -> str:
    """A chapter's source: front matter with a description, then the text."""
    return FRONT_MATTER.replace("DESCRIPTION", description) + text


TRACKS = """\
[hour]
title = "An hour"
text = "What it is."
pages = ["part/chapter", "index"]

[day]
title = "A day"
text = "What is essential."
pages = ["part/chapter"]

[everything]
title = "Everything"
text = "All there is."
"""

CHAPTER = chapter_text(
    "The chapter of a small book, with two cells whose outputs are compared.",
    """\
# The chapter

```{code-cell}
from lnbook import constants

value = 2 * constants.HALF
value
```

The value.

```{code-cell}
print("it is", value)
```
""",
)


@dataclass
class SmallBook:
    """The book, and the commands that you'd type in its folder."""

    book: Book

    @property
    def chapter(self) -> Path:
        return self.book.source / "part" / "chapter.md"

    @property
    def index(self) -> Path:
        return self.book.source / "index.md"

    @property
    def reference(self) -> Path:
        return self.book.references / "part" / "chapter.ipynb"

    def fresh(self) -> Book:
        """The book as a new process would read it."""
        return Book(self.book.root)

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run a command as `python -m bookbuild` does."""
        path = os.pathsep.join(map(str, (self.book.root, ROOT, STARTUP)))
        command = ["bookbuild", "--root", str(self.book.root), *arguments]
        if arguments[0] in HERE:
            return run_here(command, path)
        return subprocess.run(
            [sys.executable, "-m", *command],
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "PYTHONPATH": path},
            cwd=self.book.root,
        )


def run_here(command: list[str], path: str) -> subprocess.CompletedProcess[str]:
    """Run a command in this process, with the given PYTHONPATH for the kernels it starts."""
    out, err = io.StringIO(), io.StringIO()
    with (
        pytest.MonkeyPatch.context() as patch,
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")  # as in a new Python process
        patch.setenv("PYTHONPATH", path)
        patch.setattr(sys, "argv", command)
        code = main()
        gc.collect()  # jupyter_client leaves event loops open, which warn when they're collected
    return subprocess.CompletedProcess(command, code, out.getvalue(), err.getvalue())


def make_small_book(root: Path) -> SmallBook:
    """Write the small book; it has its own package named lnbook."""
    for name in ("_config.yml", "pyproject.toml", "constraints.txt"):
        shutil.copy(ROOT / name, root / name)
    (root / "_toc.yml").write_text(
        "format: jb-book\nroot: index\nchapters:\n  - file: part/chapter\n"
    )
    (root / "book" / "part").mkdir(parents=True)
    (root / "book" / "index.md").write_text(INDEX)
    (root / "book" / "part" / "chapter.md").write_text(CHAPTER)
    (root / "book" / "references.bib").write_text("")
    (root / "book" / "tracks.toml").write_text(TRACKS)
    for name in ("_static", "_templates"):
        shutil.copytree(ROOT / "book" / name, root / "book" / name)
    (root / "lnbook" / "notebook").mkdir(parents=True)
    for name in ("__init__.py", "notebook/__init__.py"):
        (root / "lnbook" / name).write_text("")
    # Files that the build itself needs.
    for name in ("_build.py", "notebook/style.py", "notebook/palette.toml"):
        shutil.copy(ROOT / "lnbook" / name, root / "lnbook" / name)
    (root / "lnbook" / "constants.py").write_text("HALF = 21\n")
    (root / "lnbook" / "unrelated.py").write_text("OTHER = 1\n")
    return SmallBook(Book(root))
