"""The chapter's experiments."""

import numpy as np
import pytest

from lnbook.chapters.practice.fine_tuning import experiments


def test_the_change_shrinks_with_the_square_of_the_scale() -> None:
    """Epsilon is added to a variance, so ten times the scale gives a hundredth of the change."""
    small, large = experiments.change_by_scale([1.0, 2.0, 4.0], [1.0, 10.0])
    assert large == pytest.approx(small / 100, rel=1e-3)


def test_the_change_agrees_with_the_formula() -> None:
    x = np.array([1.0, 2.0, 4.0])

    def normalized(row: np.ndarray) -> np.ndarray:
        return (row - row.mean()) / np.sqrt(row.var() + 1e-5)

    expected = np.abs(normalized(2 * x) - normalized(x)).max()
    assert experiments.change_by_scale(x, [1.0]) == pytest.approx([expected])
