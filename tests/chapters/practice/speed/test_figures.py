"""The figures on speed show the numbers they are given."""

import numpy as np
import pytest

from lnbook.chapters.practice.speed import figures
from lnbook.notebook.figure_snapshot import describe

pytestmark = pytest.mark.usefixtures("book_style")


def test_roofline_shows_the_roof_and_the_points() -> None:
    points = {"a": (1.0, 20.0), "b": (4.0, 90.0)}
    lines = describe(figures.roofline(50.0, 200.0, points))["axes"][0]["lines"]
    roof = lines[0]
    assert roof["x"][1] == pytest.approx(4.0)  # the ridge: 200 / 50
    assert roof["y"] == pytest.approx([50 * roof["x"][0], 200.0, 200.0], rel=1e-4)
    assert [(line["x"], line["y"]) for line in lines[2:]] == [([1], [20]), ([4], [90])]
    assert lines[2]["style"][2] != lines[3]["style"][2]


def test_roofline_refuses_what_has_no_logarithm() -> None:
    with pytest.raises(ValueError, match="expected positive numbers, but got 0"):
        figures.roofline(50.0, 200.0, {"a": (0.0, 1.0)})
    with pytest.raises(ValueError, match="at least one point"):
        figures.roofline(50.0, 200.0, {})


def test_counted_and_measured_shows_both() -> None:
    record = describe(figures.counted_and_measured({"a": (1.0, 2.5), "b": (4.0, 4.5)}, "copies"))
    counted, measured = record["axes"][0]["lines"]
    assert counted["x"] == [1, 4]
    assert measured["x"] == [2.5, 4.5]
    assert counted["y"] == measured["y"] == [0, -1]
    assert counted["style"][2] != measured["style"][2]
    with pytest.raises(ValueError, match="at least one row"):
        figures.counted_and_measured({}, "copies")


def test_ratios_shows_each_setting() -> None:
    forms = {"a": (1.0, 1.0, 1.0), "b": (2.0, 1.5, 3.0)}
    other = {"a": (1.0, 1.0, 1.0), "b": (5.0, 4.0, 6.0)}
    figure = figures.ratios({"one": {"1": forms, "2": other}, "two": {"1": forms, "2": other}}, "x")
    first, second = describe(figure)["axes"]
    assert [first["title"], second["title"]] == ["one", "two"]
    assert [line["x"] for line in first["lines"][:2]] == [[1, 2], [1, 5]]
    assert first["lines"][0]["style"][2] != first["lines"][1]["style"][2]
    heights = [np.array(line["y"]) for line in first["lines"][:2]]
    assert (heights[0] > heights[1]).all()  # side by side, not on top of each other


def test_ratios_refuses_what_cannot_be_compared() -> None:
    one = (1.0, 1.0, 1.0)
    with pytest.raises(ValueError, match="the same forms for all settings of 'p'"):
        figures.ratios({"p": {"1": {"a": one}, "2": {"b": one}}}, "x")
    with pytest.raises(ValueError, match="at least one panel"):
        figures.ratios({}, "x")
