"""What the extensions do to a page: one style sheet, folding, dark-mode variants, the head."""

import os
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path

import pytest
from bs4 import BeautifulSoup

from bookbuild.sphinx import navigation
from lnbook.notebook.style import COLORS, PALETTE
from tests.book.small_book import SmallBook

ADDED = """
![A blue line that rises from the left to the right.](line.svg)

```{admonition} Hint
:class: dropdown
Look at $a$.
```

```{note}
:class: dropdown
A box of a kind that has no title of its own.
```

```{exercise-start} Add
:label: add-two
```
Add two numbers.
```{exercise-end}
```

```{solution-start} add-two
:class: dropdown
```
Three.
```{solution-end}
```

```{list-table}
:header-rows: 1

* -
  - value
* - one
  - 1
```

A work {cite}`key`, and `inline code`.

```{bibliography}
```
"""
LINE = f"""<svg xmlns="http://www.w3.org/2000/svg" width="90pt" height="60pt" viewBox="0 0 90 60">
<path d="M 0 60 L 90 0" style="stroke: {COLORS["layer_norm"]}"/></svg>"""
WORK = "@book{key, author={Author, A.}, title={Title}, year={2020}, publisher={P}}"
ADDRESS = "https://example.org/course"


@pytest.fixture(scope="module")
def html(built: Callable[[], SmallBook]) -> Path:
    small = built()
    small.index.write_text(small.index.read_text() + ADDED)
    (small.book.source / "line.svg").write_text(LINE)
    (small.book.source / "references.bib").write_text(WORK)
    os.environ["BOOK_URL"] = ADDRESS
    try:
        done = small.run("book")
    finally:
        del os.environ["BOOK_URL"]
    assert done.returncode == 0, done.stderr
    return small.book.html


@pytest.fixture(scope="module")
def index(html: Path) -> BeautifulSoup:
    return BeautifulSoup((html / "index.html").read_text(), "html.parser")


def test_one_style_sheet(html: Path, index: BeautifulSoup) -> None:
    sheets = [str(link["href"]) for link in index.select('link[rel="stylesheet"]')]
    assert [sheet.split("?")[0] for sheet in sheets] == ["_static/site.css"]
    assert len((html / "_static" / "site.css").read_bytes()) < 150_000
    assert not list((html / "_static").rglob("*fontawesome*"))
    assert [path.name for path in (html / "_static").rglob("*.css")] == ["site.css"]


def test_scripts_do_not_hold_up_a_page(html: Path, index: BeautifulSoup) -> None:
    scripts = index.select("script[src]")
    names = {str(tag["src"]).split("?")[0] for tag in scripts}
    assert names == {
        f"_static/{name}.js" for name in ("site", "reading-marks", "search", "previews")
    }
    assert all(tag.has_attr("defer") for tag in scripts)
    search = BeautifulSoup((html / "search.html").read_text(), "html.parser")
    same = {str(tag["src"]).split("?")[0] for tag in search.select("script[src]")}
    assert same == names, "like other pages, the search page loads its index on first use"
    form = search.select_one("article form[data-search]")
    files = str(form["data-files"]).split()  # type: ignore[index]
    assert [name.partition("?")[0].rpartition("/")[2] for name in files] == [
        "minisearch.js",
        "search-engine.js",
        "searchindex.js",
    ]
    assert all((html / name.partition("?")[0]).exists() for name in files)


def test_folded_boxes_need_no_script(index: BeautifulSoup) -> None:
    boxes = index.select("details.admonition")
    titles = [" ".join(box.summary.get_text().split()) for box in boxes]  # type: ignore[union-attr]
    assert titles == ["Hint", "Note", "Solution to Exercise 1 (Add)"]
    assert not index.select("summary a, summary button")
    assert "Three." in boxes[2].get_text()


def test_a_figure_has_a_twin(html: Path, index: BeautifulSoup) -> None:
    light, dark = index.select("article img")
    assert light["alt"] == dark["alt"] == "A blue line that rises from the left to the right."
    assert (light["width"], light["height"]) == (dark["width"], dark["height"]) == ("120", "80")
    assert "ln-light" in light["class"]
    assert "ln-dark" in dark["class"]
    assert dark["loading"] == "lazy"
    pictures = [(html / str(tag["src"])).read_text() for tag in (light, dark)]
    for mode, picture in zip(("light", "dark"), pictures, strict=True):
        assert PALETTE["layer_norm"][mode] in picture
    assert all(ET.fromstring(each).get("viewBox") == "0 0 90 60" for each in pictures)


