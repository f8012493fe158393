"""The figures show the numbers they are given."""

import numpy as np
import pytest

from lnbook.chapters.transformer.gradients_at_init import figures
from lnbook.notebook.figure_snapshot import describe

pytestmark = pytest.mark.usefixtures("book_style")

RUNS = np.array([[1.0, 2.0, 4.0], [3.0, 2.0, 8.0]])


def band(points: dict) -> tuple[list[float], list[float]]:
    """The lowest and the highest corner of a band at each of its places."""
    corners = np.array(points["paths"][0])
    places = np.unique(corners[:, 0])
    return (
        [corners[corners[:, 0] == x, 1].min() for x in places],
        [corners[corners[:, 0] == x, 1].max() for x in places],
    )


def test_growth() -> None:
    record = describe(figures.growth(RUNS, [1, 1.5, 2], [1, 2.5, 4]))["axes"][0]
    measured, upper, lower = record["lines"]
    assert measured["x"] == [0, 1, 2]
    assert measured["y"] == [2, 2, 6]
    assert upper["y"] == [1, 2.5, 4]
    assert lower["y"] == [1, 1.5, 2]
    assert band(record["points"][0]) == ([1, 2, 4], [3, 2, 8])
    assert len({line["style"][1] for line in record["lines"]}) == 3
    for runs, low in ((RUNS[0], [1, 1, 1]), (RUNS, [1, 1]), (RUNS[:0], [1, 1, 1])):
        with pytest.raises(ValueError, match="expected"):
            figures.growth(runs, low, [1, 1, 1])


def test_by_depth() -> None:
    panels = {"one": {"a": RUNS, "b": 2 * RUNS, "c": RUNS}, "two": {"d": RUNS}}
    record = describe(figures.by_depth((2, 6, 12), panels, ["left", "right"]))["axes"]
    assert [panel["title"] for panel in record] == ["one", "two"]
    assert [panel["y"][0] for panel in record] == ["left", "right"]
    first = record[0]
    assert first["legend"] == ["a", "b", "c"]
    assert [line["x"] for line in first["lines"]] == [[2, 6, 12]] * 3
    assert first["lines"][1]["y"] == [4, 4, 12]
    assert band(first["points"][1]) == ([2, 4, 8], [6, 4, 16])
    assert len({(*line["style"][1:],) for line in first["lines"]}) == 3
    assert first["x"][1] == "log"
    assert first["y"][2] == 0
    assert first["y"][3] > 16
    assert record[1]["words on x"] == [["2", "6", "12"], [2, 6, 12]]


def test_by_depth_refuses() -> None:
    with pytest.raises(ValueError, match="0 panels"):
        figures.by_depth((2, 6), {}, [])
    with pytest.raises(ValueError, match="1 panels and 2 labels"):
        figures.by_depth((2, 6, 12), {"": {"a": RUNS}}, ["one", "two"])
    with pytest.raises(ValueError, match=r"expected shape \(runs, 2\), but got \(2, 3\)"):
        figures.by_depth((2, 6), {"": {"a": RUNS}}, ["one"])


def test_by_block() -> None:
    panels = {"Post": {"a": RUNS, "b": 0.01 * RUNS}, "Pre": {"c": RUNS}}
    figure = figures.by_block(panels, "norm", references={"Pre": {"rule": [1.0, 2.0, 3.0]}})
    post, pre = describe(figure)["axes"]
    assert post["lines"][0]["x"] == [1, 2, 3]
    assert post["lines"][1]["y"] == [0.02, 0.02, 0.06]
    assert band(post["points"][0]) == ([1, 2, 4], [3, 2, 8])
    assert pre["lines"][1]["y"] == [1, 2, 3]
    assert pre["legend"] == ["c", "rule"]
    assert post["y"] == pre["y"]
    assert post["y"][1] == "log"
    apart = describe(figures.by_block(panels, "norm", one_scale=False))["axes"]
    assert apart[0]["y"] != apart[1]["y"]
    linear = describe(figures.by_block(panels, "share", scale="linear"))["axes"][0]
    assert linear["y"][:3] == ["share", "linear", 0]


def test_by_block_refuses() -> None:
    with pytest.raises(ValueError, match="at least one panel"):
        figures.by_block({}, "norm")
    for wrong in (RUNS[0], RUNS[:0]):
        with pytest.raises(ValueError, match="expected shape"):
            figures.by_block({"": {"a": wrong}}, "norm")
