"""The arcs in the prerequisite graph."""

import re

import pytest

from bookbuild.site.arcs import WIDTH, arcs


def test_an_arc_starts_and_ends_in_the_middle_of_its_rows() -> None:
    (arc,) = arcs([(2, 7)])
    assert (arc.start, arc.end) == (2, 7)
    numbers = [float(number) for number in re.findall(r"[\d.]+", arc.path)]
    x, y, _, radius, *_, right, bottom = numbers
    assert (x, y, right, bottom) == (WIDTH, 2.5, WIDTH, 7.5)
    assert radius == 2.5


def test_longer_arcs_reach_farther_but_stay_inside() -> None:
    reach = [float(re.findall(r"A([\d.]+)", arc.path)[0]) for arc in arcs([(0, 1), (0, 9), (0, 3)])]
    assert reach == sorted(reach)
    assert len(set(reach)) == 3
    assert reach[-1] < WIDTH


def test_a_link_counts_once() -> None:
    assert len(arcs([(0, 1), (0, 1)])) == 1
    assert arcs([]) == []


@pytest.mark.parametrize("link", [(1, 1), (2, 1)])
def test_a_link_leads_downward(link: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match="can't come before"):
        arcs([link])
