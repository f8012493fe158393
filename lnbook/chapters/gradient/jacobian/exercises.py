"""Checkers of the chapter on the Jacobian."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lnbook import reference
from lnbook.chapters.shared.backward_mistakes import (
    dx_of,
    dx_with_r_without_eps,
    rms_xhat,
    row_mean,
)
from lnbook.chapters.shared.checker import NotYet, as_array, checker, judge, run_answer

__all__ = ["check_apply_jacobian", "check_eigenvalues", "check_removed"]

Array = NDArray[np.float64]

EIGENVALUES = np.array([0.0, 0.1875, 0.25, 0.25])
EIGENVALUE_MISTAKES: dict[str, Array] = {
    "Along xhat the eigenvalue is 0 only if eps is. Here it is r * eps / (v + eps).": (
        np.array([0.0, 0.0, 0.25, 0.25])
    ),
    "These are the eigenvalues for eps = 0. Here eps = 12.": np.array([0.0, 0.0, 0.5, 0.5]),
    "These are the eigenvalues without the factor r.": EIGENVALUES / 0.25,
    "These have r * v / (v + eps) along xhat. "
    "That is the part that is removed; the rest stays.": np.array([0.0, 0.0625, 0.25, 0.25]),
    "Along xhat the eigenvalue is smaller than r: eps keeps only a part of r.": (
        np.array([0.0, 0.25, 0.25, 0.25])
    ),
    "One eigenvalue is 0: that of the row of ones.": np.array([0.1875, 0.25, 0.25, 0.25]),
    "r is the root of 1 / (v + eps). You left the root out.": EIGENVALUES / 4.0,
}


@checker
def check_eigenvalues(values: Any = None) -> str:
    r"""Check the four eigenvalues of the Jacobian at the row [0, 0, 4, 4] with epsilon 12.

    Args:
        values: four numbers, in any order.

    Example:
        >>> check_eigenvalues([0, 0, 0.25, 0.25])
        Not yet. Along xhat the eigenvalue is 0 only if eps is. Here it is r * eps / (v + eps).
    """
    judge(
        np.sort(as_array(values, (4,), "Your list of eigenvalues")),
        EIGENVALUES,
        EIGENVALUE_MISTAKES,
        otherwise="Find v and r first. One eigenvalue belongs to 1, one to xhat, two to the rest.",
        tolerance=0.0026,
    )
    return "One 0, one that eps keeps above 0, and H - 2 = 2 times r."


def _mistakes(u: Array, x: Array, eps: float) -> dict[str, Array]:
    """What known mistakes return in place of J u."""
    features = x.shape[-1]
    centered, rms = x - row_mean(x), rms_xhat(x, eps)
    r, rms_r = (row_mean(centered**2) + eps) ** -0.5, (row_mean(x**2) + eps) ** -0.5
    whole = dx_of(u.reshape(1, -1), x.reshape(1, -1), eps).reshape(x.shape)

    def projected(along: Array) -> Array:
        rest: Array = u - row_mean(u) - along * row_mean(u * along)
        return rest

    return {
        "It takes means over the whole array. Every row has its own Jacobian.": whole,
        "It works along the columns. A row is one example: use axis=-1.": dx_of(u.T, x.T, eps).T,
        "It lacks the mean of u: subtract it.": dx_of(u, x, eps, mean_term=0.0),
        "It lacks the term with xhat: subtract xhat times the mean of u * xhat.": (
            dx_of(u, x, eps, xhat_term=0.0)
        ),
        "It sums where it should average. Divide both sums by H.": (
            dx_of(u, x, eps, mean_term=features, xhat_term=features)
        ),
        "It sums u * xhat where it should average. Divide by H.": (
            dx_of(u, x, eps, xhat_term=features)
        ),
        "It adds the term with xhat. Subtract it.": dx_of(u, x, eps, xhat_term=-1.0),
        "It lacks the factor r in front.": dx_of(u, x, eps, power=0.0),
        "It has the factor r twice. Once is enough.": dx_of(u, x, eps, power=2.0),
        "It leaves eps out, in r and in xhat.": dx_of(u, x, 0.0),
        "It takes r without eps.": dx_with_r_without_eps(u, x, eps),
        "It takes x - mean in place of xhat.": r * projected(centered),
        "It takes x in place of xhat.": r * projected(x),
        "It leaves the mean of x in: that is the Jacobian of RMSNorm, less the mean.": (
            rms_r * projected(rms)
        ),
        "It returns the LayerNorm of x. What is asked for is J u.": (
            reference.layer_norm(x, features, eps=eps)
        ),
    }


LONG_ROW = 3_000


def _watched(
    function: Callable[[Array, Array, float], Any], u: Array, x: Array, eps: float
) -> tuple[Any, int]:
    """What the reader's function returns, and how many bytes were in use at most while it ran."""
    tracing = tracemalloc.is_tracing()
    tracemalloc.start()
    tracemalloc.reset_peak()
    before, _ = tracemalloc.get_traced_memory()
    try:
        answer = run_answer(function, u, x, eps, context=f"for shapes {u.shape}, {x.shape}")
        return answer, tracemalloc.get_traced_memory()[1] - before
    finally:
        if not tracing:
            tracemalloc.stop()


