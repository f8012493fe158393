"""The figures show the numbers they are given."""

import numpy as np
import pytest

from lnbook.chapters.lstm.training import figures
from lnbook.notebook.figure_snapshot import describe

pytestmark = pytest.mark.usefixtures("book_style")


def test_curves_show_means_in_order() -> None:
    scores = np.array([[1.0, 0.5, 0.1], [0.6, 0.3, 0.3]])
    lines = {"ba": ([1, 2, 3], scores), "none": ([1, 2, 3], scores + 1)}
    record = describe(figures.curves({"one": lines}, label="error", log=True, level=1.0))
    panel = record["axes"][0]
    assert panel["title"] == "one"
    assert panel["lines"][0]["x"] == [1, 2, 3]
    assert panel["lines"][0]["y"] == pytest.approx([0.8, 0.4, 0.2])
    assert panel["lines"][1]["y"] == pytest.approx([1.8, 1.4, 1.2])
    assert panel["lines"][0]["style"][1:] != panel["lines"][1]["style"][1:], "not color alone"


def test_by_rate_shows_means_and_runs() -> None:
    runs = {0.01: [0.2, 0.4], 0.003: [0.7, 0.9]}
    record = describe(figures.by_rate({"error": {"ba": runs}, "accuracy": {"none": runs}}))
    for panel, title in zip(record["axes"], ("error", "accuracy"), strict=False):
        assert panel["title"] == title
        low, high, means = panel["lines"]
        assert low["y"] == pytest.approx([0.7, 0.9])
        assert high["y"] == pytest.approx([0.2, 0.4])
        assert means["y"] == pytest.approx([0.8, 0.3])
        assert means["x"] == pytest.approx([0.003, 0.01])


def test_figures_refuse() -> None:
    for draw in (lambda panels: figures.curves(panels, label=""), figures.by_rate):
        with pytest.raises(ValueError, match="at least one panel"):
            draw({})
    with pytest.raises(ValueError, match="expected a line out of"):
        figures.by_rate({"one": {"Ba": {0.1: [1.0]}}})
    with pytest.raises(ValueError, match="expected a line out of"):
        figures.curves({"one": {"Ba": ([1], [[1.0]])}}, label="")
