"""The figures of executed chapters, as files with readable names.

The slides and the gallery use these; chapter pages have their own copies, which Sphinx names.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from nbformat import NotebookNode

from bookbuild.chapter import code_cells
from bookbuild.errors import BookError
from bookbuild.parallel import map_all
from bookbuild.site import figure_colors, raster
from bookbuild.site.license import in_file
from lnbook.notebook.style import PALETTE

FOLDER = "figures"
SVG_TYPE = "image/svg+xml"
DPI = 192  # for the PNGs: two pixels per CSS pixel
RASTER = hashlib.sha256(Path(raster.__file__).read_bytes()).hexdigest()
MODES: tuple[figure_colors.Mode, ...] = ("light", "dark")


@dataclass(frozen=True)
class Figure:
    """A figure as a chapter's cell drew it.

    Attributes:
        chapter: the chapter that draws it, such as `formula/geometry`.
        name: its label in the chapter.
        alt: its alt text.
        svg: the drawing as matplotlib wrote it.
    """

    chapter: str
    name: str
    alt: str
    svg: str

    @property
    def size(self) -> tuple[int, int]:
        """Its width and height in CSS pixels."""
        return figure_colors.size(self.svg)

    @property
    def title(self) -> str:
        """A name that says more than the label alone, such as `geometry-in-space`."""
        chapter = self.chapter.rpartition("/")[2]
        return self.name if self.name.startswith(f"{chapter}-") else f"{chapter}-{self.name}"

    def file(self, mode: figure_colors.Mode, kind: str = "svg") -> str:
        """The name of one of its files."""
        return f"{self.title}{'.dark' if mode == 'dark' else ''}.{kind}"


def figures_of(chapter: str, executed: NotebookNode) -> Iterator[Figure]:
    """The figures that a chapter's cells drew, in order.

    Raises:
        BookError: if a cell with a figure has no name or no alt text for it.
    """
    for cell in code_cells(executed):
        drawn = [output["data"] for output in cell.outputs if SVG_TYPE in output.get("data", {})]
        if not drawn:
            continue
        options = cell.metadata.get("mystnb", {})
        name = options.get("figure", {}).get("name")
        alt = options.get("image", {}).get("alt")
        if not (name and alt and len(drawn) == 1):
            raise BookError(
                f"{chapter}: a cell that draws needs one figure with a name and alt text"
            )
        yield Figure(chapter, name, " ".join(alt.split()), "".join(drawn[0][SVG_TYPE]))


def write(figure: Figure, folder: Path) -> None:
    """Write a figure's SVGs for light and dark mode, each naming its license.

    Raises:
        ValueError: if a color isn't in the palette.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for mode in MODES:
        text = in_file(figure_colors.shown(figure.svg, mode))
        (folder / figure.file(mode)).write_text(text, encoding="utf-8")


def write_all(figures: Iterable[Figure], folder: Path, memory: Path) -> None:
    """Write the SVGs and PNGs of several figures; delete all other files in the folder.

    Args:
        figures: the figures.
        folder: for their files.
        memory: a file that remembers what the PNGs were drawn from, since drawing them is slow.

    Raises:
        ValueError: if a figure can't be drawn.
    """
    drawn: dict[str, str] = json.loads(memory.read_text("utf-8")) if memory.exists() else {}
    now: dict[str, str] = {}
    missing: dict[str, tuple[str, str]] = {}
    kept = set()
    for figure in figures:
        write(figure, folder)
        for mode in MODES:
            kept.add(figure.file(mode))
            name, text = figure.file(mode, "png"), figure_colors.shown(figure.svg, mode)
            now[name] = hashlib.sha256(f"{RASTER}{DPI}{mode}{text}".encode()).hexdigest()
            if drawn.get(name) != now[name] or not (folder / name).exists():
                missing[name] = text, PALETTE["paper"][mode]
    for name, png in zip(missing, map_all(_png, [*missing.values()]), strict=True):
        (folder / name).write_bytes(png)
    for path in folder.glob("*.*"):
        if path.name not in kept | now.keys():
            path.unlink()
    memory.write_text(json.dumps(now), encoding="utf-8")


def _png(drawing: tuple[str, str]) -> bytes:
    svg, background = drawing
    return raster.png(svg, DPI, background)
