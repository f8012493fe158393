"""The figures of the family show what they are given."""

import numpy as np
import pytest
from matplotlib.colors import to_hex

from lnbook.chapters.batch_norm.family import figures
from lnbook.notebook.figure_snapshot import describe
from lnbook.notebook.style import BLUE

pytestmark = pytest.mark.usefixtures("book_style")

NAMES = ("N", "C", "P")


def mask(*index: object) -> np.ndarray:
    array = np.zeros((2, 3, 4), dtype=bool)
    array[index] = True
    return array


def test_members_color_the_cells_and_carry_title_and_note() -> None:
    panels = {"image": mask(0), "channel": mask(slice(None), 0), "one": mask(0, 0, -1)}
    figure = figures.members(panels, NAMES, ["first", "second", "third"])
    shown = describe(figure)["axes"]
    colored = [
        sum(shape["color"][:7] == to_hex(BLUE) for shape in panel.get("shapes", []))
        for panel in shown
    ]
    assert colored == [3 * 4 + 4 + 3, 4 + 2 * 4 + 2, 1 + 1 + 1, 0], "the fourth place is empty"
    assert [panel["title"] for panel in shown[:3]] == list(panels)
    notes = [panel["texts"][-1][0] for panel in shown[:3]]
    assert notes == ["first", "second", "third"]


def test_members_texts_do_not_overlap() -> None:
    note = "C/2, H, W\n" r"$N \cdot H \cdot W$ groups"
    figure = figures.members(dict.fromkeys("abc", mask(0)), NAMES, [note] * 3)
    figure.draw_without_rendering()
    boxes = [text.get_window_extent() for axes in figure.axes for text in axes.texts]
    assert not any(a.overlaps(b) for i, a in enumerate(boxes) for b in boxes[i + 1 :])
    assert all(box.x0 >= 0 and box.x1 <= figure.bbox.width for box in boxes)


def test_members_refuse_what_does_not_fit() -> None:
    with pytest.raises(ValueError, match="expected at least one array of three axes"):
        figures.members({}, NAMES, [])
    with pytest.raises(ValueError, match="expected at least one array of three axes"):
        figures.members({"a": mask(0)[0]}, NAMES, [""])
    with pytest.raises(ValueError, match="expected 3 names and 1 notes, but got 3 and 2"):
        figures.members({"a": mask(0)}, NAMES, ["", ""])


def test_table_says_yes_and_no_in_color_and_words() -> None:
    figure = figures.table([[True, False, False], [False, True, True]], ["r", "s"], ["a", "b", "c"])
    (axes,) = figure.axes
    words = {(text.get_position()): text.get_text() for text in axes.texts}
    assert words == {
        (0, 0): "yes", (1, 0): "no", (2, 0): "no", (0, 1): "no", (1, 1): "yes", (2, 1): "yes",
    }  # fmt: skip
    for patch, text in zip(axes.patches, axes.texts, strict=True):
        assert (to_hex(patch.get_facecolor()) == BLUE.lower()) == (text.get_text() == "yes")
        x, y = text.get_position()
        assert patch.get_x() < x < patch.get_x() + patch.get_width()
        assert patch.get_y() < y < patch.get_y() + patch.get_height()
    assert [label.get_text() for label in axes.get_yticklabels()] == ["r", "s"]
    low, high = axes.get_ylim()
    assert low > high, "the first row is on top"
    with pytest.raises(ValueError, match=r"expected marks of shape \(1, 2\), but got \(2, 1\)"):
        figures.table([[True], [False]], ["r"], ["a", "b"])


def test_curves_share_lines_scale_and_legend() -> None:
    at = [1.0, 2.0, 4.0]
    panels = {
        "first": {"a": [0.1, 0.2, 0.3], "b": [0.3, 0.2, 0.1]},
        "second": {"a": [0.5, 0.6, 0.7], "b": [0.9, 0.9, 0.9]},
    }
    figure = figures.curves(panels, at, "steps", logarithmic=True)
    for axes, (title, lines) in zip(figure.axes, panels.items(), strict=True):
        assert axes.get_title(loc="left") == title
        assert axes.get_xscale() == "log"
        for line, (name, values) in zip(axes.lines, lines.items(), strict=True):
            assert line.get_label() == name
            assert line.get_xdata().tolist() == at
            assert line.get_ydata().tolist() == values
        kinds = {(line.get_color(), line.get_marker()) for line in axes.lines}
        assert len(kinds) == 2
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["a", "b"]
    assert figures.curves({"one": {"a": [1.0]}}, [1.0], "x").axes[0].get_xscale() == "linear"
    for wrong in ({}, {"one": {}}, {"one": {"a": [1]}, "two": {"b": [1]}}):
        with pytest.raises(ValueError, match="expected panels with the same 1 to 7 lines"):
            figures.curves(wrong, [1.0], "x")
    eight = {"one": {letter: [1.0] for letter in "abcdefgh"}}
    with pytest.raises(ValueError, match="1 to 7 lines"):
        figures.curves(eight, [1.0], "x")
