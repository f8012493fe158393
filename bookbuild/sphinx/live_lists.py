"""Sphinx extension: two interactive lists, a decision guide and a table of claims.

- A container with the `ln-guide` class holds a numbered list of questions. Each item starts with a
  question, followed by the advice if the answer is yes; the last item is the advice if every answer
  is no. `decision-guide.js` asks the questions one at a time.
- In a table with a `verdict` column, each verdict becomes a badge, and so does the bold verdict at
  the start of a paragraph on the same page. `claim-filter.js` adds a filter above the table.

Without JavaScript, readers see the whole list and the whole table.
"""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx

COLUMN = "verdict"
VERDICTS = ("false", "half", "slip", "open")
BADGES = (*VERDICTS, "true")  # unlike the claims in the table, advice can also be true
SCRIPTS = ("decision-guide.js", "claim-filter.js")
_VERDICT = re.compile(rf"({'|'.join(BADGES)})", re.IGNORECASE)


def setup(app: Sphinx) -> dict[str, Any]:
    """Mark the verdicts, and load the scripts (`head.py` decides on which pages)."""
    app.connect("doctree-read", _mark)
    for name in SCRIPTS:
        app.add_js_file(name, loading_method="defer")
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _mark(_app: Sphinx, doctree: nodes.document) -> None:
    tables = [(table, column) for table in doctree.findall(nodes.table)
              if (column := _column(table)) is not None]  # fmt: skip
    for table, column in tables:
        table["classes"].append("ln-claims")
        for body in table.findall(nodes.tbody):
            for row in body.findall(nodes.row):
                for text in list(row[column].findall(nodes.Text)):
                    text.parent.replace(text, list(_badges(text.astext())))
    if not tables:
        return
    for strong in doctree.findall(nodes.strong):
        name = strong.astext().rstrip(".").lower()
        before = strong.parent[: strong.parent.index(strong)]
        if name in VERDICTS and not any(node.astext() for node in before):
            strong["classes"] += ["ln-verdict", f"ln-verdict-{name}"]


def _column(table: nodes.table) -> int | None:
    """The number of the verdict column, or None if the table has none."""
    for head in table.findall(nodes.thead):
        names = [entry.astext().strip() for entry in head.findall(nodes.entry)]
        return names.index(COLUMN) if COLUMN in names else None
    return None


def _badges(text: str) -> list[nodes.Node]:
    """The text, with each verdict as a badge."""
    found: list[nodes.Node] = []
    for part in filter(None, _VERDICT.split(text)):
        if part.lower() in BADGES:
            classes = ["ln-verdict", f"ln-verdict-{part.lower()}"]
            found.append(nodes.inline("", part, classes=classes))
        else:
            found.append(nodes.Text(part))
    return found
