"""Makes the font that formulas have until KaTeX's fonts arrive: Times, with KaTeX's widths.

KaTeX's characters are up to 1.8 times as wide as those of Times. With Times as it is, lines would
break elsewhere as soon as KaTeX's fonts arrive, and the text below would move. CSS can't set the
width of a character, but the size of a font for a range of characters.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

import matplotlib
from fontTools import agl
from fontTools.ttLib import TTFont

FAMILY = "LN Math before"
# The name of the style in CSS, KaTeX's font, the widths of Times, and its names in browsers.
STYLES = (
    (
        "normal",
        "KaTeX_Main-Regular.woff2",
        "Times-Roman.afm",
        ("Times New Roman", "TimesNewRomanPSMT", "Liberation Serif"),
    ),
    (
        "italic",
        "KaTeX_Math-Italic.woff2",
        "Times-Italic.afm",
        ("Times New Roman Italic", "TimesNewRomanPS-ItalicMT", "Liberation Serif Italic"),
    ),
)
# The widths, in thousandths of the font size, of characters that the AFM files lack; measured in
# Liberation Serif, whose characters are as wide as those of Times New Roman.
MORE_WIDTHS = {
    "normal": "Δ643 Σ582 Π722 Γ578 Λ725 Ω743 Φ731 Ψ738 Θ722 ˉ333 \u2032219 ←1000 →1000 ∞713 ≈549",
    "italic": "α525 β498 γ394 δ465 ε394 ζ405 η496 θ491 ι278 κ480 λ433 μ502 "  # noqa: RUF001
    "ν444 ξ428 π501 ρ480 σ493 τ358 υ459 φ553 χ440 ψ621 ω706 Δ587",  # noqa: RUF001
}


def font_faces(katex_fonts: Path, letters: Iterable[str]) -> str:
    """The CSS rules for the fallback font: one for all characters that need the same size.

    Args:
        katex_fonts: the folder with KaTeX's fonts.
        letters: the characters of all formulas.
    """
    rules = []
    for style, font, afm, names in STYLES:
        times = _times_widths(afm)
        times |= {entry[0]: float(entry[1:]) for entry in MORE_WIDTHS[style].split()}
        ranges = defaultdict(list)
        widths = _widths(katex_fonts / font)
        for character in sorted({*letters} & times.keys() & widths.keys()):
            size = round(100 * widths[character] / times[character])
            ranges[size].append(f"U+{ord(character):X}")
        source = ", ".join(f'local("{name}")' for name in names)
        rules += [
            f'@font-face {{ font-family: "{FAMILY}"; src: {source}; font-style: {style}; '
            f"size-adjust: {size}%; unicode-range: {', '.join(characters)}; }}"
            for size, characters in sorted(ranges.items())
        ]
    return "\n".join(rules)


def _widths(path: Path) -> dict[str, float]:
    """The width of each character of a font in thousandths of the font size."""
    font = TTFont(path)
    scale = 1000 / font["head"].unitsPerEm
    return {chr(code): scale * font["hmtx"][name][0] for code, name in font.getBestCmap().items()}


def _times_widths(name: str) -> dict[str, float]:
    """The same from one of Adobe's metric files, which come with Matplotlib."""
    path = Path(matplotlib.get_data_path()) / "fonts" / "pdfcorefonts" / name
    widths = {}
    for line in path.read_text(encoding="ascii").splitlines():
        if line.startswith("C "):
            entries = dict(entry.split(maxsplit=1) for entry in line.split(" ;")[:3])
            widths[agl.toUnicode(entries["N"])] = float(entries["WX"])
    return widths
