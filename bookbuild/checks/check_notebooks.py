"""Checks the downloadable notebooks for markup that plain Jupyter would show raw."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import nbformat
from markdown_it import MarkdownIt
from markdown_it.token import Token
from mdit_py_plugins.dollarmath import dollarmath_plugin
from nbformat import NotebookNode

from bookbuild.chapter import code_cells
from bookbuild.notebooks.plain_code import SITE_ONLY, imported

ROLE = re.compile(r"\{[a-z][a-z:-]*\}$")
DIRECTIVE = re.compile(r"^(:::+ *)?\{[a-z][a-z:-]*\}")


def notebook_problems(folder: Path) -> list[str]:
    """Every fault in every notebook in a folder, one per line."""
    return [
        f"{path.relative_to(folder).as_posix()}: {problem}"
        for path in sorted(folder.rglob("*.ipynb"))
        for problem in problems_in(nbformat.read(path, as_version=4))
    ]


def problems_in(notebook: NotebookNode) -> Iterator[str]:
    """The faults in one notebook."""
    parser = MarkdownIt("commonmark").enable("table").use(dollarmath_plugin)
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            yield from _raw(parser.parse(cell.source))
    sources = [cell.source for cell in code_cells(notebook)]
    if SITE_ONLY in imported(sources):
        yield f"imports {SITE_ONLY}, which only the site needs"


def _raw(tokens: list[Token]) -> Iterator[str]:
    for token in tokens:
        if token.type == "fence" and DIRECTIVE.match(token.info.strip()):
            yield f"shows an unprocessed directive: {token.info.strip()}"
        children = token.children or []
        for child, following in zip(children, [*children[1:], None], strict=False):
            if child.type != "text":
                continue
            if following is not None and following.type == "code_inline":
                if ROLE.search(child.content):
                    yield f"shows an unprocessed role: {child.content}`{following.content}`"
            elif DIRECTIVE.match(child.content):
                yield f"shows an unprocessed directive: {child.content}"
