"""The "Going deeper" box contains everything between its markers; an unpaired one is an error."""

from __future__ import annotations

from typing import Any

import pytest
from docutils import nodes
from docutils.utils import new_document
from sphinx.errors import ExtensionError

from bookbuild.sphinx.deeper import Gate, Join


def page(*children: Any) -> nodes.document:
    document = new_document("page.md")
    section = nodes.section("", *children, names=["section"])
    document += section
    return document


def start(name: str = "") -> Gate:
    gate = Gate("", nodes.title("", "", nodes.Text("Title")), opens=True)
    gate.source, gate.line = "page.md", 3
    gate["names"] = [name] if name else []
    return gate


def end() -> Gate:
    gate = Gate("", opens=False)
    gate.source, gate.line = "page.md", 9
    return gate


def text(words: str) -> nodes.paragraph:
    return nodes.paragraph("", words)


def test_what_lies_between_is_in_the_box_and_nothing_else() -> None:
    document = page(
        text("a"), start("name"), text("b"), text("c"), end(), text("d"), start(), text("e"), end()
    )
    Join(document).apply()
    section = document[0]
    assert [type(child).__name__ for child in section.children] == [
        "paragraph", "admonition", "paragraph", "admonition",
    ]  # fmt: skip
    first = section.children[1]
    assert [child.astext() for child in first.children] == ["Title", "b", "c"]
    assert first["classes"] == ["dropdown", "ln-deeper"]
    assert document.nameids["name"] == first["ids"][0]
    assert not list(document.findall(Gate))


@pytest.mark.parametrize(
    ("children", "message"),
    [
        ((start(), text("a")), "page.md:3: deeper-start has no deeper-end"),
        ((text("a"), end()), "page.md:9: deeper-end has no deeper-start"),
        ((start(), nodes.section("", end())), "page.md:3: deeper-start has no .* headings"),
        ((start(), text("a"), start(), end()), "page.md:3: deeper-start .* another box"),
    ],
)
def test_a_mark_without_its_partner_is_an_error(
    children: tuple[nodes.Node, ...], message: str
) -> None:
    with pytest.raises(ExtensionError, match=message):
        Join(page(*children)).apply()
