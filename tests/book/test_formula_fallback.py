"""The font that formulas have before KaTeX's fonts arrive is as wide as KaTeX's."""

import re
from pathlib import Path

import pytest
from fontTools.fontBuilder import FontBuilder
from fontTools.pens.ttGlyphPen import TTGlyphPen

from bookbuild.site import formula_fallback

RULE = re.compile(r"font-style: (\w+); size-adjust: (\d+)%; unicode-range: ([^;]+);")


def write_font(path: Path, widths: dict[str, int]) -> None:
    """Write a font without outlines whose characters have these widths, in 500 units per em."""
    names = {character: f"c{ord(character):X}" for character in widths}
    builder = FontBuilder(500)
    builder.setupGlyphOrder([".notdef", *names.values()])
    builder.setupCharacterMap({ord(character): name for character, name in names.items()})
    builder.setupGlyf({name: TTGlyphPen(None).glyph() for name in (".notdef", *names.values())})
    metrics = {names[character]: (width, 0) for character, width in widths.items()}
    builder.setupHorizontalMetrics({".notdef": (0, 0), **metrics})
    builder.setupHorizontalHeader()
    builder.setupPost()
    builder.font.save(path)


@pytest.fixture
def fonts(tmp_path: Path) -> Path:
    # In Times, in thousandths of the font size: 1 has 500, a 444, + 564, and the italic x 444.
    write_font(tmp_path / "KaTeX_Main-Regular.woff2", {"1": 250, "a": 222, "+": 423, "Σ": 291})
    write_font(tmp_path / "KaTeX_Math-Italic.woff2", {"x": 286, "α": 320})  # noqa: RUF001
    return tmp_path


def sizes(css: str) -> dict[tuple[str, str], int]:
    return {
        (style, chr(int(code.strip().removeprefix("U+"), 16))): int(size)
        for style, size, codes in RULE.findall(css)
        for code in codes.split(",")
    }


def test_each_character_gets_the_width_it_has_in_katex(fonts: Path) -> None:
    found = sizes(formula_fallback.font_faces(fonts, "1a+Σxα"))  # noqa: RUF001
    assert found == {
        ("normal", "1"): 100,
        ("normal", "a"): 100,
        ("normal", "+"): 150,
        ("normal", "Σ"): 100,
        ("italic", "x"): 129,
        ("italic", "α"): 122,  # noqa: RUF001
    }


def test_characters_of_one_size_share_a_rule(fonts: Path) -> None:
    css = formula_fallback.font_faces(fonts, "1aΣ")
    [(style, size, codes)] = RULE.findall(css)
    assert (style, size) == ("normal", "100")
    assert codes == "U+31, U+61, U+3A3"
    assert 'local("Liberation Serif")' in css


def test_characters_that_no_formula_uses_get_no_rule(fonts: Path) -> None:
    assert sizes(formula_fallback.font_faces(fonts, "x")) == {("italic", "x"): 129}
    assert formula_fallback.font_faces(fonts, "") == ""
