"""A figure's record must change when the visible figure changes, and only then."""

import json
from collections.abc import Callable

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, Rectangle

from lnbook.notebook.figure_snapshot import describe, rounded
from lnbook.notebook.style import COLORS


def draw(change: Callable[[Figure, Axes], object] | None = None) -> dict[str, object]:
    figure = Figure(figsize=(4, 3))
    axes = figure.subplots()
    axes.plot([0, 1, 2], [1.0, 4.0, 9.0], label="squares")
    axes.bar([0, 1], [2.0, 3.0])
    axes.scatter([0, 1], [5.0, 6.0])
    axes.imshow(np.arange(4.0).reshape(2, 2), extent=(0, 1, 0, 1))
    axes.add_patch(FancyArrowPatch((0.0, 0.0), (1.0, 1.0)))
    axes.text(0.5, 0.5, "a text")
    axes.set(title="title", xlabel="x", ylabel="y", xlim=(-1, 3), ylim=(0, 10))
    axes.legend()
    if change is not None:
        change(figure, axes)
    return describe(figure)


CHANGES: dict[str, Callable[[Figure, Axes], object]] = {
    "a point of a line": lambda _f, a: a.lines[0].set_ydata([1.0, 4.0, 9.001]),
    "a color": lambda _f, a: a.lines[0].set_color("black"),
    "a style": lambda _f, a: a.lines[0].set_linestyle("--"),
    "a label": lambda _f, a: a.lines[0].set_label("cubes"),
    "a bar": lambda _f, a: a.patches[0].set_height(2.001),
    "the color of a bar": lambda _f, a: a.patches[0].set_facecolor("red"),
    "a point": lambda _f, a: a.collections[0].set_offsets([[0, 5.001], [1, 6]]),
    "a pixel": lambda _f, a: a.images[0].set_data([[0.0, 1.0], [2.0, 3.001]]),
    "an arrow": lambda _f, a: a.patches[-1].set_positions((0.0, 0.0), (1.0, 1.001)),
    "a text": lambda _f, a: a.texts[0].set_text("another text"),
    "the place of a text": lambda _f, a: a.texts[0].set_position((0.5, 0.6)),
    "a text that is hidden": lambda _f, a: a.texts[0].set_visible(False),
    "the title": lambda _f, a: a.set_title("another title"),
    "the label of an axis": lambda _f, a: a.set_xlabel("z"),
    "the words on an axis": lambda _f, a: a.set_xticks([0, 1], ["none", "one"]),
    "other words on an axis": lambda _f, a: a.set_yticks([0, 1], ["no", "yes"]),
    "the limits": lambda _f, a: a.set_xlim(-1, 4),
    "the scale": lambda _f, a: a.set_yscale("symlog"),
    "the legend": lambda _f, a: a.get_legend().remove(),
    "a line more": lambda _f, a: a.axhline(3.0),
    "a shape more": lambda _f, a: a.add_patch(Rectangle((0, 0), 1, 1)),
    "the size": lambda f, _a: f.set_size_inches(5, 3),
    "the title of the figure": lambda f, _a: f.suptitle("all"),
    "a text of the figure": lambda f, _a: f.text(0.1, 0.1, "note"),
    "a panel more": lambda f, _a: f.add_axes((0.1, 0.1, 0.2, 0.2)),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_what_is_seen_is_recorded(change: Callable[[Figure, Axes], object]) -> None:
    assert draw(change) != draw()


def test_colors_are_told_by_name() -> None:
    def change(_figure: Figure, axes: Axes) -> None:
        axes.lines[0].set_color(COLORS["batch_norm"])
        axes.patches[0].set_facecolor((*to_rgb(COLORS["post_ln"]), 0.5))
        axes.patches[1].set_facecolor("none")
        axes.collections[0].set_facecolor("#123456")

    panel = draw(change)["axes"][0]  # type: ignore[index]
    assert panel["lines"][0]["style"][0] == "batch_norm"
    assert [shape["color"] for shape in panel["shapes"][:2]] == ["post_ln 0.5", "none"]
    assert panel["points"][0]["colors"] == ["#123456"]


def test_words_on_an_axis_have_places() -> None:
    first = draw(lambda _f, a: a.set_xticks([0, 1], ["none", "one"]))
    second = draw(lambda _f, a: a.set_xticks([0, 2], ["none", "one"]))
    assert first != second


def test_drawing_a_figure_does_not_change_its_record() -> None:
    assert draw(lambda f, _a: f.draw_without_rendering()) == draw()


def test_the_last_digits_are_not_recorded() -> None:
    noise = 1e-13
    assert draw(lambda _f, a: a.lines[0].set_ydata([1 + noise, 4 - noise, 9 + noise])) == draw()


def drawn_at(height: float, scale: str = "linear") -> dict[str, object]:
    """The record of points, texts, shapes and a scatter plot, all at a given height."""
    figure = Figure()
    axes = figure.subplots()
    axes.set(ylim=(1e-20, 10) if scale == "log" else (-1, 10), yscale=scale)
    axes.plot([0, 1], [height, height])
    axes.scatter([0], [height])
    axes.text(0, height, "text")
    axes.annotate("note", (0, 1), (0, height))
    axes.fill_between([0, 1], [1, 1], [height, height])
    axes.add_patch(Rectangle((0, height), 1, 1))
    axes.add_patch(FancyArrowPatch((0, height), (1, 1)))
    return describe(figure)


def test_what_is_smaller_than_a_pixel_is_not_recorded() -> None:
    assert drawn_at(3e-17) == drawn_at(-1e-9) == drawn_at(0)
    assert drawn_at(2e-3) != drawn_at(0)


def test_small_numbers_count_on_a_logarithmic_axis() -> None:
    assert drawn_at(3e-17, "log") != drawn_at(3.01e-17, "log")
    assert drawn_at(3e-17, "log") == drawn_at(3.00001e-17, "log")


@pytest.mark.parametrize("scale", ["linear", "log"])
def test_a_place_in_the_middle_goes_one_way_whatever_its_last_bit(scale: str) -> None:
    # 0.12345 is halfway between 0.1234 and 0.1235, as a mean of two recorded numbers may be.
    def record(value: float) -> dict[str, object]:
        return draw(lambda _f, a: (a.axhline(value), a.set_yscale(scale), a.set_ylim(0.1, 1.2)))

    below, above = np.nextafter(0.12345, [0, 1])
    assert record(below) == record(0.12345) == record(above)
    assert record(0.1231) != record(0.1234)


def test_what_is_not_placed_on_the_axes_keeps_its_digits() -> None:
    def draw_text(y: float) -> dict[str, object]:
        figure = Figure()
        axes = figure.subplots()
        axes.set(ylim=(0, 1e9))
        axes.text(0.5, y, "text", transform=axes.transAxes)
        return describe(figure)

    assert draw_text(0.25) != draw_text(0.26)


def test_a_record_is_json() -> None:
    record = draw(lambda _f, a: a.plot([np.nan, np.inf], [1.0, 2.0]))
    assert json.loads(json.dumps(record, allow_nan=False)) == record


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([1.0, 2.0], [1.0, 2.0]),
        ([12345.678, 0.001], [12346.0, 0.0]),
        ([0.000123456789], [0.00012346]),
        ([-1e-17, 1.0], [0.0, 1.0]),
        ([0.0], [0.0]),
        ([], []),
        ([np.nan, 1.0, -np.inf], ["nan", 1.0, "-inf"]),
        ([[1.0], [2.0]], [[1.0], [2.0]]),
        (3.14159265, 3.1416),
        (np.ma.masked_greater([1.0, 5.0], 4.0), [1.0, "nan"]),
    ],
)
def test_rounding(values: object, expected: object) -> None:
    result = rounded(values)  # type: ignore[arg-type]
    assert result == expected
    assert str(result) == str(expected)  # tells -0.0 from 0.0
