"""The checkers of the chapter of recipes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lnbook.chapters.shared.checker import NotYet, as_array, checker, judge, running

__all__ = ["check_decayed_gain", "check_fold", "check_rename"]

Array = NDArray[np.float64]
Folded = tuple[Array, Array]
Fold = Callable[[Array, Array, Array, Array], Folded]
State = dict[str, Any]

RATE, DECAY, STEPS = 1e-3, 0.1, 5000


@checker
def check_decayed_gain(gain: Any = None) -> str:
    r"""Check what AdamW's decay leaves of a gain that receives no gradient.

    The gain starts at 1; the learning rate is 0.001, the decay 0.1, and there are 5,000 steps.

    .. math::
        \gamma_{t+1} = \gamma_t - \eta \lambda \gamma_t
        \quad\Longrightarrow\quad \gamma_T = (1 - \eta \lambda)^T

    Source: Loshchilov and Hutter 2019, with PyTorch's product of learning rate and decay.

    Args:
        gain: one number, to two digits or more.

    Example:
        >>> check_decayed_gain(0.5)
        Not yet. Each step takes its share of what is left, not of the first value.
    """
    answer = as_array(gain, (), "Your gain")
    right = (1 - RATE * DECAY) ** STEPS
    mistakes = {
        "Each step takes its share of what is left, not of the first value.": (
            1 - RATE * DECAY * STEPS
        ),
        "That is what is lost. What is left?": 1 - right,
        "That is without the decay rate: the share of a step is learning rate times decay.": (
            (1 - RATE) ** STEPS
        ),
        "That is without the learning rate: the share of a step is learning rate times decay.": (
            (1 - DECAY) ** STEPS
        ),
        "No gradient does not mean no change: AdamW applies its decay all the same.": 1.0,
        "Decay pulls toward 0, so the gain becomes smaller.": (1 + RATE * DECAY) ** STEPS,
    }
    judge(
        answer,
        np.array(right),
        {text: np.array(wrong) for text, wrong in mistakes.items()},
        otherwise="Each step multiplies the gain by 1 - learning rate * decay. "
        "Multiply that as often as there are steps.",
        tolerance=0.006,
    )
    return f"A gain without a gradient falls to {right:.3f}."


def _fold(w: Array, b: Array, gamma: Array, beta: Array) -> Folded:
    return w * gamma, b + w @ beta


FOLD_MISTAKES: Mapping[str, Fold] = MappingProxyType(
    {
        "It multiplies the rows of W by gamma. gamma belongs to what W reads: its columns.": (
            lambda w, b, g, beta: (w * g[:, None], b + w @ beta)
        ),
        "It multiplies beta by the new W. beta comes after gamma: use the W you were given.": (
            lambda w, b, g, beta: (w * g, b + (w * g) @ beta)
        ),
        "It loses the old bias b.": lambda w, b, g, beta: (w * g, w @ beta),
        "It loses beta: what the norm adds reaches the output as W beta.": (
            lambda w, b, g, beta: (w * g, b)
        ),
        "It adds beta itself. beta passes through W first.": lambda w, b, g, beta: (
            w * g,
            b + beta,
        ),
        "It divides by gamma. The new W does what gamma did: multiply.": (
            lambda w, b, g, beta: (w / g, b + w @ beta)
        ),
        "It leaves W as it was, so gamma is lost.": lambda w, b, g, beta: (w, b + w @ beta),
        "It multiplies b by gamma. b is added after W, where gamma has no part.": (
            lambda w, b, g, beta: (w * g, b * g + w @ beta)
        ),
        "It applies W transposed to beta.": lambda w, b, g, beta: (w * g, b + w.T @ beta),
    }
)


@checker
def check_fold(fold: Fold) -> str:
    r"""Check a function that folds gamma and beta of a norm into the linear layer after it.

    Calls `fold(weight, bias, gamma, beta)` with NumPy arrays, as PyTorch keeps them: `weight` of
    shape (outputs, features).

    .. math::
        W (\gamma \odot \hat{x} + \beta) + b = W' \hat{x} + b'

    Args:
        fold: returns the new weight and the new bias.

    Example:
        >>> check_fold(lambda weight, bias, gamma, beta: (weight * gamma, bias))
        Not yet. It loses beta: what the norm adds reaches the output as W beta.
    """
    if not callable(fold):
        raise NotYet(f"Give the function itself, not {fold!r}.")
    rng = np.random.default_rng(2023)
    # First a square matrix: there a mistake about rows and columns gives an answer too.
    for outputs, features in ((3, 3), (2, 4), (5, 3)):
        weight, bias = rng.normal(size=(outputs, features)), rng.normal(size=outputs)
        gamma, beta = rng.normal(1.0, 0.5, features), rng.normal(size=features)
        _check_fold(fold, (weight, bias, gamma, beta))
    return "The linear layer now does what gamma and beta did."


def _check_fold(fold: Fold, given: tuple[Array, Array, Array, Array]) -> None:
    weight, bias, _, _ = given
    copies = tuple(array.copy() for array in given)
    with running(context=f"weight had the shape {weight.shape}"):
        answer: Any = fold(*copies)
    if answer is None or answer is ...:
        raise NotYet("Your function returns nothing. Did you forget `return`?")
    if not isinstance(answer, tuple) or len(answer) != 2:
        raise NotYet("Your function should return two arrays: weight and bias.")
    new_weight = as_array(answer[0], weight.shape, "Your new weight")
    new_bias = as_array(answer[1], bias.shape, "Your new bias")
    judge(
        np.concatenate([new_weight.ravel(), new_bias]),
        _flat(_fold, given),
        {text: _flat(mistake, given) for text, mistake in FOLD_MISTAKES.items()},
        otherwise="Weight and bias are not both right. "
        "Write W (gamma * xhat + beta) + b out, and sort by what multiplies xhat.",
        tolerance=1e-8,
    )
    if not all(map(np.array_equal, given, copies)):
        raise NotYet("Your function changes its arguments. Return new arrays.")


def _flat(fold: Fold, given: tuple[Array, Array, Array, Array]) -> Array:
    try:
        return np.concatenate([part.ravel() for part in fold(*given)])
    except ValueError:  # shapes that this mistake cannot have
        return np.zeros(0)


OLD: Mapping[str, int] = MappingProxyType(
    {
        "bert.embeddings.LayerNorm.gamma": 1,
        "bert.embeddings.LayerNorm.beta": 2,
        "bert.encoder.layer.0.output.LayerNorm.gamma": 3,
        "bert.encoder.layer.0.output.LayerNorm.beta": 4,
        "bert.encoder.layer.0.output.dense.weight": 5,
        "bert.encoder.layer.0.output.dense.bias": 6,
        "bert.encoder.layer.0.layer_scale.gamma": 7,
        "alphabeta.LayerNorm.weight": 8,
        "gamma_encoder.LayerNorm.beta": 9,
    }
)
NEW_ENDS = {".LayerNorm.gamma": ".LayerNorm.weight", ".LayerNorm.beta": ".LayerNorm.bias"}


def _renamed(key: str) -> str:
    for old, new in NEW_ENDS.items():
        if key.endswith(old):
            return key.removesuffix(old) + new
    return key


def _by_replacing(state: Mapping[str, Any]) -> State:
    return {k.replace("gamma", "weight").replace("beta", "bias"): v for k, v in state.items()}


def _by_last_word(state: Mapping[str, Any]) -> State:
    last = {"gamma": "weight", "beta": "bias"}
    split = {k: k.rpartition(".") for k in state}
    return {f"{a}.{last.get(z, z)}": state[k] for k, (a, _, z) in split.items()}


def _swapped(state: Mapping[str, Any]) -> State:
    swap = {"LayerNorm.weight": "LayerNorm.bias", "LayerNorm.bias": "LayerNorm.weight"}
    new = {}
    for key, value in state.items():
        other = _renamed(key)
        end = ".".join(other.split(".")[-2:])
        new[other if other == key else other.removesuffix(end) + swap[end]] = value
    return new


RENAME_MISTAKES: Mapping[str, Callable[[Mapping[str, Any]], State]] = MappingProxyType(
    {
        "It replaces the words anywhere: 'alphabeta' became 'alphabias'.": _by_replacing,
        "It renames layer_scale.gamma, which is no norm and is called gamma to this day.": (
            _by_last_word
        ),
        "It swaps them: gamma is the weight, beta the bias.": _swapped,
        "It drops the keys that need no new name.": lambda state: {
            _renamed(k): v for k, v in state.items() if _renamed(k) != k
        },
        "It keeps the old keys beside the new ones, so that a strict load refuses them.": (
            lambda state: {**state, **{_renamed(k): v for k, v in state.items()}}
        ),
        "It renames gamma only.": lambda state: {
            _renamed(k) if k.endswith("gamma") else k: v for k, v in state.items()
        },
        "It renames nothing.": dict,
    }
)


@checker
def check_rename(rename: Callable[[State], State]) -> str:
    """Check a function that gives the LayerNorms of an old state dict their present names.

    Calls `rename(state)` with a dict from names to values. Keys that end in `.LayerNorm.gamma`
    or `.LayerNorm.beta` should end in `.LayerNorm.weight` and `.LayerNorm.bias`; all others
    should stay as they are.

    Args:
        rename: takes a dict and returns a new one.

    Example:
        >>> check_rename(lambda state: state)
        Not yet. It renames nothing.
    """
    if not callable(rename):
        raise NotYet(f"Give the function itself, not {rename!r}.")
    state = dict(OLD)
    with running():
        answer: Any = rename(state)
    if answer is None or answer is ...:
        raise NotYet("Your function returns nothing. Did you forget `return`?")
    if not isinstance(answer, dict):
        kind = type(answer).__name__
        raise NotYet(f"Your function should return a dict, but it returned a {kind}.")
    right = {_renamed(key): value for key, value in OLD.items()}
    if answer == right:
        if state != OLD:
            raise NotYet("Your function changes the dict it is given. Return a new one.")
        return "The norms have their present names, and nothing else has moved."
    for message, mistake in RENAME_MISTAKES.items():
        if answer == mistake(OLD):
            raise NotYet(message)
    for key in right:
        if key not in answer:
            raise NotYet(f"The key {key!r} should be there, but is not.")
    for key in answer:
        if key not in right:
            raise NotYet(f"The key {key!r} should not be there.")
    raise NotYet("The names are right, but values have moved to other names.")
