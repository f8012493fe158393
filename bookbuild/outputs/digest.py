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
from functools import cache
from pathlib import Path
from typing import Any

from nbformat import NotebookNode
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from bookbuild.book import Book
from bookbuild.chapter import Chapter, code_cells
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
    sources = [*map(_python, _sources(chapter)), *texts.values()]
    named = frozenset().union(*map(_strings, sources))
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
    wanted = {name for source in _sources(chapter) for name in _imports(_python(source))}
    while wanted:
        name = wanted.pop()
        for path in _files(book.package, name):
            module = _module_name(book.package, path)
            if module not in found:
                found[module] = path
                text = path.read_text(encoding="utf-8")
                wanted |= _imports(text, package=_package_of(module, path))
    return dict(sorted(found.items()))


def _sources(chapter: Chapter) -> list[str]:
    return [cell.source for cell in chapter.code_cells]


@cache
def _strings(source: str) -> frozenset[str]:
    """The string constants of a source."""
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return frozenset()  # running the cell says it better
    constants = (node.value for node in ast.walk(tree) if isinstance(node, ast.Constant))
    return frozenset(value for value in constants if isinstance(value, str))


def _python(source: str) -> str:
    """A cell without its magics, which are no Python."""
    return "\n".join(
        "pass" if line.startswith(("%", "!")) else line for line in source.splitlines()
    )


@cache
def _imports(source: str, package: str = "") -> frozenset[str]:
    """The dotted names under lnbook that a source imports."""
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return frozenset()  # running the cell says it better
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = package.split(".")[: len(package.split(".")) - node.level + 1]
            start = ".".join(base if node.level else []) + ("." if node.level else "")
            names = [
                f"{start}{node.module or ''}.{alias.name}".replace("..", ".")
                for alias in node.names
            ]
        else:
            continue
        found.update(name for name in names if name.split(".")[0] == "lnbook")
    return frozenset(found)


def _files(package: Path, name: str) -> list[Path]:
    """The files that importing a dotted name runs: packages on the way, then the module.

    The last part may be a function or a class: then the module above it is what counts. A bare
    `import lnbook` may lead anywhere, so it stands for all of the package.
    """
    parts = name.split(".")[1:]
    if not parts or parts == ["*"]:
        return sorted(package.rglob("*.py"))
    files = [package / "__init__.py"]
    folder = package
    for part in parts:
        module = folder / f"{part}.py"
        folder = folder / part
        if module.exists():
            files.append(module)
            break
        files.append(folder / "__init__.py")
    return [path for path in files if path.exists()]


def _module_name(package: Path, path: Path) -> str:
    parts = path.relative_to(package.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _package_of(module: str, path: Path) -> str:
    return module if path.name == "__init__.py" else module.rpartition(".")[0]
