"""The figures show the numbers they are given."""

import numpy as np
import pytest

from lnbook.chapters.transformer.sequences import figures
from lnbook.notebook.figure_snapshot import describe
from lnbook.notebook.style import BLUE, VERMILION

pytestmark = pytest.mark.usefixtures("book_style")


def test_sentences_fill_up_with_padding() -> None:
    record = describe(figures.sentences([["a", "dog", "ran"], ["stop"]], 3))["axes"][0]
    assert [[text, x] for text, x, _ in record["texts"]] == [
        ["a", 0.5],
        ["dog", 1.5],
        ["ran", 2.5],
        ["stop", 0.5],
    ]
    assert len(record["shapes"]) == 6
    faces = [shape["color"] for shape in record["shapes"]]
    assert len(set(faces[:4])) == 1
    assert set(faces[4:]).isdisjoint(faces[:4]), "padding looks different"
    for words in ([], [["a", "b", "c", "d"]]):
        with pytest.raises(ValueError, match="at most 3 words"):
            figures.sentences(words, 3)


def test_padding() -> None:
    changes = {"one": [0.0, 0.0, 0.0], "two": [0.0, 1.0, 1.5]}
    record = describe(figures.padding([0, 4, 8], changes))["axes"][0]
    assert record["legend"] == list(changes)
    for line, values in zip(record["lines"], changes.values(), strict=True):
        assert line["x"] == [0.0, 4.0, 8.0]
        assert line["y"] == values
    assert len({tuple(line["style"][1:]) for line in record["lines"]}) == 2
    with pytest.raises(ValueError, match="at least one norm"):
        figures.padding([], {})


def test_company() -> None:
    outputs = {"2 sentences": [0.5, 1.5, 1.0], "8 sentences": [0.9, 1.1]}
    record = describe(figures.company(outputs, 0.75))["axes"][0]
    rows = record["lines"]
    assert [line["x"] for line in rows[:2]] == list(outputs.values())
    assert rows[0]["y"] != rows[1]["y"]
    assert rows[2]["x"] == [0.75, 0.75]
    assert record["words on y"][0] == list(outputs)
    assert record["legend"] == ["batch normalization", "LayerNorm"]
    with pytest.raises(ValueError, match="at least one size"):
        figures.company({}, 0.0)


def test_reach_marks_what_moved_and_what_must_not() -> None:
    found = np.zeros((3, 2, 3), dtype=bool)
    found[0, 0, 0] = found[0, 0, 2] = True  # to itself and to the future: as it should be
    found[2, 0, 1] = True  # to the past
    found[1, 1, 1] = True  # to the other sentence
    left, right = describe(figures.reach({"norm": found}))["axes"]
    assert left["title"] == "norm"

    def cells(panel: dict, color: str) -> list:
        return [
            [round(min(x for x, _ in s["corners"])), round(-max(y for _, y in s["corners"]))]
            for s in panel["shapes"]
            if s["color"].lower().startswith(color.lower())
        ]

    assert cells(left, BLUE) == [[0, 0], [2, 0]]
    assert cells(left, VERMILION) == [[1, 2]]
    assert cells(right, BLUE) == []
    assert cells(right, VERMILION) == [[1, 1]]
    assert [line["style"][2] for line in left["lines"]] == ["o", "o", "x"]
    for panels in ({}, {"a": found[:2]}, {"a": found, "b": found[:, :1]}, {"a": found[0]}):
        with pytest.raises(ValueError, match=r"of one shape \(L, N, L\)"):
            figures.reach(panels)


def test_guesses_show_the_mean_and_all_runs() -> None:
    losses = {"one": [[1.0, 0.5], [0.5, 0.25]], "two": [[1.0, 1.0]]}
    record = describe(figures.guesses(losses))["axes"][0]
    level, *lines = record["lines"]
    assert level["y"] == [1.0, 1.0]
    assert [line["y"] for line in lines] == [[0.75, 0.375], [1.0, 1.0]]
    assert [np.round(line["x"]).tolist() for line in lines] == [[1, 2], [1, 2]]
    bars = record["points"][0]["paths"]
    assert [[y for _, y in bar] for bar in bars] == [[0.5, 1.0], [0.25, 0.5]]
    assert record["legend"] == list(losses)
    assert record["y"][2] == 0.0
    with pytest.raises(ValueError, match="at least one model"):
        figures.guesses({})
