"""The checkers for the chapter on variants of the normalized transformer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lnbook.chapters.shared.checker import NotYet, as_array, checker, judge, running

__all__ = ["check_certain", "check_logit_bounds", "check_output_norm", "check_rms_xor"]

Array = NDArray[np.float64]
Branch = Callable[[Array], Array]

HEAD_SIZE, GAIN, SCALE = 64, 2.0, 10.0
ROOT = HEAD_SIZE**0.5
LAYER_NORM_BOUND, L2_BOUND = GAIN**2 * ROOT, SCALE

LAYER_NORM_MISTAKES = {
    "Query and key each have a gain of 2, so the product has a factor of 4.": GAIN * ROOT,
    "That leaves out the gains.": ROOT,
    "You forgot to divide by the square root of the number of features.": GAIN**2 * HEAD_SIZE,
    "A normalized row has length 8, the square root of 64, so the product of query and key has a "
    "factor of 64 before you divide.": GAIN**2,
    "A normalized row has length 8, which is the square root of 64, and not 64.": (
        GAIN**2 * HEAD_SIZE**2 / ROOT
    ),
    "That's the bound with L2.": L2_BOUND,
}
L2_MISTAKES = {
    "With L2, g replaces the division by the square root of the number of features.": SCALE / ROOT,
    "Unit vectors have length 1, no matter how many features they have.": SCALE * HEAD_SIZE,
    "With L2 there's a single g, not one for the query and one for the key.": SCALE**2,
}

WEIGHT_MISTAKES: dict[str, Callable[[int, float], float]] = {
    "That has the other logits at 0. They can be lower.": (
        lambda n, g: 1 / (1 + (n - 1) * np.exp(-g))
    ),
    "One of the n keys is the selected one, so there are n - 1 others.": (
        lambda n, g: 1 / (1 + n * np.exp(-2 * g))
    ),
    "That's for a single other key. There are n - 1 of them.": (
        lambda _n, g: 1 / (1 + np.exp(-2 * g))
    ),
    "That's the weight if all logits are equal.": lambda n, _g: 1 / n,
    "That's the smallest weight. Which logits are best for the selected key?": (
        lambda n, g: 1 / (1 + (n - 1) * np.exp(2 * g))
    ),
}
SCALE_MISTAKES: dict[str, Callable[[int, float], float]] = {
    "The best and the worst logit differ by 2g, not by g.": (
        lambda n, p: np.log((n - 1) * p / (1 - p))
    ),
    "One of the n keys is the selected one, so there are n - 1 others.": (
        lambda n, p: np.log(n * p / (1 - p)) / 2
    ),
    "That's for a single other key. There are n - 1 of them.": lambda _n, p: (
        np.log(p / (1 - p)) / 2
    ),
    "A larger weight needs a larger scale: p / (1 - p) is upside down.": (
        lambda n, p: np.log((n - 1) * (1 - p) / p) / 2
    ),
    "That's exp(2g). Take the logarithm and divide by 2.": lambda n, p: (n - 1) * p / (1 - p),
}
"""Wrong formulas for how certain attention can get, keyed by the message for each."""

CORNERS = np.array([[-1.0, -1.0], [-1.0, 1.0], [1.0, -1.0], [1.0, 1.0]])
XOR = np.array([False, True, True, False])


@checker
def check_logit_bounds(layer_norm: Any = None, l2: Any = None) -> str:
    r"""Check the bounds that two kinds of QK-norm put on a logit.

    The head has 64 features. With LayerNorm on query and key, all gains are 2; with L2, the
    scale :math:`g` is 10.

    Args:
        layer_norm: the bound with LayerNorm.
        l2: the bound with L2.

    Example:
        >>> check_logit_bounds(16, 10)
        Not yet. Query and key each have a gain of 2, so the product has a factor of 4.
    """
    first = as_array(layer_norm, (), "The bound with LayerNorm")
    second = as_array(l2, (), "The bound with L2")
    judge(
        first,
        np.array(LAYER_NORM_BOUND),
        {text: np.array(wrong) for text, wrong in LAYER_NORM_MISTAKES.items()},
        otherwise="How long is a row of 64 features after LayerNorm? The product of two such rows "
        "is largest when they point the same way.",
        tolerance=1e-6,
    )
    judge(
        second,
        np.array(L2_BOUND),
        {text: np.array(wrong) for text, wrong in L2_MISTAKES.items()},
        otherwise="The dot product of two unit vectors is at most 1.",
        tolerance=1e-6,
    )
    return "Neither bound depends on the inputs or on the weights before the norm."


def _largest_weight(n: int, g: float) -> float:
    return float(1 / (1 + (n - 1) * np.exp(-2 * g)))


def _smallest_scale(n: int, p: float) -> float:
    return float(np.log((n - 1) * p / (1 - p)) / 2)


@checker
def check_certain(largest_weight: Callable[..., Any], smallest_scale: Callable[..., Any]) -> str:
    r"""Check how certain attention can get if every logit is between :math:`-g` and :math:`g`.

    .. math::
        \max w = \frac{e^g}{e^g + (n - 1) e^{-g}}, \qquad
        g \ge \frac{1}{2} \ln \frac{(n - 1) p}{1 - p}

    Args:
        largest_weight: takes the number n of keys and the scale g, and returns the largest
            attention weight that one key can get.
        smallest_scale: takes n and a weight p, and returns the smallest scale that allows it.

    Example:
        >>> check_certain(lambda n, g: 1 / n, lambda n, p: 1.0)
        Not yet. largest_weight: That's the weight if all logits are equal.
    """
    for name, function, right, mistakes, cases in (
        (
            "largest_weight",
            largest_weight,
            _largest_weight,
            WEIGHT_MISTAKES,
            ((8, 1.0), (900, 4.0)),
        ),
        (
            "smallest_scale",
            smallest_scale,
            _smallest_scale,
            SCALE_MISTAKES,
            ((8, 0.9), (900, 0.99)),
        ),
    ):
        for case in cases:
            with running(name, context=f"for the arguments {case}"):
                answer = function(*case)
            judge(
                as_array(answer, (), f"What {name} returns"),
                right(*case),
                {f"{name}: {text}": wrong(*case) for text, wrong in mistakes.items()},
                otherwise=f"{name}: for the arguments {case}, it should be {right(*case):.5g}.",
            )
    return "The more keys there are, the larger the scale has to be."


def _branches(rng: np.random.Generator) -> tuple[Branch, Branch, Branch, Branch]:
    """Two branches and two norms, all different and none of them linear."""
    a, b = rng.normal(size=(2, 6, 6))
    gains = rng.uniform(0.5, 2.0, size=(2, 6))

    def norm(gain: Array) -> Branch:
        return lambda z: gain * z / np.sqrt((z**2).mean(-1, keepdims=True) + 1e-6)

    return (
        lambda z: np.tanh(z @ a) + z.mean(0),
        lambda z: np.maximum(z @ b, 0.0),
        norm(gains[0]),
        norm(gains[1]),
    )


def _placed(
    x: Array,
    parts: tuple[Branch, ...],
    first: str,
    second: str | None = None,
    *,
    swap: bool = False,
) -> Array:
    """The output of a block with the norms of its two halves in the named positions."""
    attention, feed_forward, norm1, norm2 = parts
    if swap:
        norm1, norm2 = norm2, norm1
    x = _half(first, x, attention, norm1)
    return _half(second or first, x, feed_forward, norm2)


def _half(place: str, x: Array, branch: Branch, norm: Branch) -> Array:
    if place == "out":
        return x + norm(branch(x))
    if place == "pre":
        return x + branch(norm(x))
    if place == "post":
        return norm(x + branch(x))
    if place == "both":
        return x + norm(branch(norm(x)))
    return norm(branch(x)) if place == "bare" else x + branch(x)


OUTPUT_NORM_MISTAKES: Mapping[str, Callable[[Array, tuple[Branch, ...]], Array]] = {
    "This is Pre-LN: the norm comes before the branch.": lambda x, p: _placed(x, p, "pre"),
    "This is Post-LN: the norm comes after the sum, so it normalizes the stream.": (
        lambda x, p: _placed(x, p, "post")
    ),
    "This normalizes before and after the branch, as Peri-LN does.": (
        lambda x, p: _placed(x, p, "both")
    ),
    "The residual connection is missing: add x to what the norm returns.": (
        lambda x, p: _placed(x, p, "bare")
    ),
    "Your block doesn't use the norms.": lambda x, p: _placed(x, p, "none"),
    "The first half is right, but the second has its norm before the branch.": (
        lambda x, p: _placed(x, p, "out", "pre")
    ),
    "The first half is right, but the second has its norm after the sum.": (
        lambda x, p: _placed(x, p, "out", "post")
    ),
    "The first half is right, but the second has no norm.": (
        lambda x, p: _placed(x, p, "out", "none")
    ),
    "The second half is missing: the feed-forward network and its norm.": (
        lambda x, p: x + p[2](p[0](x))
    ),
    "norm1 belongs to attention, norm2 to the feed-forward network.": (
        lambda x, p: _placed(x, p, "out", swap=True)
    ),
    "The feed-forward network has to read the stream after attention, not before.": (
        lambda x, p: x + p[2](p[0](x)) + p[3](p[1](x))
    ),
    "The second half adds to the input of the block. It has to add to the result of the first.": (
        lambda x, p: x + p[3](p[1](x + p[2](p[0](x))))
    ),
}


@checker
def check_output_norm(block: Any = None) -> str:
    r"""Check a block that normalizes what its branches write, and nothing else.

    .. math::
        x' = x + \operatorname{N}_1(\operatorname{Attention}(x)), \qquad
        y = x' + \operatorname{N}_2(F(x'))

    Args:
        block: takes `x` of shape `(L, D)` and four functions, `attention`, `feed_forward`,
            `norm1` and `norm2`, and returns the output of the block.

    Example:
        >>> check_output_norm(lambda x, attention, feed_forward, norm1, norm2: x + attention(x))
        Not yet. A branch should read the stream as it is. Its output is normalized and added.
    """
    if block is None or block is ...:
        raise NotYet("Your block is still missing.")
    rng = np.random.default_rng(3)
    parts = _branches(rng)
    x = 2.0 * rng.normal(size=(4, 6)) + 0.5
    given = x.copy()
    with running("Your block"):
        answer = block(x, *parts)
    if not np.array_equal(x, given):
        raise NotYet("Your block changes its input. Write x = x + ..., not x += ...")
    if answer is None:
        raise NotYet("Your block returns nothing.")
    judge(
        as_array(answer, x.shape, "The output"),
        _placed(x, parts, "out"),
        {message: mistake(x, parts) for message, mistake in OUTPUT_NORM_MISTAKES.items()},
        otherwise="A branch should read the stream as it is. Its output is normalized and added.",
    )
    return "Each branch reads the stream as it is, and what it writes is normalized."


def _read(value: Any, shape: tuple[int, ...], name: str) -> Array:
    if isinstance(value, list) and any(isinstance(row, list) and ... in row for row in value):
        raise NotYet(f"{name} still has a '...' in it.")
    return as_array(value, shape, name)


@checker
def check_rms_xor(W: Any = None, b: Any = None, v: Any = None, c: Any = None) -> str:  # noqa: N803
    r"""Check a network of width 2 with RMSNorm that computes XOR of two inputs, -1 or 1.

    .. math::
        s(x) = v \cdot \operatorname{RMSNorm}(W x + b) + c

    with :math:`\epsilon = 10^{-5}`; a positive score means that the inputs differ, a
    negative one that they're equal.

    Args:
        W: shape `(2, 2)`.
        b: shape `(2,)`.
        v: shape `(2,)`.
        c: one number.

    Example:
        >>> check_rms_xor([[1, 1], [0, 0]], [0, 0], [1, 0], 0)
        Not yet. The score is wrong at (-1, 1), (1, -1) and (1, 1).
    """
    weight, bias = _read(W, (2, 2), "W"), _read(b, (2,), "b")
    head, offset = _read(v, (2,), "v"), _read(c, (), "c")
    hidden = CORNERS @ weight.T + bias
    normalized = hidden / np.sqrt((hidden**2).mean(-1, keepdims=True) + 1e-5)
    scores = normalized @ head + offset
    if np.array_equal(scores < 0, XOR) and np.array_equal(scores > 0, ~XOR):
        raise NotYet("All four are the wrong way around. Change the signs of v and c.")
    wrong = CORNERS[~np.where(XOR, scores > 0, scores < 0)]
    if not len(wrong):
        return "RMSNorm of two features tells the two classes apart."
    if np.ptp(scores) < 1e-9:
        raise NotYet("The score is the same at all four points.")
    *names, last = (f"({x:.0f}, {y:.0f})" for x, y in wrong)
    raise NotYet(f"The score is wrong at {', '.join(names)}{' and ' if names else ''}{last}.")
