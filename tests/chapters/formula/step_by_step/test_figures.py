"""The figures show the numbers they are given."""

import numpy as np
import pytest

from lnbook.chapters.formula.step_by_step import figures
from lnbook.chapters.shared import figures as shared_figures
from lnbook.notebook.figure_snapshot import describe
from tests.helpers.drawn_texts import overlapping

pytestmark = pytest.mark.usefixtures("book_style")


def test_process_names_every_quantity() -> None:
    record = str(describe(figures.process()))
    for formula in (r"$x$", r"$\mu$", r"$\sigma^2$", r"$\gamma$", r"$\beta$"):
        assert repr(formula)[1:-1] in record
    assert overlapping(figures.process()) == []


def test_a_mean_of_rounding_errors_is_drawn_as_zero() -> None:
    row = np.array([0.1, 0.2, -0.3])
    assert row.mean() != 0
    for figure in (shared_figures.stages({"one": row}), figures.scale_and_shift({"one": row})):
        drawn = [line.get_xdata() for line in figure.axes[0].lines] + [
            line.get_ydata() for line in figure.axes[0].lines
        ]
        assert [0, 0] in [list(ends) for ends in drawn]
        assert row.mean() not in np.concatenate(drawn)


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
