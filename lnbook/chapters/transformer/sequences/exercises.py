"""The checkers of the chapter on sequences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lnbook.chapters.shared.checker import Verdict, as_array, judge

__all__ = ["check_cumulative_norm", "check_finds_leaks", "check_only_padding"]

Array = NDArray[np.float64]
TOLERANCE = 1e-9


def check_only_padding(real: Any = None, padding: Any = None, masked: Any = None) -> Verdict:
    """Check what batch normalization makes of a feature that is 5 at every real token.

    The batch has 10 places, 2 of them real; epsilon is 0 where it can be.

    Args:
        real: the output at a real token.
        padding: the output at a place of padding, where the input is 0.
        masked: the output of masked batch normalization at a real token, with epsilon above 0.

    Returns:
        The verdict; a known mistake is called by its name.

    Example:
        >>> check_only_padding(real=0, padding=0, masked=0)
        Not yet. real: that would be so without the padding. Here its zeros are in the mean.
    """
    unbiased = np.sqrt(9 / 10)
    questions: tuple[tuple[str, Any, float, dict[str, float]], ...] = (
        (
            "real",
            real,
            2.0,
            {
                "that would be so without the padding. Here its zeros are in the mean.": 0.0,
                "this is x minus the mean. Divide it by the standard deviation.": 4.0,
                "you divided by the variance. Take its root.": 1.0,
                "you divided by n - 1. Batch normalization divides by n.": 2.0 * unbiased,
                "you divided x by the standard deviation. Subtract the mean first.": 2.5,
                "the sign is the wrong way around.": -2.0,
                "this is the output at padding.": -0.5,
            },
        ),
        (
            "padding",
            padding,
            -0.5,
            {
                "padding is normalized like the rest: subtract the mean from 0, too.": 0.0,
                "this is x minus the mean. Divide it by the standard deviation.": -1.0,
                "you divided by the variance. Take its root.": -0.25,
                "you divided by n - 1. Batch normalization divides by n.": -0.5 * unbiased,
                "the sign is the wrong way around.": 0.5,
                "this is the output at a real token.": 2.0,
            },
        ),
        (
            "masked",
            masked,
            0.0,
            {
                "this is the output without the mask.": 2.0,
                "the mask leaves only real tokens. What is their mean?": 5.0,
                "a constant feature has no spread: nothing is left of it but 0.": 1.0,
            },
        ),
    )
    for name, given, right, mistakes in questions:
        answer = as_array(given, (), f"Your {name}")
        if isinstance(answer, Verdict):
            return answer
        verdict = judge(
            answer,
            np.array(right),
            {f"{name}: {text}": np.array(wrong) for text, wrong in mistakes.items()},
            otherwise=f"{name} is off. Find the mean and the variance of the 10 values first.",
            tolerance=0.004,
        )
        if verdict is not None:
            return verdict
    return Verdict(True, "Without the mask, the outputs tell how much padding there is.")


def _norm(x: Array, axis: int | None = -1) -> Array:
    centered = x - x.mean(axis=axis, keepdims=True)
    return np.asarray(centered / np.sqrt((centered**2).mean(axis=axis, keepdims=True) + 1e-5))


def _later_mean(x: Array) -> Array:
    """Each token becomes the mean of itself and all later ones."""
    counts = np.arange(len(x), 0, -1)[:, None]
    return np.asarray(x[::-1].cumsum(0)[::-1] / counts)


def _from(x: Array, source: int, target: int) -> Array:
    y = x.copy()
    y[target] += x[source]
    return y


def _rounded(x: Array) -> Array:
    """A causal map whose entries move a little by rounding only: order of summation by place."""
    return np.asarray(x + 1e-14 * x.sum())


# What to try: a function (L, D) -> (L, D), whether it leaks, and what a test has to do to see it.
CASES: tuple[tuple[str, Callable[[Array], Array], bool, str], ...] = (
    (
        "LayerNorm over D",
        _norm,
        False,
        "an output that moves at the exchanged token itself is no leak",
    ),
    (
        "a running sum",
        lambda x: x.cumsum(0),
        False,
        "outputs after the exchanged token may move",
    ),
    (
        "the identity, up to rounding",
        _rounded,
        False,
        "a change of 1e-13 is rounding: compare with a tolerance such as 1e-9",
    ),
    ("LayerNorm over (L, D)", lambda x: _norm(x, None), True, "all outputs move"),
    ("the mean of this and later tokens", _later_mean, True, "later tokens are averaged"),
    (
        "LayerNorm, then the mean of this and later tokens",
        lambda x: _later_mean(_norm(x)),
        True,
        "adding a constant to a token changes nothing after LayerNorm. Draw the change at random",
    ),
    (
        "token 1 sees token 2, and nothing else leaks",
        lambda x: _from(x, 1, 0),
        True,
        "exchange every token, not only the last",
    ),
    (
        "the last token but one sees the last, and nothing else leaks",
        lambda x: _from(x, -1, -2),
        True,
        "look at every earlier output, not only at the first",
    ),
    (
        "token 1 sees one feature of token 2",
        lambda x: np.concatenate([x[:1] + np.eye(x.shape[1])[-1] * x[1], x[1:]]),
        True,
        "change every feature of the token, and compare every feature of the output",
    ),
)


def check_finds_leaks(function: Callable[..., Any]) -> Verdict:
    """Check a function that finds out whether a layer lets later tokens reach earlier outputs.

    Calls `function(layer, x)` with layers that take and return an array of shape `(L, D)`, and
    a random `x` of 6 tokens with 4 features.

    Args:
        function: returns True if exchanging a token moves the output at an earlier place.

    Returns:
        The verdict, with the layer that was judged wrongly and what it takes to see that.

    Example:
        >>> check_finds_leaks(lambda layer, x: False)
        Not yet. LayerNorm over (L, D) leaks, and your function says no: all outputs move.
    """
    for name, layer, leaks, hint in CASES:
        x = np.random.default_rng(8).normal(size=(6, 4))
        given = x.copy()
        try:
            answer = function(layer, given)
        except Exception as error:
            return Verdict(False, f"For {name}, it raised {type(error).__name__}: {error}")
        if answer is None or answer is ...:
            return Verdict(False, "Your function returns nothing. Did you forget `return`?")
        if not np.array_equal(given, x):
            return Verdict(False, "Your function changes its input x. Change a copy of it.")
        try:
            found = bool(answer)
        except ValueError:
            return Verdict(False, "Your function returns several values. Return True or False.")
        if found != leaks:
            told = "leaks, and your function says no" if leaks else "has no leak, but yours says so"
            return Verdict(False, f"{name} {told}: {hint}.")
    return Verdict(True, f"It judges all {len(CASES)} layers as it should.")


def _cumulative(x: Array, eps: float, ddof: int = 0) -> Array:
    """Normalize each token by the statistics of the tokens up to it."""
    y = np.empty_like(x)
    for place in range(x.shape[1]):
        seen = x[:, : place + 1]
        mean = seen.mean(axis=(1, 2), keepdims=True)
        variance = seen.var(axis=(1, 2), ddof=ddof, keepdims=True)
        y[:, place] = ((x[:, place : place + 1] - mean) / np.sqrt(variance + eps))[:, 0]
    return y


def _over(x: Array, eps: float, axes: tuple[int, ...]) -> Array:
    centered = x - x.mean(axis=axes, keepdims=True)
    return np.asarray(centered / np.sqrt((centered**2).mean(axis=axes, keepdims=True) + eps))


def _averaged(x: Array, eps: float, square: bool) -> Array:
    """The cumulative means of the tokens' own means, and of their variances or deviations."""
    counts = np.arange(1, x.shape[1] + 1)[:, None]
    mean = x.mean(-1, keepdims=True).cumsum(1) / counts
    spread = x.var(-1, keepdims=True) if square else ((x - mean) ** 2).mean(-1, keepdims=True)
    return np.asarray((x - mean) / np.sqrt(spread.cumsum(1) / counts + eps))


