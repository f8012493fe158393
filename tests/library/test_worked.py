"""Written-out calculations: every number must be right, and `=` must mean exactly equal."""

import re

import numpy as np
import pytest

from lnbook.notebook import worked

ROW = [4.0, 2.0, 8.0]


def numbers(equation: worked.Equation) -> list[float]:
    """The number after the last = or ≈ of each line, if there is one."""
    results = [re.split(r"=|\\approx", line)[-1] for line in equation.lines]
    return [float(text) for text in results if "frac" not in text and "sqrt" not in text]


def test_mean() -> None:
    assert repr(worked.mean(ROW)) == r"\mu = \dfrac{4 + 2 + 8}{3} \approx 4.6667"
    assert repr(worked.mean([-1.0, 2.0])) == r"\mu = \dfrac{(-1) + 2}{2} = 0.5"


def test_variance() -> None:
    assert repr(worked.variance([1.0, 2.0, 3.0, 4.0])).splitlines()[1:] == [
        r"= \dfrac{2.25 + 0.25 + 0.25 + 2.25}{4}",
        "= 1.25",
    ]
    rounded_mean = repr(worked.variance(ROW)).splitlines()
    assert rounded_mean[0].startswith(r"\sigma^2 \approx")
    assert rounded_mean[1].startswith(r"\approx")


@pytest.mark.parametrize("seed", range(5))
def test_results_are_right(seed: int) -> None:
    rng = np.random.default_rng(seed)
    row, gamma, beta = rng.normal(2.0, 3.0, (3, 6))
    normalized = (row - row.mean()) / np.sqrt(row.var() + 1e-3)
    assert numbers(worked.mean(row)) == pytest.approx([row.mean()], abs=5e-5)
    assert numbers(worked.variance(row)) == pytest.approx([row.var()], abs=5e-5)
    assert numbers(worked.normalize(row, eps=1e-3))[1:] == pytest.approx(normalized, abs=5e-5)
    assert numbers(worked.affine(normalized, gamma, beta)) == pytest.approx(
        gamma * normalized + beta, abs=5e-5
    )


def test_eps_is_under_the_root() -> None:
    assert numbers(worked.normalize([1.0, 3.0], eps=3.0)) == [2.0, -0.5, 0.5]
    assert r"\sqrt{1 + 0.00001}" in repr(worked.normalize([1.0, 3.0], eps=1e-5))


def test_negative_numbers_keep_their_sign() -> None:
    assert repr(worked.affine([-1.0], [2.0], [-0.5])) == r"y_1 = 2 \cdot (-1) - 0.5 = -2.5"
    assert r"\dfrac{-1 + 2}{1}" in repr(worked.normalize([-1.0, -3.0], eps=0.0))


def test_latex_is_one_aligned_display() -> None:
    latex = worked.variance(ROW)._repr_latex_()
    assert latex.startswith(r"$$\begin{aligned} \sigma^2 &")
    assert latex.endswith(r"\end{aligned}$$")


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0, "0"), (-0.0, "0"), (-0.00001, "0"), (2.0, "2"), (0.5, "0.5"), (1 / 3, "0.3333")],
)
def test_number(value: float, text: str) -> None:
    assert worked.number(value) == text