def test_roles(index: BeautifulSoup) -> None:
    assert [tag["role"] for tag in index.select(".citation")] == ["listitem"]
    assert [tag.get_text().strip() for tag in index.select("thead th")] == ["value"]
    assert len(index.select("thead td")) == 1
    ids = [tag["id"] for tag in index.find_all(id=True)]
    assert sorted(set(ids)) == sorted(ids)


def test_head(index: BeautifulSoup) -> None:
    content = {
        str(tag.get("name") or tag.get("property")): tag.get("content")
        for tag in index.find_all("meta")
    }
    assert content["description"] == content["og:description"]
    assert content["og:url"] == f"{ADDRESS}/index.html"
    assert content["og:image"] == f"{ADDRESS}/_static/social-card.png"
    assert len(index.select('meta[name="viewport"]')) == 1
    assert index.select_one('link[rel="canonical"]')["href"] == f"{ADDRESS}/index.html"  # type: ignore[index]
    assert index.html["lang"] == "en"  # type: ignore[index]


def test_published(html: Path) -> None:
    sitemap = (html / "sitemap.xml").read_text()
    assert f"<loc>{ADDRESS}/part/chapter.html</loc>" in sitemap
    assert "search.html" not in sitemap
    assert f"Sitemap: {ADDRESS}/sitemap.xml" in (html / "robots.txt").read_text()
    assert f'<base href="{ADDRESS}/"' in (html / "404.html").read_text()


def test_a_button_that_unfolds_pages_says_which() -> None:
    made = navigation.label(
        '<ul><li><a href="a.html">Look up</a><details><summary><span role="presentation">'
        '<i class="x"></i></span></summary><ul><li><a href="b.html">b</a></li></ul></details>'
        "</li></ul>"
    )
    summary = BeautifulSoup(made, "html.parser").summary
    assert summary is not None
    assert summary["aria-label"] == "Pages of: Look up"
    assert not summary.select("[role]")


def test_the_number_of_a_chapter_stands_apart() -> None:
    made = navigation.label(
        '<ul><li><a href="a.html">12. Place 3. here</a></li>'
        '<li><a href="b.html">Run it</a></li></ul>'
    )
    numbered, other = BeautifulSoup(made, "html.parser").find_all("a")
    assert numbered.span is not None
    assert (numbered.span["class"], numbered.span.string) == (["ln-number"], "12.")
    assert numbered.get_text() == "12. Place 3. here"
    assert str(other) == '<a href="b.html">Run it</a>'


def test_the_way_to_the_next_page_has_our_icon(index: BeautifulSoup) -> None:
    """The theme's template uses an icon font that the site doesn't publish."""
    way = index.select_one(".prev-next-area a")
    assert way is not None
    assert way["rel"] == ["next"]
    assert way.select_one("svg.ln-icon")
    assert not way.find("i")


def test_a_color_of_no_palette_fails_the_build(built: Callable[[], SmallBook]) -> None:
    small = built()
    small.index.write_text(small.index.read_text() + "\n![A line in a color.](line.svg)\n")
    (small.book.source / "line.svg").write_text(LINE.replace(COLORS["layer_norm"], "#123456"))
    done = small.run("book")
    assert done.returncode == 1
    assert "#123456" in done.stderr
    assert "palette.toml" in done.stderr


def test_an_image_without_a_text_is_told_once_with_its_line(
    built: Callable[[], SmallBook],
) -> None:
    small = built()
    cell = f"```{{code-cell}}\nfrom IPython.display import SVG\n\nSVG({LINE!r})\n```\n"
    described = "```{figure} line.svg\n:alt: A line that rises from left to right.\n```\n"
    for path, added in ((small.chapter, cell), (small.index, f"{described}\n![Line](line.svg)\n")):
        path.write_text(f"{path.read_text()}\n{added}")
    (small.book.source / "line.svg").write_text(LINE)
    done = small.run("book")
    assert done.returncode == 1
    told = [
        line for line in done.stderr.splitlines() if "alt text of 20 or more characters" in line
    ]
    lines = len(small.chapter.read_text().splitlines()), len(small.index.read_text().splitlines())
    assert len(told) == 2, done.stderr
    assert f"book/part/chapter.md:{lines[0] - 2}: " in told[1]
    assert told[1].endswith("has none")
    assert f"book/index.md:{lines[1]}: " in told[0]
    assert told[0].endswith("has 'Line'")
