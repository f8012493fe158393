"""Scripts and fonts have their licenses listed, figures show theirs, and chapters can be cited."""

import re
from pathlib import Path

import pytest

from bookbuild.environment import licenses
from tests.site.pages import BOOK, CHAPTERS

OURS = [BOOK.source / "_static", BOOK.root / "bookbuild" / "sphinx" / "static"]
PLAYGROUND, SLIDES = BOOK.source / "_playground", BOOK.source / "_slides"


def test_every_script_and_font_is_listed() -> None:
    shipped = [path for path in BOOK.html.rglob("*") if path.suffix in (".js", ".woff2")]
    assert shipped
    listed = set(re.findall(r"`([^`]+)`", " ".join(what for _, what, _ in licenses.SHIPPED)))
    assert [path for path in shipped if not known(path, listed)] == []


def known(path: Path, listed: set[str]) -> bool:
    name = path.relative_to(BOOK.html).as_posix()
    if name == "searchindex.js" or name.startswith("_static/previews/"):  # the book's own text
        return True
    static = path.relative_to(BOOK.html / "_static").as_posix()
    if static in listed or f"{static.partition('/')[0]}/" in listed:
        return True
    ours = [folder / static for folder in OURS]
    ours.append(PLAYGROUND / static.removeprefix("playground/"))
    ours.append(SLIDES / static.removeprefix("slides/"))
    return any(path.exists() for path in ours)


@pytest.mark.parametrize("name", CHAPTERS)
def test_a_chapter_says_how_to_cite_it_and_each_figure_has_a_license(name: str) -> None:
    page = (BOOK.html / f"{name}.html").read_text(encoding="utf-8")
    assert page.count('class="ln-cite ') == 1
    captions = re.findall(r"<figcaption.*?</figcaption>", page, re.DOTALL)
    assert captions or "<figure" not in page
    assert [text for text in captions if text.count('class="ln-figure-license"') != 1] == []
