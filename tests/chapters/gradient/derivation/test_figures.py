"""The figures show the numbers they are given."""

import pytest

from lnbook.chapters.gradient.derivation import figures
from lnbook.notebook.figure_snapshot import describe
from tests.helpers.drawn_texts import overlapping

pytestmark = pytest.mark.usefixtures("book_style")


def test_graph_has_every_box_and_arrow() -> None:
    record = describe(figures.computation_graph())["axes"][0]
    arrows = [shape for shape in record["shapes"] if shape["kind"] == "arrow"]
    assert len(arrows) == len(figures.EDGES) == 8
    written = {text for text, *_ in record["texts"]}
    assert {formula for *_, formula, _ in figures.NODES.values()} <= written
    assert {label for _, _, label, _ in figures.EDGES} <= written
    assert overlapping(figures.computation_graph()) == []


def test_graph_arrows_run_down() -> None:
    for start, end, _, (_, y) in figures.EDGES:
        assert figures.NODES[start][1] > y > figures.NODES[end][1]
