"""Sphinx extension: the first use of a symbol on a page links to its row in the table of symbols.

This applies only to inline formulas that consist of nothing but the symbol. Small Latin letters are
left out: chapters also use them for other things.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx

TABLES = "notation"
NO_LINKS = (TABLES, "glossary", "bibliography", "index", "exercises")
OTHER_MEANINGS = "notation-two-meanings"
NOT_INSIDE = (nodes.title, nodes.reference, nodes.caption, nodes.term, nodes.table, nodes.figure)


def setup(app: Sphinx) -> dict[str, Any]:
    """Name the rows and link to them, after formulas are tied to the punctuation around them."""
    app.connect("doctree-resolved", _name_rows, priority=600)
    app.connect("doctree-resolved", _link, priority=600)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def spelling(latex: str) -> str:
    r"""A symbol's LaTeX with variants unified: \varepsilon becomes \epsilon."""
    return (
        re.sub(r"\\var(?=epsilon|phi)", r"\\", latex)
        .replace(" ", "")
        .replace("{", "")
        .replace("}", "")
    )


def anchor(latex: str, *, other: bool = False) -> str:
    """The id of a symbol's row."""
    words = re.sub(r"[^a-zA-Z0-9]+", "-", latex).strip("-") or "sign"
    case = "capital-" if len(words) == 1 and words.isupper() else ""
    return f"symbol-{'other-' if other else ''}{case}{words.lower()}"


def rows(doctree: nodes.document) -> Iterator[tuple[nodes.row, list[str], bool]]:
    """The rows of the tables: their symbols, and whether they're in the table of other meanings."""
    for table in doctree.findall(nodes.table):
        other = OTHER_MEANINGS in table["names"] or OTHER_MEANINGS in table["ids"]
        for body in table.findall(nodes.tbody):
            for row in body.findall(nodes.row):
                yield row, [math.astext() for math in row[0].findall(nodes.math)], other


def _name_rows(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    if app.builder.format != "html" or docname != TABLES:
        return
    for row, symbols, other in rows(doctree):
        if symbols:
            row["ids"].append(anchor(symbols[0], other=other))


def _known(app: Sphinx) -> dict[str, str]:
    """The rows' ids by symbol."""
    if not hasattr(app, "lnbook_symbols"):
        found: dict[str, str] = {}
        if TABLES in app.env.all_docs:
            for _, symbols, other in rows(app.env.get_doctree(TABLES)):
                for symbol in symbols if not other else ():
                    if not re.fullmatch(r"[a-z](_\w)?", symbol):
                        found.setdefault(spelling(symbol), anchor(symbols[0]))
        app.lnbook_symbols = found  # type: ignore[attr-defined]
    return app.lnbook_symbols  # type: ignore[attr-defined, no-any-return]


def _link(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    if app.builder.format != "html" or docname in NO_LINKS or docname.startswith("api/"):
        return
    known, linked = _known(app), set()
    for formula in list(doctree.findall(nodes.math)):
        row = known.get(spelling(formula.astext()))
        if row is None or row in linked or _is_inside(formula):
            continue
        linked.add(row)
        address = f"{app.builder.get_relative_uri(docname, TABLES)}#{row}"
        link = nodes.reference("", "", refuri=address, internal=True, classes=["ln-symbol"])
        # Formulas have no text that could serve as a link's name.
        link["reftitle"] = f"The symbol {row.removeprefix('symbol-').replace('-', ' ')}"
        formula.replace_self(link)
        link += formula


def _is_inside(node: nodes.Node) -> bool:
    around = node.parent
    while around is not None:
        if isinstance(around, NOT_INSIDE):
            return True
        around = around.parent
    return False
