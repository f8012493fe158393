"""Checkers for the chapter's exercises."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.utils import rnn

from lnbook.chapters.shared.checker import NotYet, as_array, checker, judge, judge_letters, running

__all__ = ["check_norm_packed", "check_reset", "check_survivors"]


@checker
def check_survivors(state: Any = None, candidate: Any = None) -> str:
    """Check what percentage of features should depend on the start after 20 steps with p = 0.1.

    Args:
        state: the percentage with dropout on the state, to a tenth of a percent.
        candidate: the percentage with dropout on the candidate.

    Example:
        >>> check_survivors(state=90, candidate=100)
        Not yet. State: that's what one step leaves. There are 20 steps.
    """
    judge(
        as_array(state, (), "Your percentage for the state"),
        np.array(100 * 0.9**20),
        {
            "State: that's what one step leaves. There are 20 steps.": np.array(90.0),
            "State: that's what is lost.": np.array(100 - 100 * 0.9**20),
            "State: give percent.": np.array(0.9**20),
            "State: you raised the probability of dropping to a power.": np.array(100 * 0.1**20),
            "State: that's a whole number. Give one decimal.": np.array(12.0),
            "State: round to the nearest tenth. Don't cut off the decimals.": np.array(12.1),
        },
        otherwise="State: a feature has to survive 20 times in a row.",
        tolerance=0.05,
    )
    judge(
        as_array(candidate, (), "Your percentage for the candidate"),
        np.array(100.0),
        {
            "Candidate: that's right for the state. What does its mask multiply?": np.array(
                100 * 0.9**20
            ),
            "Candidate: give percent.": np.array(1.0),
        },
        otherwise="Candidate: the mask multiplies what's written. What does it do to the old?",
        tolerance=0.06,
    )
    return "A mask on the candidate skips an update. It never touches what's already there."


def _lengthy() -> tuple[nn.LayerNorm, rnn.PackedSequence]:
    """A norm with a shift, and sequences that are packed in a different order."""
    rng = np.random.default_rng(0)
    norm = nn.LayerNorm(4, dtype=torch.float64)
    norm.weight.data = torch.tensor(rng.normal(size=4))
    norm.bias.data = torch.tensor(rng.normal(size=4))
    sequences = [torch.tensor(rng.normal(size=(length, 4))) for length in (2, 5, 3)]
    return norm, rnn.pack_sequence(sequences, enforce_sorted=False)


@checker
def check_norm_packed(function: Callable[[nn.Module, rnn.PackedSequence], Any]) -> str:
    """Check a function that normalizes every row of a packed sequence.

    Args:
        function: takes a norm and a packed sequence, returns a packed sequence.

    Example:
        >>> check_norm_packed(lambda norm, packed: norm(packed.data))
        Not yet. That's a tensor. The next layer also has to know which row belongs where.
    """
    norm, packed = _lengthy()
    before = packed.data.clone()
    with running(context="packed holds sequences of length 2, 5 and 3"):
        answer = function(norm, packed)
    if answer is None:
        raise NotYet("Your function returns nothing. Did you forget `return`?")
    if not torch.equal(packed.data, before):
        raise NotYet("Your function changes the data it was given. Make a new packed sequence.")
    if isinstance(answer, Tensor):
        raise NotYet("That's a tensor. The next layer also has to know which row belongs where.")
    if not isinstance(answer, rnn.PackedSequence):
        raise NotYet(f"Return a PackedSequence, not a {type(answer).__name__}.")
    if answer.sorted_indices is None or answer.unsorted_indices is None:
        raise NotYet(
            "The order of the sequences is lost: sorted_indices and unsorted_indices are missing."
        )
    if not torch.equal(answer.batch_sizes, packed.batch_sizes):
        raise NotYet(
            "Your batch_sizes differ from the original ones. Did padding become part of the data?"
        )
    if not all(
        torch.equal(getattr(answer, name), getattr(packed, name))
        for name in ("sorted_indices", "unsorted_indices")
    ):
        raise NotYet(
            "Your sorted_indices or unsorted_indices differ from the original ones, so the "
            "sequences come back in the wrong order."
        )
    if answer.data.shape == before.shape and torch.equal(answer.data, before):
        raise NotYet("Nothing is normalized yet.")
    if not torch.allclose(answer.data, norm(before)):
        raise NotYet("The rows aren't those of the norm. Give it packed.data.")
    return "Each row is normalized by itself, so a norm doesn't need to know whose row it is."


RESET = "bd"
WHY = {
    "a": "LN(r * u) with the same r for all features is LN(u): the norm undoes the reset.",
    "c": "The product with U comes in between, but U (r * h) is still r times U h.",
    "e": "r multiplies the whole row, so the norm cancels it, for both the input and the memory.",
}
MISSING = {
    "b": "In one of the formulas you left out, r multiplies after the norm.",
    "d": "In one of the formulas you left out, r scales only one of the two terms inside the norm.",
}


@checker
def check_reset(letters: Any = None) -> str:
    """Check in which formulas a reset gate near 0 removes the memory from the candidate.

    Args:
        letters: the letters of those formulas, such as "ab".

    Example:
        >>> check_reset("ab")
        Not yet. a: LN(r * u) with the same r for all features is LN(u): the norm undoes the reset.
    """
    wrong = {letter: (False, f"{letter}: {why}") for letter, why in WHY.items()}
    judge_letters(letters, wrong | {letter: (True, why) for letter, why in MISSING.items()})
    return "Either r multiplies after the norm, or it scales only one of two terms inside the norm."
