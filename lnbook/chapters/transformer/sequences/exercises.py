"""The checkers for the chapter on sequences."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lnbook.chapters.shared.checker import NotYet, as_array, checker, judge, running

__all__ = [
    "check_cumulative_norm",
    "check_finds_leaks",
    "check_only_padding",
    "check_padded_variance",
]

Array = NDArray[np.float64]
TOLERANCE = 1e-9


UNBIASED = float(np.sqrt(9 / 10))
PADDING: dict[str, tuple[float, dict[str, float]]] = {
    "real": (
        2.0,
        {
            "that would be right without the padding. Here, zeros are part of the mean.": 0.0,
            "that's x minus the mean. Divide it by the standard deviation.": 4.0,
            "you divided by the variance. Take its square root.": 1.0,
            "you divided by n - 1. Batch normalization divides by n.": 2.0 * UNBIASED,
            "you divided x by the standard deviation. Subtract the mean first.": 2.5,
            "the sign is the wrong way around.": -2.0,
            "that's the output at padding.": -0.5,
        },
    ),
    "padding": (
        -0.5,
        {
            "padding is normalized like the rest: subtract the mean from 0, too.": 0.0,
            "that's x minus the mean. Divide it by the standard deviation.": -1.0,
            "you divided by the variance. Take its square root.": -0.25,
            "you divided by n - 1. Batch normalization divides by n.": -0.5 * UNBIASED,
            "the sign is the wrong way around.": 0.5,
            "that's the output at a real token.": 2.0,
        },
    ),
    "masked": (
        0.0,
        {
            "that's the output without the mask.": 2.0,
            "the mask leaves only real tokens. What is their mean?": 5.0,
            "a constant feature is equal to its mean, so x minus the mean is 0.": 1.0,
        },
    ),
}
"""The right answer to each question, and the wrong ones keyed by the message for each."""


@checker
def check_only_padding(real: Any = None, padding: Any = None, masked: Any = None) -> str:
    """Check the output of batch normalization for a feature that's 5 at every real token.

    The batch has 10 positions, 2 of them real. Epsilon is 0 where possible.

    Args:
        real: the output at a real token.
        padding: the output at a padded position, where the input is 0.
        masked: the output of masked batch normalization at a real token, with epsilon above 0.

    Example:
        >>> check_only_padding(real=0, padding=0, masked=0)
        Not yet. real: that would be right without the padding. Here, zeros are part of the mean.
    """
    for (name, (right, mistakes)), answer in zip(
        PADDING.items(), (real, padding, masked), strict=True
    ):
        judge(
            as_array(answer, (), f"Your {name}"),
            np.array(right),
            {f"{name}: {text}": np.array(wrong) for text, wrong in mistakes.items()},
            otherwise=f"{name} is off. Find the mean and the variance of the 10 values first.",
            tolerance=0.004,
        )
    return "Without the mask, the outputs say only how much padding there is."


WORST_MISTAKES: dict[str, Callable[[float, float], float]] = {
    "There, the padded variance is the same as without padding.": (
        lambda mean, std: std**2 / mean**2
    ),
    "That leaves out the term with the variance.": lambda _mean, _std: 0.5,
    "That's where the parabola is 0. Its maximum is halfway between its two zeros.": (
        lambda mean, std: (std**2 + mean**2) / mean**2
    ),
    "The variance is the square of the standard deviation.": (
        lambda mean, std: (std + mean**2) / (2 * mean**2)
    ),
    "That's the share of padding. The question is about the share of real positions.": (
        lambda mean, std: 1 - (std**2 + mean**2) / (2 * mean**2)
    ),
}
"""Wrong shares of real positions, keyed by the message for each."""


@checker
def check_padded_variance(ratio: Any = None, worst_share: Any = None) -> str:
    r"""Check when padding raises the variance of a feature, and which share raises it most.

    .. math::
        f(p) = p\,\sigma^2 + p\,(1 - p)\,\mu^2, \qquad
        p^* = \frac{\sigma^2 + \mu^2}{2 \mu^2}

    Args:
        ratio: the largest :math:`|\mu| / \sigma` at which no padding raises the variance.
        worst_share: takes the mean and the standard deviation, and returns the share of real
            positions at which the variance is largest, for ratios above that.

    Example:
        >>> check_padded_variance(2.0)
        Not yet. ratio is off. Is the parabola still rising at p = 1?
    """
    judge(
        as_array(ratio, (), "Your ratio"),
        1.0,
        {
            "ratio: a mean other than 0 isn't enough. When is the slope at p = 1 negative?": 0.0,
            "ratio: the derivative of p (1 - p) is 1 - 2p, not -2p.": 0.5**0.5,
        },
        otherwise="ratio is off. Is the parabola still rising at p = 1?",
        tolerance=1e-6,
    )
    if worst_share is None or worst_share is ...:
        raise NotYet("Your worst_share is still missing.")
    for case in ((3.0, 1.0), (-2.0, 1.5)):
        with running("worst_share", context=f"for mean, std = {case}"):
            answer = worst_share(*case)
        mean, std = case
        right = (std**2 + mean**2) / (2 * mean**2)
        judge(
            as_array(answer, (), "What worst_share returns"),
            right,
            {text: wrong(*case) for text, wrong in WORST_MISTAKES.items()},
            otherwise=f"For mean, std = {case}, worst_share should be {right:.4f}.",
            tolerance=1e-6,
        )
    return "For a very large mean, the worst case is half padding."


def _normalized(x: Array, axes: int | tuple[int, ...] = -1, eps: float = 1e-5) -> Array:
    centered = x - x.mean(axis=axes, keepdims=True)
    return np.asarray(centered / np.sqrt((centered**2).mean(axis=axes, keepdims=True) + eps))


def _later_mean(x: Array) -> Array:
    """Replace each token by the mean of itself and all later ones."""
    counts = np.arange(len(x), 0, -1)[:, None]
    return np.asarray(x[::-1].cumsum(0)[::-1] / counts)


def _from(x: Array, source: int, target: int) -> Array:
    y = x.copy()
    y[target] += x[source]
    return y


def _from_feature(x: Array, feature: int) -> Array:
    y = x.copy()
    y[0, feature] += x[1, feature]
    return y


def _rounded(x: Array) -> Array:
    """A causal map, apart from changes as small as rounding errors."""
    return np.asarray(x + 1e-14 * x.sum())


EVERY_FEATURE = "change every feature of the token, and compare every feature of the output"

# Name, function (L, D) -> (L, D), whether it leaks, and what a test has to do to get it right.
CASES: tuple[tuple[str, Callable[[Array], Array], bool, str], ...] = (
    (
        "LayerNorm over D",
        _normalized,
        False,
        "if the output at the changed token itself changes, that isn't a leak",
    ),
    (
        "a running sum",
        lambda x: x.cumsum(0),
        False,
        "outputs after the changed token are allowed to change",
    ),
    (
        "the identity with rounding noise",
        _rounded,
        False,
        "a change of 1e-13 is rounding, so compare with a tolerance such as 1e-9",
    ),
    ("LayerNorm over (L, D)", lambda x: _normalized(x, (0, 1)), True, "every output changes"),
    ("the mean of this and later tokens", _later_mean, True, "later tokens are averaged"),
    (
        "LayerNorm, then the mean of this and later tokens",
        lambda x: _later_mean(_normalized(x, eps=1e-12)),
        True,
        "adding a constant to a token, or doubling it, changes nothing after LayerNorm. "
        "Use a random change",
    ),
    (
        "the identity plus a thousandth of the sum of all tokens",
        lambda x: x + 1e-3 * x.sum(0),
        True,
        "a leak can be small, so compare with a tolerance such as 1e-9",
    ),
    (
        "token 1 sees token 2, and nothing else leaks",
        lambda x: _from(x, 1, 0),
        True,
        "change every token, not only the last",
    ),
    (
        "the second-to-last token sees the last, and nothing else leaks",
        lambda x: _from(x, -1, -2),
        True,
        "look at every earlier output, not only at the first",
    ),
    (
        "token 1 sees token 3, and nothing else leaks",
        lambda x: _from(x, 2, 0),
        True,
        "change every token, and look at every earlier output, not only at the one before it",
    ),
    (
        "token 1 sees the last feature of token 2",
        lambda x: _from_feature(x, -1),
        True,
        EVERY_FEATURE,
    ),
    (
        "token 1 sees the first feature of token 2",
        lambda x: _from_feature(x, 0),
        True,
        EVERY_FEATURE,
    ),
)


@checker
def check_finds_leaks(function: Callable[..., Any]) -> str:
    """Check a function that tests whether a layer lets later tokens reach earlier outputs.

    Calls `function(layer, x)` with layers that take and return an array of shape `(L, D)`, and
    a random `x` of 6 tokens with 4 features.

    Args:
        function: returns True if changing a token moves the output at an earlier position.

    Example:
        >>> check_finds_leaks(lambda layer, x: False)
        Not yet. Your function misses the leak in LayerNorm over (L, D): every output changes.
    """
    for name, layer, leaks, hint in CASES:
        x = np.random.default_rng(8).normal(size=(6, 4))
        given = x.copy()
        with running(f"For {name}, it"):
            answer = function(layer, given)
        if answer is None or answer is ...:
            raise NotYet("Your function returns nothing. Did you forget `return`?")
        if not np.array_equal(given, x):
            raise NotYet("Your function changes its input x. Change a copy of it.")
        try:
            found = bool(answer)
        except (RuntimeError, ValueError):  # raised by a tensor or by an array
            raise NotYet("Your function returns several values. Return True or False.") from None
        if found != leaks:
            told = "misses the leak in" if leaks else "sees a leak where there is none, in"
            raise NotYet(f"Your function {told} {name}: {hint}.")
    return f"It's right about all {len(CASES)} layers."


def _cumulative(
    x: Array, eps: float, *, ddof: int = 0, outside: float = 0.0, itself: bool = True
) -> Array:
    """Normalize each token by the statistics of the tokens up to it, including or excluding it."""
    y = np.empty_like(x)
    for place in range(x.shape[1]):
        seen = x[:, : max(place + itself, 1)]
        mean = seen.mean(axis=(1, 2), keepdims=True)[:, 0]
        variance = seen.var(axis=(1, 2), ddof=ddof, keepdims=True)[:, 0]
        y[:, place] = (x[:, place] - mean) / (np.sqrt(variance + eps) + outside)
    return y


def _averaged(x: Array, eps: float, square: bool) -> Array:
    """The cumulative means of the tokens' own means, and of their variances or deviations."""
    counts = np.arange(1, x.shape[1] + 1)[:, None]
    mean = x.mean(-1, keepdims=True).cumsum(1) / counts
    spread = x.var(-1, keepdims=True) if square else ((x - mean) ** 2).mean(-1, keepdims=True)
    return np.asarray((x - mean) / np.sqrt(spread.cumsum(1) / counts + eps))


