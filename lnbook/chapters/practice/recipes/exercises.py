"""The checkers for the recipes chapter."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lnbook.chapters.shared.checker import NotYet, as_array, checker, judge, judge_choice, running

__all__ = ["check_causes", "check_decayed_gain", "check_fold", "check_rename"]

Array = NDArray[np.float64]
Folded = tuple[Array, Array]
Fold = Callable[[Array, Array, Array], Folded]
State = dict[str, Any]

RATE, DECAY, STEPS = 1e-3, 0.1, 5000


@checker
def check_decayed_gain(gain: Any = None) -> str:
    r"""Check how much AdamW's decay leaves of a gain whose gradient is always 0.

    The gain starts at 1; the learning rate is 0.001, the decay 0.1, and there are 5,000 steps.

    .. math::
        \gamma_{t+1} = \gamma_t - \eta \lambda \gamma_t
        \quad\Longrightarrow\quad \gamma_T = (1 - \eta \lambda)^T

    Source: Loshchilov and Hutter 2019, with learning rate times decay, as in PyTorch.

    Args:
        gain: one number, to two digits or more.

    Example:
        >>> check_decayed_gain(0.5)
        Not yet. Each step takes a fraction of what is left, not of the initial value.
    """
    answer = as_array(gain, (), "Your gain")
    right = (1 - RATE * DECAY) ** STEPS
    mistakes = {
        "Each step takes a fraction of what is left, not of the initial value.": (
            1 - RATE * DECAY * STEPS
        ),
        "That's what is lost. What is left?": 1 - right,
        "That leaves out the decay: a step removes a fraction learning rate * decay.": (
            (1 - RATE) ** STEPS
        ),
        "That leaves out the learning rate: a step removes a fraction learning rate * decay.": (
            (1 - DECAY) ** STEPS
        ),
        "A gradient of 0 doesn't mean no change: AdamW applies its decay all the same.": 1.0,
        "Decay pulls toward 0, so the gain becomes smaller.": (1 + RATE * DECAY) ** STEPS,
    }
    judge(
        answer,
        np.array(right),
        {text: np.array(wrong) for text, wrong in mistakes.items()},
        otherwise="Each step multiplies the gain by 1 - learning rate * decay. "
        "Raise that to the number of steps.",
        tolerance=0.006,
    )
    return f"A gain whose gradient is always 0 falls to {right:.3f}."


def _fold(w: Array, gamma: Array, beta: Array) -> Folded:
    return w * gamma, beta / gamma


FOLD_MISTAKES: Mapping[str, Fold] = MappingProxyType(
    {
        "It multiplies the rows of W by gamma. gamma belongs to what W reads: its columns.": (
            lambda w, g, beta: (w * g[:, None], beta / g)
        ),
        "It leaves beta as it was. If you factor gamma out of the sum, what's left of beta?": (
            lambda w, g, beta: (w * g, beta)
        ),
        "It multiplies beta by gamma. Factoring gamma out of the sum divides beta by it.": (
            lambda w, g, beta: (w * g, beta * g)
        ),
        "It loses beta.": lambda w, g, beta: (w * g, np.zeros_like(beta)),
        "It divides W by gamma. The new W does what gamma did: multiply.": (
            lambda w, g, beta: (w / g, beta / g)
        ),
        "It leaves W as it was, so gamma is lost.": lambda w, g, beta: (w, beta / g),
        "It sends beta through W. The new beta is added before the ReLU, one entry per feature.": (
            lambda w, g, beta: (w * g, w @ beta)
        ),
    }
)


@checker
def check_fold(fold: Fold) -> str:
    r"""Check a function that folds a norm's gains through a ReLU into the next layer.

    Calls `fold(weight, gamma, beta)` with NumPy arrays: `weight` of shape (outputs, features),
    as PyTorch stores it, and positive `gamma`.

    .. math::
        W \operatorname{relu}(\gamma \odot \hat{x} + \beta)
        = W' \operatorname{relu}(\hat{x} + \beta')

    Args:
        fold: returns the new weight and the new beta.

    Example:
        >>> check_fold(lambda weight, gamma, beta: (weight, beta / gamma))
        Not yet. It leaves W as it was, so gamma is lost.
    """
    if not callable(fold):
        raise NotYet(f"Give the function itself, not {fold!r}.")
    rng = np.random.default_rng(2023)
    # A square matrix first: with it, even code that mixes up rows and columns runs.
    for outputs, features in ((3, 3), (2, 4), (5, 3)):
        weight, beta = rng.normal(size=(outputs, features)), rng.normal(size=features)
        gamma = rng.uniform(0.5, 2.0, features)
        _check_fold(fold, (weight, gamma, beta))
    return "The next layer now does what gamma did, for any input."


def _check_fold(fold: Fold, given: tuple[Array, Array, Array]) -> None:
    weight, _, beta = given
    copies = tuple(array.copy() for array in given)
    with running(context=f"weight had the shape {weight.shape}"):
        answer: Any = fold(*copies)
    if answer is None or answer is ...:
        raise NotYet("Your function returns nothing. Did you forget `return`?")
    if not isinstance(answer, tuple | list) or len(answer) != 2:
        raise NotYet("Your function should return two arrays: the new weight and the new beta.")
    new_weight = as_array(answer[0], weight.shape, "Your new weight")
    new_beta = as_array(answer[1], beta.shape, "Your new beta")
    judge(
        np.concatenate([new_weight.ravel(), new_beta]),
        _flat(_fold, given),
        {text: _flat(mistake, given) for text, mistake in FOLD_MISTAKES.items()},
        otherwise="The weight and beta aren't both right. "
        "Factor gamma out of gamma * xhat + beta, then pull it through the ReLU.",
    )
    if not all(map(np.array_equal, given, copies)):
        raise NotYet("Your function changes its arguments. Return new arrays.")


def _flat(fold: Fold, given: tuple[Array, Array, Array]) -> Array:
    try:
        return np.concatenate([part.ravel() for part in fold(*given)])
    except ValueError:  # shapes for which this mistake is impossible
        return np.zeros(0)


CAUSES = ("dropped bias", "epsilon", "old gradient", "overflow", "padding", "replaced")
# For each report, its cause and the reply to any other cause.
REPORTS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "a": ("overflow", "In float16, what makes a normalized row 0, and what's left then?"),
        "b": ("epsilon", "What matters next to a small variance, but not next to 1?"),
        "c": ("replaced", "The gains get gradients but no step. What does the optimizer hold?"),
        "d": ("padding", "What's added to a short sentence in a batch with a longer one?"),
        "e": ("old gradient", "Freezing stops new gradients. What could be left of earlier ones?"),
        "f": ("dropped bias", "What does a norm add to every row, whatever the row is?"),
    }
)


@checker
def check_causes(
    a: Any = None, b: Any = None, c: Any = None, d: Any = None, e: Any = None, f: Any = None
) -> str:
    """Check the cause of each bug report.

    Args:
        a: the same vector for different rows, in float16.
        b: right on normal data, wrong on small embeddings.
        c: gains that never change.
        d: a mean that depends on the longest sentence.
        e: frozen gains that change in the first step.
        f: outputs that are off by the same vector.

    Each answer is "dropped bias", "epsilon", "old gradient", "overflow", "padding" or "replaced".

    Example:
        >>> check_causes(a="padding")
        Not yet. a: In float16, what makes a normalized row 0, and what's left then?
    """
    answers = {"a": a, "b": b, "c": c, "d": d, "e": e, "f": f}
    for name, answer in answers.items():
        judge_choice(answer, name, CAUSES, *REPORTS[name])
    return "All six. The fix for each is in its recipe."


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
        "bert.encoder.adapter.beta": 10,
        "bert.encoder.LayerNorm_block.scale.gamma": 11,
        "bert.pooler.scale.gamma": 12,
        "bert.pooler.NoNorm.gamma": 13,
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
        "It replaces the words everywhere: 'alphabeta' became 'alphabias'.": _by_replacing,
        "It renames layer_scale.gamma, which isn't a norm and is still called gamma.": (
            _by_last_word
        ),
        "It swaps them: gamma is the weight, beta the bias.": _swapped,
        "It drops the keys that don't need a new name.": lambda state: {
            _renamed(k): v for k, v in state.items() if _renamed(k) != k
        },
        "It keeps the old keys along with the new ones, so a strict load fails.": (
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
    """Check a function that gives the LayerNorms in an old state dict their current names.

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
        return "The norms have their current names, and nothing else has changed."
    for message, mistake in RENAME_MISTAKES.items():
        if answer == mistake(OLD):
            raise NotYet(message)
    for key in right:
        if key not in answer:
            if key in OLD:
                raise NotYet(
                    f"The key {key!r} should stay as it is: it isn't the old name of a LayerNorm's "
                    "parameter."
                )
            raise NotYet(f"The key {key!r} should be there, but isn't.")
    for key in answer:
        if key not in right:
            raise NotYet(f"The key {key!r} should not be there.")
    raise NotYet("The names are right, but some values have moved to other names.")