@checker
def check_apply_jacobian(function: Callable[[Array, Array, float], ArrayLike]) -> str:
    r"""Check a function that multiplies each row by the Jacobian of its own LayerNorm.

    Calls `function(u, x, eps)` with random batches in float64, and once with a long row, while
    the memory of NumPy's arrays is watched: the matrix of that row would stand out.

    Args:
        function: takes `u` and `x` of shape `(N, H)`, returns :math:`J(x_n) u_n` for each row.

    Example:
        >>> check_apply_jacobian(lambda u, x, eps: u - u.mean(axis=-1, keepdims=True))
        Not yet. For u of shape (3, 5) and eps=0.25 the values differ from J u.
    """
    rng = np.random.default_rng(2019)
    for shape, eps in (((3, 5), 0.25), ((4, 4), 1e-5), ((1, LONG_ROW), 1e-5)):
        u, x = rng.normal(0.5, 1.0, shape), rng.normal(1.0, 1.5, shape)
        answer, peak = _watched(function, u, x, eps)
        if shape[-1] == LONG_ROW and peak > LONG_ROW**2:  # bytes: an eighth of the matrix
            told = f"For a row of {LONG_ROW:,} features it needs {peak / 2**20:.0f} MiB at once"
            raise NotYet(f"{told}: it builds the matrix. Write both products as means.")
        judge(
            as_array(answer, shape, "What your function returns"),
            dx_of(u, x, eps),
            _mistakes(u, x, eps),
            otherwise=f"For u of shape {shape} and eps={eps} the values differ from J u.",
        )
    return "Each row is multiplied by its Jacobian, and no matrix was built."


REMOVED_ROW = (1.0, 2.0, 3.0, 6.0)


@checker
def check_removed(g: Any = None) -> str:
    r"""Check a gradient that LayerNorm of [1, 2, 3, 6] removes, with epsilon 0.

    Args:
        g: four numbers, not all equal.

    Example:
        >>> check_removed([1.0, -1.0, 1.0, -1.0])
        Not yet. Of a length of 2.000, 0.904 is left. Which two directions does J send to 0?
    """
    answer = as_array(g, (4,), "Your g")
    if np.ptp(answer) <= 1e-9 * np.abs(answer).max():
        raise NotYet("A constant gradient is removed, that is true. Find another kind.")
    jacobian = reference.layer_norm_jacobian(REMOVED_ROW, eps=0.0)
    length, left = np.linalg.norm(answer), np.linalg.norm(jacobian @ answer)
    if left <= 1e-6 * length:
        return "Nothing of it is left."
    hint = "Which two directions does J send to 0?"
    if left <= 0.02 * length:
        hint = "That is close: give exact numbers, without rounding."
    raise NotYet(f"Of a length of {length:.3f}, {left:.3f} is left. {hint}")
