"""One chapter: a MyST notebook split into cells, each with its line in the source."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

import nbformat
import yaml
from jupyter_client.kernelspec import KernelSpecManager
from myst_nb.core.read import (
    MystMetadataParsingError,
    is_myst_markdown_notebook,
    read_myst_markdown_notebook,
)
from nbformat import NotebookNode

from bookbuild.errors import BookError


@cache
def installed_kernels() -> frozenset[str]:
    """The names of the Jupyter kernels installed here."""
    return frozenset(KernelSpecManager().find_kernel_specs())


@dataclass(frozen=True)
class Chapter:
    """A page with code cells."""

    name: str
    path: Path
    shown: str
    notebook: NotebookNode
    lines: tuple[int, ...]

    @classmethod
    def read(cls, name: str, path: Path, shown: str) -> Chapter | None:
        """Read one page; None if it has no code cells.

        Raises:
            BookError: if the front matter or a cell is malformed, or the kernel isn't installed.
        """
        text = path.read_text(encoding="utf-8")
        try:
            notebook = read_myst_markdown_notebook(text, add_source_map=True, path=path)
            is_notebook = is_myst_markdown_notebook(text)
        except (MystMetadataParsingError, yaml.YAMLError) as error:
            raise BookError(f"{shown}: {' '.join(str(error).split())}") from None
        lines = tuple(line + 1 for line in notebook.metadata.pop("source_map"))
        if not any(cell.cell_type == "code" for cell in notebook.cells):
            return None
        kernel = notebook.metadata.get("kernelspec", {}).get("name")
        if kernel is None or not is_notebook:
            missing = "'jupytext' with 'format_name: myst'" if kernel else "'kernelspec'"
            raise BookError(
                f"{shown}: has code cells but no {missing} in its front matter; "
                "copy the front matter from another chapter"
            )
        if kernel not in installed_kernels():
            known = ", ".join(sorted(installed_kernels()))
            raise BookError(f"{shown}: asks for the kernel '{kernel}'; installed: {known}")
        _make_stable(notebook)
        return cls(name, path, shown, notebook, lines)

    @property
    def code_cells(self) -> list[NotebookNode]:
        """The code cells, in order."""
        return code_cells(self.notebook)

    def where(self, index: int) -> str:
        """The location of the code cell with this number (from 0): file, line and cell."""
        lines = [
            line
            for line, cell in zip(self.lines, self.notebook.cells, strict=True)
            if cell.cell_type == "code"
        ]
        return f"{self.shown}:{lines[index]}: code cell {index}"


def code_cells(notebook: NotebookNode) -> list[NotebookNode]:
    """The code cells of a notebook, in order."""
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def python_of(source: str) -> str:
    """A code cell's source without its magics, which aren't Python."""
    return "\n".join(
        "pass" if line.startswith(("%", "!")) else line for line in source.splitlines()
    )


def _make_stable(notebook: NotebookNode) -> None:
    """Give cells ids that stay the same each time the chapter is read."""
    notebook.nbformat, notebook.nbformat_minor = 4, 5
    for number, cell in enumerate(notebook.cells):
        cell["id"] = f"cell-{number}"
    nbformat.validate(notebook)
