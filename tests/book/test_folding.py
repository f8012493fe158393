"""Hidden cells that follow each other share one button, unless there's something between them."""

from __future__ import annotations

from docutils import nodes
from docutils.utils import new_document
from myst_nb.sphinx_ import HideCodeCellNode

from bookbuild.sphinx.folding import JoinHidden


def hidden(code: str, output: str = "") -> nodes.container:
    """Return a cell with its code in a fold, and perhaps with an output below it."""
    cell = nodes.container("", HideCodeCellNode("", nodes.literal_block("", code)))
    if output:
        cell += nodes.container("", nodes.paragraph("", output))
    return cell


def joined(*cells: nodes.Element) -> list[list[str]]:
    """Join the folds on a page; return the code in each fold that's left."""
    document = new_document("page.md")
    document += nodes.section("", *cells)
    JoinHidden(document).run()
    folds = document.findall(HideCodeCellNode)
    return [[code.astext() for code in fold.children] for fold in folds]


def test_code_without_output_joins_the_next_fold() -> None:
    assert joined(hidden("a"), hidden("b"), hidden("c", "3")) == [["a", "b", "c"]]


def test_an_output_keeps_its_code() -> None:
    assert joined(hidden("a", "1"), hidden("b")) == [["a"], ["b"]]


def test_text_or_visible_code_keeps_folds_apart() -> None:
    visible = nodes.container("", nodes.literal_block("", "x"))
    for between in (nodes.paragraph("", "text"), visible):
        assert joined(hidden("a"), between, hidden("b")) == [["a"], ["b"]]


def test_the_last_fold_stays() -> None:
    assert joined(hidden("a"), hidden("b")) == [["a", "b"]]
