"""Labels at the ends of lines."""

import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.text import Text

from lnbook.chapters.shared.line_labels import label_lines
from tests.helpers.drawn_texts import outside, overlapping


def draw(lines: dict[str, list[float]], *, height: float = 2.4, top: float | None = None) -> Figure:
    figure = Figure(figsize=(4.6, height), layout="constrained")
    axes = figure.subplots()
    for label, values in lines.items():
        axes.plot(values, label=label)
    axes.set_ylim(top=top)
    label_lines(figure)
    return figure


def heights(figure: Figure) -> dict[str, float]:
    """The middle of each label, in pixels from the bottom of the figure."""
    figure.draw_without_rendering()
    found = {}
    for text in figure.axes[0].texts:
        box = Text.get_window_extent(text)  # without the line that leads to it
        found[text.get_text()] = (box.y0 + box.y1) / 2
    return found


def test_a_label_is_level_with_the_end_of_its_line_and_has_its_color() -> None:
    figure = draw({"low": [5.0, 0.0], "high": [0.0, 4.0]})
    (axes,) = figure.axes
    middles = heights(figure)
    for line, text in zip(axes.lines, axes.texts, strict=True):
        assert text.get_text() == line.get_label()
        assert text.get_color() == line.get_color()
        (_, end) = axes.transData.transform(line.get_xydata()[-1])
        assert middles[text.get_text()] == pytest.approx(end, abs=3)


@pytest.mark.parametrize("spread", [0.0, 0.02, 0.3])
@pytest.mark.parametrize("seed", range(3))
def test_labels_of_close_lines_are_in_the_lines_order_and_do_not_overlap(
    spread: float, seed: int
) -> None:
    ends = 0.5 + spread * np.random.default_rng(seed).standard_normal(5)
    names = ["a", "bb", "a longer one, of two lines", "d", "e"]
    figure = draw({"frame": [0.0, 1.0]} | {n: [0.5, y] for n, y in zip(names, ends, strict=True)})
    assert overlapping(figure) == []
    assert outside(figure) == []
    middles = [middle for text, middle in heights(figure).items() if text != "frame"]
    assert np.argsort(middles).tolist() == np.argsort(ends, kind="stable").tolist()


def test_rounding_noise_does_not_swap_the_labels_of_lines_with_the_same_end() -> None:
    def texts(noise: float) -> dict[str, float]:
        return heights(draw({"one": [0.0, 1.0], "two": [0.5, 1.0 - noise], "low": [0.2, 0.0]}))

    assert texts(1e-15) == pytest.approx(texts(-1e-15))


def test_a_line_that_leaves_the_axes_has_its_label_where_it_leaves() -> None:
    figure = draw({"up": [1.0, 2.0, 1e6, 1e9], "flat": [1.0, 1.0, 1.0, 1.0]}, top=3.0)
    up, flat = figure.axes[0].texts
    assert up.xy == (1.0, 2.0)
    assert flat.xy == (3.0, 1.0)


def test_a_line_with_no_visible_point_has_no_label() -> None:
    figure = draw({"above": [9.0, 9.0], "nothing": [], "seen": [1.0, 1.0]}, top=3.0)
    assert [text.get_text() for text in figure.axes[0].texts] == ["seen"]


def test_a_level_across_the_axes_has_its_label_at_their_right() -> None:
    figure = Figure()
    axes = figure.subplots()
    axes.plot([2.0, 8.0], [0.0, 1.0], label="line")
    level = axes.axhline(0.5, label="level")
    axes.set_xlim(0.0, 10.0)
    label_lines(figure)
    assert [text.xy for text in axes.texts] == [(8.0, 1.0), (10.0, 0.5)]
    assert level.get_xydata()[:, 0].tolist() == [0.0, 1.0], "the line itself has changed"


def test_a_line_with_error_bars_is_labeled() -> None:
    figure = Figure()
    axes = figure.subplots()
    axes.errorbar([1.0, 2.0], [3.0, 4.0], [0.1, 0.1], label="mean")
    label_lines(figure)
    assert [text.xy for text in axes.texts] == [(2.0, 4.0)]
