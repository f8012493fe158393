"""The figures on when to use LayerNorm show what they are given."""

import numpy as np
import pytest

from lnbook.chapters.practice.when_to_use import figures
from lnbook.notebook.style import WIDTH

pytestmark = pytest.mark.usefixtures("book_style")

STEPS = [
    ("Is there a trained", "Like ConvNeXt: LayerNorm2d."),
    ("Is it two,\nor three?", "Take two,\nor three,\nor four."),
]


def test_decision_shows_questions_advice_and_arrows() -> None:
    figure = figures.decision(STEPS, "Take none.")
    figure.draw_without_rendering()
    (axes,) = figure.axes
    texts = [text.get_text() for text in axes.texts]
    assert [t for t in texts if t[0] in "12"] == [f"{n}. {q}" for n, (q, _) in enumerate(STEPS, 1)]
    assert [advice for _, advice in STEPS] == [t for t in texts if t in dict(STEPS).values()]
    assert texts.count("yes") == texts.count("no") == 2
    assert texts[-1] == "Take none."
    boxes = [patch for patch in axes.patches if hasattr(patch, "get_boxstyle")]
    assert len(boxes) == 2 * len(STEPS) + 1
    assert figure.get_size_inches()[0] == WIDTH


def test_decision_texts_lie_in_their_boxes_and_do_not_overlap() -> None:
    figure = figures.decision(STEPS, "Take none.")
    figure.draw_without_rendering()
    (axes,) = figure.axes
    words = [text.get_window_extent() for text in axes.texts]
    assert not any(a.overlaps(b) for i, a in enumerate(words) for b in words[i + 1 :])
    frames = [patch.get_window_extent() for patch in axes.patches if hasattr(patch, "get_boxstyle")]
    for text, extent in zip(axes.texts, words, strict=True):
        if text.get_text() not in ("yes", "no"):
            assert any(
                frame.x0 <= extent.x0
                and extent.x1 <= frame.x1
                and frame.y0 <= extent.y0
                and extent.y1 <= frame.y1
                for frame in frames
            ), text.get_text()
    assert not any(a.overlaps(b) for i, a in enumerate(frames) for b in frames[i + 1 :])


def test_shares_are_written_beside_their_bars() -> None:
    figure = figures.shares({"few": 0.043, "many": 10.2})
    figure.draw_without_rendering()
    (axes,) = figure.axes
    assert [text.get_text() for text in axes.texts] == ["few", "0.043 %", "many", "10 %"]
    ends = [bar.get_x() + bar.get_width() for bar in axes.patches]
    assert np.allclose(ends, [0.043, 10.2])
    assert axes.get_xlim()[0] == 0.01
    assert axes.get_xscale() == "log"


def test_by_distance_draws_means_and_bands() -> None:
    values = np.array([[1.0, 10.0], [3.0, 30.0]])
    figure = figures.by_distance({"a": values, "b": 2 * values}, [1.0, 100.0], "size")
    figure.draw_without_rendering()
    (axes,) = figure.axes
    assert [list(line.get_ydata()) for line in axes.lines] == [[2.0, 20.0], [4.0, 40.0]]
    assert [line.get_label() for line in axes.lines] == ["a", "b"]
    assert axes.lines[0].get_linestyle() != axes.lines[1].get_linestyle()
    corners = axes.collections[0].get_paths()[0].vertices
    assert {tuple(c) for c in corners} >= {(1.0, 1.0), (1.0, 3.0), (100.0, 10.0), (100.0, 30.0)}
    assert axes.get_ylabel() == "size"


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(ValueError, match="decision: expected at least one question"):
        figures.decision([], "")
    for bad in ({}, {"a": 0.0}, {"a": 101.0}):
        with pytest.raises(ValueError, match="shares: expected shares above 0 and up to 100"):
            figures.shares(bad)
    for lines in ({}, {"a": [1.0, 2.0]}, {key: [[1.0, 2.0]] for key in "abcde"}):
        with pytest.raises(ValueError, match="expected 1 to 4 lines of shape"):
            figures.by_distance(lines, [1.0, 2.0], "size")
