"""Makes the text fonts from Source Sans 3: `python -m bookbuild.site.text_font FOLDER`.

Run once; the results are in book/_static/fonts. The folder is `files` from the npm package
@fontsource-variable/source-sans-3. The results have the characters that English text needs: upright
in weights 400 to 700, and italic in weight 400, since a slanted upright font runs into what follows
it. The license reserves the original's name, so the results have a different one.
"""

from __future__ import annotations

import io
import sys
from pathlib import Path

from fontTools import subset
from fontTools.ttLib import TTFont
from fontTools.varLib import instancer

FAMILY = "LN Sans"
FONTS = Path(__file__).resolve().parents[2] / "book" / "_static" / "fonts"
WEIGHTS: dict[str, tuple[str, tuple[int, int] | int]] = {
    "LNSans.woff2": ("source-sans-3-latin-wght-normal.woff2", (400, 700)),
    "LNSans-Italic.woff2": ("source-sans-3-latin-wght-italic.woff2", 400),
}
LETTERS = "".join(map(chr, range(0x20, 0x7F)))
LETTERS += "\u00a0©«»°±²³·¹×÷àáäåæçèéêëíïñóôöøúüßŁł–—‘’“”•…→−"  # noqa: RUF001
NAMES = {
    1: FAMILY,
    3: f"{FAMILY} 1",
    4: FAMILY,
    6: FAMILY.replace(" ", ""),
    16: FAMILY,
    25: "LNSans",
}


def make(source: Path, target: Path, weights: tuple[int, int] | int) -> None:
    """Write a smaller font, with one weight or a range of weights."""
    options = subset.Options(
        hinting=False,
        layout_features=["kern", "mark", "liga", "tnum", "locl", "ccmp"],
    )
    font = subset.load_font(str(source), options)
    subsetter = subset.Subsetter(options)
    subsetter.populate(text=LETTERS)
    subsetter.subset(font)
    cut = io.BytesIO()
    font.flavor = None
    font.save(cut)
    cut.seek(0)
    font = instancer.instantiateVariableFont(TTFont(cut), {"wght": weights})
    for number, name in NAMES.items():
        font["name"].setName(name, number, 3, 1, 0x409)
    font.flavor = "woff2"
    font.save(target)


if __name__ == "__main__":
    for result, (original, kept) in WEIGHTS.items():
        make(Path(sys.argv[1]) / original, FONTS / result, kept)
