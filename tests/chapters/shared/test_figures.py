"""The figures show the numbers they are given."""

import numpy as np
import pytest

from lnbook.chapters.shared import figures as shared_figures
from lnbook.notebook.figure_snapshot import describe
from tests.helpers.drawn_texts import overlapping

pytestmark = pytest.mark.usefixtures("book_style")


def test_runs_show_each_run_and_the_mean() -> None:
    kinds = {"full": [0.1, 0.2, 0.6], "cut": [0.4, 0.5]}
    record = describe(shared_figures.seed_dots({"Adam": kinds, "SGD": kinds}, "loss"))["axes"]
    for panel in record:
        for number, results in enumerate(kinds.values()):
            points, mean = panel["lines"][2 * number : 2 * number + 2]
            assert points["x"] == results
            assert mean["x"] == pytest.approx([np.mean(results)] * 2)
    assert "x" in record[-1]
    with pytest.raises(ValueError, match="at least one panel"):
        shared_figures.seed_dots({}, "loss")


def test_stages_show_values_and_means() -> None:
    first, second = [4.0, 2.0, 8.0], [-1.0, 0.0, 1.0]
    record = describe(shared_figures.stages({"one": first, "two": second}))
    assert [panel["title"] for panel in record["axes"]] == ["one", "two"]
    for panel, row in zip(record["axes"], (first, second), strict=True):
        heights = [np.ptp(np.array(bar["corners"])[:, 1]) for bar in panel["shapes"]]
        assert heights == pytest.approx(np.abs(row), rel=1e-4)
        assert panel["lines"][-1]["y"] == pytest.approx([np.mean(row)] * 2, rel=1e-4)
    assert overlapping(shared_figures.stages({"one": first, "two": second})) == []


def test_stages_refuse_what_does_not_fit() -> None:
    with pytest.raises(ValueError, match="expected at least one row"):
        shared_figures.stages({})
    with pytest.raises(ValueError, match="all of one shape"):
        shared_figures.stages({"one": [1.0], "two": [1.0, 2.0]})


def test_over_steps_shows_mean_and_range() -> None:
    runs = np.array([[1.0, 2.0, 4.0], [3.0, 8.0, 1.0]])
    panels = {"plain": {"a": runs, "b": 2 * runs}, "log": {"a": runs, "b": runs}}
    figure = shared_figures.over_steps(panels, log=["log"], first=1)
    plain, log = describe(figure)["axes"]
    assert [line["y"] for line in plain["lines"]] == [
        pytest.approx(runs.mean(0)),
        pytest.approx(2 * runs.mean(0)),
    ]
    assert log["lines"][0]["y"] == pytest.approx(np.sqrt(runs[0] * runs[1]), rel=1e-4)
    assert plain["lines"][0]["x"] == [1, 2, 3]
    assert [axes.get_yscale() for axes in figure.axes] == ["linear", "log"]
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["a", "b"]
    band = figure.axes[0].collections[0].get_paths()[0].vertices
    assert band[:, 1].min() == 1.0
    assert band[:, 1].max() == 8.0


def test_over_steps_with_one_line_needs_no_legend() -> None:
    figure = shared_figures.over_steps({"a": {"line": np.ones((2, 3))}})
    assert figure.legends == []


def test_over_steps_refuses_what_is_no_panel() -> None:
    with pytest.raises(ValueError, match="at least one panel"):
        shared_figures.over_steps({})
    with pytest.raises(ValueError, match=r"expected values of shape \(runs, steps\)"):
        shared_figures.over_steps({"a": {"b": [1.0, 2.0]}})
