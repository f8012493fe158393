"""Checks built pages for anything readers shouldn't see."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from bs4 import BeautifulSoup, Tag

from bookbuild.parallel import map_all

FAULTS = {
    ".problematic": "an unresolved reference",
    ".system-message": "a message from the parser",
    ".katex-error": "a formula with an error",
    ".cell_output .stderr": "text on stderr",
    ".cell_output .traceback": "a traceback",
    "div.dropdown": "a folded box without a title to click",
}
NAME = re.compile(r"[\w-]+")
RAW_ROLE = re.compile(r"\{[a-z][a-z:]*\}`")
LOADS = {"img": "src", "script": "src", "link": "href", "iframe": "src", "source": "src"}
# Results found by a different version of these checks are discarded.
CHECKS = hashlib.sha256(Path(__file__).read_bytes()).hexdigest()
SHORTEST_DESCRIPTION, LONGEST_DESCRIPTION = 50, 160  # what search engines and shared links show


@dataclass(frozen=True)
class Page:
    """What the checks need to know about a page; recomputed only when the page changes.

    Attributes:
        faults: what is wrong with it, regardless of the other pages.
        description: the description that search engines show.
        targets: its links inside the site, as written.
        anchors: the ids in it that links can point to.
    """

    faults: list[str]
    description: str
    targets: list[str]
    anchors: list[str]


class Pages:
    """A site's pages, each re-examined only when it changes.

    Args:
        paths: the pages.
        memory: a file with the results of earlier checks, if there is one.
    """

    def __init__(self, paths: Sequence[Path], memory: Path | None = None) -> None:
        self._memory = memory
        earlier: dict[str, dict[str, Any]] = {}
        if memory and memory.exists():
            earlier = json.loads(memory.read_text(encoding="utf-8"))
        texts = {path.resolve(): path.read_text(encoding="utf-8") for path in paths}
        self._keys = {
            path: hashlib.sha256(f"{CHECKS}\n{text}".encode()).hexdigest()
            for path, text in texts.items()
        }
        self._found = {key: Page(**earlier[key]) for key in self._keys.values() if key in earlier}
        new = {key: texts[path] for path, key in self._keys.items() if key not in self._found}
        self._found |= dict(zip(new, map_all(_look_at, [*new.values()]), strict=True))

    def __getitem__(self, path: Path) -> Page:
        return self._found[self._keys[path.resolve()]]

    def remember(self) -> None:
        """Save the results for the pages that were used."""
        if self._memory:
            found = {key: asdict(page) for key, page in self._found.items()}
            self._memory.write_text(json.dumps(found), encoding="utf-8")


def problems_of(html: Path, memory: Path | None = None) -> list[str]:
    """Every fault on every page, one per line; pages already in `memory` aren't read again."""
    paths = sorted(
        path for path in html.rglob("*.html") if path.relative_to(html).parts[0][0] != "_"
    )
    if not paths:
        return [f"{html}: contains no pages"]
    pages = Pages(paths, memory)
    found = [
        f"{path.relative_to(html).as_posix()}: {problem}"
        for path in paths
        for problem in [*pages[path].faults, *_broken_links(path, pages)]
    ]
    found += _same_descriptions(html, paths, pages)
    pages.remember()
    return found


def _look_at(text: str) -> Page:
    soup = BeautifulSoup(text, "lxml")
    faults = list(_shown(soup, text))
    faults += [*_raw_text(soup), *_head(soup), *_loads(soup)]
    return Page(faults, _description(soup), list(_targets(soup)), sorted(_anchors(soup)))


def _shown(soup: BeautifulSoup, text: str) -> Iterator[str]:
    for selector, what in FAULTS.items():
        if not all(name in text for name in NAME.findall(selector)):
            continue  # searching a whole page is slow
        for tag in soup.select(selector):
            yield f"shows {what}: {' '.join(tag.get_text().split())[:120]}"


def _raw_text(soup: BeautifulSoup) -> Iterator[str]:
    article = soup.find("article") or soup
    for text in article.find_all(string=RAW_ROLE):
        if not text.find_parent(["code", "pre", "script"]):
            yield f"shows an unprocessed role: {str(text).strip()[:120]}"


def _description(soup: BeautifulSoup) -> str:
    tag = soup.find("meta", attrs={"name": "description"})
    return str(tag.get("content") or "") if isinstance(tag, Tag) else ""


def _head(soup: BeautifulSoup) -> Iterator[str]:
    length = len(_description(soup))
    if not SHORTEST_DESCRIPTION <= length <= LONGEST_DESCRIPTION:
        yield (
            f"has a description of {length} characters; expected {SHORTEST_DESCRIPTION} to "
            f"{LONGEST_DESCRIPTION}: see html_meta in the front matter"
        )
    if not (soup.title and soup.title.get_text().strip()):
        yield "has no title"


def _same_descriptions(html: Path, paths: list[Path], pages: Pages) -> Iterator[str]:
    first: dict[str, Path] = {}
    for path in paths:
        description = pages[path].description
        if description and first.setdefault(description, path) != path:
            other = first[description].relative_to(html).as_posix()
            yield f"{path.relative_to(html).as_posix()}: has the same description as {other}"


def _addresses(soup: BeautifulSoup) -> Iterator[tuple[Tag, str]]:
    for tag in soup.find_all([*LOADS, "a"]):
        target = tag.get("href" if tag.name == "a" else LOADS[tag.name])
        if isinstance(target, str) and target:
            yield tag, target


def _loads(soup: BeautifulSoup) -> Iterator[str]:
    for tag, target in _addresses(soup):
        if tag.name != "a" and _is_outside(target) and not _names_only(tag):
            yield f"loads from another host: {target}"


def _targets(soup: BeautifulSoup) -> Iterator[str]:
    for _, target in _addresses(soup):
        if not _is_outside(target) and not urlsplit(target).scheme:
            yield target


def _is_outside(target: str) -> bool:
    parts = urlsplit(target)
    return parts.scheme in ("http", "https") or bool(parts.netloc)


def _names_only(tag: Tag) -> bool:
    """Whether a link element only names a URL and loads nothing from it."""
    return tag.name == "link" and "canonical" in (tag.get("rel") or [])


def _anchors(soup: BeautifulSoup) -> set[str]:
    return {str(tag["id"]) for tag in soup.find_all(id=True)} | {
        str(tag["name"]) for tag in soup.find_all("a", attrs={"name": True})
    }


def _broken_links(path: Path, pages: Pages) -> Iterator[str]:
    for target in pages[path].targets:
        parts = urlsplit(target)
        file = (path.parent / unquote(parts.path)).resolve() if parts.path else path
        if file.is_dir():
            file = file / "index.html"
        if not file.exists():
            yield f"links to a file that does not exist: {target}"
        elif file.suffix == ".html" and not _is_there(unquote(parts.fragment), pages[file]):
            yield f"links to an id that does not exist: {target}"


def _is_there(fragment: str, page: Page) -> bool:
    return not fragment or fragment.startswith(":~:") or fragment in page.anchors
