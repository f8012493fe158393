"""Checkers for lab 3: the norm's place in a transformer, training, padding and half precision."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from lnbook.chapters.shared.checker import (
    NotYet,
    as_array,
    as_count,
    checker,
    judge,
    judge_letters,
    run_answer,
    running,
)

__all__ = [
    "check_average",
    "check_conclusion",
    "check_growth",
    "check_half",
    "check_overflow",
    "check_padding",
    "check_post_stack",
    "check_pre_stack",
    "check_runs",
    "check_underflow",
]

Layer = Callable[[Tensor], Tensor]
RUNS = 3
PLACES = ("pre", "post")


def _stack() -> tuple[Tensor, list[Layer], list[Layer], nn.LayerNorm]:
    """A stream of shape (2, 3, 6), three branches, a different norm for each, and a final norm."""
    rng = np.random.default_rng(2020)
    x = torch.tensor(rng.normal(size=(2, 3, 6)))

    def branch(weight: Tensor, h: Tensor) -> Tensor:
        return torch.tanh(h @ weight)

    branches: list[Layer] = [
        partial(branch, torch.tensor(rng.normal(size=(6, 6)))) for _ in range(3)
    ]
    norms = [nn.LayerNorm(6, dtype=torch.float64) for _ in range(4)]
    with torch.no_grad():
        for norm in norms:
            norm.weight.copy_(torch.tensor(rng.normal(1.0, 0.5, 6)))
            norm.bias.copy_(torch.tensor(rng.normal(size=6)))
    return x, branches, list(norms[:3]), norms[3]


def _pre(x: Tensor, branches: Sequence[Layer], norms: Sequence[Layer]) -> Tensor:
    for branch, norm in zip(branches, norms, strict=True):
        x = x + branch(norm(x))
    return x


def _post(x: Tensor, branches: Sequence[Layer], norms: Sequence[Layer]) -> Tensor:
    for branch, norm in zip(branches, norms, strict=True):
        x = norm(x + branch(x))
    return x


def _normed_residual(x: Tensor, branches: Sequence[Layer], norms: Sequence[Layer]) -> Tensor:
    for branch, norm in zip(branches, norms, strict=True):
        x = norm(x) + branch(norm(x))
    return x


def _output_norm(x: Tensor, branches: Sequence[Layer], norms: Sequence[Layer]) -> Tensor:
    for branch, norm in zip(branches, norms, strict=True):
        x = x + norm(branch(x))
    return x


def _no_residual(x: Tensor, branches: Sequence[Layer], norms: Sequence[Layer]) -> Tensor:
    for branch, norm in zip(branches, norms, strict=True):
        x = branch(norm(x))
    return x


def _post_without_residual(x: Tensor, branches: Sequence[Layer], norms: Sequence[Layer]) -> Tensor:
    for branch, norm in zip(branches, norms, strict=True):
        x = norm(branch(x))
    return x


def _final_in_the_loop(
    x: Tensor, branches: Sequence[Layer], norms: Sequence[Layer], final: Layer
) -> Tensor:
    for branch, norm in zip(branches, norms, strict=True):
        x = final(x + branch(norm(x)))
    return x


def _judge_stack(given: Any, right: Tensor, mistakes: Mapping[str, Tensor]) -> None:
    judge(
        as_array(given, tuple(right.shape), "What your stack returns"),
        right.detach(),
        {message: wrong.detach() for message, wrong in mistakes.items()},
        otherwise="The numbers are wrong. Check the residual sum, and where each norm goes.",
    )


@checker
def check_pre_stack(
    function: Callable[[Tensor, Sequence[Layer], Sequence[Layer], Layer], Any],
) -> str:
    """Check a Pre-LN stack: three branches, each with its own norm, and a final norm.

    Args:
        function: takes the stream, the branches, their norms and the final norm.

    Example:
        >>> check_pre_stack(lambda x, branches, norms, final: x)
        Not yet. The numbers are wrong. Check the residual sum, and where each norm goes.
    """
    x, branches, norms, final = _stack()
    given = run_answer(
        lambda x: function(x, branches, norms, final), x, context="x had the shape (2, 3, 6)"
    )
    stream = _pre(x, branches, norms)
    _judge_stack(
        given,
        final(stream),
        {
            "The final norm is missing.": stream,
            "That's Post-LN, followed by one more norm.": final(_post(x, branches, norms)),
            "That's Post-LN. In Pre-LN, the norm comes before the branch.": _post(
                x, branches, norms
            ),
            "The residual path goes through the norms. Add x itself.": final(
                _normed_residual(x, branches, norms)
            ),
            "You normalize what a branch writes. Normalize what it reads.": final(
                _output_norm(x, branches, norms)
            ),
            "All branches use the first norm.": final(_pre(x, branches, norms[:1] * 3)),
            "The residual is missing. Add x to what the branch writes.": final(
                _no_residual(x, branches, norms)
            ),
            "The final norm comes once, after the last branch.": _final_in_the_loop(
                x, branches, norms, final
            ),
        },
    )
    return "The residual path has no norm on it until the end."


@checker
def check_post_stack(function: Callable[[Tensor, Sequence[Layer], Sequence[Layer]], Any]) -> str:
    """Check a Post-LN stack: three branches, each with its own norm.

    Args:
        function: takes the stream, the branches and their norms.

    Example:
        >>> check_post_stack(lambda x, branches, norms: None)
        Not yet. Your function returns nothing. Did you forget `return`?
    """
    x, branches, norms, _ = _stack()
    given = run_answer(
        lambda x: function(x, branches, norms), x, context="x had the shape (2, 3, 6)"
    )
    _judge_stack(
        given,
        _post(x, branches, norms),
        {
            "That's Pre-LN. In Post-LN, the norm comes after the sum.": _pre(x, branches, norms),
            "You normalize what a branch writes. Normalize the sum.": _output_norm(
                x, branches, norms
            ),
            "All branches use the first norm.": _post(x, branches, norms[:1] * 3),
            "The residual is missing. Add x to what the branch writes.": _post_without_residual(
                x, branches, norms
            ),
            "You normalize what goes into the sum. Normalize the sum itself.": _normed_residual(
                x, branches, norms
            ),
        },
    )
    return "Every sum is normalized before the next branch reads it."


@checker
def check_growth(pre: Any = None, post: Any = None) -> str:
    """Check the variance of the stream after 24 branches.

    The stream starts with variance 1, and each branch writes independent numbers with variance 1.

    Args:
        pre: the variance in a Pre-LN stack, before the final norm.
        post: the variance in a Post-LN stack, with gamma 1, beta 0 and epsilon 0.

    Example:
        >>> check_growth(24, 1)
        Not yet. pre: count the stream's own variance, too.
    """
    judge(
        as_array(pre, (), "pre"),
        25.0,
        {
            "pre: count the stream's own variance, too.": 24.0,
            "pre: that's the standard deviation. Variances of independent numbers add up.": 5.0,
            "pre: variances of independent numbers add up. They don't multiply.": 2.0**24,
            "pre: nothing rescales the stream of a Pre-LN stack.": 1.0,
        },
        otherwise="pre: the variances of independent numbers add up.",
    )
    judge(
        as_array(post, (), "post"),
        1.0,
        {"post: the last step normalizes the sum.": 25.0, "post: the sum is normalized.": 2.0},
        otherwise="post: what's the last step of a Post-LN block?",
    )
    return "The stream of a Pre-LN stack grows; that of a Post-LN stack doesn't."


def _losses(losses: Any) -> dict[str, list[float]]:
    if not isinstance(losses, Mapping) or set(losses) != set(PLACES):
        raise NotYet('Your results should be a dictionary with the keys "pre" and "post".')
    found = {}
    for place in PLACES:
        given = losses[place]
        if not isinstance(given, Sequence) or isinstance(given, str) or len(given) < RUNS:
            raise NotYet(f'"{place}" should be a list with the test losses of {RUNS} runs.')
        found[place] = [float(value) for value in as_array(given, (len(given),), f'"{place}"')]
        if len(set(found[place])) < len(given):
            raise NotYet(f'Two runs of "{place}" have the same loss. Use a new seed for each run.')
    if set(found["pre"]) & set(found["post"]):
        raise NotYet('"pre" and "post" have a loss in common. Did you use one block for both?')
    return found


@checker
def check_runs(losses: Any = None) -> str:
    """Check the test losses of at least three runs of each placement.

    A loss is a cross-entropy in nats per character. Guessing every character with the same
    probability gives less than 5, so a loss above 8 points to a mistake.

    Args:
        losses: a dictionary with the keys "pre" and "post", each with a list of losses.

    Example:
        >>> check_runs({"pre": [2.8, 2.9]})
        Not yet. Your results should be a dictionary with the keys "pre" and "post".
    """
    for place, values in _losses(losses).items():
        if min(values) <= 0 or max(values) > 8:
            told = f'The losses of "{place}" range from {min(values):.3g} to {max(values):.3g}.'
            raise NotYet(f"{told} The cross-entropy of a character is between 0 and 8 here.")
    return "Six losses, or more, from different seeds."


@checker
def check_conclusion(losses: Any = None, better: Any = None, gap: Any = None) -> str:
    """Check what you conclude from your own runs, whatever they show.

    Args:
        losses: the same dictionary as for `check_runs`.
        better: the placement with the lower mean test loss, "pre" or "post".
        gap: the difference between the two means, to two decimal places.

    Example:
        >>> runs = {"pre": [2.0, 2.1, 2.2], "post": [3.0, 3.1, 3.5]}
        >>> check_conclusion(runs, "post", 1.1)
        Not yet. In your runs, the mean loss of "pre" is lower.
    """
    means = {place: sum(values) / len(values) for place, values in _losses(losses).items()}
    winner = min(means, key=lambda place: means[place])
    if better not in PLACES:
        raise NotYet('Name the placement with the lower mean loss: "pre" or "post".')
    if better != winner:
        raise NotYet(f'In your runs, the mean loss of "{winner}" is lower.')
    given = as_array(gap, (), "Your gap")
    if not math.isclose(abs(float(given)), abs(means["pre"] - means["post"]), abs_tol=0.0051):
        raise NotYet("Your gap isn't the difference of the two means.")
    spread = max(max(values) - min(values) for values in _losses(losses).values())
    if abs(means["pre"] - means["post"]) <= spread:
        return "But the runs differ from seed to seed by as much as that. Use more seeds."
    return "The gap is larger than the spread over the seeds."


@checker
def check_average(function: Callable[[Tensor, Tensor], Any]) -> str:
    """Check the average over the real tokens of padded sequences.

    Args:
        function: takes outputs of shape `(N, L, D)`, and a boolean mask of shape `(N, L)` that is
            True for real tokens; returns averages of shape `(N, D)`.

    Example:
        >>> check_average(lambda y, mask: y.mean(1))
        Not yet. You average over all positions, padding included.
    """
    rng = np.random.default_rng(4)
    y = torch.tensor(rng.normal(1.0, 1.0, (3, 4, 2)))
    mask = torch.tensor([[True, True, False, False], [True] * 3 + [False], [True, False] * 2])
    right = torch.stack([row[keep].mean(0) for row, keep in zip(y, mask, strict=True)])
    context = "y had the shape (3, 4, 2)"
    zeroed = torch.where(mask[..., None], y, 0.0)
    judge(
        as_array(run_answer(function, y, mask, context=context), (3, 2), "Your average"),
        right,
        {
            "You average over all positions, padding included.": y.mean(1),
            "You divide by the length with padding. Divide by the number of real tokens.": (
                zeroed.mean(1)
            ),
            "You don't divide the sum by anything.": zeroed.sum(1),
            "You average the padding: the mask is True for real tokens.": torch.stack(
                [row[~keep].mean(0) for row, keep in zip(y, mask, strict=True)]
            ),
        },
        otherwise="Add up the real tokens only, and divide by how many there are.",
    )
    spoiled = torch.where(mask[..., None], y, torch.nan)
    with running(context="the padding was NaN"):
        left = torch.as_tensor(function(spoiled, mask))
    if not torch.allclose(left, right):
        told = "A NaN in the padding gets into your average: NaN times 0 is NaN."
        raise NotYet(f"{told} Replace the padding with torch.where.")
    with running(context="one sequence was all padding"):
        empty = torch.as_tensor(function(y[:1], torch.zeros(1, 4, dtype=torch.bool)))
    if not torch.equal(empty, torch.zeros_like(empty)):
        raise NotYet("For a sequence without real tokens, return zeros, not NaN.")
    return "Padding doesn't get in, not even NaN."


STATEMENTS = {
    "a": (
        False,
        "(a) is false: each token has its own mean and variance, so padding can't change it.",
    ),
    "b": (
        True,
        "(b) is true: the zero vector is normalized to 0, since epsilon isn't 0, and gets beta.",
    ),
    "c": (True, "(c) is true: all tokens of a sequence share one mean there, padding included."),
    "d": (False, "(d) is false: the sum is the same, but it's divided by the length with padding."),
}


@checker
def check_padding(letters: Any = None) -> str:
    """Check which statements about padding in lab 3 are true.

    Args:
        letters: the letters of the true statements, such as "ad".

    Example:
        >>> check_padding("b")
        Not yet. (c) is true: all tokens of a sequence share one mean there, padding included.
    """
    judge_letters(letters, STATEMENTS)
    return "Two of them are true."


@checker
def check_overflow(smallest: Any = None) -> str:
    """Check the smallest positive whole number whose square is infinite in float16.

    Args:
        smallest: a whole number.

    Example:
        >>> check_overflow(255)
        Not yet. 255 squared is 65025, which isn't too large for float16.
    """
    given = as_count(smallest, "Your number")
    if given < 1:
        raise NotYet("Your number should be positive.")
    if given < 256:
        raise NotYet(f"{given} squared is {given**2}, which isn't too large for float16.")
    if given > 256:
        raise NotYet("A smaller number overflows, too. The largest finite number is 65504.")
    return "256 squared is 65536, too large for float16."


@checker
def check_underflow(power: Any = None) -> str:
    """Check the smallest k for which 10 to the power of -k becomes 0 in float16.

    Args:
        power: the whole number k.

    Example:
        >>> check_underflow(12)
        Not yet. A smaller k is enough. The smallest positive float16 is about 6e-8.
    """
    given = as_count(power, "Your k")
    if given < 0:
        raise NotYet("Give k without its sign: for 1e-3, k is 3.")
    if given > 8:
        raise NotYet("A smaller k is enough. The smallest positive float16 is about 6e-8.")
    if given < 8:
        raise NotYet(f"In float16, 1e-{given} is still positive.")
    return "An epsilon of 1e-8 does nothing in float16."


ORDINARY = "ordinary rows"
OFFSET = "rows with a mean of 1000"
CONSTANT = "a constant row"
SMALL = "rows with a small spread"
SQUARES = "the output is far off. In which dtype are the squares?"
FAR_OFF = {
    ORDINARY: "the output is far off. Check the formula.",
    CONSTANT: "the variance is 0, and the output is wrong. Add epsilon to the variance.",
    SMALL: "the output is far off. Where do you add epsilon?",
}


def _half_cases() -> dict[str, Tensor]:
    rng = np.random.default_rng(16)
    rows = rng.normal(size=(4, 32))
    return {
        ORDINARY: torch.tensor(rows).half(),
        "rows with entries around 300": torch.tensor(300.0 * rows).half(),
        OFFSET: torch.tensor(1000.0 + 8.0 * rows).half(),
        CONSTANT: torch.full((1, 32), 0.125).half(),
        SMALL: torch.tensor(0.001 * rows).half(),
    }


def _within_rounding(y: Tensor, expected: Tensor, times: float = 1.0) -> bool:
    """Whether a float16 result agrees, up to `times` times the allowed rounding error."""
    allowed = times * (2.0**-10 * expected.abs() + 2.0**-12)
    return bool(((y.double() - expected).abs() <= allowed).all())


def _half_mistakes(
    name: str, x: Tensor, weight: Tensor, bias: Tensor, eps: float
) -> dict[str, Tensor]:
    """What common mistakes return in a case that distinguishes them from the right answer."""
    variance, mean = torch.var_mean(x, -1, correction=0, keepdim=True)
    scaled = weight * (x - mean)
    if name == ORDINARY:
        unbiased = x.var(-1, keepdim=True)
        xhat = scaled / torch.sqrt(variance + eps)
        return {
            "It divides the squares by H - 1. LayerNorm divides by H.": (
                scaled / torch.sqrt(unbiased + eps) + bias
            ),
            "It leaves out the bias.": xhat,
            "It multiplies the bias by the weight, too. Add the bias last.": xhat + weight * bias,
        }
    if name == SMALL:
        return {
            "It adds epsilon outside the square root.": (
                scaled / (torch.sqrt(variance) + eps) + bias
            ),
            "It leaves out epsilon.": scaled / torch.sqrt(variance) + bias,
        }
    return {}


@checker
def check_half(function: Callable[[Tensor, Tensor, Tensor, float], Any]) -> str:
    """Check a LayerNorm that takes and returns float16, but computes accurately.

    Args:
        function: takes x of shape `(N, H)`, weight and bias of shape `(H,)`, all in float16, and
            epsilon.

    Example:
        >>> check_half(lambda x, weight, bias, eps: x.float())
        Not yet. The output should be float16, but is torch.float32.
    """
    rng = np.random.default_rng(17)
    weight = torch.tensor(rng.normal(1.0, 0.2, 32)).half()
    bias = torch.tensor(rng.normal(size=32)).half()
    for name, x in _half_cases().items():
        y = run_answer(function, x, weight, bias, 1e-5, context=name, hint="a new tensor")
        if not isinstance(y, Tensor) or y.shape != x.shape:
            raise NotYet("Your function should return a tensor of the shape of x.")
        if y.dtype != torch.float16:
            raise NotYet(f"The output should be float16, but is {y.dtype}.")
        exact = (x.double(), weight.double(), bias.double())
        right = functional.layer_norm(exact[0], (32,), *exact[1:], 1e-5)
        if _within_rounding(y, right):
            continue
        for message, wrong in _half_mistakes(name, *exact, 1e-5).items():
            if _within_rounding(y, wrong, 4.0):
                raise NotYet(f"For {name}, the output is wrong. {message}")
        far = 0.02 if name in FAR_OFF else 0.5  # in large rows, pure float16 can be off by more
        if not y.isfinite().all() or (y.double() - right).abs().max() > far:
            raise NotYet(f"For {name}, {FAR_OFF.get(name, SQUARES)}")
        told = f"For {name}, the last digits are wrong."
        hint = " Subtract the mean before you square." if name == OFFSET else ""
        raise NotYet(f"{told} Do every step in float32, and round once, at the end.{hint}")
    return "Every output is within the rounding of float16."
