"""Lines of a figure stay apart, also for who sees no colors."""

import pytest

from lnbook.notebook.style import LINE_STYLES, line_style


@pytest.mark.parametrize("part", ["color", "linestyle", "marker"])
def test_no_two_lines_share_a_part_of_their_look(part: str) -> None:
    assert len({style[part] for style in LINE_STYLES}) == len(LINE_STYLES) == 7


def test_the_looks_start_again_after_five_lines_unless_told_otherwise() -> None:
    assert line_style(5) == line_style(0) == dict(LINE_STYLES[0])
    assert line_style(5, among=7) == dict(LINE_STYLES[5])


def test_a_part_of_the_look_can_be_set() -> None:
    assert line_style(2, marker="") == {**LINE_STYLES[2], "marker": ""}
    assert LINE_STYLES[2]["marker"]
