"""The grid of caught modules shows the results it is given."""

import numpy as np
import pytest
from matplotlib.colors import to_hex

from lnbook.chapters.formula.from_scratch import figures
from lnbook.notebook.figure_snapshot import describe
from lnbook.notebook.style import BLUE

pytestmark = pytest.mark.usefixtures("book_style")


def test_caught_fills_and_crosses_what_is_caught() -> None:
    results = np.array([[False, True, True], [True, False, False]])
    figure = figures.caught(results, ["one", "two"], ["a", "b", "c"])
    (panel,) = describe(figure)["axes"]
    filled = {
        tuple(int(value) for value in np.array(shape["corners"]).min(axis=0))
        for shape in panel["shapes"]
        if shape["color"][:7] == to_hex(BLUE)
    }
    crosses = {(int(x), int(y)) for _, x, y in panel["texts"]}
    assert filled == crosses == {(column, row) for row, column in np.argwhere(results)}
    axes = figure.axes[0]
    assert [text.get_text() for text in axes.get_xticklabels()] == ["a", "b", "c"]
    assert [text.get_text() for text in axes.get_yticklabels()] == ["one", "two"]


def test_labels_stay_on_the_figure() -> None:
    names = ["gamma and beta ignored"] * 9
    tests = [*["the usual test"] * 4, "mean 10,000, spread 0.01", "two sizes", "all together"]
    figure = figures.caught(np.ones((9, 7)), names, tests)
    figure.draw_without_rendering()
    axes = figure.axes[0]
    for text in [*axes.get_xticklabels(), *axes.get_yticklabels()]:
        box = text.get_window_extent()
        assert box.x0 >= 0
        assert box.x1 <= figure.bbox.width
        assert box.y1 <= figure.bbox.height


def test_caught_refuses_what_does_not_fit() -> None:
    for results, modules in ((np.ones((2, 3)), ["one"]), (np.ones((0, 3)), []), (True, ["one"])):
        with pytest.raises(ValueError, match="expected results of shape"):
            figures.caught(results, modules, ["a", "b", "c"])
