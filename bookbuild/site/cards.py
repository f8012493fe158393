"""Draws the preview of a shared link to a chapter: its title next to one of its figures.

The preview is a PNG, since sites that show previews don't accept SVG.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path

from PIL import Image, ImageDraw, ImageFont

from bookbuild.site import figure_colors, raster
from bookbuild.site.figure_files import Figure
from lnbook.notebook.style import COLORS, INK, MUTED, PALETTE

SIZE = (1200, 630)
COURSE = "Layer Normalization"
FONTS = Path(__file__).resolve().parents[2] / "lnbook" / "notebook" / "fonts"
PAPER = PALETTE["paper"]["light"]
LEFT, RIGHT = (80, 560), (610, 1160)  # left and right edges of the title and of the figure
MARGIN = 40  # above and below the figure
TALLEST = 1.2  # height of a figure relative to its width, so that its labels stay legible
TITLE_SIZES = (64, 56, 48, 40)


def choose(figures: Sequence[Figure]) -> Figure | None:
    """The first figure that fits on a card, or else the first one; None if there are no figures."""
    fitting = [figure for figure in figures if figure.size[1] <= TALLEST * figure.size[0]]
    return next(iter([*fitting, *figures]), None)


def card(title: str, figure: Figure) -> bytes:
    """A card of 1200 by 630 pixels.

    Args:
        title: the chapter's title.
        figure: the figure to show next to it.

    Raises:
        ValueError: if the figure can't be drawn, or the title doesn't fit.
    """
    image = Image.new("RGB", SIZE, PAPER)
    draw = ImageDraw.Draw(image)
    draw.rectangle((0, 0, 13, SIZE[1]), fill=COLORS["second"])
    font, lines = _wrapped(title)
    high = 1.2 * font.size
    top = (SIZE[1] - high * len(lines)) / 2
    draw.text((LEFT[0], MARGIN), COURSE, fill=MUTED, font=_font("LNSans-Regular", 32))
    for number, line in enumerate(lines):
        draw.text((LEFT[0], top + number * high), line, fill=INK, font=font)
    drawn = _drawn(figure)
    middle = (RIGHT[0] + RIGHT[1]) // 2
    image.paste(drawn, (middle - drawn.width // 2, (SIZE[1] - drawn.height) // 2))
    target = io.BytesIO()
    image.save(target, "PNG")
    return target.getvalue()


def _font(name: str, size: int) -> ImageFont.FreeTypeFont:
    return ImageFont.truetype(FONTS / f"{name}.ttf", size)


def _wrapped(title: str) -> tuple[ImageFont.FreeTypeFont, list[str]]:
    """The title, broken into lines and as large as will fit."""
    for size in TITLE_SIZES:
        font = _font("LNSans-Bold", size)
        lines = [""]
        for word in title.split():
            longer = f"{lines[-1]} {word}".strip()
            if font.getlength(longer) <= LEFT[1] - LEFT[0]:
                lines[-1] = longer
            else:
                lines.append(word)
        fits = max(font.getlength(line) for line in lines) <= LEFT[1] - LEFT[0]
        if fits and 1.2 * size * len(lines) <= SIZE[1] - 6 * MARGIN:
            return font, [line for line in lines if line]
    raise ValueError(f"expected a title that fits on the card for shared links, but got '{title}'")


def _drawn(figure: Figure) -> Image.Image:
    wide, high = figure.size
    scale = min((RIGHT[1] - RIGHT[0]) / wide, (SIZE[1] - 2 * MARGIN) / high)
    dpi = int(96 * scale)  # a figure's size is given in CSS pixels, 96 to the inch
    svg = figure_colors.shown(figure.svg, "light")
    return Image.open(io.BytesIO(raster.png(svg, dpi, PAPER))).convert("RGB")
