"""Checkers for the exercises in "Why normalize?"."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lnbook.chapters.shared.checker import as_array, checker, judge, judge_choice, run_answer

__all__ = ["check_growth", "check_start", "check_verdicts"]

Array = NDArray[np.float64]

LAYERS = 30
FACTOR = 1 / math.sqrt(6)
DIGITS = 0.015  # two decimals, rounded or cut off
DECADES = 0.7  # the answer may have been computed with a rounded factor


@checker
def check_growth(factor: Any = None, left: Any = None, cure: Any = None) -> str:
    """Check what 30 layers of PyTorch's default weights do to a signal.

    Args:
        factor: the factor by which each layer changes the signal's size; two decimals are enough.
        left: what's left of a signal of size 1 after 30 layers; the order of magnitude is enough.
        cure: what to multiply the weights by to keep the size the same; two decimals are enough.

    Example:
        >>> check_growth(factor=1 / 6)
        Not yet. That's the ratio of the variances. Take its square root.
    """
    judge(
        as_array(factor, (), "Your factor"),
        FACTOR,
        {
            "That's the ratio of the variances. Take its square root.": 1 / 6,
            "That's upside down: PyTorch's weights are smaller than those that keep the size.": (
                1 / FACTOR
            ),
            "That compares with weights of standard deviation sqrt(1/n). With a ReLU, sqrt(2/n) "
            "keeps the size.": math.sqrt(1 / 3),
        },
        otherwise="Divide PyTorch's standard deviation, sqrt(1/(3n)), by sqrt(2/n).",
        tolerance=DIGITS,
    )
    judge(
        as_array(left, (), "What is left"),
        FACTOR**LAYERS,
        {
            "A signal shrinks, but never to 0: give a small positive number.": 0.0,
            "That's 30 times the factor. Each layer multiplies: take the 30th power.": (
                LAYERS * FACTOR
            ),
            "That's the factor divided by 30. Each layer multiplies: take the 30th power.": (
                FACTOR / LAYERS
            ),
            "That's upside down: the signal shrinks.": FACTOR**-LAYERS,
        },
        otherwise="Multiply 1 by your factor 30 times: factor ** 30.",
        tolerance=DECADES * math.log(10.0),
        relative=True,
    )
    judge(
        as_array(cure, (), "Your cure"),
        1 / FACTOR,
        {
            "That makes the weights smaller still.": FACTOR,
            "The variance has to be multiplied by 6, and the weights by its square root.": 6.0,
        },
        otherwise="The factor of a layer has to become 1: divide by what it is now.",
        tolerance=0.06,
    )
    return "Multiply PyTorch's default weights by 2.45, and signals keep their size."


def _layer(h: Array, weights: Array) -> Array:
    return np.maximum(h @ weights, 0.0)


def _rms(h: Array) -> float:
    return float(np.sqrt((h**2).mean()))


def _rescaled(weights: Array, images: Array, size: Callable[[Array], float] = _rms) -> Array:
    """Divide the weights of each layer by the size of its output."""
    h, found = images, []
    for layer in weights:
        found.append(layer / size(_layer(h, layer)))
        h = _layer(h, found[-1])
    return np.array(found)


def _all_at_once(weights: Array, images: Array) -> Array:
    """Divide by sizes measured in the original network."""
    h, found = images, []
    for layer in weights:
        h = _layer(h, layer)
        found.append(layer / _rms(h))
    return np.array(found)


def _before_relu(weights: Array, images: Array) -> Array:
    h, found = images, []
    for layer in weights:
        found.append(layer / _rms(h @ layer))
        h = _layer(h, found[-1])
    return np.array(found)


START_MISTAKES: Mapping[str, Callable[[Array, Array], Array]] = MappingProxyType(
    {
        "It returns the weights as they were.": lambda weights, _images: weights,
        "It measures all layers in the old network. Send the images through the new weights of "
        "the earlier layers.": _all_at_once,
        "It measures before the ReLU. The size after it should be 1.": _before_relu,
        "It divides by the standard deviation of the features. Their size here is the root mean "
        "square.": lambda weights, images: _rescaled(weights, images, lambda h: float(h.std())),
        "It divides by the mean square. Take the square root.": (
            lambda weights, images: _rescaled(weights, images, lambda h: float((h**2).mean()))
        ),
        "It looks only at the weights. How large the signals get depends on the images, too.": (
            lambda weights, _images: weights / weights.std((1, 2), keepdims=True)
        ),
        "It follows He's rule, which is close on average. Measure each layer instead.": (
            lambda weights, _images: (
                weights / weights.std((1, 2), keepdims=True) * np.sqrt(2 / weights.shape[1])
            )
        ),
    }
)
"""Mistakes, keyed by the message for each."""


@checker
def check_start(function: Callable[[Array, Array], Any]) -> str:
    """Check a function that rescales the weights of a network once, before training.

    Calls `function(weights, images)` with random weights of several sizes.

    Args:
        function: takes weights of shape `(L, n, n)` and images of shape `(N, n)`, and returns the
            weights, each layer divided by one number, so that the root mean square of the
            features after the ReLU of every layer is 1.

    Example:
        >>> check_start(lambda weights, images: weights)
        Not yet. It returns the weights as they were.
    """
    rng = np.random.default_rng(2015)
    for layers, n in ((1, 6), (4, 8), (12, 16)):
        sizes = rng.uniform(0.2, 3.0, (layers, 1, 1))
        weights = sizes * rng.normal(size=(layers, n, n))
        images = rng.uniform(size=(20, n))
        answer = run_answer(
            function,
            weights,
            images,
            context=f"weights had the shape {weights.shape}, images {images.shape}",
            hint="new weights",
        )
        judge(
            as_array(answer, weights.shape, "What your function returns"),
            _rescaled(weights, images),
            {text: wrong(weights, images) for text, wrong in START_MISTAKES.items()},
            otherwise=f"With {layers} layers of {n} features, the sizes aren't all 1, or the "
            "weights of a layer aren't all divided by the same number.",
            tolerance=1e-6 * float(np.abs(weights).max()),
        )
    return "Every layer now starts with signals of size 1, whatever the weights were."


WORDS = ("supported", "contradicted", "not tested")
# For each statement: the right answer, and a message for each wrong one.
VERDICTS: Mapping[str, tuple[str, Mapping[str, str]]] = MappingProxyType(
    {
        "a": (
            "contradicted",
            {
                "supported": "Look at the left panel of the first figure where the weights have "
                "the right size.",
                "not tested": "The left panel of the first figure tests it.",
            },
        ),
        "b": (
            "supported",
            {
                "contradicted": "Compare how many rows of the two panels have large disks.",
                "not tested": "The rows of the first figure test it.",
            },
        ),
        "c": (
            "contradicted",
            {
                "supported": "Look at the highest learning rates of the right panel.",
                "not tested": "The columns of the first figure test it.",
            },
        ),
        "d": (
            "not tested",
            {
                "supported": "No run measured how the distribution of a layer's inputs changes "
                "in training.",
                "contradicted": "It may well be wrong, but nothing on this page measured it.",
            },
        ),
        "e": (
            "contradicted",
            {
                "supported": "Look at the transformer without norms that started from smaller "
                "weights.",
                "not tested": "The recorded transformer runs without norms test it.",
            },
        ),
        "f": (
            "not tested",
            {
                "supported": "That needs networks that fit the training images equally well. "
                "Here, one kind often didn't learn at all.",
                "contradicted": "That needs networks that fit the training images equally well, "
                "which nobody compared here.",
            },
        ),
    }
)


@checker
def check_verdicts(
    a: Any = None, b: Any = None, c: Any = None, d: Any = None, e: Any = None, f: Any = None
) -> str:
    """Check which statements the chapter's data support or contradict.

    Args:
        a: a network of 20 layers can't be trained without a norm.
        b: with LayerNorm, the size of the starting weights matters less.
        c: with LayerNorm, any learning rate works.
        d: LayerNorm works because it reduces internal covariate shift.
        e: a transformer of 12 blocks can't be trained without LayerNorm.
        f: of two networks that fit the training images equally well, the one with LayerNorm does
            better on new images.

    Each answer is "supported", "contradicted" or "not tested".

    Example:
        >>> check_verdicts(a="contradicted", b="supported", c="supported")
        Not yet. c: Look at the highest learning rates of the right panel.
    """
    answers = {"a": a, "b": b, "c": c, "d": d, "e": e, "f": f}
    for name, answer in answers.items():
        judge_choice(answer, name, WORDS, *VERDICTS[name])
    return "That's what the data say, and no more than that."
