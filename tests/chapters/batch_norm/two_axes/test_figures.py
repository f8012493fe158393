"""The figures of the chapter on columns and rows show the numbers they are given."""

import numpy as np
import pytest
from matplotlib.colors import to_hex

from lnbook.chapters.batch_norm.two_axes import figures
from lnbook.notebook.figure_snapshot import describe
from lnbook.notebook.style import BLUE, VERMILION

pytestmark = pytest.mark.usefixtures("book_style")

X = np.array([[5.0, 4.0, 7.0, 2.0], [1.0, 6.0, 2.0, 3.0], [4.0, 8.0, 1.0, 9.0]])


def test_columns_and_rows_put_each_number_at_its_column_or_row() -> None:
    of_columns = np.arange(8.0).reshape(2, 4) / 4
    of_rows = 10 + np.arange(6.0).reshape(2, 3) / 4
    figure = figures.columns_and_rows(X, of_columns, of_rows)
    upper, lower = describe(figure)["axes"]
    rows, columns = X.shape
    for panel in (upper, lower):
        texts = {(x, y): text for text, x, y, *_ in panel["texts"]}
        for (row, column), value in np.ndenumerate(X):
            assert texts[(column, row)] == f"{value:g}"
    places = {text: (x, y) for text, x, y, *_ in upper["texts"]}
    for (order, column), value in np.ndenumerate(of_columns):
        x, y = places[f"{value:.2f}"]
        assert x == column
        assert y > rows - 0.5 + order * 0.9, "below the matrix, the variance lowest"
    places = {text: (x, y) for text, x, y, *_ in lower["texts"]}
    for (order, row), value in np.ndenumerate(of_rows):
        x, y = places[f"{value:.2f}"]
        assert y == row
        assert x > columns - 0.5 + order * 0.9, "right of the matrix, the variance last"


def test_columns_and_rows_mark_one_column_and_one_row() -> None:
    figure = figures.columns_and_rows(X, np.zeros((2, 4)), np.zeros((2, 3)))
    for axes, color, size in zip(figure.axes, (BLUE, VERMILION), X.shape, strict=True):
        marked = [patch for patch in axes.patches if to_hex(patch.get_facecolor()) == color.lower()]
        assert len(marked) == size
        first = [patch.get_x() if color == BLUE else patch.get_y() for patch in marked]
        assert set(first) == {-0.5}, "the first column, the first row"
        bold = [text for text in axes.texts if text.get_fontweight() == "bold"]
        assert len(bold) == size + 2, "the entries, their mean and their variance"


def test_the_letters_of_columns_and_rows_do_not_overlap() -> None:
    figure = figures.columns_and_rows(X, [[3.33] * 4, [10.25] * 4], [[3.33] * 3, [10.25] * 3])
    figure.draw_without_rendering()
    for axes in figure.axes:
        boxes = [text.get_window_extent() for text in [*axes.texts, axes.title]]
        boxes = [box for box in boxes if box.width > 1]
        assert not any(a.overlaps(b) for i, a in enumerate(boxes) for b in boxes[i + 1 :])
        assert all(box.x0 >= 0 and box.x1 <= figure.bbox.width for box in boxes)


def test_signs_color_by_sign_and_frame_what_they_are_told() -> None:
    panels = {"a": [[1.0, -2.0], [0.0, 0.004]], "b": [[-1.0, 2.0], [1.0, -0.5]]}
    figure = figures.signs(panels, [(1, 0)])
    for axes, (title, values) in zip(figure.axes, panels.items(), strict=True):
        assert axes.get_title(loc="left") == title
        matrix = np.array(values)
        *cells, frame = axes.patches
        assert len(cells) == matrix.size
        for cell, (index, value) in zip(cells, np.ndenumerate(matrix), strict=True):
            assert (cell.get_y(), cell.get_x()) == index
            assert cell.get_alpha() == pytest.approx(0.45 * abs(value) / 2.0)
            if value:
                expected = BLUE if value > 0 else VERMILION
                assert to_hex(cell.get_facecolor()) == expected.lower()
        assert 0 < frame.get_x() < 1 < frame.get_y() < 2
        written = [text.get_text() for text in axes.texts]
        assert written == [f"{v:.2f}".replace("-", "\N{MINUS SIGN}") for v in matrix.flat]


def test_signs_write_no_negative_zero_and_take_zeros() -> None:
    figure = figures.signs({"a": [[-0.001, 0.0]]})
    assert [text.get_text() for text in figure.axes[0].texts] == ["0.00", "0.00"]
    assert figures.signs({"a": np.zeros((2, 2))}).axes[0].patches[0].get_alpha() == 0.0


def test_figures_refuse_what_does_not_fit() -> None:
    with pytest.raises(ValueError, match=r"expected a matrix \(N, H\) of at most 8 by 8"):
        figures.columns_and_rows(np.zeros((3, 9)), np.zeros((2, 9)), np.zeros((2, 3)))
    with pytest.raises(ValueError, match=r"but got shape \(3,\)"):
        figures.signs({"a": np.zeros(3)})
    with pytest.raises(ValueError, match=r"shapes \(2, 4\) and \(2, 3\), but got \(2, 3\)"):
        figures.columns_and_rows(X, np.zeros((2, 3)), np.zeros((2, 4)))
    with pytest.raises(ValueError, match="expected matrices of one shape"):
        figures.signs({})
    with pytest.raises(ValueError, match="expected matrices of one shape"):
        figures.signs({"a": np.zeros((2, 2)), "b": np.zeros((2, 3))})
    with pytest.raises(IndexError, match=r"got \[.*lies outside a matrix of shape"):
        figures.signs({"a": np.zeros((2, 2))}, [(2, 0)])
