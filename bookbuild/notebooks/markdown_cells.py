"""Writes a resolved page as plain Markdown and numbered code cells, for Jupyter without MyST.

The doctree contains what the source only refers to: figure and equation numbers, pasted results,
link titles. A node that this writer doesn't know stops the build, so nothing is lost silently.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from docutils import nodes
from sphinx.environment import BuildEnvironment

SPECIAL = str.maketrans({letter: f"\\{letter}" for letter in "\\`*_[]<>$|~"})
HEADING_DEPTH = 6
# Parts of a page that don't belong in a notebook.
SILENT = ("comment", "target", "meta", "index", "toctree", "substitution_definition", "Placeholder")

Link = Callable[[str], str | None]


@dataclass(frozen=True)
class CodeCell:
    """A placeholder for one of the chapter's code cells, with its number in the notebook."""

    index: int


@dataclass(frozen=True)
class Heading:
    """A heading, which starts a new cell. A folded one hides everything up to the next heading."""

    level: int
    text: str
    folded: bool = False

    def __str__(self) -> str:
        return f"{'#' * min(self.level, HEADING_DEPTH)} {self.text}"


Block = str | Heading | CodeCell


class UnknownNodeError(Exception):
    """A page contains something that can't be written in Markdown yet."""


@dataclass
class PageWriter:
    """Writes one page.

    Args:
        env: has the numbers of sections, figures, tables, equations and exercises.
        docname: the page.
        link: turns a URL on the site into one for the notebook; None means plain text.
    """

    env: BuildEnvironment
    docname: str
    link: Link
    sources: dict[str, None] = field(default_factory=dict)
    _level: int = 0
    _one_line: bool = False
    _in_table: bool = False

    def blocks(self, node: nodes.Node) -> Iterator[Block]:
        """A node's blocks, from top to bottom."""
        name = type(node).__name__
        if name in SILENT:
            return
        write = getattr(self, f"_block_{name}", None)
        if write is None:
            raise UnknownNodeError(f"notebooks can't show '{name}' yet")
        yield from write(node)

    def inline(self, children: Iterable[nodes.Node]) -> str:
        """Markdown for inline nodes."""
        return "".join(self._inline(child) for child in children)

    # -- Sections and cells ------------------------------------------------------------------

    def _children(self, node: nodes.Element) -> Iterator[Block]:
        for child in node.children:
            yield from self.blocks(child)

    def _text(self, children: Iterable[nodes.Node]) -> str:
        """Blocks that must stay in one cell because they're in a list, a table or a fold."""
        found: list[str] = []
        outer, self._one_line = self._one_line, True
        for child in children:
            for block in self.blocks(child):
                if isinstance(block, CodeCell):
                    raise UnknownNodeError(
                        f"code cell {block.index} is inside a list, a table "
                        "or a fold, which notebooks do not support"
                    )
                found.append(str(block))
        self._one_line = outer
        return "\n\n".join(found)

    _block_document = _children

    def _block_section(self, node: nodes.Element) -> Iterator[Block]:
        self._level += 1
        yield from self._children(node)
        self._level -= 1

    def _block_title(self, node: nodes.Element) -> Iterator[Block]:
        section = node.parent
        numbers = self.env.toc_secnumbers.get(self.docname, {})
        anchor = "" if self._level == 1 else f"#{section['ids'][0]}"
        number = ".".join(map(str, numbers.get(anchor) or ()))
        text = self.inline(node.children)
        yield Heading(self._level, f"{number}. {text}" if number else text)

    def _block_container(self, node: nodes.Element) -> Iterator[Block]:
        if node.get("nb_element") != "cell_code":
            yield from self._children(node)
            return
        yield CodeCell(int(node["cell_index"]))
        for figure in node.findall(nodes.figure):
            yield from self._figure_text(figure)

    def _block_figure(self, node: nodes.Element) -> Iterator[Block]:
        """A figure that isn't an output: its image, then its caption."""
        for child in node.children:
            if not isinstance(child, nodes.caption):
                yield from self.blocks(child)
        yield from self._figure_text(node)

    def _block_PlaygroundDrawing(self, node: nodes.Element) -> Iterator[Block]:  # noqa: N802
        """The initial state of an interactive figure, as an inline image."""
        data = base64.b64encode(node["picture"].encode("utf-8")).decode("ascii")
        yield f"![{node['alt'].translate(SPECIAL)}](data:image/svg+xml;base64,{data})"

    def _figure_text(self, figure: nodes.Element) -> Iterator[Block]:
        """The caption and, folded, the figure's description; the image itself is an output."""
        caption = next(iter(figure.findall(nodes.caption)), None)
        if caption is not None:
            yield f"**{self._number(figure, 'figure')}.** {self.inline(caption.children)}"
        for image in figure.findall(nodes.image):
            if image.get("alt"):
                alt = image["alt"].translate(SPECIAL)
                yield _fold("The figure in words", alt)

    # -- Paragraphs, lists, tables -----------------------------------------------------------

    def _block_paragraph(self, node: nodes.Element) -> Iterator[Block]:
        text = self.inline(node.children).strip()
        if text:
            yield _no_list(text)

    def _block_block_quote(self, node: nodes.Element) -> Iterator[Block]:
        yield _quote(self._text(node.children))

    def _block_bullet_list(self, node: nodes.Element) -> Iterator[Block]:
        yield "\n".join(_item("- ", self._text(item.children)) for item in node.children)

    def _block_enumerated_list(self, node: nodes.Element) -> Iterator[Block]:
        start = int(node.get("start", 1))
        yield "\n".join(
            _item(f"{number}. ", self._text(item.children))
            for number, item in enumerate(node.children, start)
        )

    def _block_definition_list(self, node: nodes.Element) -> Iterator[Block]:
        for item in node.children:
            term, *rest = item.children
            yield f"**{self.inline(term.children)}**"
            for definition in rest:
                yield from self._children(definition)

    def _block_transition(self, _node: nodes.Element) -> Iterator[Block]:
        yield "---"

    def _block_literal_block(self, node: nodes.Element) -> Iterator[Block]:
        fence = _fence(node.astext(), 3)
        language = node.get("language", "")
        language = "" if language in ("default", "none", "myst-ansi") else language
        yield f"{fence}{language}\n{node.astext()}\n{fence}"

    def _block_table(self, node: nodes.Element) -> Iterator[Block]:
        title = next(iter(node.findall(nodes.title)), None)
        if title is not None:
            yield f"**{self._number(node, 'table')}.** {self.inline(title.children)}"
        group = next(iter(node.findall(nodes.tgroup)))
        heads = [row for head in group.findall(nodes.thead) for row in head.children]
        rows = [row for body in group.findall(nodes.tbody) for row in body.children]
        columns = len(list(group.findall(nodes.colspec)))
        header = self._row(heads[0]) if heads else [""] * columns
        lines = [header, ["---"] * columns, *map(self._row, [*heads[1:], *rows])]
        yield "\n".join(f"| {' | '.join(line)} |" for line in lines)

    def _row(self, row: nodes.Element) -> list[str]:
        cells = []
        for entry in row.children:
            if entry.get("morecols") or entry.get("morerows"):
                raise UnknownNodeError("a table has merged cells")
            self._in_table = True
            text = self._text(entry.children)
            self._in_table = False
            cells.append(" ".join(text.replace("\n\n", "<br>").split()))
        return cells

    # -- Formulas ----------------------------------------------------------------------------

    def _block_math_block(self, node: nodes.Element) -> Iterator[Block]:
        lines = [line.strip() for line in node.astext().splitlines() if line.strip()]
        number = self._number(node, "displaymath", name=False) if node.get("label") else ""
        if number:
            lines.append(rf"\tag{{{number}}}")
        # In a list or a quote, a formula on several lines would swallow the markers.
        joint = " " if self._one_line else "\n"
        yield joint.join(["$$", *lines, "$$"])

    # -- Boxes and exercises -----------------------------------------------------------------

    def _block_admonition(self, node: nodes.Element) -> Iterator[Block]:
        name = type(node).__name__.capitalize()
        children = list(node.children)
        if children and isinstance(children[0], nodes.title):
            name = self.inline(children.pop(0).children)
        if "ln-deeper" in node.get("classes", ()):
            # Not folded: in a notebook, that would also hide the rest of the section.
            yield Heading(self._level + 1, name)
            for child in children:
                yield from self.blocks(child)
            yield "---"
        elif "dropdown" in node.get("classes", ()):
            yield _fold(name, self._text(children))
        else:
            yield _quote(f"**{name}**\n\n{self._text(children)}")

    _block_hint = _block_note = _block_tip = _block_warning = _block_admonition
    _block_important = _block_caution = _block_seealso = _block_admonition

    def _block_exercise_enumerable_node(self, node: nodes.Element) -> Iterator[Block]:
        title, *content = node.children
        text = f"{self._number(node, 'exercise')}{self.inline(title.children)}"
        yield Heading(self._level + 1, text)
        for part in content:
            yield from self._content(part)

    def _block_solution_node(self, node: nodes.Element) -> Iterator[Block]:
        """A solution as folded text, or under a folded heading if it has code cells."""
        title, *content = node.children
        target = self.inline(title.children[1:]) or self.inline(title.children)
        label = f"Solution to {target.strip()}"
        inside = [block for part in content for block in self._content(part)]
        if any(isinstance(block, CodeCell) for block in inside):
            yield Heading(self._level + 2, label, folded=True)
            yield from inside
        else:
            yield _fold(label, "\n\n".join(map(str, inside)))

    def _content(self, node: nodes.Node) -> Iterator[Block]:
        # sphinx-exercise wraps the content of an exercise in a section without a title.
        if isinstance(node, nodes.section):
            yield from self._children(node)
        else:
            yield from self.blocks(node)

    def _number(self, node: nodes.Element, kind: str, *, name: bool = True) -> str:
        label = f"equation-{node['label']}" if kind == "displaymath" else node["ids"][0]
        numbers = self.env.toc_fignumbers.get(self.docname, {}).get(kind, {})
        number = ".".join(map(str, numbers.get(label, ())))
        if not name:
            return number
        words: dict[str, str] = self.env.config.numfig_format
        return (words.get(kind, f"{kind.capitalize()} %s") % number).strip()

    # -- Inline nodes ------------------------------------------------------------------------

    def _inline(self, node: nodes.Node) -> str:
        if isinstance(node, nodes.Text):
            return str(node).translate(SPECIAL)
        name = type(node).__name__
        if name in SILENT:
            return ""
        write = getattr(self, f"_inline_{name}", None)
        if write is None:
            raise UnknownNodeError(f"notebooks can't show '{name}' yet")
        return str(write(node))

    def _inline_inline(self, node: nodes.Element) -> str:
        return self.inline(node.children)

    _inline_container = _inline_inline

    def _inline_emphasis(self, node: nodes.Element) -> str:
        return f"*{self.inline(node.children)}*"

    def _inline_strong(self, node: nodes.Element) -> str:
        return f"**{self.inline(node.children)}**"

    def _inline_literal(self, node: nodes.Element) -> str:
        text = node.astext()
        fence = _fence(text)
        space = " " if text.startswith("`") or text.endswith("`") else ""
        if self._in_table:
            text = text.replace("|", r"\|")
        return f"{fence}{space}{text}{space}{fence}"

    def _inline_math(self, node: nodes.Element) -> str:
        formula = " ".join(node.astext().split())
        return f"${_no_bars(formula) if self._in_table else formula}$"

    def _inline_reference(self, node: nodes.Element) -> str:
        text = self.inline(node.children)
        if node.get("reftitle") and "bibliography" in node.get("refuri", ""):
            self.sources[node["reftitle"]] = None
        target = node.get("refuri") or f"#{node.get('refid', '')}"
        address = target if node.get("internal") is not True else self.link(target)
        return f"[{text}]({address})" if address else text

    _inline_number_reference = _inline_reference


