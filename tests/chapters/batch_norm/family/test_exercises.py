"""The checkers accept correct answers and name each known mistake."""

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional

from lnbook.chapters.batch_norm.family import exercises
from lnbook.chapters.shared.checker import Verdict
from lnbook.layers import DyT, LayerNorm2d
from tests.helpers.verdicts import verdict_test

LAYERS = {
    "bn": (nn.BatchNorm2d(32), 784),
    "ln": (nn.LayerNorm((32, 7, 7)), 1568),
    "gn": (nn.GroupNorm(4, 32), 392),
    "in_": (nn.InstanceNorm2d(32), 49),
    "ln2d": (LayerNorm2d(32), 32),
    "dyt": (DyT((32, 7, 7)), 1),
}
MOVED = {name: count for name, (_, count) in LAYERS.items()}


@pytest.mark.parametrize("name", LAYERS)
def test_moved(name: str) -> None:
    def told(count: object) -> Verdict:
        return exercises.check_moved(**{**MOVED, name: count})

    x = torch.from_numpy(np.random.default_rng(0).normal(size=(16, 32, 7, 7)))
    changed = x.clone()
    changed[3, 5, 2, 4] += 1.0
    layer, right = LAYERS[name][0].double(), MOVED[name]
    assert int(((layer(changed) - layer(x)).abs() > 1e-9).sum()) == right
    assert told(right).correct
    for count, message in exercises.MOVED[name][1].items():
        assert told(count) == Verdict(False, f"{name}: {message}")
    assert "Multiply the sizes" in told(right + 1).message


def layer_norm_2d(x, weight, bias):
    mean, variance = x.mean(1, keepdim=True), x.var(1, correction=0, keepdim=True)
    y = (x - mean) / (variance + 1e-5).sqrt()
    return weight.view(-1, 1, 1) * y + bias.view(-1, 1, 1)


def group_norm_last(x, groups):
    n, h, w, c = x.shape
    parts = x.reshape(n, h, w, groups, c // groups)
    mean = parts.mean((1, 2, 4), keepdim=True)
    variance = ((parts - mean) ** 2).mean((1, 2, 4), keepdim=True)
    return ((parts - mean) / (variance + 1e-5).sqrt()).reshape(n, h, w, c)


def last_by_permuting(x, groups):
    return functional.group_norm(x.permute(0, 3, 1, 2), groups).permute(0, 2, 3, 1)


def spread_left(m, s):
    return s / np.sqrt(m**2 + s**2)


@pytest.mark.parametrize(("m", "s"), exercises.ROWS)
def test_the_formula_is_the_spread_of_rms_norm(m: float, s: float) -> None:
    row = torch.from_numpy(np.random.default_rng(0).normal(size=1000))
    row = m + s * (row - row.mean()) / row.std(correction=0)
    normalized = functional.rms_norm(row, row.shape, eps=0.0)
    assert float(normalized.std(correction=0)) == pytest.approx(spread_left(m, s))


@pytest.mark.parametrize("largest", [0.14, 0.1425, np.float64(1 / 7), torch.tensor(0.142)])
def test_offset(largest: object) -> None:
    assert exercises.check_offset(spread_left, largest).correct
    other_form = exercises.check_offset(lambda m, s: (1 + (m / s) ** 2) ** -0.5, largest)
    assert other_form.correct
    in_float32 = exercises.check_offset(
        lambda m, s: s / torch.sqrt(torch.tensor(m**2 + s**2)), largest
    )
    assert in_float32.correct
    for message, wrong in exercises.SPREAD_MISTAKES.items():
        assert exercises.check_offset(wrong, largest) == Verdict(False, message)
    assert "divided by its root mean square" in exercises.check_offset(min, largest).message


def test_largest_offset() -> None:
    for message, wrong in exercises.LARGEST_MISTAKES.items():
        assert exercises.check_offset(spread_left, wrong) == Verdict(False, message)
    assert "solve for m / s" in exercises.check_offset(spread_left, 0.2).message
    assert exercises.check_offset(spread_left).message == "largest is still missing."


ANSWERS = {
    exercises.check_layer_norm_2d: [
        ("Correct.", layer_norm_2d),
        *exercises.MISTAKES_2D.items(),
        ("differs from LayerNorm of the pixels", lambda *given: layer_norm_2d(*given) + 5e-8),
    ],
    exercises.check_group_norm_last: [
        ("Correct.", group_norm_last),
        ("Correct.", last_by_permuting),
        *exercises.MISTAKES_LAST.items(),
        ("differs from GroupNorm with 3 groups", lambda *given: group_norm_last(*given) + 5e-8),
    ],
}

test_answers = verdict_test(ANSWERS)
