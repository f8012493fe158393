"""The chapter's checkers accept correct answers and recognize common mistakes."""

import pytest
from torch.nn.utils import rnn

from lnbook.chapters.lstm.beyond import exercises


def test_survivors() -> None:
    left = 1.0
    for _ in range(20):
        left *= 0.9
    assert exercises.check_survivors(100 * left, 100).correct
    assert exercises.check_survivors(12.2, 100).correct


@pytest.mark.parametrize(
    ("state", "candidate", "told"),
    [
        (90, 100, "one step leaves"),
        (87.8, 100, "is lost"),
        (0.122, 100, "State: give percent"),
        (0.0, 100, "probability of dropping to a power"),
        (50, 100, "20 times in a row"),
        (12.2, 12.2, "right for the state"),
        (12.2, 1, "Candidate: give percent"),
        (12.2, 0, "multiplies what's written"),
        (..., 100, "still missing"),
    ],
)
def test_mistakes_with_survivors(state: object, candidate: object, told: str) -> None:
    verdict = exercises.check_survivors(state, candidate)
    assert not verdict.correct
    assert told in verdict.message


def padded(norm, packed):
    tensor, lengths = rnn.pad_packed_sequence(packed)
    return rnn.pack_padded_sequence(norm(tensor), lengths, enforce_sorted=False)


def test_norm_of_a_packed_sequence() -> None:
    replace = lambda norm, packed: packed._replace(data=norm(packed.data))  # noqa: E731
    assert exercises.check_norm_packed(replace).correct
    assert exercises.check_norm_packed(padded).correct


def in_place(norm, packed):
    packed.data.copy_(norm(packed.data))
    return packed


def with_padding(norm, packed):
    tensor, _ = rnn.pad_packed_sequence(packed)
    return rnn.pack_padded_sequence(norm(tensor), [5, 5, 5], enforce_sorted=False)


@pytest.mark.parametrize(
    ("mistake", "told"),
    [
        (lambda norm, packed: norm(packed), "raised TypeError"),
        (lambda norm, packed: None, "Did you forget"),
        (in_place, "changes the data"),
        (lambda norm, packed: norm(packed.data), "That's a tensor"),
        (lambda norm, packed: [norm(packed.data)], "not a list"),
        (
            lambda norm, packed: rnn.PackedSequence(norm(packed.data), packed.batch_sizes),
            "order of the sequences is lost",
        ),
        (with_padding, "padding become part"),
        (lambda norm, packed: packed, "Nothing is normalized"),
        (lambda norm, packed: packed._replace(data=packed.data + 1), "Give it packed.data"),
    ],
)
def test_mistakes_with_a_packed_sequence(mistake, told: str) -> None:
    verdict = exercises.check_norm_packed(mistake)
    assert not verdict.correct
    assert told in verdict.message


@pytest.mark.parametrize("letters", ["bd", "d, b", "BD"])
def test_reset(letters: str) -> None:
    assert exercises.check_reset(letters).correct


@pytest.mark.parametrize(
    ("letters", "told"),
    [
        ("abd", "undoes the reset"),
        ("bcd", "r times U h"),
        ("bde", "whole row"),
        ("d", "after the norm"),
        ("b", "only one of the two terms"),
        ("bdx", "x isn't one of the letters"),
        ("", "still missing"),
        (..., "still missing"),
        (2, "as a string"),
    ],
)
def test_mistakes_with_reset(letters: object, told: str) -> None:
    verdict = exercises.check_reset(letters)
    assert not verdict.correct
    assert told in verdict.message