def with_sources(writer: PageWriter, blocks: Iterable[Block]) -> Iterator[Block]:
    """A page's blocks, then a list of the works it cites."""
    yield from blocks
    if writer.sources:
        yield Heading(2, "Works cited")
        yield "\n".join(f"- {_plain(text)}" for text in sorted(writer.sources))


def cells(blocks: Iterable[Block]) -> Iterator[tuple[str, bool] | CodeCell]:
    """Blocks grouped into cells: text and whether it's folded, or a code cell."""
    texts: list[str] = []
    folded = False

    def flush() -> Iterator[tuple[str, bool]]:
        nonlocal folded
        if texts:
            yield "\n\n".join(texts), folded
        texts.clear()
        folded = False

    for block in blocks:
        if isinstance(block, CodeCell):
            yield from flush()
            yield block
            continue
        if isinstance(block, Heading):
            yield from flush()
        texts.append(str(block))
        if isinstance(block, Heading) and block.folded:
            # A folded heading hides the cells below it, so it needs its own cell.
            folded = True
            yield from flush()
    yield from flush()


def _fold(summary: str, text: str) -> str:
    return f"<details>\n<summary>{summary}</summary>\n\n{text}\n\n</details>"


def _quote(text: str) -> str:
    return "\n".join(f"> {line}".rstrip() for line in text.splitlines())


def _item(mark: str, text: str) -> str:
    lines = text.splitlines() or [""]
    indent = " " * len(mark)
    return "\n".join([mark + lines[0], *(f"{indent}{line}".rstrip() for line in lines[1:])])


def _no_list(text: str) -> str:
    """Escape lines that Markdown would take for a list or a heading."""
    return "\n".join(
        f"\\{line}" if line[:2] in ("- ", "+ ", "# ") or line[:1] == "#" else line
        for line in text.split("\n")
    )


def _no_bars(formula: str) -> str:
    r"""A formula without the | character, which would end a table cell."""
    return formula.replace(r"\|", r"\Vert ").replace("|", r"\vert ").strip()


def _fence(text: str, least: int = 1) -> str:
    """A fence with more backticks than any run of them in the text."""
    longest = max(map(len, re.findall("`+", text)), default=0)
    return "`" * max(least, longest + 1)


def _plain(text: str) -> str:
    """Escaped text in which URLs are links."""
    words: list[str] = []
    for word in text.split(" "):
        bare = word.rstrip(".,")
        if bare.startswith(("https://", "http://")):
            words.append(f"<{bare}>{word[len(bare) :]}")
        else:
            words.append(word.translate(SPECIAL))
    return " ".join(words)