def _per_token(x: Array, values: Array, squares: Array, eps: float) -> Array:
    """Normalize by the sums of values and of squares so far, over the number of tokens so far."""
    counts = np.arange(1, x.shape[1] + 1)[:, None]
    mean = values.cumsum(1) / counts
    variance = np.maximum(squares.cumsum(1) / counts - mean**2, 0.0)
    return np.asarray((x - mean) / np.sqrt(variance + eps))


def _shared(x: Array, eps: float) -> Array:
    """Treat all sequences as one, in which each token has the features of all sequences."""
    count, length, features = x.shape
    together = _cumulative(x.swapaxes(0, 1).reshape(1, length, -1), eps)
    return together.reshape(length, count, features).swapaxes(0, 1)


CUMULATIVE_MISTAKES: dict[str, Callable[[Array, float], Array]] = {
    "That's LayerNorm over D: each token has its own statistics.": (
        lambda x, eps: _normalized(x, -1, eps)
    ),
    "That's LayerNorm over (L, D): later tokens are part of the statistics.": (
        lambda x, eps: _normalized(x, (1, 2), eps)
    ),
    "It normalizes each feature by itself. Take the features together.": (
        lambda x, eps: _per_token(x, x, x**2, eps)
    ),
    "It leaves the token itself out of its statistics. Include it.": (
        partial(_cumulative, itself=False)
    ),
    "It averages the variances of the tokens. Their means differ as well: square the differences "
    "between all values so far and the mean of all values so far.": (
        partial(_averaged, square=True)
    ),
    "It subtracts a different mean from each token before squaring. Subtract the same mean, the "
    "latest one, from all values so far.": partial(_averaged, square=False),
    "It counts tokens. Each has D values, so divide by the number of values.": (
        lambda x, eps: _per_token(x, x.sum(-1, keepdims=True), (x**2).sum(-1, keepdims=True), eps)
    ),
    "Its sequences share their statistics. Each has its own.": _shared,
    "It divides by the number of values minus 1. Divide by the number of values.": (
        partial(_cumulative, ddof=1)
    ),
    "It leaves epsilon out.": lambda x, _eps: _cumulative(x, 0.0),
    "It adds epsilon to the standard deviation. Add it to the variance.": (
        lambda x, eps: _cumulative(x, 0.0, outside=eps)
    ),
}
"""Wrong cumulative norms, keyed by the message for each."""


