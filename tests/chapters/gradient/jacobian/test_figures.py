"""The figures show the numbers they are given."""

import numpy as np
import pytest

from lnbook.chapters.gradient.jacobian import figures
from lnbook.notebook.figure_snapshot import describe
from tests.helpers.drawn_texts import overlapping

pytestmark = pytest.mark.usefixtures("book_style")


def test_matrix_writes_each_number_in_its_cell() -> None:
    values = np.array([[0.5, -0.25], [-0.004, 1.0]])
    record = describe(figures.matrix(values))["axes"][0]
    written = {(x, y): text for text, x, y in record["texts"]}
    assert written == {
        (0, 0): "0.50",
        (1, 0): "\N{MINUS SIGN}0.25",
        (0, 1): "0.00",
        (1, 1): "1.00",
    }
    assert np.array(record["images"][0]["values"]) == pytest.approx(values, rel=1e-4)
    for shape in ((2, 3), (4,), (9, 9), (0, 0)):
        with pytest.raises(ValueError, match="expected shape"):
            figures.matrix(np.zeros(shape))


def test_spectrum() -> None:
    panels = {"one": [0.0, 0.5, 1.0], "two": [0.25, 0.5, 2.0]}
    record = describe(figures.spectrum(panels))["axes"]
    assert [panel["title"] for panel in record] == ["one", "two"]
    for panel, values in zip(record, panels.values(), strict=True):
        assert panel["lines"][0]["y"] == pytest.approx(values)
        assert [text for text, *_ in panel["texts"]] == [f"{value:.2f}" for value in values]
        assert panel["y"] == record[0]["y"], "one scale"
    assert overlapping(figures.spectrum(panels)) == []
    with pytest.raises(ValueError, match="at least one set"):
        figures.spectrum({})


def test_eigenvalues_by_spread() -> None:
    spread, one, other = [0.1, 1.0, 10.0], [3.0, 2.0, 1.0], [0.3, 0.2, 0.1]
    record = describe(figures.eigenvalues_by_spread(spread, one, other))["axes"][0]
    first, second = record["lines"]
    assert first["x"] == spread
    assert first["y"] == one
    assert second["y"] == other
    assert first["style"][1] != second["style"][1], "told apart without color"
    assert record["x"][1] == record["y"][1] == "log"
    assert len(record["legend"]) == 2


def test_before_and_after() -> None:
    panels = {"one": ([1.0, 0.0], [0.5, -0.5]), "two": ([0.0, 2.0], [-1.0, 1.0])}
    record = describe(figures.before_and_after(panels))["axes"]
    for panel, (before, after) in zip(record, panels.values(), strict=True):
        heights = [bar["corners"] for bar in panel["shapes"]]
        tops = [max(np.array(h)[:, 1], key=abs) for h in heights]
        assert tops == pytest.approx([*before, *after])
    assert len(record[0]["legend"]) == 2
    with pytest.raises(ValueError, match="at least one panel"):
        figures.before_and_after({})


def test_gradient_by_layer() -> None:
    lines = {"a": np.linspace(-3.0, 0.0, 30), "b": np.linspace(2.0, 0.0, 30)}
    record = describe(figures.gradient_by_layer({"one": lines, "two": lines}))["axes"]
    for panel in record:
        assert panel["legend"] == ["a", "b"]
        for line, values in zip(panel["lines"], lines.values(), strict=True):
            assert line["y"] == pytest.approx(values, abs=1e-4)
            assert (line["x"][0], line["x"][-1]) == (1, 30)
        assert len({line["style"][2] for line in panel["lines"]}) == 2
    with pytest.raises(ValueError, match="at least one panel"):
        figures.gradient_by_layer({})


def test_weight_norms() -> None:
    norms = {"a": [1.0, 2.0, 3.0], "b": [1.0, 1.5, 1.25]}
    record = describe(figures.weight_norms(norms))["axes"][0]
    assert [line["y"] for line in record["lines"]] == list(norms.values())
    assert record["legend"] == ["a", "b"]
    assert len({line["style"][1] for line in record["lines"]}) == 2
    with pytest.raises(ValueError, match="at least one line"):
        figures.weight_norms({})
