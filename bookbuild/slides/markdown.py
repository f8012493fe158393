"""Renders the Markdown of slides, and inserts the chapters' results that it names.

Beyond Markdown, there are:

- ``{number}`part/chapter name:.2f` ``: a number that the chapter glued under this name;
- `$…$` and `$$…$$`: formulas;
- blocks between three backticks and a name in braces: `{figure} part/chapter name`, or
  `{figure} part/chapter name 1 3` to show only those rows of its panels; `{code} part/chapter` and
  `{printed} part/chapter`, where each line is the start of a statement or of a line in a cell;
  `{answer}`, which appears with the next key press; `{notes} minutes`, for the speaker;
- links to pages of the book, such as `[text](formula/geometry.md#section)`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from html import escape
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from mdit_py_plugins.dollarmath import dollarmath_plugin
from mdit_py_plugins.myst_role import myst_role_plugin
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

from bookbuild.errors import BookError
from bookbuild.site import license as licenses
from bookbuild.site.figure_files import FOLDER, Figure
from bookbuild.slides import panels
from bookbuild.slides.results import HTML, Results
from bookbuild.sphinx.math import Renderer

DIRECTIVE = re.compile(r"^\{(\w+)\}\s*(.*)$")
NUMBER = re.compile(r"^(\S+)\s+(.+?)(?::([^:\s]*))?$")
PAGE = re.compile(r"^([\w/-]+)\.md(#.*)?$")
KATEX = {"throwOnError": True, "strict": "ignore"}


class Markdown:
    """Renders the parts of one lecture, and collects what's wrong with them.

    Args:
        results: what the chapters computed.
        titles: the title of each page of the book.
        site: the URL of the site's root, as seen from the slides.
        formulas: renders formulas.
        shown: the path of the source, for messages.

    Attributes:
        problems: what is wrong, one per line, each with its place.
        figures: the figures that the slides show, keyed by name.
        notes: the minutes and the HTML of the notes found since the last slide began.
    """

    def __init__(
        self,
        results: Results,
        titles: Mapping[str, str],
        site: str,
        formulas: Renderer,
        shown: str,
    ) -> None:
        self._results, self._titles, self._site = results, titles, site
        self._formulas, self._shown = formulas, shown
        self._line = 0
        self.problems: list[str] = []
        self.figures: dict[str, Figure] = {}
        self.notes: list[tuple[int, str]] = []
        self._parser = MarkdownIt("commonmark").enable("table")
        self._parser.use(dollarmath_plugin, allow_digits=False).use(myst_role_plugin)
        self._blocks: dict[str, Callable[[str, str], str]] = {
            "figure": self._figure,
            "code": self._code,
            "printed": self._printed,
            "answer": self._answer,
            "notes": self._note,
        }
        for kind, rule in (
            ("math_inline", self._math),
            ("math_block", self._displayed_math),
            ("myst_role", self._role),
            ("link_open", self._link),
            ("fence", self._fence),
        ):
            self._parser.add_render_rule(kind, _render_rule(rule))

    def tokens(self, text: str) -> list[Token]:
        """The blocks of a text."""
        return self._parser.parse(text)

    def html(self, tokens: Sequence[Token], first_line: int) -> str:
        """Some blocks as HTML.

        Args:
            tokens: the blocks.
            first_line: the line of the file where the text begins, for messages.
        """
        before = self._line
        parts = []
        for group in _groups(tokens):
            if group[0].map:
                self._line = first_line + group[0].map[0]
            parts.append(self._parser.renderer.render(group, self._parser.options, {}))
        self._line = before
        return "".join(parts)

    def note_problem(self, text: str) -> None:
        """Record a problem at the current line."""
        self.problems.append(f"{self._shown}:{self._line}: {text}")

    def at(self, line: int) -> None:
        """Set the line that messages refer to."""
        self._line = line

    def _nested(self, text: str) -> str:
        return self.html(self.tokens(text), self._line + 1)

    def _math(self, token: Token) -> str:
        return self._formula(token.content)

    def _displayed_math(self, token: Token) -> str:
        formula = self._formula("\\displaystyle " + token.content.strip())
        return f'<div class="formula">{formula}</div>'

    def _formula(self, latex: str) -> str:
        answer = self._formulas.render({"latex": latex, "katex_options": KATEX})
        if "error" in answer:
            self.note_problem(f"invalid formula: {answer['error']}")
            return ""
        return str(answer["html"])

    def _role(self, token: Token) -> str:
        name = token.meta["name"]
        match = NUMBER.match(token.content)
        if name != "number" or match is None:
            got = f"{{{name}}}`{token.content}`"
            self.note_problem(f"expected {{number}}`part/chapter name:format`, but got {got}")
            return ""
        chapter, result, form = match.groups()
        try:
            return escape(self._results.number(chapter, result, form or ""))
        except BookError as error:
            self.note_problem(str(error))
            return ""

    def _link(self, token: Token) -> str:
        target = str(token.attrGet("href"))
        match = PAGE.match(target)
        if match:
            self._check_page(match[1])
            target = f"{self._site}{match[1]}.html{match[2] or ''}"
        elif not target.startswith("https://"):
            self.note_problem(
                f"expected a link to a page such as formula/geometry.md, got {target}"
            )
        return f'<a href="{escape(target)}" target="_blank" rel="noopener">'

    def _check_page(self, name: str) -> None:
        if name not in self._titles:
            self.note_problem(f"the book has no page '{name}'")

    def _fence(self, token: Token) -> str:
        match = DIRECTIVE.match(token.info)
        if match is None:
            return _highlighted(token.content)
        name, argument = match.groups()
        if name not in self._blocks:
            self.note_problem(f"expected one of {', '.join(self._blocks)}, but got '{name}'")
            return ""
        try:
            return self._blocks[name](argument.strip(), token.content)
        except (BookError, ValueError) as error:
            self.note_problem(str(error))
            return ""

    def _figure(self, argument: str, _content: str) -> str:
        words = argument.split()
        if len(words) < 2:
            raise ValueError(f"expected {{figure}} part/chapter name, got '{argument}'")
        chapter, name, *rows = words
        figure = self._results.figure(chapter, name)
        if rows:
            figure = panels.only(figure, [int(row) for row in rows])
        self.figures[figure.name] = figure
        width, height = figure.size
        shape = f'alt="{escape(figure.alt)}" width="{width}" height="{height}"'
        # Printing needs the light image right away; the dark one loads when it's shown.
        images = (
            f'<img class="ln-light" src="{FOLDER}/{figure.file("light")}" {shape}>'
            f'<img class="ln-dark" src="{FOLDER}/{figure.file("dark")}" {shape} loading="lazy">'
        )
        source = f"{self._site}{chapter}.html#{name}"
        return (
            f'<figure class="plot">{images}<figcaption>'
            f'<a href="{source}" target="_blank" rel="noopener">{escape(self._titles[chapter])}</a>'
            f" · {licenses.NAME}</figcaption></figure>"
        )

    def _code(self, chapter: str, content: str) -> str:
        statements = [self._results.code(chapter, line) for line in content.strip().splitlines()]
        return _highlighted("\n\n".join(statements))

    def _printed(self, chapter: str, content: str) -> str:
        kind, text = self._results.printed(chapter, content.strip())
        return (
            f'<div class="printed">{text}</div>'
            if kind == HTML
            else f'<pre class="printed">{escape(text.rstrip())}</pre>'
        )

    def _answer(self, _argument: str, content: str) -> str:
        return f'<div class="answer fragment">{self._nested(content)}</div>'

    def _note(self, argument: str, content: str) -> str:
        if not argument.isdecimal():
            raise ValueError(
                f"expected {{notes}} with the minutes for this slide, got '{argument}'"
            )
        self.notes.append((int(argument), self._nested(content)))
        return ""


def code_colors() -> str:
    """The style sheet for code, for light and dark mode."""
    return "\n".join(
        HtmlFormatter(style=f"a11y-high-contrast-{mode}").get_style_defs(
            f'html[data-theme="{mode}"] .highlight'
        )
        for mode in ("light", "dark")
    )


def _highlighted(code: str) -> str:
    return str(highlight(code, PythonLexer(), HtmlFormatter()))


def _groups(tokens: Sequence[Token]) -> list[list[Token]]:
    """The tokens of each top-level block."""
    groups: list[list[Token]] = []
    for token in tokens:
        if token.level == 0 and token.nesting >= 0:
            groups.append([])
        groups[-1].append(token)
    return groups


def _render_rule(rule: Callable[[Token], str]) -> Callable[..., str]:
    def render(
        _renderer: RendererHTML, tokens: Sequence[Token], index: int, _options: Any, _env: Any
    ) -> str:
        return rule(tokens[index])

    return render
