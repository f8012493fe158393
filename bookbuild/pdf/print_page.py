"""Joins all pages of the built site into one HTML page for printing.

With a single page, links between chapters become links inside the PDF. Ids are prefixed with the
name of their page. Headings are demoted by their page's depth, so that the PDF's bookmarks show
parts, chapters and sections.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from bs4 import BeautifulSoup, Tag
from pygments.formatters import HtmlFormatter
from sphinx_external_toc.parsing import parse_toc_yaml

from bookbuild.book import Book
from bookbuild.errors import BookError

WEB = Path(__file__).parent
# Search pages, which are useless on paper, and the gallery, whose figures the chapters already
# show.
LEFT_OUT = ("genindex", "search", "gallery")
HIGHEST, LOWEST = 1, 6
# Parts for the screen only: navigation, controls, variants of figures, folded code.
REMOVED = (
    ".headerlink",
    ".d-print-none",
    ".ln-scripted-only",
    ".ln-dark",
    ".ln-panels",
    "script",
    "style",
    "button",
    "link",
    "details.hide",
    ".toctree-wrapper",
)
# Attributes that refer to an id on the same page.
NAMES_AN_ID = ("for", "aria-labelledby", "aria-describedby", "headers")


@dataclass(frozen=True)
class Entry:
    """A line in the table of contents."""

    title: str
    anchor: str
    depth: int


@dataclass(frozen=True)
class PrintedBook:
    """The page, and what its PDF must contain."""

    html: str
    entries: tuple[Entry, ...]


@dataclass(frozen=True)
class _Placed:
    """A page of the site, or the start of a part, with its depth in the book."""

    depth: int
    docname: str | None
    part: str | None = None


def printed_book(book: Book, title: str, authors: str, to: Path) -> PrintedBook:
    """Join all pages into one.

    Args:
        book: the book, with its site already built.
        title: its title.
        authors: its authors.
        to: the folder for the page; links to images are relative to it.

    Raises:
        BookError: if a page or an image is missing, or a link leads nowhere.
    """
    plan = [placed for placed in _plan(book) if placed.docname not in LEFT_OUT]
    names = frozenset(placed.docname for placed in plan if placed.docname)
    soup = BeautifulSoup("", "html.parser")
    body = soup.new_tag("main")
    entries: list[Entry] = []
    for number, placed in enumerate(plan):
        if placed.docname is None:
            anchor = f"part-{number}"
            heading = soup.new_tag("h1", id=anchor, attrs={"class": "part"})
            heading.string = placed.part or ""
            body.append(heading)
            entries.append(Entry(placed.part or "", anchor, 0))
            continue
        article = _article(book, placed.docname, names, to)
        _sink(article, placed.depth)
        entries += _entries(article, placed)
        body.append(article)
    problems = list(_dangling(body))
    if problems:
        raise BookError(*problems)
    contents = _contents(entries)
    page = (
        (WEB / "print.html")
        .read_text(encoding="utf-8")
        .format(
            title=title,
            authors=authors,
            styles=_styles(book, to),
            contents=contents,
            body=body,
        )
    )
    return PrintedBook(page, tuple(entries))


def _plan(book: Book) -> Iterator[_Placed]:
    """All pages in order; a captioned part of the table of contents counts as a level."""
    site = parse_toc_yaml(book.toc)
    root = site.root.docname
    yield _Placed(0, root)

    def below(name: str, depth: int) -> Iterator[_Placed]:
        for tree in site[name].subtrees:
            if tree.caption:
                yield _Placed(depth, None, tree.caption)
            for item in tree.items:
                child = str(item).removesuffix(".md")
                deeper = depth + bool(tree.caption)
                yield _Placed(deeper, child)
                yield from below(child, deeper + 1)

    yield from below(root, 0)


def _article(book: Book, docname: str, names: frozenset[str | None], to: Path) -> Tag:
    path = book.html / f"{docname}.html"
    if not path.exists():
        raise BookError(f"{book.show(path)}: the page is missing, so the book cannot be printed")
    soup = BeautifulSoup(path.read_text(encoding="utf-8"), "html.parser")
    article = soup.select_one("article.bd-article") or soup.find("article")
    if not isinstance(article, Tag):
        raise BookError(f"{book.show(path)}: the page has no article to print")
    for tag in article.select(", ".join(REMOVED)):
        tag.decompose()
    for tag in article.find_all("noscript"):
        tag.unwrap()
    _unfold(article)
    slug = _slug(docname)
    for tag in article.find_all(id=True):
        tag["id"] = f"{slug}..{tag['id']}"
    for attribute in NAMES_AN_ID:
        for tag in article.select(f"[{attribute}]"):
            tag[attribute] = " ".join(f"{slug}..{name}" for name in str(tag[attribute]).split())
    for link in article.find_all("a", href=True):
        _redirect(link, docname, names)
    for image in article.find_all("img", src=True):
        _rebase(book, image, path, to)
    article.name = "article"
    article.attrs.clear()
    article["id"], article["class"] = slug, "chapter"
    return article


def _slug(docname: str) -> str:
    return docname.replace("/", "-")


def _unfold(article: Tag) -> None:
    """Open all folds: on paper, a summary becomes a line above its text."""
    for details in article.find_all("details"):
        summary = details.find("summary")
        if isinstance(summary, Tag):
            summary.name = "p"
            summary["class"] = "summary"
        details.name = "div"
        details.attrs.pop("open", None)


def _redirect(link: Tag, docname: str, names: frozenset[str | None]) -> None:
    """Point links to pages at their places in the PDF; turn links to the site's files into text."""
    parts = urlsplit(str(link["href"]))
    if parts.scheme or parts.netloc:
        return
    target = docname
    if parts.path:
        base = posixpath.dirname(docname)
        joined = posixpath.normpath(posixpath.join(base, unquote(parts.path)))
        if not joined.endswith(".html") or joined.removesuffix(".html") not in names:
            link.unwrap()
            return
        target = joined.removesuffix(".html")
    fragment = unquote(parts.fragment)
    link["href"] = f"#{_slug(target)}..{fragment}" if fragment else f"#{_slug(target)}"


