"""The checkers on the family: right answers pass, known mistakes are named."""

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional

from lnbook.chapters.batch_norm.family import exercises
from lnbook.chapters.shared.checker import Verdict
from lnbook.layers import DyT, LayerNorm2d

RIGHT = {"bn": 784, "ln": 1568, "gn": 392, "in_": 49, "ln2d": 32, "dyt": 1}


def moved(layer: nn.Module) -> int:
    """How many outputs move when one entry does, found by moving it."""
    x = torch.from_numpy(np.random.default_rng(0).normal(size=(16, 32, 7, 7)))
    changed = x.clone()
    changed[3, 5, 2, 4] += 1.0
    layer = layer.double()
    return int(((layer(changed) - layer(x)).abs() > 1e-9).sum())


def test_the_right_counts_are_those_of_the_layers() -> None:
    layers = {
        "bn": nn.BatchNorm2d(32),
        "ln": nn.LayerNorm((32, 7, 7)),
        "gn": nn.GroupNorm(4, 32),
        "in_": nn.InstanceNorm2d(32),
        "ln2d": LayerNorm2d(32),
        "dyt": DyT((32, 7, 7)),
    }
    assert {name: moved(layer) for name, layer in layers.items()} == RIGHT
    assert exercises.check_moved(**RIGHT).correct
    assert exercises.check_moved(**{**RIGHT, "gn": 32 / 4 * 7 * 7}).correct


@pytest.mark.parametrize("name", RIGHT)
def test_moved_wrong(name: str) -> None:
    right, mistakes = exercises.MOVED[name]
    assert right == RIGHT[name]
    assert right not in mistakes
    for count, message in mistakes.items():
        verdict = exercises.check_moved(**{**RIGHT, name: count})
        assert verdict == Verdict(False, f"{name}: {message}")
    assert "Multiply the sizes" in exercises.check_moved(**{**RIGHT, name: 77}).message
    assert f"{name} is still missing" in exercises.check_moved(**{**RIGHT, name: ...}).message
    assert f"{name} should be one whole" in exercises.check_moved(**{**RIGHT, name: 0.5}).message


def test_moved_counts_that_other_layers_give_are_named() -> None:
    """784 for LN is no more than wrong, but 392 for BN halves the batch: told in general terms."""
    assert "one group of all channels" in exercises.check_moved(**{**RIGHT, "gn": 1568}).message
    assert "as for LayerNorm2d" in exercises.check_moved(**{**RIGHT, "ln": 32}).message
    assert "batch normalization" in exercises.check_moved(**{**RIGHT, "in_": 784}).message


def by_permuting(x, weight, bias):
    y = functional.layer_norm(x.permute(0, 2, 3, 1), (x.shape[1],), weight, bias)
    return y.permute(0, 3, 1, 2)


def by_hand(x, weight, bias):
    mean, variance = x.mean(1, keepdim=True), x.var(1, correction=0, keepdim=True)
    y = (x - mean) / (variance + 1e-5).sqrt()
    return weight.view(-1, 1, 1) * y + bias.view(-1, 1, 1)


@pytest.mark.parametrize("function", [by_permuting, by_hand])
def test_layer_norm_2d_right(function) -> None:
    assert exercises.check_layer_norm_2d(function).correct


@pytest.mark.parametrize("message", exercises.MISTAKES_2D)
def test_layer_norm_2d_names_each_mistake(message: str) -> None:
    verdict = exercises.check_layer_norm_2d(exercises.MISTAKES_2D[message])
    assert verdict == Verdict(False, message)


def changes_its_input(x, weight, bias):
    x -= x.mean(1, keepdim=True)
    return x


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda _x, _w, _b: None, "returns nothing"),
        (lambda x, _w, _b: x.permute(0, 2, 3, 1), "should be numbers of shape (2, 4, 3, 4)"),
        (lambda x, w, b: functional.layer_norm(x, (4, 1, 1)), "Your function raised RuntimeError"),
        (changes_its_input, "changes its input"),
        (lambda x, w, b: 2 * by_hand(x, w, b), "differs from LayerNorm of the pixels"),
    ],
)
def test_layer_norm_2d_wrong(function, expected: str) -> None:
    verdict = exercises.check_layer_norm_2d(function)
    assert not verdict.correct
    assert expected in verdict.message


def last_by_permuting(x, groups):
    return functional.group_norm(x.permute(0, 3, 1, 2), groups).permute(0, 2, 3, 1)


def last_by_reshape(x, groups):
    n, h, w, c = x.shape
    parts = x.reshape(n, h, w, groups, c // groups)
    mean = parts.mean((1, 2, 4), keepdim=True)
    variance = ((parts - mean) ** 2).mean((1, 2, 4), keepdim=True)
    return ((parts - mean) / (variance + 1e-5).sqrt()).reshape(n, h, w, c)


@pytest.mark.parametrize("function", [last_by_permuting, last_by_reshape])
def test_group_norm_last_right(function) -> None:
    assert exercises.check_group_norm_last(function).correct


@pytest.mark.parametrize("message", exercises.MISTAKES_LAST)
def test_group_norm_last_names_each_mistake(message: str) -> None:
    verdict = exercises.check_group_norm_last(exercises.MISTAKES_LAST[message])
    assert verdict == Verdict(False, message)


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda _x, _g: None, "returns nothing"),
        (lambda x, g: x.reshape(len(x), -1), "should be numbers of shape (2, 4, 3, 12)"),
        (lambda x, g: functional.group_norm(x, g), "Your function raised RuntimeError"),
        (lambda x, g: x * 1.0, "differs from GroupNorm with 3 groups"),
    ],
)
def test_group_norm_last_wrong(function, expected: str) -> None:
    verdict = exercises.check_group_norm_last(function)
    assert not verdict.correct
    assert expected in verdict.message
