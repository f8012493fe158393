"""Digests that tie a chapter's outputs to all that they were computed from.

A chapter's outputs follow from its code cells, from the modules of lnbook that it imports (and
those that they import), and from the pinned versions of what lnbook depends on. Whatever else
changes, they stay.
"""

from __future__ import annotations

import ast
import hashlib
import json
import tomllib
from collections.abc import Iterator
from functools import cache
from importlib.util import resolve_name
from pathlib import Path
from typing import Any

from nbformat import NotebookNode
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from bookbuild.book import Book
from bookbuild.chapter import Chapter, code_cells, python_of
from bookbuild.environment.pins import read as read_pins


def digest(value: Any) -> str:
    """The SHA-256 digest of a JSON value."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def source_digest(book: Book, chapter: Chapter) -> str:
    """The digest of everything that the outputs of a chapter follow from."""
    return digest(
        {
            "cells": [cell.source for cell in chapter.code_cells],
            "kernel": chapter.notebook.metadata.kernelspec.name,
            "lnbook": package_digest(book, chapter),
            "pins": pins(book),
        }
    )


def outputs_digest(notebook: NotebookNode) -> str:
    """The digest of all outputs of an executed notebook."""
    return digest(
        [{"count": cell.execution_count, "outputs": cell.outputs} for cell in code_cells(notebook)]
    )


def pins(book: Book) -> dict[str, str]:
    """The pinned version of each package that lnbook depends on directly."""
    project = tomllib.loads(book.project.read_text(encoding="utf-8"))["project"]
    pinned = read_pins(book.constraints)
    names = [canonicalize_name(Requirement(text).name) for text in project["dependencies"]]
    return {name: f"=={pinned[name]}" for name in names}


def package_digest(book: Book, chapter: Chapter) -> str:
    """The digest of the modules of lnbook that a chapter reaches by its imports.

    A measurement counts where the chapter or one of these modules names it, and so does what
    figures are drawn with; in which shades the site shows them does not.
    """
    found = modules(book, chapter)
    texts = {name: path.read_text(encoding="utf-8") for name, path in found.items()}
    named = {text for source in (*_sources(chapter), *texts.values()) for text in _strings(source)}
    folder = book.package / "measurements"
    records = {
        path.relative_to(folder).with_suffix("").as_posix(): path for path in folder.rglob("*.json")
    }
    used: dict[str, Any] = {
        name: path.read_text(encoding="utf-8") for name, path in records.items() if name in named
    }
    palette = book.package / "notebook" / "palette.toml"
    if palette.name in named:
        colors = tomllib.loads(palette.read_text(encoding="utf-8"))
        used[palette.name] = {
            name: shades["drawn"] for name, shades in colors.items() if "drawn" in shades
        }
    return digest(texts | used)


def modules(book: Book, chapter: Chapter) -> dict[str, Path]:
    """The modules of lnbook that a chapter imports, directly or through another one."""
    found: dict[str, Path] = {}
    wanted = {name for source in _sources(chapter) for name in _imports(source)}
    while wanted:
        for module, path in _files(book.package, wanted.pop()):
            if module not in found:
                found[module] = path
                package = module if path.name == "__init__.py" else module.rpartition(".")[0]
                wanted |= _imports(path.read_text(encoding="utf-8"), package)
    return dict(sorted(found.items()))


def _sources(chapter: Chapter) -> list[str]:
    return [python_of(cell.source) for cell in chapter.code_cells]


@cache
def _nodes(source: str) -> tuple[ast.AST, ...]:
    try:
        return tuple(ast.walk(ast.parse(source)))
    except SyntaxError:
        return ()  # running the cell says it better


def _strings(source: str) -> Iterator[str]:
    """The string constants of a source."""
    for node in _nodes(source):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def _imports(source: str, package: str = "") -> set[str]:
    """The dotted names under lnbook that a source imports."""
    names: list[str] = []
    for node in _nodes(source):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            start = resolve_name("." * node.level + (node.module or ""), package)
            names += [f"{start}.{alias.name}" for alias in node.names]
    return {name for name in names if name.split(".")[0] == "lnbook"}


def _files(package: Path, name: str) -> Iterator[tuple[str, Path]]:
    """The modules that importing a dotted name runs, each with its file.

    The last part may be a function or a class: then the module above it is what counts. A bare
    `import lnbook` may lead anywhere, so it stands for all of the package.
    """
    parts = name.split(".")
    if parts[1:] in ([], ["*"]):
        for path in package.rglob("*.py"):
            place = path.parent if path.name == "__init__.py" else path.with_suffix("")
            yield ".".join(place.relative_to(package.parent).parts), path
        return
    for end in range(1, len(parts) + 1):
        place = package.parent.joinpath(*parts[:end])
        for path in (place / "__init__.py", place.with_suffix(".py")):
            if path.exists():
                yield ".".join(parts[:end]), path
