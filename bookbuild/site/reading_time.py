"""How long a page takes a beginner, computed from its source with the same rule for all pages."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import yaml
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from myst_parser.config.main import MdParserConfig
from myst_parser.parsers.mdit import create_md_parser
from nbformat import NotebookNode

from bookbuild.book import Book

# The rule. Prose with symbols is slower to read than a story, and a beginner works through code
# line by line. book/running.md gives the rule in words.
WORDS_PER_MINUTE = 180
SECONDS = {"line of code": 12, "formula": 2, "equation": 15, "figure": 25}
MINUTES_PER_EXERCISE = 7
ROUND = 5

# Tags of cells with hidden code, and of cells with hidden output.
HIDDEN = {"hide-input", "hide-cell", "remove-input", "remove-cell"}
NO_OUTPUT = {"hide-output", "hide-cell", "remove-output", "remove-cell"}
# These don't count as reading: folded parts, and exercises, whose time is counted separately.
UNTIL = {
    "exercise-start": "exercise-end",
    "solution-start": "solution-end",
    "deeper-start": "deeper-end",
}
FIGURES = ("figure", "image", "playground")
CODE = ("code", "code-block", "literalinclude")
NO_TEXT = ("bibliography", "eval-rst", "exercise", "glossary", "solution")
OPTIONS = re.compile(r"\A(?:[ \t]*:[\w-]+:[^\n]*\n)+|\A---\n.*?\n---\n", re.DOTALL)


@dataclass(frozen=True)
class ReadingTime:
    """How long a page takes.

    Attributes:
        minutes: the time to read it, not counting its exercises.
        exercises: how many there are.
    """

    minutes: float
    exercises: int

    @property
    def reading(self) -> int:
        """The reading time that readers see, in minutes: rounded to five, and never 0."""
        return rounded(self.minutes)

    @property
    def solving(self) -> int:
        """The minutes to solve its exercises."""
        return rounded(self.exercises * MINUTES_PER_EXERCISE) if self.exercises else 0


def rounded(minutes: float) -> int:
    """Minutes, rounded to five, and never 0."""
    return max(ROUND, ROUND * round(minutes / ROUND))


def in_words(minutes: int) -> str:
    """Minutes as people write them: 55 minutes, 5 h 40 min."""
    if minutes < 2 * 60:
        return f"{minutes} minutes"
    hours, rest = divmod(minutes, 60)
    return f"{hours} h {rest} min" if rest else f"{hours} hours"


def reading_time(book: Book, name: str) -> ReadingTime:
    """Apply the rule to a page of the book, whether or not it's a chapter."""
    for chapter in book.chapters:
        if chapter.name == name:
            return time_of(parser_for(book.config), chapter.notebook.cells)
    text = (book.source / f"{name}.md").read_text(encoding="utf-8")
    page = NotebookNode(cell_type="markdown", source=text)
    return time_of(parser_for(book.config), [page])


def time_of(parser: MarkdownIt, cells: Iterable[NotebookNode]) -> ReadingTime:
    """Apply the rule to cells of Markdown and code, leaving out folded and hidden parts."""
    counts = dict.fromkeys([*SECONDS, "word", "exercise"], 0)
    until = ""  # the directive at which reading resumes
    for cell in cells:
        if cell.cell_type == "code":
            found: Iterable[tuple[str, int]] = () if until else _in_code(cell)
        else:
            events = list(_in_text(parser, cell.source))
            found = []
            for what, amount in events:
                if until:
                    until = "" if what == until else until
                elif what in UNTIL:
                    until = UNTIL[what]
                elif what in counts:
                    found.append((what, amount))
        for what, amount in found:
            counts[what] += amount
    seconds = sum(each * counts[what] for what, each in SECONDS.items())
    return ReadingTime(counts["word"] / WORDS_PER_MINUTE + seconds / 60, counts["exercise"])


@cache
def parser_for(config: Path) -> MarkdownIt:
    """A Markdown parser configured like the build's."""
    settings = yaml.safe_load(config.read_text(encoding="utf-8"))
    extensions = set(settings["parse"]["myst_enable_extensions"])
    return create_md_parser(MdParserConfig(enable_extensions=extensions), RendererHTML)


def _in_code(cell: NotebookNode) -> Iterator[tuple[str, int]]:
    tags = set(cell.metadata.get("tags", ()))
    if not tags & HIDDEN:
        yield "line of code", _lines(cell.source)
    if "image" in cell.metadata.get("mystnb", {}) and not tags & NO_OUTPUT:
        yield "figure", 1


def _lines(code: str) -> int:
    return sum(bool(line.strip()) for line in code.splitlines())


def _in_text(parser: MarkdownIt, text: str) -> Iterator[tuple[str, int]]:
    """The parts of a page in reading order, with the starts and ends of folds."""
    for token in parser.parse(text):
        if token.type == "inline":
            yield from _in_line(token.children or [])
        elif token.type in ("math_block", "math_block_label", "amsmath"):
            yield "equation", 1
        elif token.type in ("fence", "colon_fence", "code_block"):
            directive = re.match(r"\{([\w:-]+)\}(.*)", token.info.strip())
            if directive:
                yield from _in_directive(parser, directive[1], directive[2], token.content)
            else:
                yield "line of code", _lines(token.content)


def _in_directive(
    parser: MarkdownIt, name: str, title: str, content: str
) -> Iterator[tuple[str, int]]:
    options = OPTIONS.match(content)
    body = content[options.end() :] if options else content
    if name in ("exercise", "exercise-start"):
        yield "exercise", 1
    if name in UNTIL or name in UNTIL.values():
        yield name, 1
    elif name == "math":
        yield "equation", 1
    elif name in CODE:
        yield "line of code", _lines(body)
    elif name not in NO_TEXT and not (options and "dropdown" in options[0]):
        if name in FIGURES:
            yield "figure", 1
        else:
            yield from _in_text(parser, title)
        yield from _in_text(parser, body)


def _in_line(tokens: Iterable[Token]) -> Iterator[tuple[str, int]]:
    """Words and formulas; a role counts as the text it shows, insofar as that's in its source."""
    shown = ""
    for token in tokens:
        if token.type.startswith("math"):
            yield "formula", 1
        elif token.type == "image":
            yield "figure", 1
        elif token.type in ("softbreak", "hardbreak"):
            shown += "\n"
        elif token.type == "myst_role":
            shown += re.sub(r"\s*<[^<>]*>\Z", "", token.content)
        elif token.type in ("text", "code_inline"):
            shown += token.content
    yield "word", len(shown.split())
