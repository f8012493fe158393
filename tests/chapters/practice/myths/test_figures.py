"""The figure on what is said about LayerNorm: it draws what it is given, and refuses the rest."""

import numpy as np
import pytest

from lnbook.chapters.practice.myths import figures

LINES = {"input": [0.3, 3.0, 30.0], "LayerNorm": [0.01, 0.1, 0.5], "BatchNorm": [1.0, 1.0, 1.0]}


def test_effects_draws_every_line_on_a_logarithmic_scale() -> None:
    (axes,) = figures.effects(LINES, ["a", "b", "c"]).axes
    assert axes.get_yscale() == "log"
    drawn = {line.get_label(): line.get_ydata() for line in axes.get_lines()}
    assert list(drawn) == list(LINES)
    for name, values in LINES.items():
        np.testing.assert_array_equal(drawn[name], values)
    assert [label.get_text() for label in axes.get_xticklabels()] == ["a", "b", "c"]
    looks = {(line.get_color(), line.get_marker(), line.get_linestyle()) for line in axes.lines}
    assert len(looks) == len({marker for _, marker, _ in looks}) == 3


@pytest.mark.parametrize(
    ("lines", "features", "expected"),
    [
        ({}, ["a"], "expected one to 3 lines"),
        ({str(i): [1.0] for i in range(4)}, ["a"], "expected one to 3 lines"),
        ({"x": [1.0, 2.0]}, ["a"], "lines of 1 numbers"),
        ({"x": [0.0]}, ["a"], "expected positive numbers"),
    ],
)
def test_effects_refuses(lines, features, expected) -> None:
    with pytest.raises(ValueError, match=expected):
        figures.effects(lines, features)
