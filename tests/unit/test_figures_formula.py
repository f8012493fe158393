"""The figures show the numbers they are given."""

import numpy as np
import pytest

from lnbook.figure_record import describe
from lnbook.figures import formula as figures
from tests.unit.drawn_texts import overlapping

pytestmark = pytest.mark.usefixtures("book_style")


def test_process_names_every_quantity() -> None:
    record = str(describe(figures.process()))
    for formula in (r"$x$", r"$\mu$", r"$\sigma^2$", r"$\gamma$", r"$\beta$"):
        assert repr(formula)[1:-1] in record
    assert overlapping(figures.process()) == []


def test_stages_show_values_and_means() -> None:
    first, second = [4.0, 2.0, 8.0], [-1.0, 0.0, 1.0]
    record = describe(figures.stages({"one": first, "two": second}))
    assert [panel["title"] for panel in record["axes"]] == ["one", "two"]
    for panel, row in zip(record["axes"], (first, second), strict=True):
        heights = [np.ptp(np.array(bar["corners"])[:, 1]) for bar in panel["shapes"]]
        assert heights == pytest.approx(np.abs(row), rel=1e-4)
        assert panel["lines"][-1]["y"] == pytest.approx([np.mean(row)] * 2, rel=1e-4)
    assert overlapping(figures.stages({"one": first, "two": second})) == []


def test_a_mean_of_rounding_errors_is_drawn_as_zero() -> None:
    row = np.array([0.1, 0.2, -0.3])
    assert row.mean() != 0
    for figure in (figures.stages({"one": row}), figures.scale_and_shift({"one": row})):
        drawn = [line.get_xdata() for line in figure.axes[0].lines] + [
            line.get_ydata() for line in figure.axes[0].lines
        ]
        assert [0, 0] in [list(ends) for ends in drawn]
        assert row.mean() not in np.concatenate(drawn)


def test_stages_refuse_what_does_not_fit() -> None:
    with pytest.raises(ValueError, match="expected at least one row"):
        figures.stages({})
    with pytest.raises(ValueError, match="all of one shape"):
        figures.stages({"one": [1.0], "two": [1.0, 2.0]})


def test_rows_before_and_after() -> None:
    x, normalized = np.arange(6.0).reshape(2, 3), np.arange(6.0, 12.0).reshape(2, 3)
    upper, lower = describe(figures.rows_before_and_after(x, normalized))["axes"]
    assert [line["x"] for line in upper["lines"]] == x.tolist()
    assert [line["x"] for line in lower["lines"]] == normalized.tolist()
    markers = {line["style"][2] for line in upper["lines"]}
    assert len(markers) == 2, "rows can be told apart without color"
    for shape in ((2, 4), (6,), (5, 3)):
        with pytest.raises(ValueError, match="expected two arrays of one shape"):
            figures.rows_before_and_after(np.zeros(shape), np.zeros((2, 3)))


def test_scale_and_shift() -> None:
    values = np.linspace(-2.0, 2.0, 101)
    rows = {f"row {g}": g * values + 0.25 for g in (1.0, 2.0)}
    panels = describe(figures.scale_and_shift(rows))["axes"]
    assert [panel["title"] for panel in panels] == ["row 1.0", "row 2.0"]
    for panel, row in zip(panels, rows.values(), strict=True):
        line, bar = panel["lines"]
        assert line["x"] == pytest.approx([row.mean()] * 2, rel=1e-4)
        assert bar["x"] == pytest.approx([row.mean() - row.std(), row.mean() + row.std()], rel=1e-4)
    with pytest.raises(ValueError, match="expected at least one row"):
        figures.scale_and_shift({})
