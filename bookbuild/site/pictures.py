"""Draws the site's pictures that aren't in chapters: `python -m bookbuild.site.pictures`.

- rows.svg, on the home page: four rows of numbers before and after layer normalization. The
  numbers are random and are actually normalized here, so the picture is accurate.
- social-card.png, the preview for shared links, a screenshot taken by Chromium; if Chromium isn't
  found, set its path with CHROMIUM=...

Run it by hand when the design changes; the results are in the repository.
"""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path

import numpy as np
from fontTools.pens.svgPathPen import SVGPathPen
from fontTools.pens.transformPen import TransformPen
from fontTools.ttLib import TTFont

from bookbuild.pdf.chromium import open_page
from lnbook import reference
from lnbook.notebook.style import COLORS, INK, MUTED

BOOK = Path(__file__).resolve().parents[2] / "book"
FONT = BOOK / "_static" / "fonts" / "LNSans.woff2"
CARD = (1200, 630)
# On a phone the picture is half as large, so words and dots are drawn larger there.
ON_A_PHONE = (
    "<style>@media(max-width:480px){.word{transform:scale(1.5);transform-box:fill-box;"
    "transform-origin:50% 100%}circle{r:6.5px}}</style>"
)


def rows() -> np.ndarray:
    """Four rows of seven numbers, with different means and spreads."""
    rng = np.random.default_rng(7)
    means, spreads = (
        np.array([[-2.2], [4.6], [1.3], [7.4]]),
        np.array([[0.7], [1.9], [0.35], [1.2]]),
    )
    return means + spreads * rng.standard_normal((4, 7))


@cache
def _font() -> TTFont:
    return TTFont(FONT)


def lettering(text: str, x: float, y: float, size: float, color: str) -> str:
    """A line of text in the book's font, centered at x, as a path: images can't load fonts."""
    glyphs, names = _font().getGlyphSet(location={"wght": 400}), _font().getBestCmap()
    scale = size / _font()["head"].unitsPerEm
    line = [glyphs[names[ord(letter)]] for letter in text]
    at = x - scale * sum(glyph.width for glyph in line) / 2
    pen = SVGPathPen(glyphs, ntos=lambda value: f"{value:.1f}".removesuffix(".0"))
    for glyph in line:
        glyph.draw(TransformPen(pen, (scale, 0, 0, -scale, at, y)))
        at += scale * glyph.width
    return f'<path class="word" d="{pen.getCommands()}" fill="{color}"/>'


def rows_before_and_after(*, title: bool = True) -> str:
    """The picture on the home page: each row separately gets mean 0 and spread 1."""
    x = rows()
    after = reference.layer_norm(x, x.shape[1])
    parts = []
    for values, left, scale, zero, name in (
        (x, 24.0, 24.0, 5.2, "before: four rows"),
        (after, 404.0, 50.0, 2.7, "after: mean 0, spread 1"),
    ):
        middle = left + zero * scale
        if title:
            parts.append(lettering(name, middle, 24, 19, INK))
        parts.append(
            f'<path d="M{middle:.1f} 40V238" stroke="#D5D9E0" stroke-width="1.5"/>'
            + lettering("0", middle, 260, 16, MUTED)
        )
        for number, row in enumerate(values):
            color = COLORS["second" if number == 1 else "first"]
            y, place = 64 + 50 * number, left + (zero + row) * scale
            mean, spread = left + (zero + row.mean()) * scale, row.std() * scale
            parts.append(
                f'<path d="M{mean - spread:.1f} {y}H{mean + spread:.1f}" stroke="{color}" '
                'stroke-width="16" stroke-opacity="0.22"/>'
                f'<path d="M{mean:.1f} {y - 15}V{y + 15}" stroke="{color}" stroke-width="2.5"/>'
            )
            parts += [
                f'<circle cx="{at:.1f}" cy="{y}" r="4.5" fill="{color}"/>' for at in np.sort(place)
            ]
    parts.append(
        f'<path d="M350 140h26m-8-7 8 7-8 7" fill="none" stroke="{MUTED}" stroke-width="2.5"/>'
    )
    return "".join(parts)


def picture() -> str:
    """The file rows.svg."""
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" width="680" height="264" viewBox="0 0 680 264">'
        f"{ON_A_PHONE}{rows_before_and_after()}</svg>\n"
    )


def card() -> str:
    """The preview card for shared links."""
    cells = "".join(
        f'<rect x="{80 + 41 * column}" y="{y}" width="32" height="29" rx="8" fill="#8FB3CC"/>'
        for y in (76, 154)
        for column in range(3)
    )
    width, height = CARD
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}"><rect width="{width}" height="{height}" fill="#FFFFFF"/>'
        f'<rect width="14" height="{height}" fill="{COLORS["second"]}"/>{cells}'
        f'<rect x="80" y="115" width="114" height="29" rx="8" fill="{COLORS["second"]}"/>'
        f'<g font-family="LN Sans, sans-serif" fill="{INK}">'
        '<text x="226" y="122" font-size="66" font-weight="700">Layer Normalization</text>'
        '<text x="228" y="178" font-size="35">from the formula to the transformer</text></g>'
        f'<g transform="translate(150 250) scale(1.32)">{rows_before_and_after(title=False)}</g>'
        "</svg>"
    )


def photograph(svg: str, target: Path) -> None:
    """Draw an SVG as a PNG file.

    Raises:
        BookError: if Chromium isn't found.
    """
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "card.html"
        source.write_text(
            f"<style>@font-face{{font-family:'LN Sans';src:url({FONT.as_uri()});"
            f"font-weight:400 700}}body{{margin:0}}svg{{display:block}}</style>{svg}",
            encoding="utf-8",
        )
        with open_page(source) as page:
            page.set_viewport_size({"width": CARD[0], "height": CARD[1]})
            page.screenshot(path=target)


if __name__ == "__main__":
    (BOOK / "_pictures" / "rows.svg").write_text(picture(), encoding="utf-8")
    photograph(card(), BOOK / "_static" / "social-card.png")
