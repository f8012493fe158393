"""The figures show the numbers they are given."""

import numpy as np
import pytest

from lnbook.chapters.batch_norm.batch_size import figures
from lnbook.notebook.figure_snapshot import describe

pytestmark = pytest.mark.usefixtures("book_style")

LN, BN = [0.9, 0.8], [0.5, 0.7]


def test_by_size_shows_runs_and_means_in_percent() -> None:
    norms = {"LN": {2: LN, 8: [0.95, 0.97]}, "BN": {2: BN, 8: [0.96, 0.98]}}
    record = describe(figures.by_size({"one": norms, "two": norms}))["axes"]
    assert [panel["title"] for panel in record] == ["one", "two"]
    first = record[0]["lines"]
    assert first[0]["y"] == pytest.approx([10, 20])
    assert first[1]["y"] == pytest.approx([5, 3])
    assert first[2]["y"] == pytest.approx([15, 4])
    assert first[5]["y"] == pytest.approx([40, 3])
    assert first[2]["x"] == pytest.approx([2, 8], rel=0.1)
    assert first[2]["style"][1:] != first[5]["style"][1:], "told apart without color"
    assert record[0]["legend"] == ["LN", "BN"]
    assert record[0]["y"][:1] == record[1]["y"][:1], "one scale"


def test_learning_curves_show_the_mean() -> None:
    values = np.array([[0.5, 0.7], [0.9, 0.94]])
    record = describe(figures.learning_curves([10, 20], {"one": {"GN": values}}, "updates"))
    (line,) = record["axes"][0]["lines"]
    assert line["x"] == [10, 20]
    assert line["y"] == pytest.approx([40, 8])


def test_by_rate_shows_the_means() -> None:
    norms = {"none": {1e-3: LN, 1e-2: BN}}
    record = describe(figures.by_rate({"one": norms, "two": norms, "three": norms}))["axes"]
    assert [panel["title"] for panel in record[:3]] == ["one", "two", "three"]
    assert record[0]["lines"][0]["y"] == pytest.approx([15, 40])
    assert record[0]["lines"][0]["x"] == pytest.approx([1e-3, 1e-2], rel=0.2)


def test_grid_writes_each_accuracy() -> None:
    values = np.array([[0.5, 0.751], [0.9, 0.98]])
    record = describe(figures.grid(values, [2, 4], [2, 8]))["axes"][0]
    written = {(x, y): text for text, x, y in record["texts"]}
    assert written == {(0, 0): "0.500", (1, 0): "0.751", (0, 1): "0.900", (1, 1): "0.980"}
    with pytest.raises(ValueError, match=r"values of shape \(2, 1\), but got \(2, 2\)"):
        figures.grid(values, [2, 4], [2])


def test_figures_refuse() -> None:
    for draw in (figures.by_size, figures.by_rate, lambda p: figures.learning_curves([1], p, "")):
        with pytest.raises(ValueError, match="at least one panel"):
            draw({})
    with pytest.raises(ValueError, match="expected a norm out of"):
        figures.by_size({"one": {"ln": {2: LN}}})
