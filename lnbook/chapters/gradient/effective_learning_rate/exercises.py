"""Checkers for the chapter's exercises."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from lnbook.chapters.shared.checker import as_array, checker, judge, judge_letters, run_answer

__all__ = ["check_invariant", "check_new_decay", "check_recipe"]

RATE, DECAY = 0.1, 5e-4
DEGREES, STEPS = math.degrees(math.sqrt(2 * RATE * DECAY)), 1 / (4 * RATE * DECAY)
DEGREE_MISTAKES = {
    "That's in radians. Multiply by 180/pi.": math.radians(DEGREES),
    "You left out the square root.": math.degrees(2 * RATE * DECAY),
    "You left out the 2 under the square root.": math.degrees(math.sqrt(RATE * DECAY)),
    "You used the decay without the learning rate.": math.degrees(math.sqrt(2 * DECAY)),
}
STEP_MISTAKES = {
    "You left out the 4: it comes from the fourth power of the norm.": 1 / (RATE * DECAY),
    "That's the time for the square of the norm without the growth term. "
    "The fourth power shrinks by 4 times rate times decay.": 1 / (2 * RATE * DECAY),
    "You used the decay without the learning rate.": 1 / (4 * DECAY),
}


@checker
def check_recipe(degrees: Any = None, steps: Any = None) -> str:
    r"""Check the equilibrium of SGD with learning rate 0.1 and weight decay 0.0005.

    .. math::
        \theta \approx \sqrt{2 \eta \lambda}, \qquad t \approx \frac{1}{4 \eta \lambda}

    Source: Wan et al. 2021, for the angle.

    Args:
        degrees: the angle per step, to two digits.
        steps: the time constant, to two digits.

    Example:
        >>> check_recipe(degrees=0.01, steps=5000)
        Not yet. That's in radians. Multiply by 180/pi.
    """
    judge(
        as_array(degrees, (), "Your angle"),
        np.array(DEGREES),
        {text: np.array(wrong) for text, wrong in DEGREE_MISTAKES.items()},
        otherwise="Find 2 * rate * decay, then its square root.",
        tolerance=0.0035,
    )
    judge(
        as_array(steps, (), "Your number of steps"),
        np.array(STEPS),
        {text: np.array(wrong) for text, wrong in STEP_MISTAKES.items()},
        otherwise="Find 1 / (4 * rate * decay).",
        tolerance=100.0,
    )
    return (
        "About half a degree per step, and the distance from the equilibrium shrinks by a factor "
        "of e every 5,000 steps."
    )


DECAYS: dict[str, Callable[[float, float, float], float]] = {
    "It keeps the old decay, so the angle falls only by the square root of the factor.": (
        lambda lr, decay, factor: decay
    ),
    "It divides the decay by the square of the factor. "
    "The learning rate has already contributed one factor.": (
        lambda lr, decay, factor: decay / factor**2
    ),
    "It divides the decay by the square root of the factor. "
    "Which power of the angle is rate * decay?": (lambda lr, decay, factor: decay / factor**0.5),
    "It raises the decay. That keeps rate * decay as it was, and with it the angle.": (
        lambda lr, decay, factor: decay * factor
    ),
    "It returns the new learning rate, not the new decay.": lambda lr, decay, factor: lr / factor,
}


@checker
def check_new_decay(function: Callable[[float, float, float], Any]) -> str:
    r"""Check the decay at which the angle falls by the same factor as the learning rate.

    .. math::
        \sqrt{2 \frac{\eta}{f} \lambda'} = \frac{1}{f} \sqrt{2 \eta \lambda}

    The decay from the exact angle, :math:`\cos \theta = 1 - \eta \lambda`, is accepted, too.

    Args:
        function: takes the old learning rate, the old decay and the factor; returns the new decay.

    Example:
        >>> check_new_decay(lambda lr, decay, factor: decay)
        Not yet. It keeps the old decay, so the angle falls only by the square root of the factor.
    """
    for lr, decay, factor in ((0.2, 0.01, 10.0), (0.03, 0.5, 4.0)):
        context = f"for lr={lr}, decay={decay}, factor={factor}"
        answer = run_answer(function, lr, decay, factor, context=context)
        judge(
            as_array(answer, (), "What your function returns"),
            np.array(decay / factor),
            {text: np.array(wrong(lr, decay, factor)) for text, wrong in DECAYS.items()},
            otherwise=f"The decay is wrong {context}. "
            "The product of rate and decay has to fall by the square of the factor.",
            tolerance=0.005,  # the exact angle gives a decay that's up to 0.24% larger
            relative=True,
        )
    return (
        "Rate and decay fall together. For gradients of the same size, the norm stays where it is."
    )


INVARIANT = "ab"
WHY = {
    "c": "A GELU of twice the input isn't twice its output. Try it with -1 and -2.",
    "d": "The residual stream is added before the next norm sees the result of the block.",
    "e": "The bias isn't doubled, so the sum isn't doubled either.",
    "f": "Nothing after these weights removes the factor 2.",
}
MISSING = {
    "a": "A LayerNorm with epsilon 0 removes any positive factor. One of the letters is missing.",
    "b": "What does a ReLU do with a positive factor? One of the letters is missing.",
}


@checker
def check_invariant(letters: Any = None) -> str:
    """Check which of six layers are scale-invariant.

    Args:
        letters: the letters a to f of those that are, such as "af".

    Example:
        >>> check_invariant("abf")
        Not yet. f: Nothing after these weights removes the factor 2.
    """
    wrong = {letter: (False, f"{letter}: {why}") for letter, why in WHY.items()}
    judge_letters(letters, wrong | {letter: (True, why) for letter, why in MISSING.items()})
    return "A positive factor has to reach the norm untouched."
