"""Figures with shorter paths look the same."""

import re
from pathlib import Path

import nbformat
import numpy as np
import pytest
from fontTools.pens.recordingPen import RecordingPen
from fontTools.svgLib.path import parse_path

from bookbuild.site.figure_colors import shown
from bookbuild.site.short_paths import shortened

NOTEBOOKS = Path(__file__).resolve().parents[1] / "notebooks"
PATH = re.compile(r' d="([^"]*)"(?: transform="scale\(([\d.]+)\)")?')


def figure(d: str, rest: str = "") -> str:
    return f'<svg><path d="{d}"{rest} /></svg>'


def shapes(svg: str) -> list[tuple[list[str], np.ndarray]]:
    """Each path's commands and points."""
    found = []
    for data, scale in PATH.findall(svg):
        pen = RecordingPen()
        parse_path(data, pen)
        points = [point for _, given in pen.value for point in given]
        found.append(([name for name, _ in pen.value], float(scale or 1) * np.array(points)))
    return found


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("M10 20L10 25.5L13.5 25.5L13 26.25z", "m10 20v5.5h3.5l-.5 .75z"),
        ("M0 0L1 1L2 3zM5 5L6 6", "m0 0l1 1 1 2zm5 5l1 1"),
        ("M1 1Q2 3 4 4Q5 6 7 8C1 2 3 4 5 6", "m1 1q1 2 3 3 1 2 3 4c-6-6-4-4-2-2"),
        ("M-0.004 0.5L0.3 -0.25", "m0 .5l.3-.75"),
    ],
)
def test_points_are_relative_to_the_one_before(before: str, after: str) -> None:
    assert shortened(figure(before)) == figure(after)


def test_letters_keep_a_coarser_grid() -> None:
    letter = figure("M3513 2113L3513 0z", ' transform="scale(0.015625)"')
    assert shortened(letter) == figure("m88 53v-53z", ' transform="scale(.625)"')


def test_names_are_short_and_still_lead_to_the_same_shapes() -> None:
    before = (
        '<svg><path id="p83a4" /><path id="LNSans-Bold-3f" /><g clip-path="url(#p83a4)">'
        '<use xlink:href="#LNSans-Bold-3f" /><use xlink:href="#missing" /></g></svg>'
    )
    assert shortened(before) == (
        '<svg><path id="a" /><path id="b" /><g clip-path="url(#a)">'
        '<use xlink:href="#b" /><use xlink:href="#missing" /></g></svg>'
    )


def test_rounding_errors_do_not_add_up() -> None:
    line = "M0 0" + "".join(f"L{0.004 * n:.3f} 1" for n in range(1, 1001))
    ((_, points),) = shapes(shortened(figure(line)))
    assert points[-1] == pytest.approx([4, 1], abs=0.005)


@pytest.mark.parametrize("path", ["m1 1h2", "M0 0A1 1 0 0 0 2 2", "M0 0e5"])
def test_other_paths_stay_as_they_are(path: str) -> None:
    assert shortened(figure(path)) == figure(path)


@pytest.mark.parametrize("name", ["formula/geometry", "batch-norm/family"])
def test_figures_of_the_course_keep_their_shapes_in_fewer_bytes(name: str) -> None:
    notebook = nbformat.read(NOTEBOOKS / f"{name}.ipynb", 4)
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    figures = [text for o in outputs if (text := o.get("data", {}).get("image/svg+xml"))]
    full = [shown(svg, "light") for svg in figures]
    short = [shortened(svg) for svg in full]
    assert len("".join(short)) < 0.95 * len("".join(full))
    for one, other in zip(full, short, strict=True):
        for (names, points), (new_names, new) in zip(shapes(one), shapes(other), strict=True):
            assert names == new_names
            np.testing.assert_allclose(new, points, atol=0.3126)  # half of one rounding step
