"""A chapter as a notebook that reads well in plain Jupyter and runs where lnbook is installed."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator
from copy import deepcopy

import nbformat
from nbformat import NotebookNode
from packaging.requirements import Requirement

from bookbuild.book import Book
from bookbuild.chapter import code_cells
from bookbuild.errors import BookError
from bookbuild.notebooks.markdown_cells import Block, CodeCell, cells
from bookbuild.notebooks.plain_code import imported, undefined, without_glue

# Packages whose import name differs from the name that pip installs.
DISTRIBUTIONS = {"sklearn": "scikit-learn", "IPython": "ipython"}


def plain_notebook(
    blocks: Iterable[Block], executed: NotebookNode, *, install: str
) -> NotebookNode:
    """Combine a page's text and its notebook's code.

    Args:
        blocks: the page, as `bookbuild.notebooks.markdown_cells` writes it.
        executed: the chapter with its outputs, as `bookbuild.outputs.cache.for_readers` gives it.
        install: Markdown that says how to run the notebook; goes below the title.

    Raises:
        BookError: if a cell uses a name that only a dropped cell defines.
    """
    notebook: NotebookNode = nbformat.v4.new_notebook()
    notebook.metadata["kernelspec"] = executed.metadata["kernelspec"]
    notebook.metadata["language_info"] = {"name": "python"}
    waiting = iter(_plain_code(executed))
    ahead = next(waiting, None)
    for part in cells(blocks):
        if isinstance(part, CodeCell):
            # Cells that the site hides have no position on the page, so they keep their order.
            while ahead is not None and ahead[0] <= part.index:
                notebook.cells.append(ahead[1])
                ahead = next(waiting, None)
            continue
        text, folded = part
        cell = nbformat.v4.new_markdown_cell(text)
        if folded:
            cell.metadata["jp-MarkdownHeadingCollapsed"] = True
        notebook.cells.append(cell)
        if len(notebook.cells) == 1:
            title, _, rest = text.partition("\n\n")
            cell.source = f"{title}\n\n{install}"
            if rest:
                notebook.cells.append(nbformat.v4.new_markdown_cell(rest))
    notebook.cells.extend(cell for _, cell in ([ahead] if ahead else []) + list(waiting))
    for number, cell in enumerate(notebook.cells):
        cell["id"] = f"cell-{number}"
    nbformat.validate(notebook)
    _check_names(executed, notebook)
    return notebook


def _check_names(executed: NotebookNode, plain: NotebookNode) -> None:
    """Check that every name undefined in the notebook is also undefined in the chapter."""
    before, after = (
        undefined(cell.source for cell in code_cells(notebook)) for notebook in (executed, plain)
    )
    missing = [name for name in after if name not in before]
    if missing:
        raise BookError(
            f"the downloadable notebook lacks {', '.join(missing)}: a cell tagged remove-cell "
            "defines it in a way that the converter does not understand"
        )


def how_to_install(book: Book, executed: NotebookNode, repository: str | None, page: str) -> str:
    """The note below the title: where the notebook comes from and how to run it."""
    sources = [cell.source for cell in _kept(executed)]
    extra = sorted(
        {DISTRIBUTIONS.get(name, name) for name in imported(sources)}
        - {"lnbook"}
        - comes_with_lnbook(book)
    )
    also = f" It also needs {_listed(extra)}: `pip install {' '.join(extra)}`." if extra else ""
    where = install_lnbook(repository)
    known = repository and page.startswith("https://")
    origin = f"[its page]({page})" if known else "the site"
    return (
        f"> This notebook is one chapter of the course; {origin} has the same text, with search "
        f"and links.\n>\n> **To run it**, use Python 3.11 or newer and install its "
        f"package, `lnbook`: {where}.{also} To read it, you don't need to install anything: all "
        "outputs are stored. Hints are folded, and solutions are under folded headings."
    )


def install_lnbook(repository: str | None) -> str:
    """How to install lnbook: from a repository with a known URL, or from the course's folder."""
    if repository:
        return f"`pip install git+{repository}`"
    return "`pip install .` in the folder of the course"


def comes_with_lnbook(book: Book) -> set[str]:
    """The packages that are installed with lnbook."""
    project = tomllib.loads(book.project.read_text(encoding="utf-8"))["project"]
    return {Requirement(text).name for text in project["dependencies"]}


def _listed(names: list[str]) -> str:
    *first, last = (f"`{name}`" for name in names)
    return f"{', '.join(first)} and {last}" if first else last


def _kept(executed: NotebookNode) -> list[NotebookNode]:
    return [cell for _, cell in _plain_code(executed)]


def _plain_code(executed: NotebookNode) -> Iterator[tuple[int, NotebookNode]]:
    """The code cells that a reader needs, keyed by their number in the chapter."""
    places = [n for n, cell in enumerate(executed.cells) if cell.cell_type == "code"]
    found = code_cells(executed)
    hidden = ["remove-cell" in cell.metadata.get("tags", []) for cell in found]
    sources = without_glue([(c.source, h) for c, h in zip(found, hidden, strict=True)])
    for place, cell, is_hidden, source in zip(places, found, hidden, sources, strict=True):
        if not source:
            continue
        plain = deepcopy(cell)
        plain.source = source
        plain.metadata.clear()
        if is_hidden:
            plain.outputs = []
        if is_hidden or "hide-input" in cell.metadata.get("tags", []):
            plain.metadata["jupyter"] = {"source_hidden": True}
        yield place, plain
