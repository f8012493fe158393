"""Sphinx extension: exercises answered on the page.

If an exercise's answers are numbers, letters or words to choose from, readers enter them in a form
under its cell, and `answers.js` judges them by the rules of the exercise's checker. Under the cell
of any other exercise, a link leads to the chapter's notebook. Without JavaScript, there's no form.
"""

from __future__ import annotations

import ast
import importlib
import json
import posixpath
from collections.abc import Iterable, Iterator
from html import escape
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx_exercise.nodes import exercise_enumerable_node

from bookbuild.site.answer_rules import FIELDS, answer_rules
from bookbuild.sphinx.download import notebook_of

SCRIPT = "answers.js"


def setup(app: Sphinx) -> dict[str, Any]:
    """Add the forms to the pages that were read (`head.py` loads the script where it's needed)."""
    app.add_node(AnswerForm, html=(_visit, None))
    app.connect("doctree-read", _add)
    app.add_js_file(SCRIPT, loading_method="defer")
    return {"parallel_read_safe": True, "parallel_write_safe": True}


class AnswerForm(nodes.General, nodes.Element):  # type: ignore[misc]
    """What follows the cell of an exercise.

    Attributes:
        rules: the rules that judge the answers; if None, a link to the notebook replaces the form.
    """


def _add(app: Sphinx, doctree: nodes.document) -> None:
    for exercise in doctree.findall(exercise_enumerable_node):
        for cell in exercise.findall(nodes.container):
            if cell.get("nb_element") != "cell_code":
                continue
            source = next(iter(cell.findall(nodes.literal_block)), None)
            if source is not None and (call := _call(source.astext())):
                cell += AnswerForm(rules=rules(app.env.docname, call))


def _call(source: str) -> ast.Call | None:
    """The checker call that ends a cell; None if there's none."""
    try:
        last = ast.parse(source).body[-1]
    except (SyntaxError, IndexError):
        return None
    called = last.value if isinstance(last, ast.Expr) else None
    if isinstance(called, ast.Call) and ast.unparse(called.func).startswith("exercises.check_"):
        return called
    return None


def rules(docname: str, call: ast.Call) -> dict[str, Any] | None:
    """The rules of an exercise's checker; None if its answers can't be judged in a browser.

    Args:
        docname: the chapter.
        call: the checker call, with an ellipsis for each answer to fill in.
    """
    arguments = [*call.args, *(keyword.value for keyword in call.keywords)]
    if not arguments or not all(_is_blank(argument) for argument in arguments):
        return None
    module = importlib.import_module(
        f"lnbook.chapters.{docname.replace('/', '.').replace('-', '_')}.exercises"
    )
    check = getattr(module, ast.unparse(call.func).removeprefix("exercises."))
    code = check.__wrapped__.__code__
    positional = code.co_varnames[: len(call.args)]
    return answer_rules(check, [*positional, *(keyword.arg or "" for keyword in call.keywords)])


def _is_blank(value: ast.expr) -> bool:
    """Whether a value is `...` or a list of such values."""
    if isinstance(value, ast.List):
        return bool(value.elts) and all(map(_is_blank, value.elts))
    return isinstance(value, ast.Constant) and value.value in (..., "...")


def _visit(translator: Any, node: AnswerForm) -> None:
    if node["rules"] is not None:
        translator.body.append(form(node["rules"]))
    elif path := notebook_of(translator.builder.app, translator.builder.current_docname):
        folder = posixpath.dirname(translator.builder.current_docname) or "."
        link = escape(posixpath.relpath(path, folder), quote=True)
        translator.body.append(
            f'<p class="ln-answers-elsewhere">Do this one in <a href="{link}" download>the '
            "chapter's notebook</a>.</p>"
        )
    raise nodes.SkipNode


def form(rules: dict[str, Any]) -> str:
    """The HTML of a form: a text field for each number, a list for each choice, boxes for letters.

    Example:
        >>> "<input" in form({"steps": [{"read": "mean", "what": "Your mean", "shape": []}]})
        True
    """
    fields = "".join(_field(step) for step in rules["steps"] if set(FIELDS) & set(step))
    data = escape(json.dumps(rules, ensure_ascii=False, separators=(",", ":")), quote=True)
    return (
        f'<form class="ln-answers ln-scripted-only" data-rules="{data}" novalidate>{fields}'
        '<div class="ln-answers-end"><button type="submit">Check</button> '
        '<output class="ln-answers-verdict" aria-live="polite"></output></div></form>'
    )


def _field(step: dict[str, Any]) -> str:
    """A field of the form: numbers in rows, a list to choose from, or a box for each letter."""
    (name,) = (escape(step[kind].rstrip("_"), quote=True) for kind in FIELDS if kind in step)
    if "choose" in step:
        rows = [[_select(name, step["replies"])]]
    elif "letters" in step:
        rows = [[_box(letter) for letter in sorted(letter for letter, _, _ in step["reasons"])]]
    else:
        width = step["shape"][-1] if step["shape"] else 1
        inputs = [_input(label) for label in _labels(name, step["shape"])]
        rows = [inputs[start : start + width] for start in range(0, len(inputs), width)]
    lines = "".join(f'<span class="ln-answers-row">{"".join(row)}</span>' for row in rows)
    group = f' role="group" aria-label="{name}"' if sum(map(len, rows)) > 1 else ""
    return (
        f'<div class="ln-answers-field"{group}>'
        f'<code aria-hidden="true">{name}</code><span class="ln-answers-rows">{lines}</span></div>'
    )


def _labels(name: str, shape: list[int]) -> Iterator[str]:
    """What a screen reader calls each number."""
    if not shape:
        yield name
    elif len(shape) == 1:
        yield from (f"{name}, number {i} of {shape[0]}" for i in range(1, shape[0] + 1))
    else:
        for row in range(1, shape[0] + 1):
            yield from _labels(f"{name}, row {row}", shape[1:])


def _input(label: str) -> str:
    attributes = 'type="text" autocomplete="off" autocapitalize="none" spellcheck="false"'
    return f'<input {attributes} aria-label="{label}">'


def _select(name: str, options: Iterable[str]) -> str:
    listed = "".join(f"<option>{escape(option)}</option>" for option in options)
    return f'<select aria-label="{name}"><option value="">choose</option>{listed}</select>'


def _box(letter: str) -> str:
    return f'<label><input type="checkbox" value="{letter}"> {letter}</label>'
