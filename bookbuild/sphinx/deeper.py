"""Sphinx extension: a folded box "Going deeper" that can contain code cells.

MyST-NB finds code cells only at the top level of a page, not inside a directive. So one directive
marks the start of the box and another its end, as sphinx-exercise does for solutions:

    ```{deeper-start} What the box is about
    :label: a-name-to-link-to
    ```
    ...
    ```{deeper-end}
    ```

Everything between them becomes an admonition with the `dropdown` class.
"""

from __future__ import annotations

from typing import Any, ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError
from sphinx.transforms import SphinxTransform
from sphinx.util.docutils import SphinxDirective

LABEL = "Going deeper: "


def setup(app: Sphinx) -> dict[str, Any]:
    """Add both directives, and the transform that makes the boxes."""
    app.add_directive("deeper-start", Start)
    app.add_directive("deeper-end", End)
    app.add_transform(Join)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


class Gate(nodes.Element):  # type: ignore[misc]
    """The start or the end of a box; the transform removes it."""


class Start(SphinxDirective):
    """`deeper-start`: starts a box with a title."""

    required_arguments = 1
    final_argument_whitespace = True
    option_spec: ClassVar[dict[str, Any] | None] = {"label": directives.unchanged_required}

    def run(self) -> list[nodes.Node]:
        """Pass the title and the label on to the transform."""
        texts, messages = self.state.inline_text(self.arguments[0], self.lineno)
        title = nodes.title(self.arguments[0], "", nodes.inline("", LABEL), *texts)
        gate = Gate("", title, opens=True)
        self.set_source_info(gate)
        label = self.options.get("label")
        if label:
            gate["names"].append(nodes.fully_normalize_name(label))
        return [gate, *messages]


class End(SphinxDirective):
    """`deeper-end`: ends a box."""

    def run(self) -> list[nodes.Node]:
        """Mark the end."""
        gate = Gate("", opens=False)
        self.set_source_info(gate)
        return [gate]


class Join(SphinxTransform):
    """Puts everything between a start and its end into a box."""

    default_priority = 9  # before sphinx-exercise (10), since a box may contain its solutions

    def apply(self, **_kwargs: Any) -> None:
        """Make a box from each pair.

        Raises:
            ExtensionError: if a start or an end has no partner in its section, or a heading is
                between them.
        """
        for gate in [gate for gate in self.document.findall(Gate) if gate["opens"]]:
            self._join(gate)
        for gate in self.document.findall(Gate):
            raise _error(gate, "deeper-end has no deeper-start before it in the same section")

    def _join(self, start: Gate) -> None:
        siblings = start.parent.children
        first = siblings.index(start)
        ends = (place for place in range(first + 1, len(siblings)) if _is_gate(siblings[place]))
        last = next(ends, None)
        if last is None or siblings[last]["opens"]:
            raise _error(
                start,
                "deeper-start has no deeper-end in the same section; a box can hold neither "
                "headings nor another box",
            )
        box = nodes.admonition("", *start.children, *siblings[first + 1 : last])
        box["classes"] = ["dropdown", "ln-deeper"]
        box.source, box.line = start.source, start.line
        box["names"] = start["names"]
        start.parent[first : last + 1] = [box]
        if box["names"]:
            self.document.note_explicit_target(box)


def _is_gate(node: nodes.Node) -> bool:
    return isinstance(node, Gate)


def _error(gate: Gate, message: str) -> ExtensionError:
    return ExtensionError(f"{gate.source}:{gate.line}: {message}")
