"""Sphinx extension: letters above a glossary lead to terms; other pages link to each term once."""

from __future__ import annotations

import string
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx


def setup(app: Sphinx) -> dict[str, Any]:
    """Change only the pages; the notebooks and the search don't need these links."""
    app.connect("doctree-resolved", _add_letters)
    app.connect("doctree-resolved", _link_once)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _add_letters(app: Sphinx, doctree: nodes.document, _docname: str) -> None:
    if app.builder.format != "html":
        return
    for glossary in list(doctree.findall(addnodes.glossary)):
        first: dict[str, str] = {}
        for term in glossary.findall(nodes.term):
            if term["ids"]:
                first.setdefault(term.astext()[0].upper(), term["ids"][0])
        others = sorted(letter for letter in first if letter not in string.ascii_uppercase)
        letters = nodes.bullet_list(classes=["ln-letters", "d-print-none"])
        letters += [
            _entry(letter, first.get(letter)) for letter in [*string.ascii_uppercase, *others]
        ]
        glossary.parent.insert(glossary.parent.index(glossary), letters)


def _entry(letter: str, target: str | None) -> nodes.list_item:
    """A link to the first term with this letter, or just the letter."""
    line = nodes.paragraph()
    if target:
        line += nodes.reference("", letter, refuri=f"#{target}", internal=True)
    else:
        line += nodes.Text(letter)
    return nodes.list_item("", line)


def _link_once(app: Sphinx, doctree: nodes.document, _docname: str) -> None:
    """Keep only the first link to each term; in a glossary, each entry is read by itself."""
    if app.builder.format != "html" or any(doctree.findall(addnodes.glossary)):
        return
    linked: set[str] = set()
    for link in list(doctree.findall(nodes.reference)):
        if not any("std-term" in part["classes"] for part in link.findall(nodes.inline)):
            continue
        target = link.get("refuri") or link.get("refid")
        if target in linked:
            link.replace_self([nodes.Text(link.astext())])
        linked.add(target)
