"""Figures on the site get readable shades; nothing else about them changes."""

import base64
import io
import re
import xml.etree.ElementTree as ET
from collections.abc import Callable

import numpy as np
import pytest
from PIL import Image

from bookbuild.outputs.digest import source_digest
from bookbuild.site import figure_colors
from lnbook.notebook.style import COLORS, PALETTE
from tests.book.small_book import SmallBook

BLUE = COLORS["layer_norm"]
FIGURE = f"""<?xml version="1.0"?>
<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink"
 width="331.2pt" height="259.2pt" viewBox="0 0 331.2 259.2">
<metadata>who made it</metadata><!-- a comment -->
<defs><path id="used" d="M 0 0 L 1.23456 -7.891e-05 z"/></defs>
<g id="unused"><use xlink:href="#used" x="1.0049" style="fill: {BLUE}; stroke: white"/>
<path d="M 5 5" style="stroke: #1f77b4; stroke-opacity: 0; stroke-width: 2"/></g></svg>"""


def luminance(color: str) -> float:
    rgb = np.array([int(color[at : at + 2], 16) for at in (1, 3, 5)]) / 255
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


def contrast(one: str, other: str) -> float:
    low, high = sorted([luminance(one), luminance(other)])
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("name", sorted(COLORS.keys() - {"region"}))  # a pale color for areas
def test_what_is_drawn_can_be_seen_as_well_in_each_mode(name: str) -> None:
    for mode in ("light", "dark"):
        wanted = min(3.0, contrast(COLORS[name], COLORS["paper"]))
        assert contrast(PALETTE[name][mode], PALETTE["paper"][mode]) >= wanted


def test_text_of_the_pages_can_be_read() -> None:
    for mode in ("light", "dark"):
        for ground in ("paper", "surface"):
            for text in ("ink", "muted", "accent", "accent_2"):
                shades = PALETTE[text][mode], PALETTE[ground][mode]
                assert contrast(*shades) >= 4.5, (mode, text, ground)


def test_size_is_in_pixels() -> None:
    assert figure_colors.size(FIGURE) == (442, 346)
    with pytest.raises(ValueError, match="width"):
        figure_colors.size('<svg xmlns="http://www.w3.org/2000/svg" width="100%"/>')


def test_a_smaller_file_keeps_what_is_seen() -> None:
    small = figure_colors.shown(FIGURE, "light")
    root = ET.fromstring(small)
    assert len(small) < len(FIGURE)
    assert "who made it" not in small
    assert "comment" not in small
    assert root.get("viewBox") == "0 0 331.2 259.2"
    path = root.find(".//{http://www.w3.org/2000/svg}path")
    assert path is not None
    assert path.attrib == {"id": "used", "d": "M0 0L1.23 0z"}
    assert f"fill:{PALETTE['layer_norm']['light']}" in small
    assert "unused" not in small


def test_a_mode_changes_colors_alone() -> None:
    dark = figure_colors.shown(FIGURE, "dark")
    assert PALETTE["layer_norm"]["dark"] in dark
    assert PALETTE["paper"]["dark"] in dark
    shapes = re.compile(r"#[0-9A-Fa-f]{6}|white")
    assert shapes.sub("", dark) == shapes.sub("", figure_colors.shown(FIGURE, "light"))


def test_a_color_that_is_not_in_the_palette_is_an_error() -> None:
    with pytest.raises(ValueError, match="#123456 is not in the palette"):
        figure_colors.shown(FIGURE.replace(BLUE, "#123456"), "dark")
    with pytest.raises(ValueError, match="#112233 is not in the palette"):
        figure_colors.shown(FIGURE.replace(BLUE, "#123"), "dark")


def test_a_raster_turns_its_lightness() -> None:
    pixels = np.array([[[255, 255, 255, 255], [0, 114, 178, 255], [153, 199, 224, 255]]], np.uint8)
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "PNG")
    data = base64.b64encode(file.getvalue()).decode()
    svg = (
        '<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" '
        f'width="3" height="1"><image xlink:href="data:image/png;base64,{data}"/></svg>'
    )
    found = re.search(r"base64,([^\"]+)", figure_colors.shown(svg, "dark"))
    assert found is not None
    turned = np.asarray(Image.open(io.BytesIO(base64.b64decode(found[1]))))[0]
    white, blue, pale = (f"#{r:02x}{g:02x}{b:02x}" for r, g, b, _ in turned)
    assert contrast(white, PALETTE["paper"]["dark"]) < 1.15
    page = PALETTE["paper"]["dark"]
    assert all(
        abs(int(white[at : at + 2], 16) - int(page[at : at + 2], 16)) <= 2 for at in (1, 3, 5)
    )
    assert luminance(white) < luminance(pale) < luminance(blue)
    assert turned[1][2] > turned[1][0]  # blue is still blue
    assert contrast(pale, PALETTE["ink"]["dark"]) > 4.5  # numbers on pale cells are readable


def test_the_pages_have_the_shades() -> None:
    light, dark = figure_colors.tokens().split("}")[:2]
    assert light.startswith('html[data-theme="light"]{color-scheme:light;')
    assert f"--ln-layer-norm:{PALETTE['layer_norm']['light']}" in light
    assert f"--ln-accent-2:{PALETTE['accent_2']['dark']}" in dark


def repaint(small: SmallBook, old: str, new: str) -> str:
    """Change a book's palette, and return its chapter's digest."""
    path = small.book.package / "notebook" / "palette.toml"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    book = small.fresh()
    return source_digest(book, book.chapters[0])


def test_outputs_follow_from_what_is_drawn_and_not_from_shades(small: SmallBook) -> None:
    constants = small.book.package / "constants.py"
    constants.write_text("from lnbook.notebook.style import COLORS\n" + constants.read_text())
    before = repaint(small, "layer_norm", "layer_norm")
    assert repaint(small, 'light = "#0072B2"', 'light = "#0062A2"') == before
    assert repaint(small, "\nmark =", "\nmarking =") == before, "this color is used only on pages"
    assert repaint(small, "layer_norm =", "norm_of_rows =") != before
    assert repaint(small, 'drawn = "#D55E00"', 'drawn = "#D55E0F"') != before


def test_outputs_follow_from_the_fonts(small: SmallBook) -> None:
    constants = small.book.package / "constants.py"
    constants.write_text("from lnbook.notebook.style import COLORS\n" + constants.read_text())
    font = small.book.package / "notebook" / "fonts" / "LNSans-Bold.ttf"
    font.parent.mkdir()
    digests = set()
    for content in (b"thin", b"thick"):
        font.write_bytes(content)
        book = small.fresh()
        digests.add(source_digest(book, book.chapters[0]))
    assert len(digests) == 2


def test_a_new_shade_appears_at_the_next_build(built: Callable[[], SmallBook]) -> None:
    small = built()
    small.index.write_text(
        small.index.read_text() + "\n![A line, and what cannot be seen of it.](line.svg)\n"
    )
    (small.book.source / "line.svg").write_text(FIGURE)
    html = small.book.build / "html"
    for shade in (PALETTE["layer_norm"]["light"], "#0062A2"):
        repaint(
            small,
            'layer_norm = { drawn = "#0072B2", light = "#0072B2"',
            f'layer_norm = {{ drawn = "#0072B2", light = "{shade}"',
        )
        done = small.run("book")
        assert done.returncode == 0, done.stderr
        assert shade in (html / "_images" / "line.svg").read_text()
