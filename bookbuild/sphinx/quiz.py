"""Sphinx extension: multiple-choice questions that readers answer on the page.

The `quiz` directive renders the questions in a TOML file. Each option is a <details> that opens its
verdict and explanation, so questions work without JavaScript, with a keyboard, and with a screen
reader. `quiz.js` counts how many were answered correctly on the first try.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from html import escape
from pathlib import Path
from string import ascii_uppercase
from typing import Any

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from bookbuild.errors import BookError

SCRIPT = "quiz.js"
OPTIONS = 4
TEXTS = ("name", "chapter", "finds", "asks")


@dataclass(frozen=True)
class Option:
    """One possible answer: its text, whether it's right, and why. The texts are MyST Markdown."""

    says: str
    why: str
    right: bool = False


@dataclass(frozen=True)
class Question:
    """A question with its options.

    Attributes:
        name: a short name, the end of the question's URL.
        chapter: the page that answers it.
        finds: the misconception that wrong answers reveal.
        asks: the question, in MyST Markdown.
        options: the answers to choose from, one of them right.
    """

    name: str
    chapter: str
    finds: str
    asks: str
    options: tuple[Option, ...]


def read(path: Path, shown: str) -> tuple[Question, ...]:
    """Read and check the questions in a TOML file.

    Raises:
        BookError: if the file or a question is malformed: each question needs four different
            options, each with an explanation, and exactly one of them must be right.
    """
    try:
        given = tomllib.loads(path.read_text(encoding="utf-8"))["questions"]
    except (tomllib.TOMLDecodeError, KeyError) as error:
        raise BookError(f"{shown}: not a list of [[questions]]: {error}") from None
    problems = [f"{shown}: {problem}" for problem in _problems(given)]
    if problems:
        raise BookError(*problems)
    return tuple(
        Question(**{**one, "options": tuple(Option(**option) for option in one["options"])})
        for one in given
    )


def _problems(given: Iterable[dict[str, Any]]) -> Iterable[str]:
    seen: set[str] = set()
    for number, one in enumerate(given, start=1):
        where = f"question {number} ({one.get('name')})"
        missing = [key for key in TEXTS if not str(one.get(key, "")).strip()]
        unknown = [key for key in one if key not in (*TEXTS, "options")]
        if missing or unknown:
            yield f"{where}: missing or empty: {missing}; unknown: {unknown}"
            continue
        if one["name"] in seen:
            yield f"{where}: there is another question with this name"
        seen.add(one["name"])
        options = one.get("options", [])
        says = [option.get("says", "") for option in options]
        if len(set(filter(None, says))) != OPTIONS:
            yield f"{where}: expected {OPTIONS} different options, but got {says}"
        right = [option for option in options if option.get("right") is True]
        if len(right) != 1:
            yield f"{where}: {len(right)} options are right; exactly one should be"
        for option in options:
            if set(option) - {"says", "why", "right"} or not option.get("why", "").strip():
                yield f"{where}: an option has no explanation, or an unknown key: {option}"


def setup(app: Sphinx) -> dict[str, Any]:
    """Add the directive and the script (`head.py` decides which pages load it)."""
    app.add_node(Fold, html=(_open_fold, _close_fold))
    app.add_directive("quiz", Quiz)
    app.add_js_file(SCRIPT, loading_method="defer")
    return {"parallel_read_safe": True, "parallel_write_safe": True}


class Fold(nodes.General, nodes.Element):  # type: ignore[misc]
    """A <details>: its first child is the summary."""


class Quiz(SphinxDirective):
    """`quiz`: renders the questions in the file that its argument names, relative to the page."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Render the questions, and render them again if the file changes."""
        name, path = self.env.relfn2path(self.arguments[0])
        self.env.note_dependency(name)
        self.env.note_dependency(__file__)  # this module renders them
        try:
            questions = read(Path(path), name)
        except (BookError, FileNotFoundError) as error:
            raise self.error(str(error)) from None
        items = nodes.enumerated_list(classes=["ln-quiz"], enumtype="arabic")
        for number, question in enumerate(questions, start=1):
            items += self._question(number, question)
        return [items]

    def _question(self, number: int, question: Question) -> nodes.list_item:
        item = nodes.list_item(names=[f"question-{question.name}"], classes=["ln-question"])
        self.state.document.note_explicit_target(item)
        item += self._text(question.asks)
        options = nodes.enumerated_list(classes=["ln-options"], enumtype="upperalpha")
        for letter, option in zip(ascii_uppercase, question.options, strict=False):
            options += nodes.list_item("", self._option(letter, option))
        item += options
        link = f"[The chapter]({self._to(question.chapter)})"
        about = f"**Misconception:** {question.finds} {link}"
        summary = nodes.inline("", f"What does question {number} test for?")
        item += Fold("", summary, *self._text(about), classes=["ln-finds"])
        return item

    def _option(self, letter: str, option: Option) -> Fold:
        (says,) = self._text(option.says)
        verdict = "**Right.**" if option.right else "**No.**"
        kind = "ln-right" if option.right else "ln-wrong"
        why = self._text(f"{verdict} {option.why}")
        # Some options are just a formula, which doesn't count as an accessible name for screen
        # readers.
        name = nodes.inline("", f"Option {letter}: ", classes=["ln-spoken"])
        summary = nodes.inline("", "", name, *says.children)
        return Fold("", summary, *why, classes=["ln-option", kind])

    def _to(self, page: str) -> str:
        return f"{'../' * self.env.docname.count('/')}{page}.md"

    def _text(self, markdown: str) -> list[nodes.Node]:
        box = nodes.Element()
        lines = StringList(markdown.splitlines(), source=self.env.doc2path(self.env.docname))
        self.state.nested_parse(lines, self.content_offset, box)
        return list(box.children)


def _open_fold(writer: Any, node: Fold) -> None:
    writer.body.append(f'<details class="{escape(" ".join(node["classes"]))}">\n<summary>')
    node["summary"] = node.pop(0)  # written here; put back below
    # One click can't both follow a link and open the fold.
    for link in list(node["summary"].findall(nodes.reference)):
        link.replace_self(link.children)
    node["summary"].walkabout(writer)
    writer.body.append("</summary>\n")


def _close_fold(writer: Any, node: Fold) -> None:
    node.insert(0, node.attributes.pop("summary"))
    writer.body.append("</details>\n")
