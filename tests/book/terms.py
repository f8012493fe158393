"""Finds where a page uses glossary terms, and where it links to them.

A page is parsed into MyST tokens, as in the build. Its running prose consists of its paragraphs and
lists, including those inside admonitions and hints. Headings, tables, quotations, formulas, code,
captions and link texts don't count as prose: terms don't have to be linked there, but a link there
counts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache
from typing import NamedTuple

import yaml
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from myst_parser.config.main import MdParserConfig
from myst_parser.parsers.mdit import create_md_parser

from bookbuild.book import Book

NO_TEXT = ("code-cell", "math", "eval-rst", "glossary", "bibliography")  # directives
NO_PROSE = ("list-table",)
SKIPPED = {f"{name}_open": f"{name}_close" for name in ("heading", "table", "blockquote")}
LINK, OTHER = "\ufffc", "\ufffd"  # placeholders for links to terms and for anything but text


class Use(NamedTuple):
    """A place where a page names a term or links to it."""

    term: str
    line: int
    linked: bool


class _Block(NamedTuple):
    """A paragraph, a heading or a table cell, with LINK in place of each link to a term."""

    line: int
    prose: bool
    text: str
    links: list[str]


def glossary(book: Book) -> dict[str, str]:
    """The glossary's terms, in order, each with its definition."""
    text = (book.source / "glossary.md").read_text(encoding="utf-8")
    entries: dict[str, str] = {}
    for token in _parser(book).parse(text):
        if token.type == "fence" and token.info.strip() == "{glossary}":
            for entry in re.split(r"\n(?=\S)", token.content.strip("\n")):
                term, _, definition = entry.partition("\n")
                entries[term] = " ".join(definition.split())
    return entries


def uses(book: Book, text: str, terms: Iterable[str]) -> tuple[Use, ...]:
    """Where a page's running prose names a term, and where it links to one, in order."""
    return _uses(book, text, tuple(terms))


@cache  # several tests look at the uses in every chapter
def _uses(book: Book, text: str, terms: tuple[str, ...]) -> tuple[Use, ...]:
    return tuple(_found(book, text, terms))


def _found(book: Book, text: str, terms: Iterable[str]) -> Iterator[Use]:
    known = {term.casefold(): term for term in terms}
    pattern = _pattern(known.values())
    for block in _blocks(_parser(book), text, 1):
        targets = iter(block.links)
        for found in pattern.finditer(block.text):
            line = block.line + block.text.count("\n", 0, found.start())
            if found[0] == LINK:
                target = " ".join(next(targets).split())
                yield Use(known.get(target.casefold(), target), line, linked=True)
            elif block.prose:
                yield Use(_term(found), line, linked=False)


def unlinked(book: Book, text: str, terms: Iterable[str]) -> list[Use]:
    """The first mention of each term that a page uses before linking it."""
    first: dict[str, Use] = {}
    for use in uses(book, text, terms):
        first.setdefault(use.term, use)
    return [use for use in first.values() if not use.linked]


def _parser(book: Book) -> MarkdownIt:
    config = yaml.safe_load(book.config.read_text(encoding="utf-8"))
    extensions = set(config["parse"]["myst_enable_extensions"])
    return create_md_parser(MdParserConfig(enable_extensions=extensions), RendererHTML)


def _blocks(parser: MarkdownIt, text: str, first: int, *, prose: bool = True) -> Iterator[_Block]:
    """The blocks in a text that starts at line `first`, including those in directives."""
    until = ""
    for token in parser.parse(text):
        line = first + (token.map[0] if token.map else 0)
        if not until:
            until = SKIPPED.get(token.type, "")
        elif token.type == until:
            until = ""
        directive = re.match(r"\{([\w:-]+)\}", token.info.strip())
        if token.type == "inline":
            yield _Block(line, prose and not until, *_flat(token.children or []))
        elif token.type in ("fence", "colon_fence") and directive and directive[1] not in NO_TEXT:
            inner = re.sub(r"\A(:[\w-]+:.*\n)+", lambda m: "\n" * m[0].count("\n"), token.content)
            yield from _blocks(
                parser, inner, line + 1, prose=prose and not until and directive[1] not in NO_PROSE
            )


def _flat(tokens: Iterable[Token]) -> tuple[str, list[str]]:
    """The text of inline tokens, and the terms they link to."""
    parts, links, inside = [], [], 0
    for token in tokens:
        inside += token.nesting if token.type in ("link_open", "link_close") else 0
        if token.type == "myst_role" and token.meta["name"] == "term":
            links.append(re.sub(r"^.*<(.*)>$", r"\1", token.content, flags=re.DOTALL))
            parts.append(LINK)
        elif token.type in ("softbreak", "hardbreak"):
            parts.append("\n")
        elif token.type == "text" and not inside:
            parts.append(token.content)
        elif not token.nesting:
            parts.append(OTHER)
    return "".join(parts), links


def _pattern(terms: Iterable[str]) -> re.Pattern[str]:
    """A pattern for a link or a term; where several terms match, the longest one wins.

    The matching group is named after the term, in hexadecimal digits.
    """
    ordered = sorted(terms, key=len, reverse=True)
    groups = [f"(?P<t{term.encode().hex()}>{'|'.join(_forms(term))})" for term in ordered]
    return re.compile(rf"{LINK}|(?<![\w-])(?:{'|'.join(groups)})(?![\w-])")


def _term(found: re.Match[str]) -> str:
    return bytes.fromhex((found.lastgroup or "")[1:]).decode()


def _forms(term: str) -> Iterator[str]:
    """Patterns for a term's singular and plural; the first letter may be capitalized."""
    if term.endswith("ix"):
        plural = f"{term[:-2]}ices"
    elif re.search("[^aeiou]y$", term):
        plural = f"{term[:-1]}ies"
    else:
        plural = term + ("es" if re.search("(s|x|z|ch|sh)$", term) else "s")
    singular = re.sub("([^s])s$", r"\1", term)
    for form in sorted({term, plural, singular}, key=len, reverse=True):
        start = f"[{form[0]}{form[0].upper()}]" if form[0].islower() else re.escape(form[0])
        yield start + re.escape(form[1:]).replace(r"\ ", r"\s+")
