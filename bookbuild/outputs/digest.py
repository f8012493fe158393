"""Digests that tie a chapter's outputs to everything they were computed from.

A chapter's outputs depend on its code cells, on the lnbook modules that it imports (directly or
indirectly), and on the pinned versions of lnbook's dependencies, and on nothing else.
"""

from __future__ import annotations

import ast
import hashlib
import io
import json
import tokenize
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
    """The digest of everything that a chapter's outputs depend on."""
    return digest(
        {
            "cells": [cell.source for cell in chapter.code_cells],
            "kernel": chapter.notebook.metadata.kernelspec.name,
            "lnbook": package_digest(book, chapter),
            "pins": pins(book),
        }
    )


def outputs_digest(notebook: NotebookNode) -> str:
    """The digest of all outputs in an executed notebook."""
    return digest(
        [{"count": cell.execution_count, "outputs": cell.outputs} for cell in code_cells(notebook)]
    )


def pins(book: Book) -> dict[str, str]:
    """The pinned versions of lnbook's direct dependencies."""
    project = tomllib.loads(book.project.read_text(encoding="utf-8"))["project"]
    pinned = read_pins(book.constraints)
    names = [canonicalize_name(Requirement(text).name) for text in project["dependencies"]]
    return {name: f"=={pinned[name]}" for name in names}


def package_digest(book: Book, chapter: Chapter) -> str:
    """The digest of the code in the lnbook modules that a chapter imports, directly or indirectly.

    It also covers the measurements named in the chapter or in one of these modules, and the fonts,
    colors and styles that figures are drawn with. It leaves out docstrings and comments, and the
    shades that the site shows in place of these colors.
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
    for font in (book.package / "notebook" / "fonts").glob("*.ttf"):
        if font.name in named:
            used[font.name] = hashlib.sha256(font.read_bytes()).hexdigest()
    return digest({name: code_only(text) for name, text in texts.items()} | used)


@cache
def code_only(source: str) -> str:
    """A module's source without docstrings, comments and blank lines.

    Works on the text, because the syntax tree and the tokens of the same source differ between
    versions of Python.
    """
    lines = source.splitlines()
    kept = set()  # lines inside strings, where blank lines count
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            lines[token.start[0] - 1] = token.line[: token.start[1]].rstrip()
    for node in _nodes(source):
        if isinstance(node, ast.Constant | ast.JoinedStr):
            kept |= set(range(node.lineno - 1, node.end_lineno or node.lineno))
    for node in _nodes(source):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            start, end = _docstring_lines(node)
            lines[start:end] = [""] * (end - start)
            kept -= set(range(start, end))
    return "\n".join(line for i, line in enumerate(lines) if line.strip() or i in kept)


def _docstring_lines(
    node: ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef,
) -> tuple[int, int]:
    """A docstring's first line and the line after its last, from 0; equal if there's none."""
    if ast.get_docstring(node, clean=False) is None:
        return 0, 0
    text = node.body[0]
    return text.lineno - 1, text.end_lineno or text.lineno


def modules(book: Book, chapter: Chapter) -> dict[str, Path]:
    """The lnbook modules that a chapter imports, directly or indirectly."""
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
        return ()  # running the cell gives a better message


def _strings(source: str) -> Iterator[str]:
    """The string constants in a source."""
    for node in _nodes(source):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def _imports(source: str, package: str = "") -> set[str]:
    """The dotted names in lnbook that a source imports."""
    names: list[str] = []
    for node in _nodes(source):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            start = resolve_name("." * node.level + (node.module or ""), package)
            names += [f"{start}.{alias.name}" for alias in node.names]
    return {name for name in names if name.split(".")[0] == "lnbook"}


def _files(package: Path, name: str) -> Iterator[tuple[str, Path]]:
    """The modules that run when a dotted name is imported, each with its file.

    The last part may be a function or a class; in that case, the module that contains it is listed.
    A bare `import lnbook` could lead anywhere, so it counts as importing the whole package.
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
