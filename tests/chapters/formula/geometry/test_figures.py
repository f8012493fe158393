"""The figures on geometry show the numbers they are given."""

import numpy as np
import pytest

from lnbook import reference
from lnbook.chapters.formula.geometry import figures
from lnbook.notebook.figure_snapshot import describe

pytestmark = pytest.mark.usefixtures("book_style")

ROWS = np.array([[1.0, 3.0, 2.0], [2.0, 4.0, 3.0], [3.0, 0.0, 1.0]])
CENTERED = ROWS - ROWS.mean(axis=1, keepdims=True)
NORMALIZED = reference.layer_norm(ROWS, 3)


def test_directions_are_orthogonal_and_of_length_one() -> None:
    basis = np.stack([figures.RIGHT, figures.BACK, figures.UP])
    np.testing.assert_allclose(basis @ basis.T, np.eye(3), atol=1e-12)


def test_space_is_seen_without_distortion_from_where_ones_point_up() -> None:
    view = figures._seen(np.eye(3)).T
    np.testing.assert_allclose(view @ view.T, np.eye(2), atol=1e-12)
    np.testing.assert_allclose(
        figures._seen(figures.UP[None])[0], [0.0, np.cos(figures.TILT)], atol=1e-12
    )


def test_results_lie_on_the_circle() -> None:
    across, height = figures._seen(reference.layer_norm(ROWS, 3, eps=0)).T
    np.testing.assert_allclose(across**2 + (height / np.sin(figures.TILT)) ** 2, 3.0, atol=1e-12)


def test_space_shows_rows_projections_and_results() -> None:
    (axes,) = describe(figures.space(ROWS, CENTERED, NORMALIZED))["axes"]
    for points, markers in ((ROWS, "osD"), (NORMALIZED, "***")):
        seen = figures._seen(points)
        drawn = [line for line in axes["lines"] if line["style"][2] in "osD*"]
        for point, marker in zip(seen, markers, strict=True):
            at = [(line["x"][0], line["y"][0]) for line in drawn if line["style"][2] == marker]
            assert any(np.allclose(point, where, atol=1e-3) for where in at)
    arrows = [shape for shape in axes["shapes"] if shape["kind"] == "arrow"]
    ends = [np.array(shape["from and to"]) for shape in arrows[1:]]
    np.testing.assert_allclose(ends, np.stack([*map(np.stack, zip(
        figures._seen(CENTERED), figures._seen(NORMALIZED), strict=True))]), atol=1e-3)  # fmt: skip


def test_space_drops_rows_straight_down() -> None:
    before, after = figures._seen(ROWS), figures._seen(CENTERED)
    np.testing.assert_allclose(before[:, 0], after[:, 0], atol=1e-12)


@pytest.mark.parametrize("shape", [(4, 3), (2, 4), (3,), (0, 3)])
def test_space_refuses_what_does_not_fit(shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="expected three arrays of one shape"):
        figures.space(np.zeros(shape), np.zeros(shape), np.zeros(shape))
    with pytest.raises(ValueError, match="expected three arrays of one shape"):
        figures.space(ROWS, CENTERED[:2], NORMALIZED)


def test_plane_keeps_lengths() -> None:
    panels = describe(figures.plane({"one": CENTERED, "two": NORMALIZED}))["axes"]
    assert [panel["title"] for panel in panels] == ["one", "two"]
    for panel, rows in zip(panels, (CENTERED, NORMALIZED), strict=True):
        points = np.array(panel["points"][0]["at"])
        lengths = np.linalg.norm(points, axis=1)
        np.testing.assert_allclose(lengths, np.linalg.norm(rows, axis=1), rtol=1e-3)
        large = [(line["x"][0], line["y"][0]) for line in panel["lines"]]
        np.testing.assert_allclose(large, points[:3], atol=1e-3)
        assert len({line["style"][2] for line in panel["lines"]}) == 3
    for rows in (np.zeros((2, 3)), np.zeros((5, 2))):
        with pytest.raises(ValueError, match="expected rows of shape"):
            figures.plane({"bad": rows})
    with pytest.raises(ValueError, match="expected rows of shape"):
        figures.plane({})


def test_invariances() -> None:
    table = np.array([[True, False, True], [False, False, True]])
    (axes,) = describe(figures.invariances(table, ["a", "b"], ["one", "two", "three"]))["axes"]
    cells = {(round(x), round(y)): text for text, x, y in axes["texts"]}
    for (row, column), same in np.ndenumerate(table):
        assert cells[column, row] == ("same" if same else "changes")
    with pytest.raises(ValueError, match=r"expected a table of shape \(1, 3\)"):
        figures.invariances(table, ["a"], ["one", "two", "three"])


def test_clouds() -> None:
    one, two = CENTERED[:, :2], NORMALIZED[:, :2]
    panels = describe(figures.clouds({"before": one, "after": two}))["axes"]
    assert [panel["title"] for panel in panels] == ["before", "after"]
    for panel, points in zip(panels, (one, two), strict=True):
        np.testing.assert_allclose(panel["points"][0]["at"], points, atol=1e-3)
    for bad in ({}, {"bad": np.zeros((4, 3))}):
        with pytest.raises(ValueError, match="expected points of shape"):
            figures.clouds(bad)
