"""The figures of the chapter on variants show the numbers they are given."""

import numpy as np
import pytest

from lnbook.chapters.transformer.variants import figures
from lnbook.notebook.figure_snapshot import describe

pytestmark = pytest.mark.usefixtures("book_style")


def test_by_block_draws_each_line_with_its_own_dash_and_marker() -> None:
    lines = {"a": [1.0, 2.0, 4.0], "b": [3.0, 3.0, 1e9]}
    figure = figures.by_block({"one": lines, "two": {"a": [1.0, 1.0]}}, "size", first=1, top=100.0)
    first, second = figure.axes
    for line, (name, values) in zip(first.lines, lines.items(), strict=True):
        assert line.get_label() == name
        assert line.get_xdata().tolist() == [1, 2, 3]
        assert line.get_ydata().tolist() == values
    assert len({(line.get_linestyle(), line.get_marker()) for line in first.lines}) == 2
    assert first.get_yscale() == "log"
    assert first.get_ylim()[1] == second.get_ylim()[1] == 100.0
    assert second.get_xlabel() == "block"
    with pytest.raises(ValueError, match="at least one panel"):
        figures.by_block({}, "size")


def test_keys_marks_the_hidden_ones_and_outlines_the_others() -> None:
    keys = np.array([[0.0, 0.0], [2, 0], [2, 2], [0, 2], [1, 1]])
    hidden = [False, False, False, False, True]
    figure = figures.keys({"raw": (keys, hidden), "round": (keys[:4], hidden[:4])}, circle=1.5)
    outline, shown, crosses, _ = figure.axes[0].lines
    assert len(outline.get_xdata()) == 5
    steps = np.abs(np.diff(outline.get_xydata(), axis=0)).sum(1)
    assert steps.tolist() == [2.0] * 4, "the outline goes around, along the sides"
    assert sorted(map(tuple, shown.get_xydata())) == sorted(map(tuple, keys[:4]))
    assert crosses.get_xydata().tolist() == [[1.0, 1.0]]
    assert figure.axes[1].patches[0].radius == 1.5
    assert not figure.axes[0].patches
    assert describe(figure)["axes"][0]["title"]
    with pytest.raises(ValueError, match="at least one panel"):
        figures.keys({})


def test_losses_puts_broken_runs_at_the_edge() -> None:
    runs = {"good": [2.0, 2.5], "bad": [2.0, np.inf, 9.0]}
    figure = figures.losses({"lr": runs}, worst=4.0, label="loss")
    axes = figure.axes[0]
    good, none_broken, mean, bad, broken = axes.lines
    assert good.get_xdata().tolist() == [2.0, 2.5]
    assert none_broken.get_xdata().size == 0
    assert mean.get_xdata() == pytest.approx([2.25, 2.25])
    assert bad.get_xdata().tolist() == [2.0]
    assert broken.get_xdata().tolist() == [4.0, 4.0]
    assert [text.get_text() for text in axes.get_yticklabels()] == ["good", "bad"]
    with pytest.raises(ValueError, match="at least one panel"):
        figures.losses({}, worst=4.0, label="loss")


def test_xor_shows_points_and_cut() -> None:
    before = np.array([[-2.0, 2.0], [0, 2], [2, 2]])
    after = before / np.linalg.norm(before, axis=1, keepdims=True)
    figure = figures.xor(before, after, 0.8, 1.0)
    axes = figure.axes[0]
    marked = {
        line.get_label(): line.get_xydata() for line in axes.lines if "XOR" in line.get_label()
    }
    assert marked["XOR 1, centered"].tolist() == [[0.0, 2.0]]
    assert marked["XOR 0, centered"].tolist() == [[-2.0, 2.0], [2.0, 2.0]]
    assert marked["XOR 1, normalized"] == pytest.approx(after[[1]])
    assert any(list(line.get_ydata()) == [0.8, 0.8] for line in axes.lines)
    low, high = axes.get_ylim()
    assert low < -1.0
    assert high > 2.0
