"""The figures on epsilon and precision show the numbers they are given."""

import numpy as np
import pytest

from lnbook.chapters.formula.epsilon_and_precision import figures
from lnbook.notebook.figure_snapshot import describe

pytestmark = pytest.mark.usefixtures("book_style")

X = np.array([0.1, 1.0, 10.0])
CURVES = {"first": [0.2, 0.3, 0.4], "second": [1.0, 2.0, 4.0]}


def lines_of(figure) -> dict[str, dict]:
    (axes,) = describe(figure)["axes"]
    return {line["label"]: line for line in axes["lines"] if "label" in line}


def test_variance_errors() -> None:
    figure = figures.variance_errors(X, CURVES, predicted=[1e-3, 1e-1, 10.0])
    lines = lines_of(figure)
    assert list(lines) == ["prediction", "first", "second"]
    for label, values in CURVES.items():
        assert lines[label]["x"] == pytest.approx(X, rel=1e-4)
        assert lines[label]["y"] == pytest.approx(values, rel=1e-4)
    assert lines["prediction"]["y"] == pytest.approx([1e-3, 1e-1, 10.0], rel=1e-4)
    assert len({line["style"][2] for line in lines.values()}) == 3, "told apart without color"
    (axes,) = describe(figure)["axes"]
    assert (axes["x"][1], axes["y"][1]) == ("log", "log")
    assert axes["lines"][0]["y"] == [1.0, 1.0], "where the error is as large as the variance"
    with pytest.raises(ValueError, match="expected a prediction of shape"):
        figures.variance_errors(X, CURVES, predicted=[1.0])


@pytest.mark.parametrize(("draw", "scale"), [("spread", "linear"), ("stretch", "log")])
def test_curves_over_sigma(draw: str, scale: str) -> None:
    figure = getattr(figures, draw)(X, CURVES)
    lines = lines_of(figure)
    for label, values in CURVES.items():
        assert lines[label]["x"] == pytest.approx(X, rel=1e-4)
        assert lines[label]["y"] == pytest.approx(values, rel=1e-4)
    assert len({line["style"][1] for line in lines.values()}) == 2, "told apart without color"
    (axes,) = describe(figure)["axes"]
    assert (axes["x"][1], axes["y"][1]) == ("log", scale)


def test_spread_marks_half_of_the_variance() -> None:
    (axes,) = describe(figures.spread(X, CURVES))["axes"]
    assert axes["lines"][0]["y"] == pytest.approx([np.sqrt(0.5)] * 2, rel=1e-4)


@pytest.mark.parametrize("draw", [figures.spread, figures.stretch])
@pytest.mark.parametrize(
    "curves", [{}, {"short": [1.0]}, {str(n): [1.0, 1.0, 1.0] for n in range(5)}]
)
def test_curves_that_do_not_fit(draw, curves: dict) -> None:
    with pytest.raises(ValueError, match="expected one to 4 curves over one axis"):
        draw(X, curves)
