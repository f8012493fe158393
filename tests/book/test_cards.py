"""The pictures that sites show when someone shares a link."""

import io
from collections.abc import Callable

import numpy as np
import pytest
from bs4 import BeautifulSoup
from fontTools.ttLib import TTFont
from matplotlib.colors import to_rgb
from PIL import Image

from bookbuild.site import cards
from bookbuild.site.figure_files import Figure
from lnbook.notebook.style import COLORS
from tests.book.small_book import SmallBook, chapter_text
from tests.book.test_gallery import CHAPTER, DRAWING
from tests.helpers.this_book import BOOK

ADDRESS = "https://example.org/course"


def drawn(width: int = 120, height: int = 80, name: str = "line") -> Figure:
    svg = f"""<svg xmlns="http://www.w3.org/2000/svg" width="{0.75 * width}pt"
    height="{0.75 * height}pt" viewBox="0 0 {0.75 * width} {0.75 * height}"><path
    d="M 0 0 L 10 0 L 10 10 L 0 10 Z" style="fill: {COLORS["layer_norm"]}"/></svg>"""
    return Figure("part/chapter", name, "A blue square.", svg)


def pixels(title: str) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(cards.card(title, drawn()))).convert("RGB"))


def test_a_card_has_the_title_on_the_left_and_the_figure_on_the_right() -> None:
    card = pixels("A title")
    assert card.shape == (630, 1200, 3)
    dark = (card.sum(axis=-1) < 200)[80:]  # below the course's name
    rows, columns = np.nonzero(dark)
    assert 80 <= columns.min() < columns.max() <= 560
    assert abs(rows.mean() + 80 - 315) < 30
    blue = np.abs(card - 255 * np.array(to_rgb(COLORS["layer_norm"]))).max(axis=-1) < 2
    rows, columns = np.nonzero(blue)
    assert 610 <= columns.min() < columns.max() < 1160
    assert 40 <= rows.min() < rows.max() < 590


def test_a_long_title_is_wrapped_and_a_longer_one_is_smaller() -> None:
    def lines(title: str) -> int:
        dark = (pixels(title).sum(axis=-1) < 200)[80:, :600].any(axis=1)
        return int(np.diff(dark.astype(int), prepend=0).clip(min=0).sum())

    assert lines("Mmmm nnnn") == 1
    assert lines("Mmmmmmmm mmmmmmmm mmmmmmmm") == 3
    tall = [np.nonzero((pixels(t).sum(axis=-1) < 200)[80:, :600].any(axis=1))[0].size
            for t in ("Mmmm", "Mmmmmmmmmmm")]  # fmt: skip
    assert tall[0] > tall[1]
    with pytest.raises(ValueError, match="expected a title that fits on the card .* got 'Mmmmmm"):
        cards.card("M" + "m" * 60, drawn())


def test_the_figure_is_the_first_one_that_is_not_too_tall() -> None:
    tall, wide, other = drawn(100, 130, "tall"), drawn(100, 90, "wide"), drawn(100, 80, "other")
    assert cards.choose([tall, wide, other]) is wide
    assert cards.choose([tall]) is tall
    assert cards.choose([]) is None


def test_every_title_is_in_the_font_and_fits() -> None:
    letters = TTFont(cards.FONTS / "LNSans-Bold.ttf").getBestCmap()
    for chapter in BOOK.chapters:
        title = chapter.notebook.cells[0].source.partition("\n")[0].removeprefix("# ")
        assert [letter for letter in title if ord(letter) not in letters] == [], title
        assert cards.card(title, drawn())


def test_a_chapter_with_figures_has_a_card_of_its_own(
    built: Callable[[], SmallBook], monkeypatch: pytest.MonkeyPatch
) -> None:
    small = built()
    (small.book.package / "drawing.py").write_text(DRAWING)
    small.chapter.write_text(
        chapter_text("The chapter of a small book, which draws two figures of a line.", CHAPTER)
    )
    monkeypatch.setenv("BOOK_URL", ADDRESS)
    done = small.run("book")
    assert done.returncode == 0, done.stdout + done.stderr
    assert card_of(small, "index")[0] == f"{ADDRESS}/_static/social-card.png"
    address, alt = card_of(small, "part/chapter")
    assert address == f"{ADDRESS}/cards/part/chapter.png"
    assert alt == ("The chapter. A line that rises steeply from the lower left to the upper right.")
    assert (small.book.html / "cards" / "part" / "chapter.png").exists()


def card_of(small: SmallBook, page: str) -> list[str]:
    soup = BeautifulSoup((small.book.html / f"{page}.html").read_text(), "html.parser")
    return [
        str(tag["content"])
        for name in ("og:image", "og:image:alt")
        for tag in soup.find_all("meta", attrs={"property": name})
    ]
