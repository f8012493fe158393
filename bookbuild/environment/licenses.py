"""Lists the licenses of the packages that build the book and of the files that its site ships.

`python -m bookbuild licenses` writes the list; a test fails when it's out of date.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, metadata
from pathlib import Path

from packaging.requirements import Requirement

from bookbuild.book import Book
from bookbuild.errors import BookError

# Packages that other systems don't install, so their metadata can't be read there.
ONLY_LINUX = {"triton": "MIT License"}
LONGEST_NAME = 60  # if the "License" field is longer, it's the license's text, not its name

# Third-party parts of the pages: name, files and license.
SHIPPED = [
    ("KaTeX", "`katex/`: its style sheet and fonts, reduced to the characters in use", "MIT"),
    ("Source Sans 3", "`fonts/`, subsets under a different name", "OFL-1.1"),
    ("MiniSearch", "`minisearch/`: the search index", "MIT"),
    ("reveal.js", "`reveal/`: shows the slides; its speaker view includes marked", "MIT"),
    ("Sphinx", "templates of pages; rules of `site.css`", "BSD-2-Clause"),
    ("sphinx-design", "`design-tabs.js`; rules of `site.css`", "MIT"),
    ("PyData Sphinx Theme", "templates of pages; rules of `site.css`", "BSD-3-Clause"),
    ("Sphinx Book Theme", "templates of pages; rules of `site.css`", "BSD-3-Clause"),
    ("Bootstrap", "rules of `site.css`, through the PyData Sphinx Theme", "MIT"),
    ("MyST-NB", "rules of `site.css`", "BSD-3-Clause"),
    ("sphinx-exercise", "rules of `site.css`", "MIT"),
    ("Pygments", "rules of `site.css`: the colors of code", "BSD-2-Clause"),
]

HEAD = """\
# Third-party licenses

Written by `python -m bookbuild licenses`. The book's own licenses are in [LICENSE](LICENSE).

## What the site ships

Files under `_static/`; the license texts are next to them, in
[katex](book/_static/katex/LICENSE.txt), [fonts](book/_static/fonts/LICENSE.txt),
[minisearch](book/_static/minisearch/LICENSE.txt) and [reveal](book/_static/reveal/LICENSE.txt).

| from | what | license |
| --- | --- | --- |
"""
FONTS = """
The letters in figures come from the same typefaces, Source Sans 3 and KaTeX's, as five fonts that
`lnbook` includes under different names, with [their license](lnbook/notebook/fonts/LICENSE.txt),
OFL-1.1.
"""
PACKAGES = """
## Packages used to build and test the book

Every package in `constraints.txt`, with the license in its metadata. They are installed by pip and
are not part of the site. On Linux, pip's default build of torch also installs NVIDIA's CUDA
packages, under NVIDIA's own license; the CPU build does not.

| package | license |
| --- | --- |
"""


def path(book: Book) -> Path:
    """The list's path."""
    return book.root / "THIRD-PARTY-LICENSES.md"


def write(book: Book) -> None:
    """Write the list.

    Raises:
        BookError: if a pinned package isn't installed.
    """
    path(book).write_text(text(pinned(book)), encoding="utf-8")
    print(f"{book.show(path(book))}: {len(pinned(book))} packages")


def text(packages: Iterable[str]) -> str:
    """The license list for the packages with these names."""
    listed = [(name, license_of(name)) for name in packages]
    return f"{HEAD}{_rows(SHIPPED)}{FONTS}{PACKAGES}{_rows(listed)}"


def _rows(entries: Iterable[tuple[str, ...]]) -> str:
    return "".join(f"| {' | '.join(entry)} |\n" for entry in entries)


def pinned(book: Book) -> list[str]:
    """The names of all packages in constraints.txt."""
    lines = book.constraints.read_text(encoding="utf-8").splitlines()
    return [Requirement(line).name for line in lines if line and not line.startswith("#")]


def license_of(package: str) -> str:
    """The license in an installed package's metadata.

    Raises:
        BookError: if the package isn't installed or its metadata names no license.
    """
    try:
        fields = metadata(package)
    except PackageNotFoundError:
        if package in ONLY_LINUX:
            return ONLY_LINUX[package]
        raise BookError(f"{package} is not installed: run 'make setup'") from None
    if expressions := fields.get_all("License-Expression"):
        return str(expressions[0])
    for name in map(str.strip, fields.get_all("License") or []):
        if name not in ("", "UNKNOWN") and len(name) <= LONGEST_NAME:
            return name
    classifiers = fields.get_all("Classifier") or []
    names = [value.rpartition(" :: ")[2] for value in classifiers if value.startswith("License")]
    if not names:
        raise BookError(f"the metadata of {package} doesn't name a license: look it up")
    return ", ".join(names)
