"""Shrinks the formula fonts to the characters that the book's formulas use."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from pathlib import Path

from fontTools import subset

# Characters that later formulas may need; they cost little, and browsers keep their cached fonts.
ALWAYS = "".join(map(chr, range(0x20, 0x7F)))
BOLD = "KaTeX_Main-Bold.woff2"  # needed for a vector of ones on many pages, and for little else


def shrink(folder: Path, letters: Iterable[str], bold: Iterable[str], css: str) -> None:
    """Reduce each font in a folder to some characters; delete fonts that the CSS doesn't name.

    Args:
        folder: contains the fonts.
        letters: the characters of all formulas.
        bold: the upright bold ones among them.
        css: the style sheet that names the fonts.
    """
    logging.getLogger("fontTools.subset").setLevel(logging.WARNING)  # it logs every table
    wanted = "".join(sorted({*letters, *ALWAYS}))
    for path in sorted(folder.glob("*.woff2")):
        if path.name not in css:
            path.unlink()
            continue
        options = subset.Options(
            flavor="woff2",
            layout_features=["*"],
            notdef_outline=True,
            hinting=False,
            desubroutinize=True,
        )
        font = subset.load_font(str(path), options)
        subsetter = subset.Subsetter(options)
        subsetter.populate(text="".join(sorted(bold)) if path.name == BOLD else wanted)
        subsetter.subset(font)
        subset.save_font(font, str(path), options)
