"""The figures in "Why normalize?" show what they're given."""

import pytest
from matplotlib.colors import to_hex
from matplotlib.patches import Circle

from lnbook.chapters.start.why_normalize import figures
from lnbook.notebook.style import INK


def test_a_disk_shows_a_share_and_only_a_full_one_has_a_ring() -> None:
    drawn = figures.settings({"LayerNorm": [[0.0, 0.25, 1.0]]}, [1.0], [0.1, 0.2, 0.3])
    (axes,) = drawn.axes
    quarter, full = (patch for patch in axes.patches if isinstance(patch, Circle))
    assert (quarter.center, full.center) == ((1, 0), (2, 0))
    assert quarter.radius / full.radius == pytest.approx(0.5)
    assert to_hex(full.get_edgecolor()) == INK.lower()
    assert to_hex(quarter.get_edgecolor(), keep_alpha=True).endswith("00")
    assert [line.get_marker() for line in axes.lines] == ["x"]  # at 0.1, nothing was learned
