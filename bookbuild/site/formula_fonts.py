"""Makes the fonts of the formulas smaller: only the letters that the formulas of the book use."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from pathlib import Path

from fontTools import subset

# Letters that may come with a later formula, at little cost: then browsers need not fetch anew.
ALWAYS = "".join(map(chr, range(0x20, 0x7F)))


def shrink(folder: Path, letters: Iterable[str], css: str) -> None:
    """Cut each font of a folder down to some letters; remove those that the CSS does not name."""
    logging.getLogger("fontTools.subset").setLevel(logging.WARNING)  # tells each table at length
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
        subsetter.populate(text=wanted)
        subsetter.subset(font)
        subset.save_font(font, str(path), options)
