"""Lines in a figure are distinguishable even without color; a concept always looks the same."""

import re

import pytest

from lnbook.notebook.style import COLORS, LABELS, PALETTE, concept, line_style, line_styles


def test_every_color_stands_for_one_thing() -> None:
    values = [value for shades in PALETTE.values() for value in shades.values()]
    assert all(re.fullmatch("#[0-9A-F]{6}", value) for value in values)
    assert all({"light", "dark"} <= set(shades) for shades in PALETTE.values())
    assert len(set(COLORS.values())) == len(COLORS)


@pytest.mark.parametrize("part", ["color", "linestyle", "marker"])
def test_no_two_lines_share_a_part_of_their_look(part: str) -> None:
    assert len({line_style(number)[part] for number in range(7)}) == 7
    assert line_style(7) == line_style(0)


def test_every_label_has_a_look() -> None:
    for label, name in LABELS.items():
        assert concept(label) == name
        assert line_styles([label])[label] == line_style(name)


@pytest.mark.parametrize(
    ("label", "name"),
    [
        ("pre-ln, branches scaled", "pre_ln"),
        ("GN(1)", "group_norm"),
        ("LN2d", "layer_norm_2d"),
        ("LN per token, 8", "layer_norm"),
        ("Pre-training", None),
        ("with LayerNorm", None),
        ("nonesuch", None),
    ],
)
def test_a_label_is_known_by_its_first_words(label: str, name: str | None) -> None:
    assert concept(label) == name


def test_lines_of_one_figure_stay_apart() -> None:
    styles = line_styles(["none", "BN", "LN", "GN(1)", "GN(4)", "IN", "mine"])
    assert len({str(style["linestyle"]) for style in styles.values()}) == 7
    assert len({style["marker"] for style in styles.values()}) == 7
    assert styles["GN(1)"]["color"] == styles["GN(4)"]["color"] == COLORS["group_norm"]
    assert styles["BN"] == line_style("batch_norm")


def test_a_figure_may_have_more_lines_than_there_are_looks() -> None:
    assert len(line_styles([f"seed {number}" for number in range(9)])) == 9


def test_a_part_of_the_look_can_be_set() -> None:
    assert line_style(2, marker="") == {**line_style(2), "marker": ""}
    assert line_styles(["LN"], marker="")["LN"] == line_style("layer_norm", marker="")
