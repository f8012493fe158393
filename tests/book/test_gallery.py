"""The gallery shows every figure once, with files that exist; PNGs look like their SVGs."""

import base64
import io
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from bs4 import BeautifulSoup
from PIL import Image

from bookbuild.site import figure_files, raster
from bookbuild.site.figure_files import Figure
from lnbook.notebook.style import COLORS, PALETTE
from tests.book.small_book import SmallBook, chapter_text

PAGE = """\
---
myst:
  html_meta:
    description: "Every figure of a small book, to download as SVG or as PNG, light and dark."
---

# Figures

```{figure-gallery}
```
"""
CHAPTER = """\
# The chapter

A {term}`row` comes first.

```{code-cell}
---
mystnb:
  image:
    alt: "A line that rises steeply from the lower left to the upper right."
  figure:
    name: rising
    caption: "A line about $x$ and [the start](../index.md)."
---
from lnbook.drawing import Line

Line()
```

```{code-cell}
---
mystnb:
  image:
    alt: "The same line that rises from the lower left to the upper right."
  figure:
    name: chapter-again
    caption: "Again, see {numref}`rising`."
---
Line()
```
"""
LINE = f"""<svg xmlns="http://www.w3.org/2000/svg" width="90pt" height="60pt" viewBox="0 0 90 60">
<g id="figure_1"><path d="M 0 60 L 90 0" style="fill: none; stroke: {COLORS["layer_norm"]}"/></g>
</svg>"""
DRAWING = f'''
class Line:
    def _repr_mimebundle_(self, include=None, exclude=None):
        return {{"image/svg+xml": """{LINE}""", "text/plain": "a line"}}
'''


@pytest.fixture(scope="module")
def site(built: Callable[[], SmallBook]) -> SmallBook:
    small = built()
    (small.book.package / "drawing.py").write_text(DRAWING)
    small.chapter.write_text(
        chapter_text("The chapter of a small book, with two figures that it draws.", CHAPTER)
    )
    (small.book.source / "figures-page.md").write_text(PAGE)
    small.book.toc.write_text(
        "format: jb-book\nroot: index\nparts:\n  - caption: First\n    chapters:\n"
        "      - file: part/chapter\n  - caption: Last\n    chapters:\n      - file: figures-page\n"
    )
    done = small.run("book")
    assert done.returncode == 0, done.stdout + done.stderr
    return small


@pytest.fixture(scope="module")
def page(site: SmallBook) -> BeautifulSoup:
    return BeautifulSoup((site.book.html / "figures-page.html").read_text(), "html.parser")


def test_every_figure_is_there_once(page: BeautifulSoup) -> None:
    assert [figure["id"] for figure in page.select(".ln-gallery figure")] == [
        "figure-chapter-rising",
        "figure-chapter-again",
    ]
    (summary,) = page.select(".ln-gallery summary")
    assert summary.get_text(" ", strip=True) == "The chapter 2 figures"
    assert len(page.select(".ln-gallery[open]")) == 1
    assert [heading.get_text() for heading in page.select("article h2")] == ["First#"]


def test_without_an_address_links_have_no_picture(site: SmallBook, page: BeautifulSoup) -> None:
    assert page.select('meta[property="og:image"]') == []
    assert not (site.book.html / "cards").exists()


def test_each_file_exists_and_names_its_license(site: SmallBook, page: BeautifulSoup) -> None:
    links = page.select(".ln-gallery a[download]")
    names = [link["href"].removeprefix("figures/") for link in links]
    stems = ("chapter-rising", "chapter-again")
    assert names == [f"{s}{d}.{k}" for s in stems for d in ("", ".dark") for k in ("svg", "png")]
    assert {path.name for path in (site.book.html / "figures").iterdir()} == set(names)
    for name in names:
        path = site.book.html / "figures" / name
        if path.suffix == ".png":
            with Image.open(path) as image:
                assert "CC BY 4.0" in image.info["Copyright"]
                assert image.size == (240, 160)
        else:
            assert "creativecommons.org/licenses/by/4.0" in path.read_text()
    assert links[1]["aria-label"] == "PNG, light, chapter-rising"


def test_captions_and_links_come_from_the_page(page: BeautifulSoup) -> None:
    first, second = page.select(".ln-gallery figcaption")
    assert first.select(".katex")
    assert "A line about" in first.get_text()
    links = [link["href"] for link in first.select("a") if not link.has_attr("download")]
    assert links == [
        "part/chapter.html#rising",
        "index.html",
        "https://creativecommons.org/licenses/by/4.0/",
    ]
    assert "part/chapter.html#rising" in [link["href"] for link in second.select("a")]


def test_images_have_texts_and_sizes_and_load_late(page: BeautifulSoup) -> None:
    images = page.select(".ln-gallery img")
    assert len(images) == 4
    for image in images:
        assert image["alt"].endswith("from the lower left to the upper right.")
        assert (image["width"], image["height"], image["loading"]) == ("120", "80", "lazy")


def test_the_search_does_not_list_the_captions(site: SmallBook) -> None:
    index = (site.book.html / "searchindex.js").read_text()
    assert "A line about" not in index


def figure(svg: str) -> Figure:
    return Figure("part/chapter", "one", "A drawing of nothing.", svg)


def drawn(content: str, size: int = 20) -> np.ndarray:
    """A 20-by-20-point drawing on white, with one pixel per point."""
    head = 'xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink"'
    svg = f'<svg {head} viewBox="0 0 {size} {size}">{content}</svg>'
    with Image.open(io.BytesIO(raster.png(svg, raster.POINTS, "#ffffff"))) as image:
        return np.asarray(image)


