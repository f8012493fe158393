"""Checks an executed chapter's outputs for anything that doesn't belong in a reference."""

from __future__ import annotations

import re
from collections.abc import Iterator

from nbformat import NotebookNode

from bookbuild.chapter import Chapter, code_cells
from lnbook._build import FIGURE_SNAPSHOT

NOT_COMPARED = {"image/png", "image/jpeg", "application/vnd.jupyter.widget-view+json"}
DRAWING = "image/svg+xml"
SMALLEST = 1e-15  # anything smaller is mostly rounding noise, which varies by processor
TINY_NUMBERS = "tiny-numbers"  # the tag for cells that deal with such numbers
NUMBER = re.compile(r"(?<![\w.])-?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?(?!\w)", re.IGNORECASE)


def output_problems(chapter: Chapter, executed: NotebookNode) -> list[str]:
    """Every fault in every output, one per line, with its cell's location."""
    found = [
        f"{chapter.where(number)} {problem}"
        for number, cell in enumerate(code_cells(executed))
        for output in cell.outputs
        for problem in _problems(output, set(cell.metadata.get("tags", [])))
    ]
    return list(dict.fromkeys(found))  # a cell may show the same figure twice


def _problems(output: NotebookNode, tags: set[str]) -> Iterator[str]:
    if output.output_type == "stream" and output.name == "stderr":
        yield f"wrote to stderr: {output.text.strip().splitlines()[0]}"
    data = output.get("data", {})
    if FIGURE_SNAPSHOT in data and DRAWING not in data:
        yield (
            "shows a figure that isn't an SVG: draw it in the chapter's figures.py with "
            "matplotlib.figure.Figure, and do not import pyplot"
        )
    elif kinds := ", ".join(sorted(NOT_COMPARED.intersection(data))):
        yield f"shows {kinds}, which tests can't compare: show an SVG, text or numbers"
    if TINY_NUMBERS not in tags:
        yield from map(_noise, _tiny(output.get("text") or data.get("text/plain", "")))


def _noise(number: str) -> str:
    return (
        f"shows {number}, which looks like rounding noise: round it, add 0.0 to a -0.0, or tag the "
        f"cell {TINY_NUMBERS} if it is about such numbers"
    )


def _tiny(text: str) -> Iterator[str]:
    """The first number in a text that is -0 or so close to 0 that it's probably rounding noise."""
    for found in NUMBER.finditer(text):
        value = float(found[0])
        if 0 < abs(value) < SMALLEST or (value == 0 and found[0].startswith("-")):
            yield found[0]
            return
