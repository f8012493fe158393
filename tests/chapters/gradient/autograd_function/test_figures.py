"""The figures show the numbers they are given."""

import numpy as np
import pytest

from lnbook.chapters.gradient.autograd_function import figures
from lnbook.notebook.figure_snapshot import describe
from tests.helpers.drawn_texts import overlapping

pytestmark = pytest.mark.usefixtures("book_style")


def test_saved_shows_the_numbers() -> None:
    values = {"plain": 4.0, "ours": 1.125}
    record = describe(figures.memory_bars(values))["axes"][0]
    lengths = [np.ptp(np.array(bar["corners"])[:, 0]) for bar in record["shapes"]]
    assert lengths == pytest.approx(list(values.values()), rel=1e-4)
    assert {"plain", "ours", "4.00", "1.12"} == {text for text, *_ in record["texts"]}
    assert overlapping(figures.memory_bars(values)) == []
    with pytest.raises(ValueError, match="at least one version"):
        figures.memory_bars({})
