"""Checkers for the chapter's exercises."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lnbook.chapters.shared.checker import NotYet, as_array, checker, judge, run_answer

__all__ = ["check_fold", "check_growth", "check_sphere_step"]

Array = NDArray[np.float64]


@checker
def check_sphere_step(h: Any = None) -> str:
    r"""Check an nGPT step from [1, 0] toward a branch's output of [0, 5], with alpha 1/4.

    .. math::
        h \leftarrow \operatorname{unit}\left(h + \alpha
        \left(\operatorname{unit}(F) - h\right)\right)

    Source: Loshchilov et al. 2025.

    Args:
        h: two numbers, to three digits.

    Example:
        >>> check_sphere_step([0.75, 0.25])
        Not yet. That's the point between the two. Scale it back to length 1.
    """
    judge(
        as_array(h, (2,), "Your row"),
        np.array([3.0, 1.0]) / np.sqrt(10.0),
        {
            "That's the point between the two. Scale it back to length 1.": np.array([0.75, 0.25]),
            "Give the branch's output length 1 before the step.": np.array([0.75, 1.25])
            / np.hypot(0.75, 1.25),
            "You added the branch's output. The step is toward it: subtract h first.": np.array(
                [4.0, 1.0]
            )
            / np.sqrt(17.0),
            "You swapped the two weights: h keeps 1 - alpha.": np.array([1.0, 3.0]) / np.sqrt(10.0),
        },
        otherwise="Go a quarter of the way from [1, 0] to [0, 1], then divide by the length.",
        tolerance=2e-3,
    )
    return "The size of what a branch writes doesn't matter, only its direction."


FOLDS: dict[str, Callable[[Array, Array, int], tuple[Array, Array]]] = {
    "Your beta isn't scaled. The factor multiplies the norm's whole output.": (
        lambda gamma, beta, block: (gamma * block**-0.5, beta)
    ),
    "You divided by the block number. Divide by its square root.": (
        lambda gamma, beta, block: (gamma / block, beta / block)
    ),
    "You multiplied by the square root. Divide.": (
        lambda gamma, beta, block: (gamma * block**0.5, beta * block**0.5)
    ),
    "Your pair is in the wrong order: return gamma, then beta.": (
        lambda gamma, beta, block: (beta * block**-0.5, gamma * block**-0.5)
    ),
}


@checker
def check_fold(function: Callable[[Array, Array, int], Any]) -> str:
    r"""Check a function that moves the factor of LayerNorm Scaling into gamma and beta.

    .. math::
        \frac{1}{\sqrt{l}} (\gamma \hat{x} + \beta) = \gamma' \hat{x} + \beta'

    Args:
        function: takes gamma, beta and the block number, and returns the new gamma and the new
            beta.

    Example:
        >>> check_fold(lambda gamma, beta, block: (gamma / block**0.5, beta))
        Not yet. Your beta isn't scaled. The factor multiplies the norm's whole output.
    """
    gamma, beta = np.random.default_rng(0).normal(size=(2, 5))
    answer = run_answer(function, gamma.copy(), beta.copy(), 3, context="for block 3")
    if not isinstance(answer, tuple | list) or len(answer) != 2:
        raise NotYet("Return two arrays: the new gamma, then the new beta.")
    found = np.stack([as_array(part, (5,), "What your function returns") for part in answer])
    judge(
        found,
        np.stack([gamma, beta]) * 3**-0.5,
        {text: np.stack(wrong(gamma, beta, 3)) for text, wrong in FOLDS.items()},
        otherwise="Multiply out, and collect what multiplies the normalized row.",
    )
    return "After training, the factor costs nothing: you can fold it into gamma and beta."


BLOCKS = 32
HARMONIC = sum(1 / block for block in range(1, BLOCKS + 1))
ROOTS = sum(block**-0.5 for block in range(1, BLOCKS + 1))


@checker
def check_growth(pre: Any = None, scaled: Any = None) -> str:
    r"""Check the mean square of the stream after 32 blocks, without and with scaled norms.

    .. math::
        1 + \sum_{l=1}^{32} 2, \qquad 1 + \sum_{l=1}^{32} \frac{2}{l}

    Args:
        pre: the mean square for Pre-LN, to two digits.
        scaled: the mean square for LayerNorm Scaling, to two digits.

    Example:
        >>> check_growth(pre=64, scaled=9.1)
        Not yet. Pre-LN: the stream starts at 1, not at 0.
    """
    judge(
        as_array(pre, (), "Your value for Pre-LN"),
        np.array(1.0 + 2 * BLOCKS),
        {
            "Pre-LN: the stream starts at 1, not at 0.": np.array(2.0 * BLOCKS),
            "Pre-LN: each block has two branches.": np.array(1.0 + BLOCKS),
            "Pre-LN: the branches add an amount, not a factor.": np.array(3.0**BLOCKS),
        },
        otherwise="Pre-LN: start at 1, and add 1 for each of the 64 branches.",
        tolerance=0.5,
    )
    judge(
        as_array(scaled, (), "Your value for scaled norms"),
        np.array(1.0 + 2 * HARMONIC),
        {
            "Scaled norms: dividing a row by the square root of l divides its mean square by l.": (
                np.array(1.0 + 2 * ROOTS)
            ),
            "Scaled norms: the stream starts at 1, not at 0.": np.array(2 * HARMONIC),
            "Scaled norms: each block has two branches.": np.array(1.0 + HARMONIC),
        },
        otherwise="Scaled norms: start at 1, and add 2/l for each block l.",
        tolerance=0.15,
    )
    return "A sum of 1/l grows like the logarithm of the depth."
