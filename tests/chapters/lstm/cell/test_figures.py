"""The figures show the numbers they are given."""

import numpy as np
import pytest

from lnbook.chapters.lstm.cell import figures
from lnbook.notebook.figure_snapshot import describe
from lnbook.notebook.style import BLUE
from tests.helpers.drawn_texts import overlapping

pytestmark = pytest.mark.usefixtures("book_style")


def test_cell_has_every_shape_and_arrow() -> None:
    figure = figures.cell()
    record = describe(figure)["axes"][0]
    arrows = [shape for shape in record["shapes"] if shape["kind"] == "arrow"]
    assert len(arrows) == len(figures.ARROWS) + 1
    written = [text for text, *_ in record["texts"]]
    assert written.count("LN") == 3
    assert {formula for _, _, formula, _, _ in figures.BOXES.values()} <= set(written)
    assert overlapping(figure) == []


def test_cell_is_the_cell_of_the_paper() -> None:
    """The norms: between each product and the sum, and beside the way of the cell state."""
    norms = {name for name, box in figures.BOXES.items() if box[2] == "LN"}
    assert {name for name, box in figures.BOXES.items() if box[4] == BLUE} == norms
    follow = {start: {end for one, end in figures.ARROWS if one == start} for start in norms}
    assert follow == {"LN1": {"sum"}, "LN2": {"sum"}, "LN3": {"tanh"}}
    assert {end for start, end in figures.ARROWS if start == "add"} == {"c1"}
    assert {start for start, end in figures.ARROWS if end == "LN3"} == {"c1"}
    shapes = {**figures.BOXES, **figures.CIRCLES}
    assert {name for pair in figures.ARROWS for name in pair} == set(shapes)
    assert all(shapes[start][1] >= shapes[end][1] for start, end in figures.ARROWS)


def test_gates_shows_means_and_deviations() -> None:
    means, deviations = [0.5, -1.0, 2.0, 0.0], [1.0, 0.25, 2.0, 0.5]
    record = describe(figures.gates({"before": (means, deviations)}))["axes"][0]
    points = next(line for line in record["lines"] if len(line["x"]) == 4)
    assert points["x"] == pytest.approx(means)
    assert points["y"] == pytest.approx([0, -1, -2, -3])
    bars = np.array(record["points"][0]["paths"])
    assert bars[:, 0, 0] == pytest.approx(np.subtract(means, deviations))
    assert bars[:, 1, 0] == pytest.approx(np.add(means, deviations))
    with pytest.raises(ValueError, match="at least one panel"):
        figures.gates({})
