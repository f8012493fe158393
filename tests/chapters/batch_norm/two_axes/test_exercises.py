"""The checkers of the chapter on the columns and rows of one matrix."""

import numpy as np
import pytest
import torch
from torch import nn

from lnbook.chapters.batch_norm.two_axes import exercises
from lnbook.chapters.shared.checker import Verdict

NUMBERS = {
    "bn_means": 64,
    "bn_values": 8 * 28 * 28,
    "bn_parameters": 2 * 64,
    "ln_means": 8,
    "ln_values": 64 * 28 * 28,
    "ln_parameters": 2 * 64 * 28 * 28,
}


def test_numbers_are_those_of_torch() -> None:
    bn, ln = nn.BatchNorm2d(64), nn.LayerNorm((64, 28, 28))
    assert bn.running_mean is not None
    assert NUMBERS["bn_means"] == bn.running_mean.numel()
    assert NUMBERS["bn_parameters"] == sum(p.numel() for p in bn.parameters())
    assert NUMBERS["ln_parameters"] == sum(p.numel() for p in ln.parameters())
    entries = 8 * 64 * 28 * 28
    for layer in ("bn", "ln"):
        assert NUMBERS[f"{layer}_means"] * NUMBERS[f"{layer}_values"] == entries


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers(name: str) -> None:
    def told(number: object) -> Verdict:
        return exercises.check_numbers(**{**NUMBERS, name: number})

    assert told(float(NUMBERS[name])).correct
    for number, message in exercises.COUNTS[name][2].items():
        assert told(number) == Verdict(False, f"{name}: {message}")
    assert f"{name} is still missing: " in told(None).message
    assert f"{name}: Count again" in told(NUMBERS[name] + 1).message
    assert not told(NUMBERS[name] + 0.5).correct


def test_the_claimed_table_breaks_the_rules_that_it_is_said_to_break() -> None:
    for column, (values, fault) in enumerate(exercises.CLAIMED):
        z = np.array(values)
        again = nn.functional.batch_norm(torch.tensor(z)[:, None], None, None, training=True)
        is_its_own_normalization = np.allclose(again[:, 0], z, rtol=0.0, atol=0.01)
        assert is_its_own_normalization == (fault is None)
        rules = {"sum": abs(z.sum()) > 0.02, "above": (z**2).mean() > 1.05}
        rules["below"] = z.any() and (z**2).mean() < 0.95
        broken = [rule for rule, is_broken in rules.items() if is_broken]
        assert ("sum" in broken) == ("sum" in (fault or "")), column
        assert fault is None or "sum" in broken or broken[0] in fault
        assert np.array_equal(exercises.claimed()[:, column], z)
    assert {1, 3, 5} == exercises.IMPOSSIBLE


def swap(x):
    return x.transpose(1, 2)


def mixed(x):
    return x.reshape(x.shape[0], x.shape[2], x.shape[1])


def apply(layer, x):
    return swap(layer(swap(x)))


RIGHT = ""
TOLD = {
    exercises.check_batch_of_two: [
        ([[-1, 1, 0], [1, -1, 0]], RIGHT),
        (nn.BatchNorm1d(3)(torch.tensor(exercises.PAIR)), RIGHT),
        ([[-1, 1, ...], [1, -1, 0]], "Your output still has a '...' in it"),
        ([[1, -1, 0], [-1, 1, 0]], "signs are the wrong way around"),
        ([[-0.707, 0.707, 0], [0.707, -0.707, 0]], "unbiased variance"),
        ([[-1, 0.4, 0], [1, -0.4, 0]], "You divided by the variance"),
        ([[-1, 2.5, 0], [1, -2.5, 0]], "These are the deviations"),
        ([[-1, 1, 1], [1, -1, 1]], "The third feature is constant"),
        ([[-1, 1.02, 0], [1, -1.02, 0]], "one column at a time"),
        (nn.LayerNorm(3)(torch.tensor(exercises.PAIR)), "along the rows"),
        (nn.LayerNorm((2, 3))(torch.tensor(exercises.PAIR)), "the whole array"),
    ],
    exercises.check_impossible: [
        ([1, 3, 5], RIGHT),
        (np.array([5, 3, 1]), RIGHT),
        (None, "still missing"),
        ([], "One that you did not name does not sum to 0"),
        ([1, 5], "One that you did not name has a mean square well below 1"),
        ([1, 3], "One that you did not name has a mean square above 1"),
        ([0, 1, 3, 5], "Column 0 is possible"),
        ([1, 2, 3, 5], "Column 2 is possible: 2.0 is extreme"),
        ([1, 3, 4, 5], "Column 4 is possible: a constant feature"),
        ([2, 4, 6], "should be indices of columns, 0 to 5"),
        (3, "should be indices of columns"),
        ("135", "should be indices of columns"),
        ([1.5], "should be indices of columns"),
    ],
    exercises.check_channels_last: [
        (apply, RIGHT),
        (lambda layer, x: layer(x.reshape(-1, x.shape[-1])).reshape(x.shape), RIGHT),
        (lambda layer, x: layer(x.flatten(0, 1)).detach().numpy().reshape(x.shape), RIGHT),
        (lambda layer, x: layer(x), "refuses x of shape (2, 5, 3). It gives x to the layer as it"),
        (lambda layer, x: layer(mixed(x)).reshape(x.shape), "`reshape` does not move an axis"),
        (lambda layer, x: layer(swap(x)).reshape(x.shape), "comes back with `reshape`"),
        (lambda layer, x: swap(layer(mixed(x))), "moves the channels with `reshape`"),
        (
            lambda layer, x: nn.functional.layer_norm(x, x.shape[-1:], layer.weight, layer.bias),
            "That is LayerNorm",
        ),
        (
            lambda layer, x: swap(nn.functional.batch_norm(swap(x), None, None, training=True)),
            "without gamma and beta",
        ),
        (lambda layer, x: apply(layer.eval(), x), "uses the running statistics"),
        (lambda layer, x: layer(swap(x)), "but not back"),
        (lambda layer, x: swap(layer(x)), "Axis 1 of x is the position"),
        (lambda layer, x: ..., "Did you forget `return`?"),
        (lambda layer, x: apply(layer, x) + 5e-9, "the values differ from the reference"),
        # right where length and channels differ, wrong where they are equal
        (lambda layer, x: layer(x) if len(x) == 3 else apply(layer, x), "It gives x to the layer"),
        (lambda layer, x: layer(swap(x)) if len(x) == 3 else apply(layer, x), "but not back"),
    ],
}


@pytest.mark.parametrize(("check", "answer", "told"), [(c, *r) for c in TOLD for r in TOLD[c]])
def test_answers(check, answer, told: str) -> None:
    verdict = check(answer)
    assert verdict.correct == (told == RIGHT)
    assert told in verdict.message
