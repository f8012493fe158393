"""The figures show the numbers they are given."""

import numpy as np
import pytest

from lnbook.chapters.batch_norm.train_and_eval import figures
from lnbook.notebook.figure_snapshot import describe

pytestmark = pytest.mark.usefixtures("book_style")


def test_companions() -> None:
    layer = np.full((3, 4), 0.5)
    batch = np.array([[np.nan] * 4, [-1.0, 1.0, -1.0, 1.0], [0.1, 0.2, 0.3, 0.4]])
    above, below = describe(figures.companions((1, 2, 8), layer, batch))["axes"]
    assert "BatchNorm" in above["title"]
    assert below["title"] == "LayerNorm"
    assert below["lines"][0]["y"] == pytest.approx(layer.ravel())
    assert above["lines"][0]["y"][4:] == pytest.approx(batch[1:].ravel())
    assert [(text, x) for text, x, _ in above["texts"]] == [("error", 0)]
    assert "texts" not in below
    assert above["lines"][0]["style"][2] != below["lines"][0]["style"][2], "markers differ"
    with pytest.raises(ValueError, match=r"expected shape \(3, draws\), but got \(2, 4\)"):
        figures.companions((1, 2, 8), layer, batch[1:])


def test_running() -> None:
    lines = {"a": [0.5, 1.0, 1.5], "b": [2.0, 1.0, 3.0]}
    record = describe(figures.running(lines, [2.0, 2.5, 3.0], 2.4))["axes"][0]
    truth, first, second, means = record["lines"]
    assert truth["y"] == [2.4, 2.4]
    assert (first["y"], second["y"]) == tuple(lines.values())
    assert first["x"] == [1, 2, 3]
    assert means["y"] == [2.0, 2.5, 3.0]
    assert first["style"][1] != second["style"][1], "told apart without color"


def test_errors() -> None:
    formula = {"a": np.geomspace(3.0, 0.5, 30), "b": np.full(30, 0.7)}
    measured = {"a": formula["a"] * 1.01, "b": formula["b"] * 0.99}
    record = describe(figures.errors(formula, measured))["axes"][0]
    for number, label in enumerate(formula):
        line, points = record["lines"][2 * number : 2 * number + 2]
        assert line["y"] == pytest.approx(formula[label], rel=1e-3)
        places = np.array(points["x"], dtype=int) - 1
        assert points["y"] == pytest.approx(measured[label][places], rel=1e-3)
        assert (places[0], places[-1]) == (0, 29)
    assert record["legend"] == ["a", "b"]
    assert record["x"][1] == record["y"][1] == "log"
    with pytest.raises(ValueError, match="expected the same labels"):
        figures.errors(formula, {"a": measured["a"]})


def test_accuracy_by_batch_and_by_shift() -> None:
    lines = {"a": ([0.5, 0.75, 0.875], [0.125, 0.25, 0.125])}
    batch = describe(figures.accuracy_by_batch((2, 5, 450), lines, {"level": 0.98}))["axes"][0]
    shift = describe(figures.accuracy_by_shift((0.0, 0.5, 1.0), lines))["axes"][0]
    for record, x in ((batch, [2, 5, 450]), (shift, [0.0, 0.5, 1.0])):
        assert record["lines"][0]["x"] == x
        assert record["lines"][0]["y"] == lines["a"][0]
        bars = [np.array(bar)[:, 1].tolist() for bar in record["points"][0]["paths"]]
        assert bars == [[0.375, 0.625], [0.5, 1.0], [0.75, 1.0]], "one spread up and down"
    assert batch["lines"][1]["y"] == [0.98, 0.98]
    assert batch["legend"] == ["a", "level"]
    assert shift["legend"] == ["a"]


def test_accuracy_over_steps() -> None:
    lines = {"a": [0.25, 0.5, 0.75], "b": [0.5, 0.5, 0.625]}
    record = describe(figures.accuracy_over_steps([10, 20, 30], lines))["axes"][0]
    assert [line["y"] for line in record["lines"]] == list(lines.values())
    assert record["lines"][0]["x"] == [10, 20, 30]
    assert len({line["style"][2] for line in record["lines"]}) == 2, "markers differ"
    assert record["legend"] == ["a", "b"]


@pytest.mark.parametrize(
    "draw",
    [
        lambda: figures.running({}, [1.0], 1.0),
        lambda: figures.errors({}, {}),
        lambda: figures.accuracy_by_batch((2,), {}, {}),
        lambda: figures.accuracy_by_shift((0.0,), {}),
        lambda: figures.accuracy_over_steps([1], {}),
    ],
)
def test_no_lines(draw: object) -> None:
    with pytest.raises(ValueError, match="expected at least one line, but got none"):
        draw()  # type: ignore[operator]
