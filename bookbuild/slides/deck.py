"""One lecture: its source split into slides, each with its notes and the time it takes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import yaml
from markdown_it.token import Token

from bookbuild.errors import BookError
from bookbuild.site.figure_files import Figure
from bookbuild.slides.markdown import Markdown
from bookbuild.slides.results import Results
from bookbuild.sphinx.math import Renderer

FRONT_MATTER = re.compile(r"\A---\n(.*?)\n---\n", re.DOTALL)
HEADING = re.compile(r"^(.*?)\s*(?:\{\.([\w-]+)\})?$")
KINDS = {
    "question": "Question",
    "exercise": "Exercise",
    "demo": "Live demonstration",
    "remember": "What to remember",
    "title": "",
    "beside": "",  # the text goes to the left of the figure
}
FIELDS = ("title", "description", "contents")


@dataclass(frozen=True)
class Slide:
    """One slide.

    Attributes:
        anchor: its id.
        title: its heading, as HTML.
        words: its heading as plain text.
        kind: one of `KINDS`, or empty.
        body: its content, as HTML.
        notes: what to say, as HTML.
        minutes: how long that takes.
    """

    anchor: str
    title: str
    words: str
    kind: str
    body: str
    notes: str
    minutes: int


@dataclass(frozen=True)
class Deck:
    """The slides of one lecture.

    Attributes:
        name: the name of its file, such as `lecture-1`.
        title: its title.
        description: a sentence for search engines.
        contents: what it covers, in a sentence.
        slides: its slides, in order.
        figures: the figures that they show.
    """

    name: str
    title: str
    description: str
    contents: str
    slides: tuple[Slide, ...]
    figures: tuple[Figure, ...]

    @property
    def minutes(self) -> int:
        """How long the lecture takes."""
        return sum(slide.minutes for slide in self.slides)

    @property
    def number(self) -> int:
        """Its place in the series."""
        return int(self.name.rpartition("-")[2])


def read(
    path: Path,
    results: Results,
    titles: Mapping[str, str],
    site: str,
    formulas: Renderer,
    shown: str,
) -> Deck:
    """Read a lecture, and put the results of the chapters into it.

    Args:
        path: its source.
        results: what the chapters computed.
        titles: the title of each page of the book.
        site: the URL of the site's root, as seen from the slides.
        formulas: renders formulas.
        shown: the path, for messages.

    Raises:
        BookError: if the source is malformed, or names something that doesn't exist.
    """
    text = path.read_text(encoding="utf-8")
    match = FRONT_MATTER.match(text)
    fields = yaml.safe_load(match[1]) if match else {}
    missing = [name for name in FIELDS if not isinstance(fields.get(name), str)]
    if match is None or missing:
        raise BookError(f"{shown}: the front matter lacks {', '.join(missing)}")
    first_line = text[: match.end()].count("\n") + 1
    markdown = Markdown(results, titles, site, formulas, shown)
    blocks = markdown.tokens(text[match.end() :])
    slides = [_slide(part, markdown, first_line) for part in _parts(blocks, markdown)]
    anchors = [slide.anchor for slide in slides]
    markdown.problems += [
        f"{shown}: two slides have the title '{slide.words}'"
        for slide in slides
        if anchors.count(slide.anchor) > 1
    ]
    if markdown.problems:
        raise BookError(*markdown.problems)
    return Deck(
        path.stem,
        fields["title"],
        fields["description"],
        fields["contents"],
        tuple(slides),
        tuple(markdown.figures.values()),
    )


def _parts(blocks: list[Token], markdown: Markdown) -> list[list[Token]]:
    """The blocks of each slide, which starts with a heading of level 1 or 2."""
    parts: list[list[Token]] = []
    for token in blocks:
        if token.type == "heading_open" and token.tag in ("h1", "h2"):
            parts.append([])
        if not parts:
            markdown.note_problem("there is text before the first heading")
            break
        parts[-1].append(token)
    return parts


def _slide(tokens: list[Token], markdown: Markdown, first_line: int) -> Slide:
    opening, heading, _closing, *rest = tokens
    line = first_line + (opening.map[0] if opening.map else 0)
    markdown.at(line)
    found = HEADING.match(heading.content)
    assert found is not None  # every part of the expression can be empty
    words, kind = found[1], found[2] or ("title" if opening.tag == "h1" else "")
    if kind and kind not in KINDS:
        markdown.note_problem(f"expected a slide of kind {', '.join(KINDS)}, but got '{kind}'")
    title = markdown.html(markdown.tokens(words), line).removeprefix("<p>").rstrip()
    body = _body(rest, markdown, first_line)
    markdown.at(line)
    notes, markdown.notes = markdown.notes, []
    if len(notes) != 1 or not notes[0][1].strip():
        markdown.note_problem(f"the slide '{words}' needs exactly one block of notes")
    minutes, said = notes[0] if notes else (0, "")
    anchor = re.sub(r"[^a-z0-9]+", "-", words.lower()).strip("-")
    return Slide(anchor, title.removesuffix("</p>"), words, kind, body, said, minutes)


def _body(tokens: list[Token], markdown: Markdown, first_line: int) -> str:
    """The content of a slide: its figures, and everything between them in separate boxes."""
    parts: list[tuple[bool, str]] = []
    group: list[Token] = []

    def close() -> None:
        if group:
            html = markdown.html(group, first_line)
            parts.extend([(False, html)] if html.strip() else [])
            group.clear()

    for token in tokens:
        if token.type == "fence" and token.info.startswith("{figure}"):
            close()
            parts.append((True, markdown.html([token], first_line)))
        else:
            group.append(token)
    close()
    return "".join(html if plot else f'<div class="text">{html}</div>' for plot, html in parts)


def section(slide: Slide, starts: int, total: int) -> str:
    """A slide as HTML.

    Args:
        slide: the slide.
        starts: the minute of the lecture at which it begins.
        total: how many minutes the lecture takes.
    """
    level = "h1" if slide.kind == "title" else "h2"
    label = KINDS.get(slide.kind, "")
    kicker = f'<p class="kicker">{label}</p>' if label else ""
    names = [*filter(None, [slide.kind]), *([] if "<figure" in slide.body else ["words"])]
    classes = f' class="{" ".join(names)}"' if names else ""
    clock = f"{_minutes(slide.minutes)}, from {starts} to {starts + slide.minutes} of {total}"
    return (
        f'<section id="{slide.anchor}"{classes}>{kicker}<{level}>{slide.title}</{level}>'
        f'<div class="body">{slide.body}</div>'
        f'<aside class="notes"><p class="clock">{clock}</p>{slide.notes}</aside></section>'
    )


def _minutes(number: int) -> str:
    return "1 minute" if number == 1 else f"{number} minutes"
