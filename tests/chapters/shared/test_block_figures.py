"""The figures of the axes show the cells they are given."""

import numpy as np
import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from lnbook.chapters.shared import block_figures
from lnbook.notebook.figure_snapshot import describe
from lnbook.notebook.style import BLUE, VERMILION

pytestmark = pytest.mark.usefixtures("book_style")

NAMES = ("N", "L", "D")
SHAPE = (2, 3, 4)


def mask(*index: object) -> np.ndarray:
    array = np.zeros(SHAPE, dtype=bool)
    array[index] = True
    return array


def colored(figure: Figure, color: str) -> list[int]:
    panels = describe(figure)["axes"]
    return [
        sum(shape["color"][:7] == to_hex(color) for shape in panel["shapes"]) for panel in panels
    ]


def test_blocks_color_the_faces_that_are_seen() -> None:
    n, rows, columns = SHAPE
    panels = {
        "token": mask(0, 0),
        "sequence": mask(0),
        "feature": mask(slice(None), slice(None), -1),
        "hidden": mask(1, 1, 1),
        "all": mask(...),
    }
    figure = block_figures.blocks(panels, NAMES)
    assert colored(figure, BLUE) == [
        columns + columns + 1,  # in front, on top, on the right
        rows * columns + columns + rows,
        rows + n + n * rows,
        0,
        rows * columns + n * columns + n * rows,
    ]
    assert [panel["title"] for panel in describe(figure)["axes"]] == list(panels)


def test_a_colored_face_is_told_without_color() -> None:
    figure = block_figures.blocks({"token": mask(0, 0)}, NAMES)
    patches = figure.axes[0].patches
    assert {bool(p.get_hatch()) for p in patches} == {True, False}
    for patch in patches:
        assert bool(patch.get_hatch()) == (to_hex(patch.get_facecolor()) == BLUE.lower())


def test_blocks_name_the_axes_and_carry_their_notes() -> None:
    figure = block_figures.blocks(
        {"a": mask(0), "b": mask(1)}, NAMES, ["first note", "second note"]
    )
    for panel, note in zip(describe(figure)["axes"], ("first note", "second note"), strict=True):
        assert {text[0] for text in panel["texts"]} == {*NAMES, note}
    figure.draw_without_rendering()
    for axes in figure.axes:
        boxes = [text.get_window_extent() for text in axes.texts]
        assert not any(a.overlaps(b) for i, a in enumerate(boxes) for b in boxes[i + 1 :])
        assert all(box.x1 <= figure.bbox.width for box in boxes)


def test_blocks_refuse_what_does_not_fit() -> None:
    with pytest.raises(ValueError, match="expected at least one array of three axes"):
        block_figures.blocks({}, NAMES)
    with pytest.raises(ValueError, match="expected at least one array of three axes"):
        block_figures.blocks({"a": mask(0)[0]}, NAMES)
    with pytest.raises(ValueError, match="expected 3 names and 1 notes"):
        block_figures.blocks({"a": mask(0)}, ("N", "L"))
    with pytest.raises(ValueError, match="expected 3 names and 1 notes"):
        block_figures.blocks({"a": mask(0)}, NAMES, ["one", "two"])


def test_moved_fills_what_moved_and_frames_what_was_changed() -> None:
    index = (1, 2, 3)
    masks = {"token": mask(1, 2), "sequence": mask(1), "none": mask(0) & False}
    figure = block_figures.moved(masks, index)
    assert colored(figure, VERMILION) == [m.sum() for m in masks.values()]
    for panel, m in zip(describe(figure)["axes"], masks.values(), strict=True):
        assert len(panel.get("lines", [])) == m.sum(), "a dot where there is color"
        frame = np.array(panel["shapes"][-1]["corners"])
        left, bottom = frame.min(axis=0)
        assert (left, bottom) == (5 + 3, 0), "sequence 2, the last of three rows, feature 4"
    filled = [
        tuple(np.array(shape["corners"]).min(axis=0))
        for shape in describe(figure)["axes"][0]["shapes"]
        if shape["color"][:7] == to_hex(VERMILION)
    ]
    assert filled == [(5.0 + feature, 0.0) for feature in range(4)]


def test_moved_refuses_what_does_not_fit() -> None:
    with pytest.raises(ValueError, match="expected arrays of one shape"):
        block_figures.moved({}, (0, 0, 0))
    with pytest.raises(ValueError, match="expected arrays of one shape"):
        block_figures.moved({"a": mask(0), "b": mask(0)[:1]}, (0, 0, 0))
    with pytest.raises(ValueError, match="expected arrays of one shape"):
        block_figures.moved({"a": mask(0)[0]}, (0, 0, 0))
    with pytest.raises(IndexError, match="lies outside"):
        block_figures.moved({"a": mask(0)}, (0, 3, 0))


def test_blocks_of_four_axes_stand_side_by_side() -> None:
    n, channels, rows, columns = shape = (3, 2, 3, 4)
    channel, image = np.zeros((2, *shape), dtype=bool)
    channel[:, 0] = True
    image[2] = True
    notes = ("C means", "N means")
    names = ("image", "C", "H", "W")
    figure = block_figures.blocks({"channel": channel, "image": image}, names, notes)
    front = rows * columns + columns + rows
    everything = rows * columns + channels * (columns + rows)
    assert colored(figure, BLUE) == [n * front, everything]
    panels = describe(figure)["axes"]
    for panel, note in zip(panels, notes, strict=True):
        written = [text[0] for text in panel["texts"]]
        assert sorted(written) == sorted([*names[1:] * n, "image 1", "image 2", "image 3", note])
    places = {text[0]: text[1] for text in panels[1]["texts"]}
    shapes = [s for s in panels[1]["shapes"] if s["color"][:7] == to_hex(BLUE)]
    left = min(corner[0] for s in shapes for corner in s["corners"])
    right = max(corner[0] for s in shapes for corner in s["corners"])
    assert places["image 1"] < places["image 2"] < left < places["image 3"] < right
    figure.draw_without_rendering()
    for axes in figure.axes:
        boxes = [text.get_window_extent() for text in axes.texts]
        assert not any(a.overlaps(b) for i, a in enumerate(boxes) for b in boxes[i + 1 :])
        assert all(box.x0 >= 0 and box.x1 <= figure.bbox.width for box in boxes)


def test_blocks_of_four_axes_refuse_what_does_not_fit() -> None:
    four = np.zeros((2, *SHAPE), dtype=bool)
    with pytest.raises(ValueError, match="of three axes, or of four"):
        block_figures.blocks({"a": four, "b": four[0]}, ("image", *NAMES))
    with pytest.raises(ValueError, match="expected 4 names and 1 notes"):
        block_figures.blocks({"a": four}, NAMES)
