"""Makes the text font from Source Sans 3: `python -m bookbuild.site.text_font SOURCE.woff2`.

Run once; the result is in book/_static/fonts. The source is the file
`files/source-sans-3-latin-wght-normal.woff2` in the npm package @fontsource-variable/source-sans-3.
The result has the characters of English text in the weights 400 to 700. The license reserves the
original's name, so the result has a different one.
"""

from __future__ import annotations

import io
import sys
from pathlib import Path

from fontTools import subset
from fontTools.ttLib import TTFont
from fontTools.varLib import instancer

FAMILY = "LN Sans"
TARGET = Path(__file__).resolve().parents[2] / "book" / "_static" / "fonts" / "LNSans.woff2"
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


def make(source: Path, target: Path = TARGET) -> None:
    """Write the smaller font."""
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
    font = instancer.instantiateVariableFont(TTFont(cut), {"wght": (400, 700)})
    for number, name in NAMES.items():
        font["name"].setName(name, number, 3, 1, 0x409)
    font.flavor = "woff2"
    font.save(target)


if __name__ == "__main__":
    make(Path(sys.argv[1]))