def _by_feature(x: Array, eps: float) -> Array:
    counts = np.arange(1, x.shape[1] + 1)[:, None]
    mean = x.cumsum(1) / counts
    variance = np.maximum((x**2).cumsum(1) / counts - mean**2, 0.0)
    return np.asarray((x - mean) / np.sqrt(variance + eps))


def _before(x: Array, eps: float) -> Array:
    """The token itself left out of its statistics (but for the first)."""
    y = _cumulative(x, eps)
    for place in range(1, x.shape[1]):
        seen = x[:, :place]
        mean = seen.mean(axis=(1, 2), keepdims=True)
        variance = seen.var(axis=(1, 2), keepdims=True)
        y[:, place] = ((x[:, place : place + 1] - mean) / np.sqrt(variance + eps))[:, 0]
    return y


def _sums(x: Array, eps: float) -> Array:
    """Divided by the number of tokens, where there are D values for each."""
    counts = np.arange(1, x.shape[1] + 1)[:, None]
    mean = x.sum(-1, keepdims=True).cumsum(1) / counts
    squares = (x**2).sum(-1, keepdims=True).cumsum(1) / counts
    return np.asarray((x - mean) / np.sqrt(np.maximum(squares - mean**2, 0.0) + eps))


def _shared(x: Array, eps: float) -> Array:
    """All sequences as one, of which a token has the features of all."""
    count, length, features = x.shape
    together = _cumulative(x.swapaxes(0, 1).reshape(1, length, -1), eps)
    return together.reshape(length, count, features).swapaxes(0, 1)


