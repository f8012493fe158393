r"""Calculations written out with their numbers, the way you would do them by hand.

Each function computes with `lnbook.reference` and returns an `Equation`, which a notebook shows as
a formula. Every number in it is computed, so a worked example can't disagree with the code.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from lnbook import reference

__all__ = ["Equation", "affine", "mean", "normalize", "number", "variance"]

DIGITS = 4


@dataclass(frozen=True)
class Equation:
    r"""Lines of LaTeX, each `left side &= right side`. Notebooks show them as one formula.

    Example:
        >>> Equation((r"r &= \frac{1}{\sqrt{4}}", r"&= 0.5"))
        r = \frac{1}{\sqrt{4}}
        = 0.5
    """

    lines: tuple[str, ...]

    def __repr__(self) -> str:
        """Return the LaTeX source, for terminals and for comparing outputs."""
        return "\n".join(line.replace("&", "").strip() for line in self.lines)

    def _repr_latex_(self) -> str:
        body = r" \\[0.8em] ".join(self.lines)
        return rf"$$\begin{{aligned}} {body} \end{{aligned}}$$"


def mean(x: ArrayLike) -> Equation:
    r"""Write out the mean of one row, :math:`\mu = \dfrac{1}{H} \sum_i x_i`.

    Args:
        x: one row of one or more real numbers, shape `(H,)`.

    Raises:
        ValueError: `x` isn't one row of finite numbers.

    Example:
        >>> mean([1.0, 2.0, 6.0])
        \mu = \dfrac{1 + 2 + 6}{3} = 3
    """
    row = _row(x)
    value = reference.layer_norm_forward(row, len(row)).mean.item()
    total = _fraction(" + ".join(_in_sum(v) for v in row), len(row))
    return Equation((rf"\mu &= {total} {_equal(value)}",))


def variance(x: ArrayLike) -> Equation:
    r"""Write out the variance of one row, :math:`\sigma^2 = \dfrac{1}{H} \sum_i (x_i - \mu)^2`.

    Args:
        x: one row of one or more real numbers, shape `(H,)`.

    Raises:
        ValueError: `x` isn't one row of finite numbers.

    Example:
        >>> variance([1.0, 3.0])
        \sigma^2 = \dfrac{(1 - 2)^2 + (3 - 2)^2}{2}
        = \dfrac{1 + 1}{2}
        = 1
    """
    row = _row(x)
    result = reference.layer_norm_forward(row, len(row))
    mu = result.mean.item()
    squares = (row - mu) ** 2
    differences = " + ".join(rf"({number(v)} {_minus(mu)})^2" for v in row)
    total = " + ".join(number(v) for v in squares)
    return Equation(
        (
            rf"\sigma^2 &{_sign(mu)} {_fraction(differences, len(row))}",
            rf"&{_sign(*squares)} {_fraction(total, len(row))}",
            rf"&{_equal(result.variance.item())}",
        )
    )


def normalize(x: ArrayLike, eps: float = 1e-5) -> Equation:
    r"""Write out the normalized row, :math:`\hat{x}_i = (x_i - \mu) / \sqrt{\sigma^2 + \epsilon}`.

    Args:
        x: one row of one or more real numbers, shape `(H,)`.
        eps: added to the variance, at least 0.

    Raises:
        ValueError: `x` isn't one row of finite numbers, or `eps` is negative or infinite.

    Example:
        >>> normalize([1.0, 3.0], eps=0.0)
        \sqrt{\sigma^2 + \epsilon} = \sqrt{1 + 0}
        = 1
        \hat{x}_1 = \dfrac{1 - 2}{1} = -1
        \hat{x}_2 = \dfrac{3 - 2}{1} = 1
    """
    row = _row(x)
    result = reference.layer_norm_forward(row, len(row), eps=eps)
    mu, root = result.mean.item(), math.sqrt(result.variance.item() + eps)
    under = rf"{number(result.variance.item())} + {np.format_float_positional(eps, trim='-')}"
    exact = _sign(result.variance.item())
    lines = [
        rf"\sqrt{{\sigma^2 + \epsilon}} &{exact} \sqrt{{{under}}}",
        rf"&{_equal(root)}",
    ]
    for index, (value, normalized) in enumerate(zip(row, result.normalized, strict=True), start=1):
        quotient = rf"\dfrac{{{number(value)} {_minus(mu)}}}{{{number(root)}}}"
        lines.append(rf"\hat{{x}}_{index} &{_sign(mu, root)} {quotient} {_equal(normalized)}")
    return Equation(tuple(lines))


def affine(normalized: ArrayLike, weight: ArrayLike, bias: ArrayLike) -> Equation:
    r"""Write out the scaled and shifted row, :math:`y_i = \gamma_i \hat{x}_i + \beta_i`.

    Args:
        normalized: one row of one or more real numbers, shape `(H,)`.
        weight: gamma, with the same shape.
        bias: beta, with the same shape.

    Raises:
        ValueError: the three aren't rows of finite numbers with the same length.

    Example:
        >>> affine([-1.0, 1.0], weight=[2.0, 5.0], bias=[0.5, -1.0])
        y_1 = 2 \cdot (-1) + 0.5 = -1.5
        y_2 = 5 \cdot 1 - 1 = 4
    """
    rows = [_row(values) for values in (normalized, weight, bias)]
    if len({len(row) for row in rows}) > 1:
        lengths = ", ".join(str(len(row)) for row in rows)
        raise ValueError(f"affine: expected three rows of equal length, but got lengths {lengths}")
    lines = []
    for index, (value, gamma, beta) in enumerate(zip(*rows, strict=True), start=1):
        shift = f"+ {number(beta)}" if beta >= 0 else f"- {number(-beta)}"
        product = rf"{number(gamma)} \cdot {_in_sum(value)} {shift}"
        lines.append(rf"y_{index} &{_sign(value)} {product} {_equal(gamma * value + beta)}")
    return Equation(tuple(lines))


def number(value: float) -> str:
    """Write a number with up to four decimals and no trailing zeros.

    Example:
        >>> number(2.0), number(-0.26726), number(14 / 3)
        ('2', '-0.2673', '4.6667')
    """
    text = f"{value:.{DIGITS}f}".rstrip("0").rstrip(".")
    return "0" if text in ("-0", "") else text


def _row(x: ArrayLike) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    row = np.asarray(x, dtype=np.float64)
    if row.ndim != 1 or row.size == 0:
        raise ValueError(f"expected one row of numbers, shape (H,), but got shape {row.shape}")
    if not np.isfinite(row).all():
        raise ValueError(f"expected finite numbers, but got {row}")
    return row


def _is_exact(value: float) -> bool:
    return math.isclose(float(number(value)), value, rel_tol=1e-12, abs_tol=1e-12)


def _sign(*values: float) -> str:
    """`=` if all numbers are shown exactly, `≈` otherwise."""
    return "=" if all(_is_exact(value) for value in values) else r"\approx"


def _equal(value: float) -> str:
    return f"{_sign(value)} {number(value)}"


def _in_sum(value: float) -> str:
    return number(value) if value >= 0 else f"({number(value)})"


def _minus(value: float) -> str:
    return f"- {number(value)}" if value >= 0 else f"+ {number(-value)}"


def _fraction(top: str, bottom: int) -> str:
    return rf"\dfrac{{{top}}}{{{bottom}}}"
