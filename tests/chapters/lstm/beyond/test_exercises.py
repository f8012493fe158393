"""The chapter's checkers accept correct answers and recognize common mistakes."""

import torch
from torch.nn.utils import rnn

from lnbook.chapters.lstm.beyond import exercises
from tests.helpers.verdicts import verdict_test


def test_survivors() -> None:
    left = 1.0
    for _ in range(20):
        left *= 0.9
    assert exercises.check_survivors(100 * left, 100).correct
    assert exercises.check_survivors(12.2, 100).correct


def padded(norm, packed):
    tensor, lengths = rnn.pad_packed_sequence(packed)
    return rnn.pack_padded_sequence(norm(tensor), lengths, enforce_sorted=False)


def in_place(norm, packed):
    packed.data.copy_(norm(packed.data))
    return packed


def with_padding(norm, packed):
    tensor, _ = rnn.pad_packed_sequence(packed)
    return rnn.pack_padded_sequence(norm(tensor), [5, 5, 5], enforce_sorted=False)


ANSWERS = {
    exercises.check_survivors: [
        ("one step leaves", 90, 100),
        ("is lost", 87.8, 100),
        ("State: give percent", 0.122, 100),
        ("probability of dropping to a power", 0.0, 100),
        ("a whole number", 12, 100),
        ("round to the nearest tenth", 12.1, 100),
        ("20 times in a row", 50, 100),
        ("20 times in a row", 12.3, 100),
        ("right for the state", 12.2, 12.2),
        ("Candidate: give percent", 12.2, 1),
        ("multiplies what's written", 12.2, 0),
        ("still missing", ..., 100),
    ],
    exercises.check_norm_packed: [
        ("Correct.", lambda norm, packed: packed._replace(data=norm(packed.data))),
        ("Correct.", padded),
        ("raised TypeError", lambda norm, packed: norm(packed)),
        ("Did you forget", lambda norm, packed: None),
        ("changes the data", in_place),
        ("That's a tensor", lambda norm, packed: norm(packed.data)),
        ("not a list", lambda norm, packed: [norm(packed.data)]),
        (
            "order of the sequences is lost",
            lambda norm, packed: rnn.PackedSequence(norm(packed.data), packed.batch_sizes),
        ),
        (
            "order of the sequences is lost",
            lambda n, p: rnn.PackedSequence(n(p.data), p.batch_sizes, None, p.unsorted_indices),
        ),
        (
            "come back in the wrong order",
            lambda n, p: rnn.PackedSequence(
                n(p.data), p.batch_sizes, p.unsorted_indices, p.sorted_indices
            ),
        ),
        ("come back in the wrong order", lambda n, p: p._replace(unsorted_indices=torch.arange(3))),
        ("padding become part", with_padding),
        ("Nothing is normalized", lambda norm, packed: packed),
        ("Give it packed.data", lambda norm, packed: packed._replace(data=packed.data + 1)),
    ],
    exercises.check_reset: [
        ("Correct.", "bd"),
        ("Correct.", "d, b"),
        ("Correct.", "BD"),
        ("undoes the reset", "abd"),
        ("r times U h", "bcd"),
        ("whole row", "bde"),
        ("after the norm", "d"),
        ("only one of the two terms", "b"),
        ("x isn't one of the letters", "bdx"),
        ("still missing", ""),
        ("still missing", ...),
        ("as a string", 2),
    ],
}

test_answers = verdict_test(ANSWERS)
