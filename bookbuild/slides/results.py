"""What the slides take from the executed chapters: numbers, figures, code and printed results."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from difflib import get_close_matches

from nbformat import NotebookNode

from bookbuild.chapter import code_cells, python_of
from bookbuild.errors import BookError
from bookbuild.site.figure_files import Figure, figures_of

GLUED = "application/papermill.record/text/plain"
DRAWN = "image/svg+xml"
STDOUT, HTML = "stdout", "text/html"


class Results:
    """The outputs of all chapters, looked up by the names that the chapters gave them.

    Args:
        executed: each chapter's executed notebook, keyed by the chapter's name.
    """

    def __init__(self, executed: Mapping[str, NotebookNode]) -> None:
        self._executed = executed
        self._numbers: dict[str, dict[str, str]] = {}
        self._figures: dict[str, dict[str, Figure]] = {}

    def number(self, chapter: str, name: str, form: str) -> str:
        """A number that a chapter computed, as text.

        Args:
            chapter: the chapter, such as `formula/geometry`.
            name: the name that the chapter's `glue` gave the number.
            form: how to format it, such as `.2f`; if empty, it's used as it is.

        Raises:
            BookError: if there's no such chapter or number, or the form doesn't fit.
        """
        notebook = self._notebook(chapter)
        if chapter not in self._numbers:
            self._numbers[chapter] = _glued(notebook)
        known = self._numbers[chapter]
        if name not in known:
            raise BookError(f"{chapter} has no number named '{name}'{_instead(name, known)}")
        try:
            return format(ast.literal_eval(known[name]), form)
        except (ValueError, TypeError, SyntaxError) as error:
            raise BookError(f"{chapter}: '{name}' is {known[name]}: {error}") from None

    def figure(self, chapter: str, name: str) -> Figure:
        """A figure that a chapter drew.

        Raises:
            BookError: if there's no such chapter or figure.
        """
        notebook = self._notebook(chapter)
        if chapter not in self._figures:
            found = {figure.name: figure for figure in figures_of(chapter, notebook)}
            self._figures[chapter] = found
        known = self._figures[chapter]
        if name not in known:
            raise BookError(f"{chapter} has no figure named '{name}'{_instead(name, known)}")
        return known[name]

    def code(self, chapter: str, start: str) -> str:
        """The one top-level statement in a chapter's code that starts with the given text.

        Raises:
            BookError: if no statement or more than one starts like this.
        """
        found = []
        for cell in code_cells(self._notebook(chapter)):
            source = python_of(cell.source)
            for statement in ast.parse(source).body:
                text = ast.get_source_segment(source, statement) or ""
                if text.startswith(start):
                    found.append(text)
        if len(found) != 1:
            raise BookError(f"{chapter} has {len(found)} statements that start with '{start}'")
        return found[0]

    def printed(self, chapter: str, start: str) -> tuple[str, str]:
        """The output of the cell with a line that starts like this: `text/html` or plain text.

        Raises:
            BookError: if there isn't exactly one cell with such a line, or that cell has no output.
        """
        cells = [
            cell
            for cell in code_cells(self._notebook(chapter))
            if any(line.startswith(start) for line in cell.source.splitlines())
        ]
        if len(cells) != 1:
            raise BookError(f"{chapter} has {len(cells)} cells with a line '{start}…'")
        for output in cells[0].outputs:
            data = output.get("data", {})
            if DRAWN in data:
                continue
            if HTML in data:
                return HTML, "".join(data[HTML])
            if output.output_type == "stream" and output.name == STDOUT:
                return "text/plain", "".join(output.text)
            if "text/plain" in data:
                return "text/plain", "".join(data["text/plain"])
        raise BookError(f"{chapter}: the cell with '{start}…' shows no text")

    def _notebook(self, chapter: str) -> NotebookNode:
        if chapter not in self._executed:
            raise BookError(f"no chapter named '{chapter}'{_instead(chapter, self._executed)}")
        return self._executed[chapter]


def _glued(notebook: NotebookNode) -> dict[str, str]:
    return {
        output.metadata["scrapbook"]["name"]: "".join(output.data[GLUED])
        for cell in code_cells(notebook)
        for output in cell.outputs
        if GLUED in output.get("data", {}) and "scrapbook" in output.get("metadata", {})
    }


def _instead(name: str, known: Iterable[str]) -> str:
    close = get_close_matches(name, list(known), n=3, cutoff=0.3)
    return f"; did you mean {' or '.join(map(repr, close))}?" if close else ""
