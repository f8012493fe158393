"""Checkers for the chapter on the Jacobian."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from lnbook import reference
from lnbook.chapters.shared.checker import NotYet, as_array, checker, judge, run_answer, running

__all__ = ["check_eigenvalues", "check_equilibrium", "check_removed", "check_scale_invariant"]

Array = NDArray[np.float64]

EIGENVALUES = np.array([0.0, 0.1875, 0.25, 0.25])
EIGENVALUE_MISTAKES: dict[str, Array] = {
    "Along xhat, the eigenvalue is 0 only if eps is. Here it's r * eps / (v + eps).": (
        np.array([0.0, 0.0, 0.25, 0.25])
    ),
    "These are the eigenvalues for eps = 0. Here eps = 12.": np.array([0.0, 0.0, 0.5, 0.5]),
    "These are the eigenvalues without the factor r.": EIGENVALUES / 0.25,
    "You used r * v / (v + eps) along xhat. "
    "That's the part that gets removed; the rest stays.": np.array([0.0, 0.0625, 0.25, 0.25]),
    "Along xhat, the eigenvalue is smaller than r: only eps / (v + eps) of r survives.": (
        np.array([0.0, 0.25, 0.25, 0.25])
    ),
    "One eigenvalue is 0: its eigenvector is the row of ones.": np.array(
        [0.1875, 0.25, 0.25, 0.25]
    ),
    "r is the square root of 1 / (v + eps). You left out the square root.": EIGENVALUES / 4.0,
    "List them from the smallest to the largest.": EIGENVALUES[::-1],
}


@checker
def check_eigenvalues(values: Any = None) -> str:
    r"""Check the four eigenvalues of the Jacobian at the row [0, 0, 4, 4] with epsilon = 12.

    Args:
        values: four numbers, from the smallest to the largest.

    Example:
        >>> check_eigenvalues([0, 0, 0.25, 0.25])
        Not yet. Along xhat, the eigenvalue is 0 only if eps is. Here it's r * eps / (v + eps).
    """
    judge(
        as_array(values, (4,), "Your list of eigenvalues"),
        EIGENVALUES,
        EIGENVALUE_MISTAKES,
        otherwise="Find v and r first. One eigenvector is the row of ones, and one is xhat.",
        tolerance=0.0026,
    )
    return "One is 0, one is above 0 only because of eps, and H - 2 = 2 of them equal r."


REMOVED_ROW = (1.0, 2.0, 3.0, 6.0)


@checker
def check_removed(g: Any = None) -> str:
    r"""Check a gradient that LayerNorm of [1, 2, 3, 6] removes, with epsilon 0.

    Args:
        g: four numbers, not all equal.

    Example:
        >>> check_removed([1.0, -1.0, 1.0, -1.0])
        Not yet. Its norm goes from 2.000 to 0.904. Which two directions does J send to 0?
    """
    answer = as_array(g, (4,), "Your g")
    if np.ptp(answer) <= 1e-9 * np.abs(answer).max():
        raise NotYet("LayerNorm does remove a constant gradient. Find a different kind.")
    jacobian = reference.layer_norm_jacobian(REMOVED_ROW, eps=0.0)
    length, left = np.linalg.norm(answer), np.linalg.norm(jacobian @ answer)
    # Any constant is removed, however large; it mustn't hide what's left of the rest.
    rest = np.linalg.norm(answer - answer.mean())
    if left <= 1e-6 * rest:
        return "Nothing is left of it."
    hint = "Which two directions does J send to 0?"
    if left <= 0.02 * rest:
        hint = "That's close: give exact numbers, without rounding."
    raise NotYet(f"Its norm goes from {length:.3f} to {left:.3f}. {hint}")


Loss = Callable[[Tensor], Tensor]


def _losses() -> tuple[Tensor, dict[str, tuple[Loss, bool]]]:
    """Return a weight matrix, and for each loss whether it ignores the scale of the matrix."""
    rng = np.random.default_rng(1706)
    h = torch.tensor(rng.normal(size=(8, 6)))
    bias, u = torch.tensor(rng.normal(size=6)), torch.tensor(rng.normal(size=(8, 6)))
    start = torch.tensor(rng.normal(size=(6, 6)))

    def norm(z: Tensor) -> Tensor:
        return functional.layer_norm(z, (6,), eps=0.0)

    def loss(of_product: Callable[[Tensor], Tensor]) -> Loss:
        return lambda w: (u * torch.tanh(of_product(h @ w.T))).sum()

    size = start.norm().item()
    return start, {
        "LN(W h)": (loss(norm), True),
        "LN(W h + b)": (loss(lambda z: norm(z + bias)), False),
        "h + LN(W h)": (loss(lambda z: h + norm(z)), True),
        "LN(h + W h)": (loss(lambda z: norm(h + z)), False),
        "RMSNorm(W h)": (loss(lambda z: z / z.square().mean(-1, keepdim=True).sqrt()), True),
        "a parabola in the norm of W, with its minimum at W": (
            lambda w: (w.norm() - size) ** 2 + 1.0,
            False,
        ),
    }


@checker
def check_scale_invariant(function: Callable[[Loss, Tensor], Any]) -> str:
    """Check a test of whether a loss stays the same when W is multiplied by a positive number.

    Calls `function(loss, W)` in float64 with six losses.

    Args:
        function: returns True if the scale of `W` doesn't matter.

    Example:
        >>> check_scale_invariant(lambda loss, W: True)
        Not yet. For LN(W h + b), the scale of W matters, but your function returns True.
    """
    start, losses = _losses()
    for name, (loss, expected) in losses.items():
        with running(context=f"for a loss of {name}"):
            answer = function(loss, start.clone())
        if not isinstance(answer, (bool, np.bool_)) and not (
            isinstance(answer, Tensor) and answer.numel() == 1 and answer.dtype == torch.bool
        ):
            raise NotYet(f"Your function should return True or False, but returned {answer!r}.")
        if bool(answer) == expected:
            continue
        if expected:
            flipped = " Did you try a negative factor?" if name.startswith("LN") else ""
            told = f"For {name}, the scale of W doesn't matter, but your function returns False."
            raise NotYet(told + flipped)
        told = f"For {name}, the scale of W matters, but your function returns True."
        if name.startswith("a parabola"):
            told += " There's no slope along W at this one point. Look farther away."
        raise NotYet(told)
    return "It wasn't fooled by any of the six losses."


@checker
def check_equilibrium(function: Callable[[float, float, float], Any]) -> str:
    r"""Check a formula for the norm at which weight decay and growth balance.

    Accepts the exact formula and its approximation for small :math:`\eta \lambda`.

    Args:
        function: takes the learning rate, the weight decay and the norm of the gradient at weights
            of norm 1; returns the norm of the weights.

    Example:
        >>> check_equilibrium(lambda lr, decay, s: 1.0)
        Not yet. The formula gives the wrong number for lr=0.1, decay=0.001, s=2.0.
    """
    for lr, decay, s in ((0.1, 0.001, 2.0), (0.02, 0.005, 0.3)):
        context = f"for lr={lr}, decay={decay}, s={s}"
        given = as_array(
            run_answer(function, lr, decay, s, context=context), (), "What your formula gives"
        )
        right = (lr * s**2 / (2 * decay)) ** 0.25
        judge(
            given / right,
            1.0,
            {
                "That's the square of the norm. Take the root.": right,
                "That's the norm to the power of 4. Take the root twice.": right**3,
                "That's the effective learning rate. Return the norm.": lr / right**3,
                "You dropped the factor 2: 1 - (1 - lr * decay) ** 2 is about 2 * lr * decay.": (
                    2**0.25
                ),
                "The gradient depends on W: at norm n, it's s / n, not s.": (
                    (lr * s**2 / (2 * decay)) ** 0.5 / right
                ),
                "Decay and learning rate are swapped.": (decay * s**2 / (2 * lr)) ** 0.25 / right,
            },
            otherwise=f"The formula gives the wrong number {context}.",
            tolerance=2e-4,
        )
    return "At this norm, what decay takes away is what the steps add."
