"""Makes the fonts for figures: `python -m bookbuild.site.figure_fonts SOURCE_SANS KATEX`.

Run once; the results are in lnbook/notebook/fonts. The two folders are `files` from the npm package
@fontsource-variable/source-sans-3 and `dist/fonts` from the npm package katex: the typefaces that
the site uses for text and for formulas, as files that matplotlib can read. Both licenses reserve
the original names, so the results have different ones.
"""

from __future__ import annotations

import io
import sys
from pathlib import Path

from fontTools import subset
from fontTools.merge import Merger
from fontTools.ttLib import TTFont
from fontTools.varLib import instancer

FONTS = Path(__file__).resolve().parents[2] / "lnbook" / "notebook" / "fonts"
# For each style that matplotlib looks for, the style and weight of the original font. Headings on
# the site are semibold, too.
TEXT = {
    "Regular": ("normal", 400),
    "Bold": ("normal", 600),
    "Italic": ("italic", 400),
}
FORMULAS = {"Regular": "KaTeX_Main-Regular.ttf", "Italic": "KaTeX_Math-Italic.ttf"}
# Computer Modern's letters are small. At this scale, an x is as tall in a formula as in text.
FORMULA_SCALE = 1.12
HAT, COMBINING_HAT = 0x02C6, 0x0302  # KaTeX has the first one; matplotlib asks for the second one
FLAGS = {"Regular": (0x40, 0), "Bold": (0x20, 1), "Italic": (0x01, 2)}  # in tables OS/2 and head


def text_font(folder: Path, style: str) -> TTFont:
    """The English and Greek letters in one style and weight, as one font."""
    original, weight = TEXT[style]
    parts = []
    for script in ("latin", "greek"):
        font = TTFont(folder / f"source-sans-3-{script}-wght-{original}.woff2")
        font.flavor = None
        font = instancer.instantiateVariableFont(font, {"wght": weight})
        parts.append(io.BytesIO())
        _plain(font).save(parts[-1])
        parts[-1].seek(0)
    return Merger().merge(parts)


def formula_font(folder: Path, style: str) -> TTFont:
    """The letters or the symbols for formulas, scaled to match the text next to them."""
    font = TTFont(folder / FORMULAS[style])
    for table in font["cmap"].tables:
        if table.isUnicode() and HAT in table.cmap:
            table.cmap[COMBINING_HAT] = table.cmap[HAT]
    font["head"].unitsPerEm = round(font["head"].unitsPerEm / FORMULA_SCALE)
    return _plain(font)


def _plain(font: TTFont) -> TTFont:
    """The font reduced to its outlines and kerning."""
    options = subset.Options(
        hinting=False, layout_features=["kern"], drop_tables=["FFTM", "GDEF"], name_IDs=[0, 13, 14]
    )
    subsetter = subset.Subsetter(options)
    subsetter.populate(unicodes=list(font.getBestCmap()))
    subsetter.subset(font)
    return font


def save(font: TTFont, family: str, style: str) -> None:
    """Write a font under its name."""
    name = f"{family.replace(' ', '')}-{style}"
    for number, text in {1: family, 2: style, 4: f"{family} {style}", 6: name}.items():
        font["name"].setName(text, number, 3, 1, 0x409)
    font["OS/2"].usWeightClass = 700 if style == "Bold" else 400
    font["OS/2"].fsSelection, font["head"].macStyle = FLAGS[style]
    font["head"].created = font["head"].modified = 0
    font.recalcTimestamp = False
    font.save(FONTS / f"{name}.ttf")


if __name__ == "__main__":
    source_sans, katex = map(Path, sys.argv[1:3])
    for kind in TEXT:
        save(text_font(source_sans, kind), "LN Sans", kind)
    for kind in FORMULAS:
        save(formula_font(katex, kind), "LN Math", kind)
