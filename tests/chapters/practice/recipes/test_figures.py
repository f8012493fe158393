"""The figure of the recipes shows the numbers it is given."""

import numpy as np
import pytest

from lnbook.chapters.practice.recipes import figures
from lnbook.notebook.figure_snapshot import describe

pytestmark = pytest.mark.usefixtures("book_style")


GAINS = {
    "first": [[1.0, 1.1, 1.2], [1.0, 1.3, 1.6]],
    "second": [[1.0, 0.9, 0.8], [1.0, 0.7, 0.4]],
    "third": [[1.0, 1.0, 1.0]],
}


def test_gains_over_training() -> None:
    figure = figures.gains_over_training([0, 50, 100], GAINS)
    (axes,) = describe(figure)["axes"]
    lines = {line["label"]: line for line in axes["lines"] if "label" in line}
    assert list(lines) == list(GAINS)
    for label, rows in GAINS.items():
        assert lines[label]["x"] == [0, 50, 100]
        assert lines[label]["y"] == pytest.approx(np.mean(rows, axis=0), rel=1e-4)
    assert len({line["style"][1] for line in lines.values()}) == 3, "told apart without color"
    assert axes["lines"][0]["y"] == [1.0, 1.0], "where gains start"
    (band, _, _) = figure.axes[0].collections
    corners = band.get_paths()[0].vertices
    assert {1.1, 1.3} <= set(corners[np.isclose(corners[:, 0], 50), 1].round(6))


@pytest.mark.parametrize(
    ("gains", "message"),
    [
        ({}, "expected 1 to 3 ways, but got 0"),
        ({**GAINS, "fourth": [[1.0] * 3]}, "but got 4"),
        ({"first": [1.0, 1.1, 1.2]}, r"'first' to be of shape \(S, 3\), but got \(3,\)"),
        ({"first": [[1.0, 1.1]]}, r"but got \(1, 2\)"),
    ],
)
def test_other_numbers_are_refused(gains: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        figures.gains_over_training([0, 50, 100], gains)
