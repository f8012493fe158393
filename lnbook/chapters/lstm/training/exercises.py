"""The checkers for the chapter on training LSTMs."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from lnbook.chapters.shared.checker import NotYet, as_array, checker, judge, judge_letters, running

__all__ = ["check_clip", "check_contrast", "check_patience", "check_shades"]

FAINT, SPREAD, EPS = 1 / 16, math.sqrt(1 / 3), 1e-5
FIRST, BETA_1, BETA_2 = 1e12, 0.9, 0.999


@checker
def check_contrast(answer: Any = None) -> str:
    r"""Check by what factor white exceeds the faintest gray after Ba's norm.

    With one input feature `x`, weights with standard deviation :math:`\sqrt{1/3}` and an eps of
    1e-5, the norm of :math:`W_x x` has the standard deviation :math:`x s / \sqrt{x^2 s^2 +
    \epsilon}`.

    Args:
        answer: the standard deviation for x = 1, divided by the one for x = 1/16, to four decimals.

    Example:
        >>> check_contrast(16)
        Not yet. That's the factor before the norm, which is what an LSTM without norms sees.
    """
    given = as_array(answer, (), "Your factor")

    def after(x: float) -> float:
        return x * SPREAD / math.sqrt((x * SPREAD) ** 2 + EPS)

    right = after(1.0) / after(FAINT)
    outside = (SPREAD / (SPREAD + EPS)) / (FAINT * SPREAD / (FAINT * SPREAD + EPS))
    mistakes = {
        "That's the factor before the norm, which is what an LSTM without norms sees.": 16.0,
        "That would be right without eps. With eps, the two differ slightly.": 1.0,
        "That's the faint pixel divided by the white one.": 1 / right,
        "That's the factor between the variances. Take the square root.": right**2,
        "You added eps to the standard deviation. It's added to the variance.": outside,
    }
    judge(
        given,
        np.array(right),
        {message: np.array(value) for message, value in mistakes.items()},
        otherwise="Compute x s / sqrt(x^2 s^2 + eps) for x = 1 and for x = 1/16, then divide.",
        tolerance=6e-5,
    )
    return "After the norm, white is hardly any stronger than the faintest gray."


SHADES_MISSED = {
    "b": "(b) does change the direction of the row: (9/16, 7/16) isn't a multiple of (1, 0).",
    "d": "(d) does work: each shade picks its own column of W_x.",
    "e": "(e) does work: x w + b' points in a different direction for each x.",
}
SHADES_WRONG = {
    "a": "(a) is x times (1, 2), so the row is always a multiple of the same row.",
    "c": "(c) leaves only the sign of 2x - 1, which is the same for both shades.",
}


@checker
def check_shades(letters: Any = None) -> str:
    """Check which inputs let Ba's cell tell a pixel's shades apart.

    Args:
        letters: all that apply, as a string such as "ac" or as a list of letters.

    Example:
        >>> check_shades("abde")
        Not yet. (a) is x times (1, 2), so the row is always a multiple of the same row.
    """
    judge_letters(
        letters,
        {letter: (False, why) for letter, why in SHADES_WRONG.items()}
        | {letter: (True, why) for letter, why in SHADES_MISSED.items()},
    )
    return "The norm removes the scale of the row, so a shade has to change its direction."


Clip = Callable[[Sequence[Tensor], float], Any]


def _scaled(gradients: Sequence[Tensor], share: float) -> list[Tensor]:
    return [gradient * share for gradient in gradients]


def _norm(gradients: Sequence[Tensor]) -> float:
    return math.sqrt(sum(gradient.square().sum().item() for gradient in gradients))


CLIP_MISTAKES: dict[str, Clip] = {
    "It clips each tensor separately, which changes the direction of the whole vector. "
    "Take one norm over all tensors.": lambda gs, largest: [
        g * min(1.0, largest / g.norm().item()) for g in gs
    ],
    "It clips each number separately, which changes the direction of the whole vector. "
    "Multiply everything by one factor.": lambda gs, largest: [
        g.clamp(-largest, largest) for g in gs
    ],
    "It rescales small gradients, too. Leave gradients within the limit alone.": (
        lambda gs, largest: _scaled(gs, largest / _norm(gs))
    ),
    "It divides by the square of the norm. Take the square root.": lambda gs, largest: _scaled(
        gs, min(1.0, largest / _norm(gs) ** 2)
    ),
    "It adds up the norms of the tensors. Add their squares and take the square root.": (
        lambda gs, largest: _scaled(gs, min(1.0, largest / sum(g.norm().item() for g in gs)))
    ),
    "It doesn't clip at all.": lambda gs, largest: list(gs),
}


@checker
def check_clip(function: Clip) -> str:
    """Check a function that clips gradients by their joint norm.

    Calls `function(gradients, largest)` with three tensors whose joint norm is above `largest`
    in one call and below it in the other.

    Args:
        function: returns the clipped gradients, tensors of the same shapes in the same order.

    Example:
        >>> check_clip(lambda gradients, largest: gradients)
        Not yet. It doesn't clip at all.
    """
    rng = np.random.default_rng(77)
    gradients = [torch.from_numpy(rng.normal(size=size)) for size in ((4, 3), (5,), (2, 2))]
    gradients[1] *= 20.0
    for largest in (1.5, 500.0):
        given = [gradient.clone() for gradient in gradients]
        with running():
            answer = function(given, largest)
        if answer is None:
            raise NotYet("Your function doesn't return anything yet.")
        if not isinstance(answer, (list, tuple)) or len(answer) != len(gradients):
            raise NotYet("Your function should return a list of as many tensors as it gets.")
        if not all(map(torch.equal, given, gradients)):
            raise NotYet("Your function changes its arguments. Return new tensors.")
        arrays = [
            as_array(one, tuple(like.shape), "A tensor that your function returns")
            for one, like in zip(answer, gradients, strict=True)
        ]
        judge(
            np.concatenate([array.ravel() for array in arrays]),
            _flat(_scaled(gradients, min(1.0, largest / _norm(gradients)))),
            {text: _flat(wrong(gradients, largest)) for text, wrong in CLIP_MISTAKES.items()},
            otherwise=f"With a limit of {largest:g}, the values are off.",
            tolerance=1e-6,  # PyTorch adds 1e-6 to the norm
        )
    return "Large gradients are scaled down and keep their direction. Small ones stay as they are."


def _flat(tensors: Sequence[Tensor]) -> Any:
    return torch.cat([tensor.flatten() for tensor in tensors]).numpy()


@checker
def check_patience(answer: Any = None) -> str:
    r"""Check how many updates Adam takes to forget one gradient of 1e12.

    After that gradient, :math:`v = (1 - \beta_2) \cdot 10^{24}`; each further update with a
    gradient of 0 multiplies it by :math:`\beta_2 = 0.999`.

    Args:
        answer: after how many further updates v falls below 1; 1 percent off is fine.

    Example:
        >>> check_patience(459)
        Not yet. That's with beta_1, which belongs to m. For v, use beta_2 = 0.999.
    """
    given = as_array(answer, (), "Your number of updates")

    def updates(start: float, beta: float) -> float:
        return math.log(start) / -math.log(beta)

    share = 1 - BETA_2
    right = updates(share * FIRST**2, BETA_2)
    mistakes = {
        "That's with beta_1, which belongs to m. For v, use beta_2 = 0.999.": updates(
            share * FIRST**2, BETA_1
        ),
        "v holds squares: the square of 1e12 is 1e24.": updates(share * FIRST, BETA_2),
        "Only a fraction 1 - beta_2 of the first square goes into v.": updates(FIRST**2, BETA_2),
    }
    judge(
        given,
        right,
        mistakes,
        otherwise="Solve (1 - beta_2) * 1e24 * beta_2 ** n = 1 for n.",
        tolerance=0.01,
        relative=True,
    )
    return "No run in this chapter is even a fiftieth as long."
