"""Stacked panels are cut into columns, and only where each column is complete."""

import io
import xml.etree.ElementTree as ET
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.text import Text

from bookbuild.site.figure_panels import TITLE, columns, rows, size

pytestmark = pytest.mark.usefixtures("book_style")


def stacked(count: int = 2, **options: Any) -> Figure:
    figure = Figure(figsize=(4.6, 2.0 * count))
    all_axes = figure.subplots(count, 1, squeeze=False, **{"sharex": True, **options})[:, 0]
    for number, axes in enumerate(all_axes):
        axes.plot([0.0, 1.0], [number, 10.0 ** (number + 1)], label="line")
        axes.set_title(f"panel {number}")
    all_axes[-1].set_xlabel("step")
    return figure


def is_text(artist: Any, text: str) -> bool:
    return isinstance(artist, Text) and artist.get_text() == text


def drawn(figure: Figure) -> str:
    file = io.StringIO()
    figure.savefig(file, format="svg")
    return file.getvalue()


@pytest.mark.parametrize("count", [2, 3])
def test_each_column_has_a_panel_with_its_texts_and_the_common_axis(count: int) -> None:
    figure = stacked(count)
    found = columns(drawn(figure))
    assert len(found) == count
    figure.draw_without_rendering()
    height = 72 * figure.get_figheight()
    points = 72 / figure.dpi

    def span(artist: Any) -> tuple[float, float]:
        box = artist.get_window_extent()
        return height - box.y1 * points, height - box.y0 * points

    for number, (axes, (panel, axis)) in enumerate(zip(figure.axes, found, strict=True)):
        (title,) = axes.findobj(lambda artist, n=number: is_text(artist, f"panel {n}"))
        low, high = axes.get_ylim()
        numbers = [one for one in axes.get_yticklabels() if low <= one.get_position()[1] <= high]
        for artist in (title, axes.patch, *numbers, *axes.lines):
            top, bottom = span(artist)
            assert panel[0] <= top < bottom <= panel[1], artist
        for artist in (figure.axes[-1].xaxis.label, *figure.axes[-1].get_xticklabels()):
            top, bottom = span(artist)
            assert axis[0] <= top < bottom <= axis[1], artist
        others = [other for other in figure.axes if other is not axes]
        assert not any(panel[0] < y < panel[1] for other in others for y in span(other.patch))


def test_columns_are_as_tall_as_each_other() -> None:
    heights = [[bottom - top for top, bottom in strips] for strips in columns(drawn(stacked(3)))]
    assert np.ptp(heights, axis=0) == pytest.approx([0.0, 0.0], abs=1.0)


def with_legend(figure: Figure) -> Figure:
    figure.legend(loc="outside lower center")
    return figure


def without_axes(figure: Figure) -> Figure:
    figure.axes[0].axis("off")
    return figure


def with_numbers_everywhere(figure: Figure) -> Figure:
    figure.axes[0].tick_params(labelbottom=True)
    return figure


WHOLE = {
    "one panel": lambda: stacked(1),
    "each with its own axis": lambda: stacked(2, sharex=False),
    "numbers below all": lambda: with_numbers_everywhere(stacked(2)),
    "different heights": lambda: stacked(2, gridspec_kw={"height_ratios": [1, 2]}),
    "a legend for all": lambda: with_legend(stacked(2)),
    "a panel without axes": lambda: without_axes(stacked(2)),
}


@pytest.mark.parametrize("name", WHOLE)
def test_other_figures_stay_whole(name: str) -> None:
    assert columns(drawn(WHOLE[name]())) == []


def test_panels_next_to_each_other_are_one_row() -> None:
    figure = Figure(figsize=(4.6, 4.0))
    figure.subplots(2, 2)
    svg = drawn(figure)
    assert len(rows(ET.fromstring(svg))) == 2
    assert columns(svg) == []


def test_rows_and_size_are_those_of_the_figure() -> None:
    figure = stacked(2)
    root = ET.fromstring(drawn(figure))
    assert size(root) == pytest.approx((72 * 4.6, 72 * 4.0))
    (top, bottom), (below, _) = rows(root)
    assert TITLE < top < bottom < below - TITLE