@checker
def check_cumulative_norm(function: Callable[[Array, float], ArrayLike]) -> str:
    r"""Check a causal norm, in which each token is normalized with all tokens so far.

    .. math::
        y_{nli} = \frac{x_{nli} - \mu_{nl}}{\sqrt{\sigma^2_{nl} + \epsilon}}, \qquad
        \mu_{nl} = \frac{1}{l D} \sum_{k=1}^{l} \sum_{i=1}^{D} x_{nki}

    with :math:`\sigma^2_{nl}` the biased variance of the same :math:`l D` values. Source: Luo
    and Mesgarani 2019, cumulative layer normalization.

    Args:
        function: takes `x` of shape `(N, L, D)` and `eps`, returns y of the same shape.

    Example:
        >>> check_cumulative_norm(lambda x, eps: x)
        Not yet. For x of shape (2, 5, 3) and eps=0.25 the first wrong output is at token 1.
    """
    rng = np.random.default_rng(1256)
    for shape, eps in (((2, 5, 3), 0.25), ((3, 3, 3), 1e-5), ((1, 7, 2), 0.5)):
        x = rng.normal(1.0, 2.0, shape) + 3 * rng.normal(size=(*shape[:2], 1))
        given = x.copy()
        with running(f"For x of shape {shape}, your function"):
            answer = function(given, eps)
        if answer is None:
            raise NotYet("Your function returns nothing. Did you forget `return`?")
        if not np.array_equal(given, x):
            raise NotYet("Your function changes its input x. Compute a new array.")
        values, right = as_array(answer, shape, "What your function returns"), _cumulative(x, eps)
        wrong = np.abs(values - right).max(axis=(0, 2)) > TOLERANCE
        judge(
            values,
            right,
            {text: mistake(x, eps) for text, mistake in CUMULATIVE_MISTAKES.items()},
            otherwise=f"For x of shape {shape} and eps={eps} the first wrong output is at token "
            f"{int(wrong.argmax()) + 1}.",
            tolerance=TOLERANCE,
        )
    return "Each token is normalized by all values so far, and by none of the later ones."
