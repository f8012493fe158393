"""Looks at built pages for what no reader should see."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from urllib.parse import unquote, urlsplit

from bs4 import BeautifulSoup, Tag

MADE_BY_SPHINX = ("genindex.html", "search.html")
FAULTS = {
    ".problematic": "an unresolved reference",
    ".system-message": "a message of the parser",
    ".katex-error": "a formula that cannot be read",
    ".cell_output .stderr": "text on stderr",
    ".cell_output .traceback": "a traceback",
    "div.dropdown": "a box that is to be folded, but has no title to unfold it by",
}
RAW_ROLE = re.compile(r"\{[a-z][a-z:]*\}`")
FILE_NAME = re.compile(r"^\S*\.\w{2,4}$")
LOADS = {"img": "src", "script": "src", "link": "href", "iframe": "src", "source": "src"}
SHORTEST_ALT = 20
SHORTEST_DESCRIPTION, LONGEST_DESCRIPTION = 50, 160  # what search engines and shared links show


def problems_of(html: Path) -> list[str]:
    """Every fault of every page, a line each."""
    pages = sorted(
        path for path in html.rglob("*.html") if path.relative_to(html).parts[0][0] != "_"
    )
    if not pages:
        return [f"{html}: there is no page"]
    found = [
        f"{path.relative_to(html).as_posix()}: {problem}"
        for path in pages
        for problem in _page(html, path)
    ]
    return found + list(_same_descriptions(html, pages))


@cache
def _read(path: Path, _changed: int) -> BeautifulSoup:
    return BeautifulSoup(path.read_text(encoding="utf-8"), "html.parser")


def _soup(path: Path) -> BeautifulSoup:
    return _read(path, path.stat().st_mtime_ns)


def _page(html: Path, path: Path) -> Iterator[str]:
    soup = _soup(path)
    for selector, what in FAULTS.items():
        for tag in soup.select(selector):
            yield f"shows {what}: {' '.join(tag.get_text().split())[:120]}"
    yield from _raw_text(soup)
    yield from _head(soup)
    yield from _links(html, path, soup)
    if path.name not in MADE_BY_SPHINX:
        yield from _alternatives(soup)


def _raw_text(soup: BeautifulSoup) -> Iterator[str]:
    article = soup.find("article") or soup
    for text in article.find_all(string=RAW_ROLE):
        if not text.find_parent(["code", "pre", "script"]):
            yield f"shows a role that was not read: {str(text).strip()[:120]}"


def _description(soup: BeautifulSoup) -> str:
    tag = soup.find("meta", attrs={"name": "description"})
    return str(tag.get("content") or "") if isinstance(tag, Tag) else ""


def _head(soup: BeautifulSoup) -> Iterator[str]:
    length = len(_description(soup))
    if not SHORTEST_DESCRIPTION <= length <= LONGEST_DESCRIPTION:
        yield (
            f"has a description of {length} letters, not {SHORTEST_DESCRIPTION} to "
            f"{LONGEST_DESCRIPTION}: see html_meta in the front matter"
        )
    if not (soup.title and soup.title.get_text().strip()):
        yield "has no title"


def _same_descriptions(html: Path, pages: list[Path]) -> Iterator[str]:
    first: dict[str, Path] = {}
    for path in pages:
        description = _description(_soup(path))
        if description and first.setdefault(description, path) != path:
            other = first[description].relative_to(html).as_posix()
            yield f"{path.relative_to(html).as_posix()}: has the same description as {other}"


def _alternatives(soup: BeautifulSoup) -> Iterator[str]:
    for image in soup.select("article img"):
        alt = str(image.get("alt") or "").strip()
        if len(alt) < SHORTEST_ALT or FILE_NAME.match(alt):
            yield f"has an image without a text that tells what it shows: {image.get('src')}"


def _links(html: Path, path: Path, soup: BeautifulSoup) -> Iterator[str]:
    for tag in soup.find_all([*LOADS, "a"]):
        target = tag.get("href" if tag.name == "a" else LOADS[tag.name])
        if not isinstance(target, str) or not target:
            continue
        parts = urlsplit(target)
        if parts.scheme in ("http", "https") or parts.netloc:
            if tag.name != "a" and not _names_only(tag):
                yield f"loads from another host: {target}"
        elif not parts.scheme:
            yield from _internal(html, path, target)


def _names_only(tag: Tag) -> bool:
    """Whether a link element only names an address and loads nothing from it."""
    return tag.name == "link" and "canonical" in (tag.get("rel") or [])


def _internal(html: Path, path: Path, target: str) -> Iterator[str]:
    parts = urlsplit(target)
    file = (path.parent / unquote(parts.path)).resolve() if parts.path else path
    if file.is_dir():
        file = file / "index.html"
    if not file.exists():
        yield f"links to a file that does not exist: {target}"
    elif parts.fragment and file.suffix == ".html" and not parts.fragment.startswith(":~:"):
        name = unquote(parts.fragment)
        if name not in _anchors(file, file.stat().st_mtime_ns):
            yield f"links to a place that does not exist: {target}"


@cache
def _anchors(path: Path, _changed: int) -> frozenset[str]:
    soup = _soup(path)
    return frozenset(str(tag["id"]) for tag in soup.find_all(id=True)) | frozenset(
        str(tag["name"]) for tag in soup.find_all("a", attrs={"name": True})
    )