def filled(array: np.ndarray, color: tuple[int, int, int]) -> tuple[slice, slice] | None:
    """The rows and columns that this color covers; it must fill a single rectangle."""
    rows, columns = np.nonzero((array == color).all(axis=-1))
    if not len(rows):
        return None
    box = slice(rows.min(), rows.max() + 1), slice(columns.min(), columns.max() + 1)
    assert (array[box] == color).all()
    return box


def test_a_thin_bar_of_a_letter_is_drawn() -> None:
    bar = "M 2 4 L 12 4 L 12 4.4 L 2 4.4 z"  # under half a pixel high, starting at a pixel's edge
    dark = 255 - drawn(f'<path d="{bar}" style="fill: #000000"/>')[..., 0].astype(int)
    assert dark[:, 2:12].sum(axis=0) == pytest.approx(np.full(10, 0.4 * 255), abs=8)


RED, BLUE = (255, 0, 0), (0, 0, 255)
BOX = "M 2 4 L 8 4 L 8 14 L 2 14 z"


@pytest.mark.parametrize(
    ("content", "rows", "columns"),
    [
        (f'<path d="{BOX}" style="fill: #ff0000"/>', (4, 14), (2, 8)),
        (f'<g transform="translate(5 1)"><path d="{BOX}" style="fill: #ff0000"/></g>',
         (5, 15), (7, 13)),
        (f'<g style="fill: #ff0000" transform="translate(0 20) scale(2 -1)"><path d="{BOX}"/></g>',
         (6, 16), (4, 16)),
        (f'<defs><path id="p" d="{BOX}"/></defs>'
         '<use xlink:href="#p" x="3" y="2" style="fill: #ff0000"/>', (6, 16), (5, 11)),
        ('<clipPath id="c"><rect x="4" y="0" width="3" height="10"/></clipPath>'
         f'<g clip-path="url(#c)"><path d="{BOX}" style="fill: #ff0000"/></g>', (4, 10), (4, 7)),
        ('<path d="M 4 10 L 12 10" style="fill: none; stroke: #ff0000; stroke-width: 4"/>',
         (8, 12), (4, 12)),
    ],
)  # fmt: skip
def test_paths_are_drawn_where_they_belong(
    content: str, rows: tuple[int, int], columns: tuple[int, int]
) -> None:
    assert filled(drawn(content), RED) == (slice(*rows), slice(*columns))


def test_colors_mix_where_they_are_transparent() -> None:
    style = "fill: #ff0000; fill-opacity: 0.5; opacity: 0.5"
    assert drawn(f'<path d="{BOX}" style="{style}"/>')[8, 4].tolist() == [255, 191, 191]


def test_a_dashed_line_has_gaps() -> None:
    style = "fill: none; stroke: #ff0000; stroke-width: 2; stroke-dasharray: 4 4"
    row = drawn(f'<path d="M 0 10 L 20 10" style="{style}"/>')[10]
    assert [tuple(pixel) == RED for pixel in row[[1, 2, 5, 6, 9]]] == [
        True,
        True,
        False,
        False,
        True,
    ]


def test_a_hatch_stays_inside_its_path() -> None:
    pattern = (
        '<defs><pattern id="h" x="0" y="0" width="4" height="4">'
        '<rect x="0" y="0" width="5" height="5" fill="#0000ff"/></pattern></defs>'
    )
    array = drawn(f'{pattern}<path d="{BOX}" style="fill: url(#h)"/>')
    assert filled(array, BLUE) == (slice(4, 14), slice(2, 8))


def test_an_image_is_placed_and_turned_upright() -> None:
    pixels = np.zeros((2, 1, 3), dtype=np.uint8)
    pixels[0], pixels[1] = RED, BLUE  # red above blue
    file = io.BytesIO()
    Image.fromarray(pixels).resize((10, 20), Image.Resampling.NEAREST).save(file, "PNG")
    data = base64.b64encode(file.getvalue()).decode()
    content = (
        f'<image xlink:href="data:image/png;base64,{data}" transform="scale(1 -1)" '
        'x="4" y="-16" width="4" height="8"/>'
    )
    array = drawn(content)
    assert tuple(array[9, 5]) == BLUE
    assert tuple(array[15, 5]) == RED
    assert tuple(array[9, 9]) == (255, 255, 255)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("<circle/>", "can't draw <circle>"),
        ('<path d="M 0 0 A 1 1 0 0 0 5 5"/>', "can't draw the path"),
        ('<g transform="skewX(3)"/>', "can't apply skewX"),
    ],
)
def test_what_cannot_be_drawn_is_an_error(content: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        drawn(content)


def test_files_are_drawn_again_only_if_they_changed(tmp_path: Path) -> None:
    folder, memory = tmp_path / "figures", tmp_path / "figures.json"
    figure_files.write_all([figure(LINE)], folder, memory)
    path = folder / "chapter-one.png"
    path.write_bytes(b"as it was")
    (folder / "old.png").write_bytes(b"")
    figure_files.write_all([figure(LINE)], folder, memory)
    assert path.read_bytes() == b"as it was"
    assert not (folder / "old.png").exists()
    figure_files.write_all([figure(LINE.replace("L 90 0", "L 90 9"))], folder, memory)
    assert path.read_bytes() != b"as it was"
    assert len(json.loads(memory.read_text())) == 2


def test_a_dark_png_has_a_dark_background(tmp_path: Path) -> None:
    figure_files.write_all([figure(LINE)], tmp_path, tmp_path.parent / "memory.json")
    for name, mode in (("chapter-one.png", "light"), ("chapter-one.dark.png", "dark")):
        with Image.open(tmp_path / name) as image:
            corner = "#{:02X}{:02X}{:02X}".format(*image.getpixel((1, 1)))
        assert corner == PALETTE["paper"][mode].upper()