def _rebase(book: Book, image: Tag, page: Path, to: Path) -> None:
    source = (page.parent / unquote(urlsplit(str(image["src"])).path)).resolve()
    if not source.is_file():
        raise BookError(f"{book.show(page)}: the image {image['src']} is missing")
    image["src"] = Path(posixpath.relpath(source.as_posix(), to.resolve().as_posix())).as_posix()
    image.attrs.pop("loading", None)  # lazily loaded images would be missing in print


def _sink(article: Tag, depth: int) -> None:
    """Demote a page's headings by its depth; their class keeps the original level."""
    for level in range(LOWEST, HIGHEST - 1, -1):
        for heading in article.find_all(f"h{level}"):
            heading["class"] = f"was-h{level}"
            heading.name = f"h{min(level + depth, LOWEST)}"


def _entries(article: Tag, placed: _Placed) -> Iterator[Entry]:
    title = article.select_one(".was-h1")
    text = " ".join(title.get_text().split()) if title else str(placed.docname)
    yield Entry(text, str(article["id"]), placed.depth)
    if placed.depth > 1:
        return  # for the API reference, bookmarks for its modules are enough
    for heading in article.select(".was-h2"):
        section = heading.find_parent("section", id=True)
        if section is not None:
            text = " ".join(_words(heading).split())
            yield Entry(text, str(section["id"]), placed.depth + 1)


def _words(heading: Tag) -> str:
    """A heading's text, with formulas in their readable form only, not their source."""
    copy = BeautifulSoup(str(heading), "html.parser")
    for tag in copy.select("annotation, .katex-html"):
        tag.decompose()
    return copy.get_text()


def _dangling(body: Tag) -> Iterator[str]:
    anchors = {str(tag["id"]) for tag in body.find_all(id=True)}
    for link in body.find_all("a", href=True):
        href = str(link["href"])
        if href.startswith("#") and href[1:] not in anchors:
            yield f"in the PDF, a link leads nowhere: {href} ({link.get_text()[:40]!r})"


def _contents(entries: list[Entry]) -> Tag:
    soup = BeautifulSoup("", "html.parser")
    listing = soup.new_tag("ul")
    for entry in entries:
        item = soup.new_tag("li", attrs={"class": f"depth-{entry.depth}"})
        link = soup.new_tag("a", href=f"#{entry.anchor}")
        for name, text in (("title", entry.title), ("page", "")):
            span = soup.new_tag("span", attrs={"class": name})
            span.string = text
            link.append(span)
        item.append(link)
        listing.append(item)
    return listing


def _styles(book: Book, to: Path) -> str:
    """The style sheet for print; it differs from the site's but sets formulas the same way."""
    katex = book.source / "_static" / "katex" / "katex.min.css"
    relative = posixpath.relpath(katex.resolve().as_posix(), to.resolve().as_posix())
    code = HtmlFormatter(style="a11y-high-contrast-light").get_style_defs(".highlight")
    formulas = (book.source / "_static" / "formulas.css").read_text(encoding="utf-8")
    own = (WEB / "print.css").read_text(encoding="utf-8")
    styles = "\n".join((code, formulas, own))
    return f'<link rel="stylesheet" href="{relative}">\n<style>\n{styles}\n</style>'
