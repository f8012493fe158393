"""Checkers for the chapter's exercises."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from lnbook.chapters.shared.checker import NotYet, as_array, checker, judge, judge_choice, running

__all__ = ["check_reports", "check_softmax", "check_tolerances"]

FEATURES, SIZE, SIGMA, UNIT = 4096, 2.0, 0.1, 2.0**-24
WORST = FEATURES * UNIT * SIZE / SIGMA
LIKELY = math.sqrt(FEATURES) * UNIT * SIZE / SIGMA


def _mistakes(right: float) -> dict[str, Any]:
    return {
        "That uses the gap after 1. The unit roundoff is half of it.": np.array(2 * right),
        "That's the error of the mean. LayerNorm then divides by the standard deviation.": (
            np.array(SIGMA * right)
        ),
        "That leaves out the size of the numbers, 2 on average.": np.array(right / SIZE),
        "That leaves out both the size of the numbers and the standard deviation.": (
            np.array(right * SIGMA / SIZE)
        ),
        "That's for float16. The row is in float32.": np.array(right * 2.0**13),
    }


@checker
def check_tolerances(worst: Any = None, likely: Any = None) -> str:
    r"""Check how much the rounding of the mean can change a normalized row.

    .. math::
        n u \, \overline{|x|} / \sigma \qquad\text{and}\qquad \sqrt{n}\, u \, \overline{|x|}/\sigma

    The row has 4,096 numbers in float32, of size 2 on average, with a standard deviation of 0.1.

    Args:
        worst: the bound for any order of addition.
        likely: the same with the square root of the number of additions.

    Example:
        >>> check_tolerances(worst=4096 * 2**-23 * 20, likely=64 * 2**-24 * 20)
        Not yet. That uses the gap after 1. The unit roundoff is half of it.
    """
    for name, answer, right in (("worst", worst, WORST), ("likely", likely, LIKELY)):
        value = as_array(answer, (), f"Your {name} case")
        other = "The worst case uses n, and the likely one uses the square root of n."
        judge(
            value,
            np.array(right),
            {other: np.array(LIKELY if name == "worst" else WORST)} | _mistakes(right),
            otherwise=f"The {name} case isn't right. Multiply the number of roundings, the unit "
            "roundoff and the size of the numbers, and divide by the standard deviation.",
            tolerance=0.06,  # one digit is enough
            relative=True,
        )
    return "In practice, you'll see something near the second number or below."


def _wanted(scores: Tensor, mask: Tensor) -> Tensor:
    rows = torch.isneginf(mask).all(-1, keepdim=True)
    safe = torch.where(rows, 0.0, scores + mask)
    return torch.where(rows, 0.0, safe.softmax(-1))


@checker
def check_softmax(function: Callable[[Tensor, Tensor], Any]) -> str:
    """Check a softmax that returns zeros for rows whose entries are all masked.

    Args:
        function: takes scores and a mask of 0 and -inf, tensors of the same shape, and returns the
            weights. Its gradient has to be finite, too.

    Example:
        >>> check_softmax(lambda scores, mask: (scores + mask).softmax(-1).nan_to_num(0.0))
        Not yet. The weights are right, but the gradient is nan. Avoid nan before the softmax.
    """
    for scale in (1.0, 1000.0):
        _check_softmax_of(function, scale)
    return "No nan appears in the forward or the backward pass."


def _check_softmax_of(function: Callable[[Tensor, Tensor], Any], scale: float) -> None:
    """Check it for scores of about this size."""
    rng = np.random.default_rng(9)
    scores = torch.tensor(scale * rng.normal(size=(2, 3, 4)), requires_grad=True)
    mask = torch.zeros(2, 3, 4, dtype=torch.float64)
    mask[0, :, 3] = mask[1, 1] = -torch.inf
    upstream = torch.tensor(rng.normal(size=(2, 3, 4)))
    with running():
        answer = function(scores * 1, mask.clone())
    if not isinstance(answer, Tensor) or answer.shape != scores.shape:
        raise NotYet("Return a tensor with the shape of the scores.")
    weights, wanted = answer.detach().double(), _wanted(scores, mask)
    if weights[1, 1].isnan().any():
        raise NotYet("The row whose entries are all masked is nan.")
    if weights.isnan().any():
        large = (
            " if the scores are large: exp is inf, or 0 in the whole row.\nFirst, subtract the "
            "row's largest score that isn't masked, or use softmax"
        )
        raise NotYet(f"A row with an entry that isn't masked is nan{large if scale > 1 else ''}.")
    if not torch.allclose(weights[1, 1], torch.zeros(4, dtype=weights.dtype)):
        raise NotYet("The row whose entries are all masked should have weights of 0.")
    if weights[torch.isneginf(mask)].any():
        raise NotYet(
            "A masked entry should have a weight of exactly 0, even if its score is large."
        )
    if not _close(weights, wanted.detach()):
        raise NotYet("Rows with an entry that isn't masked should be an ordinary masked softmax.")
    if not answer.requires_grad:
        raise NotYet("The weights are right, but no gradient gets through to the scores.")
    (found,) = torch.autograd.grad((answer * upstream).sum(), scores)
    (expected,) = torch.autograd.grad((wanted * upstream).sum(), scores)
    if found.isnan().any():
        raise NotYet(
            "The weights are right, but the gradient is nan. Avoid nan before the softmax."
        )
    if not _close(found, expected):
        raise NotYet("The weights are right, but the gradient isn't.")


def _close(found: Tensor, expected: Tensor) -> bool:
    return torch.allclose(found, expected, rtol=0.0, atol=1e-5)  # float32 is enough


CAUSES = {
    "a": ("last step", "A parameter was bad before the step began."),
    "b": ("overflow", "An inf in float16 that no module returned: what was computed in between?"),
    "c": ("mask", "The inputs are finite, but whole rows are nan. What hides all keys?"),
    "d": ("root", "The forward pass is finite. Which function has an infinite slope at 0?"),
    "e": ("data", "The model hasn't computed anything yet."),
    "f": ("loss scale", "The gradient that enters the last layer comes from the loss."),
}


@checker
def check_reports(**answers: Any) -> str:
    """Check the causes given for six reports from `first_nonfinite`.

    Args:
        answers: for each of the reports a to f, one of "data", "last step", "loss scale", "mask",
            "overflow" and "root".

    Example:
        >>> check_reports(a="data")
        Not yet. a: A parameter was bad before the step began.
    """
    causes = sorted(cause for cause, _ in CAUSES.values())
    for letter, (right, why) in CAUSES.items():
        judge_choice(answers.get(letter), letter, causes, right, why)
    return "The reported location is the cause, or comes right after it."
