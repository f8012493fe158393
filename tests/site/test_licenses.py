"""Every script and font on the site is the book's own or has its license listed."""

import re
from pathlib import Path

from bookbuild.environment import licenses
from tests.site.pages import BOOK

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
