"""Data: shapes, ranges, random draws, and errors."""

import numpy as np
import pytest
import torch
from sklearn import datasets

from lnbook.data.adding import BASELINE, adding_problem
from lnbook.data.digits import load_digits
from lnbook.data.text import load_text, windows


def test_digits_are_those_of_scikit_learn_each_in_one_part() -> None:
    digits, bunch = load_digits(), datasets.load_digits()
    x = torch.cat([digits.train_x, digits.test_x])
    y = torch.cat([digits.train_y, digits.test_y])
    assert x.dtype == torch.float64
    assert y.dtype == torch.int64
    ours = sorted((*pixels, label) for pixels, label in zip(x.tolist(), y.tolist(), strict=True))
    theirs = np.column_stack([bunch.data / 16, bunch.target]).tolist()
    assert ours == sorted(map(tuple, theirs))


def test_digits_of_each_class_are_in_both_parts() -> None:
    digits = load_digits()
    for labels, least in ((digits.train_y, 100), (digits.test_y, 25)):
        assert labels.bincount(minlength=10).min() > least


def test_text_reads_as_english_and_decodes() -> None:
    text = load_text()
    words = (text.decode(text.train) + text.decode(text.test)).split()
    assert len(words) > 60_000
    assert words.count("the") / len(words) > 0.03
    assert text.alphabet == "".join(sorted(set(text.alphabet)))
    assert len(text.alphabet) < 128
    assert "  " not in text.decode(text.train)
    assert len(text.test) / (len(text.train) + len(text.test)) == pytest.approx(0.1, abs=1e-4)


def test_windows_are_pieces_of_the_text_and_targets_follow() -> None:
    numbers = torch.randperm(50, generator=torch.Generator().manual_seed(0))
    x, y = windows(np.random.default_rng(1), numbers, count=200, length=7)
    place = numbers.argsort()
    assert x.shape == y.shape == (200, 7)
    assert torch.equal(place[y], place[x] + 1)
    assert torch.equal(x[:, 1:], y[:, :-1])
    assert place[x].min() == 0
    assert place[y].max() == 49


@pytest.mark.parametrize("length", [2, 3, 40])
def test_adding_problem_marks_one_number_in_each_half(length: int) -> None:
    x, y = adding_problem(np.random.default_rng(2), 400, length)
    numbers, marks = x.unbind(-1)
    assert x.dtype == y.dtype == torch.float64
    assert y.shape == (400, 1)
    assert ((marks == 0) | (marks == 1)).all()
    assert (marks[:, : length // 2].sum(1) == 1).all()
    assert (marks[:, length // 2 :].sum(1) == 1).all()
    assert (marks.sum(0) > 0).all()  # every position is marked at least once
    assert torch.equal((numbers * marks).sum(1, keepdim=True), y)
    assert numbers.min() >= 0
    assert numbers.max() < 1


def test_baseline_is_the_error_of_answering_one() -> None:
    _, y = adding_problem(np.random.default_rng(3), 200_000, 2)
    assert (y - 1).square().mean().item() == pytest.approx(BASELINE, rel=0.01)
