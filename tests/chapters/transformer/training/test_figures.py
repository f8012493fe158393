"""The figures show the numbers they are given."""

import numpy as np
import pytest
from matplotlib.figure import Figure

from lnbook.chapters.transformer.training import figures
from lnbook.notebook.figure_snapshot import describe

pytestmark = pytest.mark.usefixtures("book_style")

LEVELS = {"unigram": 3.4, "bigram": 2.4}


def told_apart(figure: Figure) -> bool:
    """Whether the lines with a label differ by dash and by marker."""
    lines = [line for line in figure.axes[0].lines if not line.get_label().startswith("_")]
    dashes = {str(line.get_linestyle()) + str(line._dash_pattern) for line in lines}
    return len(dashes) == len({line.get_marker() for line in lines}) == len(lines) > 1


def test_curves_show_mean_and_range() -> None:
    steps, losses = [10, 20, 30], np.array([[3.0, 2.5, 2.0], [4.0, 3.5, 2.2]])
    panels = {
        "two": {"a": (steps, losses), "b": (steps, losses + 1)},
        "six": {"a": (steps, losses)},
    }
    figure = figures.curves(panels, LEVELS)
    record = describe(figure)["axes"]
    assert [panel["title"] for panel in record] == ["two", "six"]
    assert record[0]["lines"][0]["x"] == steps
    assert record[0]["lines"][0]["y"] == pytest.approx([3.5, 3.0, 2.1])
    assert record[0]["lines"][1]["y"] == pytest.approx([4.5, 4.0, 3.1])
    levels = [line["y"] for panel in record for line in panel["lines"][-2:]]
    assert levels == [[3.4, 3.4], [2.4, 2.4]] * 2
    band = figure.axes[0].collections[0].get_paths()[0].vertices
    assert (band[:, 1].min(), band[:, 1].max()) == (2.0, 4.0)
    assert told_apart(figure)


def test_a_model_looks_the_same_in_every_figure() -> None:
    runs = ([10, 20], np.array([[3.0, 2.5]]))
    few = figures.curves({"": {"Post-LN": runs, "Pre-LN": runs}}, {})
    names = ["Post-LN", "Post-LN, warm-up", "other", "Pre-LN"]
    many = figures.by_depth([6, 12], {name: [[1.0, 0.5]] for name in names}, "change")
    looks = [
        {line.get_label(): (line.get_color(), line.get_marker()) for line in figure.axes[0].lines}
        for figure in (few, many)
    ]
    assert all(looks[1][name] == look for name, look in looks[0].items())
    assert len(set(looks[1].values())) == len(names)


def test_by_rate_shows_each_run_and_the_mean() -> None:
    lines = {"a": {1e-3: [2.0, 4.0], 1e-2: [5.0]}, "b": {1e-3: [1.0]}}
    figure = figures.by_rate(lines, LEVELS)
    record = describe(figure)["axes"][0]
    assert record["lines"][0]["x"] == [0.001, 0.01]
    assert record["lines"][0]["y"] == [3.0, 5.0]
    assert record["lines"][1]["y"] == [2.0, 4.0, 5.0]
    assert record["lines"][2]["y"] == [1.0]
    assert record["x"][1] == "log"
    assert told_apart(figure)


@pytest.mark.parametrize("log", [True, False])
def test_by_block_shows_the_values(log: bool) -> None:
    panels = {"Post": {"step 0": [0.9, 0.5], "step 5": [0.5, 0.1]}, "Pre": {"step 0": [0.9, 0.8]}}
    figure = figures.by_block(panels, "share", log=log)
    record = describe(figure)["axes"]
    assert [panel["title"] for panel in record] == ["Post", "Pre"]
    assert [line["y"] for line in record[0]["lines"]] == [[0.9, 0.5], [0.5, 0.1]]
    assert record[0]["lines"][0]["x"] == [1, 2]
    assert (record[0]["y"][1] == "log") is log
    assert told_apart(figure)


def test_by_depth_shows_the_means() -> None:
    lines = {"a": [[1.0, 2.0], [3.0, 6.0]], "b": [[0.1, 0.2], [0.1, 0.2]]}
    figure = figures.by_depth((2, 6), lines, "change")
    record = describe(figure)["axes"][0]
    assert [line["y"] for line in record["lines"]] == [[2.0, 4.0], [0.1, 0.2]]
    assert record["lines"][0]["x"] == [2, 6]
    assert told_apart(figure)


def test_finals_show_each_run_the_mean_and_the_levels() -> None:
    rows = {"one": [3.0, 3.2], "two": [2.5, 2.7]}
    record = describe(figures.finals(rows, LEVELS))["axes"][0]
    for number, losses in enumerate(rows.values()):
        points, mean = record["lines"][2 * number : 2 * number + 2]
        assert points["x"] == losses
        assert mean["x"] == pytest.approx([np.mean(losses)] * 2)
    assert [line["x"][0] for line in record["lines"][4:]] == [3.4, 2.4]
    assert {"one", "two", "unigram", "bigram"} == {text for text, *_ in record["texts"]}


@pytest.mark.parametrize(
    "draw",
    [
        lambda: figures.curves({}, {}),
        lambda: figures.by_rate({}, {}),
        lambda: figures.by_block({}, "x"),
        lambda: figures.by_depth((1,), {}, "x"),
        lambda: figures.finals({}, {}),
    ],
)
def test_figures_refuse_to_draw_nothing(draw) -> None:
    with pytest.raises(ValueError, match="expected something to draw"):
        draw()
