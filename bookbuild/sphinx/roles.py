"""Sphinx extension: accessibility fixes to Sphinx's HTML, one function each.

- Bibliography entries become list items: `doc-biblioentry` is deprecated.
- The parameters of a long signature, which Sphinx writes as a <dl> without terms, become a <ul>.
- An empty cell in a table's header is no longer a heading.
- The contents of an exercise lose their id: sphinx-exercise gives all of them the same one.
"""

from __future__ import annotations

from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx


def setup(app: Sphinx) -> dict[str, Any]:
    """Take over writing these nodes."""
    app.add_node(nodes.citation, override=True, html=(_visit_citation, _depart_citation))
    app.add_node(nodes.entry, override=True, html=(_visit_entry, _depart))
    for node in (addnodes.desc_parameterlist, addnodes.desc_parameter):
        app.add_node(node, override=True, html=(_visit_parameters, _depart_parameters))
    app.connect("doctree-resolved", _drop_repeated_ids)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _own(writer: Any, visit: str, node: nodes.Element) -> int:
    """Write a node with the original writer; return where its output starts."""
    start = len(writer.body)
    getattr(type(writer), f"{visit}_{type(node).__name__}")(writer, node)
    return start


def _depart(writer: Any, node: nodes.Element) -> None:
    _own(writer, "depart", node)


def _visit_parameters(writer: Any, node: nodes.Element) -> None:
    _as_list(writer, _own(writer, "visit", node))


def _depart_parameters(writer: Any, node: nodes.Element) -> None:
    _as_list(writer, _own(writer, "depart", node))


def _as_list(writer: Any, start: int) -> None:
    """Turn the <dl> of <dd> just written into a <ul> of <li>."""
    tags = {"<dl>": '<ul class="parameters">', "</dl>": "</ul>", "<dd>": "<li>", "</dd>": "</li>"}
    writer.body[start:] = [tags.get(text.strip(), text) for text in writer.body[start:]]


def _visit_citation(writer: Any, node: nodes.citation) -> None:
    if not isinstance(node.previous_sibling(), nodes.citation):
        writer.body.append('<div role="list" class="citation-list">\n')
    writer.body.append(writer.starttag(node, "div", classes=["citation"], role="listitem"))


def _depart_citation(writer: Any, node: nodes.citation) -> None:
    writer.body.append("</div>\n")
    if not isinstance(node.next_node(descend=False, siblings=True), nodes.citation):
        writer.body.append("</div>\n")


def _visit_entry(writer: Any, node: nodes.entry) -> None:
    start = _own(writer, "visit", node)
    if not node.astext().strip() and writer.body[start].startswith("<th"):
        writer.body[start] = writer.body[start].replace("<th", "<td", 1)
        writer.context[-1] = writer.context[-1].replace("</th", "</td")


def _drop_repeated_ids(_app: Sphinx, doctree: nodes.document, _docname: str) -> None:
    for section in doctree.findall(nodes.section):
        if section["ids"] == ["exercise-content"]:
            section["ids"] = []