def _outside(x: Array, eps: float) -> Array:
    """Epsilon added to the standard deviation."""
    y = np.empty_like(x)
    for place in range(x.shape[1]):
        seen = x[:, : place + 1]
        mean, std = seen.mean(axis=(1, 2)), seen.std(axis=(1, 2))
        y[:, place] = (x[:, place] - mean[:, None]) / (std[:, None] + eps)
    return y


CUMULATIVE_MISTAKES: dict[str, Callable[[Array, float], Array]] = {
    "It is LayerNorm over D: each token has its own statistics.": lambda x, eps: _over(
        x, eps, (-1,)
    ),
    "It is LayerNorm over (L, D): later tokens are in the statistics.": lambda x, eps: _over(
        x, eps, (1, 2)
    ),
    "It normalizes each feature by itself. Take the features together.": _by_feature,
    "It leaves the token itself out of its statistics. Include it.": _before,
    "It averages the variances of the tokens. Their means differ as well: take the squares of all "
    "values seen so far around the mean of all values seen so far.": lambda x, eps: _averaged(
        x, eps, square=True
    ),
    "It takes the squares of each token around another mean. All values seen so far need the "
    "same mean, the latest one.": lambda x, eps: _averaged(x, eps, square=False),
    "It counts tokens. Each has D values: divide by the number of values.": _sums,
    "Its sequences share their statistics. Each has its own.": _shared,
    "It divides the squares by their number minus 1. Divide by their number.": (
        lambda x, eps: _cumulative(x, eps, ddof=1)
    ),
    "It leaves epsilon out.": lambda x, _eps: _cumulative(x, 0.0),
    "It adds epsilon to the standard deviation. Add it to the variance.": _outside,
}
"""Wrong cumulative norms, by the message that each must get."""


def check_cumulative_norm(function: Callable[[Array, float], ArrayLike]) -> Verdict:
    r"""Check a norm that takes one mean for all tokens so far, and stays causal.

    .. math::
        y_{nli} = \frac{x_{nli} - \mu_{nl}}{\sqrt{\sigma^2_{nl} + \epsilon}}, \qquad
        \mu_{nl} = \frac{1}{l D} \sum_{k=1}^{l} \sum_{i=1}^{D} x_{nki}

    with :math:`\sigma^2_{nl}` the biased variance of the same :math:`l D` values. Source: Luo
    and Mesgarani 2019, cumulative layer normalization.

    Args:
        function: takes `x` of shape `(N, L, D)` and `eps`, returns y of the same shape.

    Returns:
        The verdict; a known mistake is called by its name.

    Example:
        >>> check_cumulative_norm(lambda x, eps: x)
        Not yet. For x of shape (2, 5, 3) and eps=0.25 the first wrong output is at token 1.
    """
    rng = np.random.default_rng(1256)
    for shape, eps in (((2, 5, 3), 0.25), ((3, 3, 3), 1e-5), ((1, 7, 2), 0.5)):
        x = rng.normal(1.0, 2.0, shape) + 3 * rng.normal(size=(*shape[:2], 1))
        given = x.copy()
        try:
            answer = function(given, eps)
        except Exception as error:
            told = f"{type(error).__name__}: {error}"
            return Verdict(False, f"For x of shape {shape}, your function raised {told}")
        if answer is None:
            return Verdict(False, "Your function returns nothing. Did you forget `return`?")
        if not np.array_equal(given, x):
            return Verdict(False, "Your function changes its input x. Compute a new array.")
        values = as_array(answer, shape, "What your function returns")
        if isinstance(values, Verdict):
            return values
        right = _cumulative(x, eps)
        wrong = np.abs(values - right).max(axis=(0, 2)) > TOLERANCE
        verdict = judge(
            values,
            right,
            {text: mistake(x, eps) for text, mistake in CUMULATIVE_MISTAKES.items()},
            otherwise=f"For x of shape {shape} and eps={eps} the first wrong output is at token "
            f"{int(wrong.argmax()) + 1}.",
            tolerance=TOLERANCE,
        )
        if verdict is not None:
            return verdict
    return Verdict(True, "Each token is normalized by all values so far, and by none after it.")
