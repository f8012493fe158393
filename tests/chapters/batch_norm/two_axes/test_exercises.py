"""The checkers accept correct answers and name each known mistake."""

import math

import numpy as np
import pytest
import torch
from torch import nn

from lnbook.chapters.batch_norm.two_axes import exercises
from tests.helpers.verdicts import verdict_test


def test_rare_feature_agrees_with_torch() -> None:
    for count, ones in exercises.RARE_CASES:
        x = torch.zeros(count, 1, dtype=torch.float64)
        x[:ones] = 1
        y = nn.BatchNorm1d(1, eps=1e-15, dtype=torch.float64)(x)
        assert y[0].item() == pytest.approx(exercises._of_ones(count, ones))


def test_the_claimed_table_breaks_the_listed_rules() -> None:
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


def without_the_layer(layer, x):
    mean, variance = x.mean((0, 1)), x.var((0, 1), correction=0)
    return (x - mean) / (variance + layer.eps).sqrt() * layer.weight + layer.bias


ANSWERS = {
    exercises.check_batch_of_two: [
        ("Correct.", [[-1, 1, 0], [1, -1, 0]]),
        ("Correct.", nn.BatchNorm1d(3)(torch.tensor(exercises.PAIR))),
        ("Your output still has a '...' in it", [[-1, 1, ...], [1, -1, 0]]),
        ("Your signs are reversed", [[1, -1, 0], [-1, 1, 0]]),
        ("unbiased variance", [[-0.707, 0.707, 0], [0.707, -0.707, 0]]),
        ("You divided by the variance", [[-1, 0.4, 0], [1, -0.4, 0]]),
        ("These are the deviations", [[-1, 2.5, 0], [1, -2.5, 0]]),
        ("The third feature is constant", [[-1, 1, 1], [1, -1, 1]]),
        ("one column at a time", [[-1, 1.02, 0], [1, -1.02, 0]]),
        ("along the rows", nn.LayerNorm(3)(torch.tensor(exercises.PAIR))),
        ("the whole array", nn.LayerNorm((2, 3))(torch.tensor(exercises.PAIR))),
    ],
    exercises.check_rare_feature: [
        ("Correct.", lambda n, k: np.sqrt((n - k) / k)),
        ("Correct.", lambda n, k: (1 - k / n) / math.sqrt(k / n - (k / n) ** 2)),
        ("Correct.", lambda n, k: torch.tensor(n / k - 1, dtype=torch.float64).sqrt()),
        ("Correct.", lambda n, k: torch.tensor((n - k) / k).sqrt()),
        ("output for the zeros, without the sign", lambda n, k: np.sqrt(k / (n - k))),
        ("output for the zeros. The ones are above", lambda n, k: -np.sqrt(k / (n - k))),
        ("their output is positive", lambda n, k: -np.sqrt((n - k) / k)),
        ("You divided by the variance", lambda n, k: 1 / (k / n)),
        ("the unbiased variance", lambda n, k: np.sqrt((n - k) / k * (n - 1) / n)),
        ("This is the deviation from the mean", lambda n, k: 1 - k / n),
        ("You didn't subtract the mean", lambda n, k: n / np.sqrt(k * (n - k))),
        ("You used p as the variance", lambda n, k: (1 - k / n) / np.sqrt(k / n)),
        ("The square root is missing", lambda n, k: (n - k) / k),
        ("For N = 10 and k = 3 it should be 1.5275, but it's 2.6458", lambda n, k: np.sqrt(n - k)),
        ("Did you forget `return`?", lambda n, k: ...),
        ("Did you forget `return`?", lambda n, k: None),
    ],
    exercises.check_impossible: [
        ("Correct.", [1, 3, 5]),
        ("Correct.", np.array([5, 3, 1])),
        ("still missing", None),
        ("A column that you didn't list does not sum to 0", []),
        ("A column that you didn't list has a mean square well below 1", [1, 5]),
        ("A column that you didn't list has a mean square above 1", [1, 3]),
        ("Column 0 is possible", [0, 1, 3, 5]),
        ("Column 2 is possible: it's extreme", [1, 2, 3, 5]),
        ("Column 4 is possible: a constant feature", [1, 3, 4, 5]),
        ("should be indices of columns, 0 to 5", [2, 4, 6]),
        ("should be indices of columns", 3),
        ("should be indices of columns", "135"),
        ("should be indices of columns", [1.5]),
    ],
    exercises.check_channels_last: [
        ("Correct.", apply),
        ("Correct.", lambda layer, x: layer(x.reshape(-1, x.shape[-1])).reshape(x.shape)),
        ("Correct.", lambda layer, x: layer(x.flatten(0, 1)).detach().numpy().reshape(x.shape)),
        ("the layer rejects its input.\nAxis 1 must hold the 3 ch", lambda layer, x: layer(x)),
        ("rejects its input", lambda layer, x: layer(x.reshape(-1, x.shape[1])).reshape(x.shape)),
        ("`reshape` doesn't move an axis", lambda layer, x: layer(mixed(x)).reshape(x.shape)),
        ("`reshape` doesn't move an axis", lambda layer, x: layer(mixed(x))),
        ("came back with `reshape`", lambda layer, x: layer(swap(x)).reshape(x.shape)),
        ("moved the channels with `reshape`", lambda layer, x: swap(layer(mixed(x)))),
        (
            "That's LayerNorm",
            lambda layer, x: nn.functional.layer_norm(x, x.shape[-1:], layer.weight, layer.bias),
        ),
        (
            "Gamma and beta are missing",
            lambda layer, x: swap(nn.functional.batch_norm(swap(x), None, None, training=True)),
        ),
        ("doesn't call the layer.\nCall it", without_the_layer),
        ("used the running statistics", lambda layer, x: apply(layer.eval(), x)),
        ("but not back", lambda layer, x: layer(swap(x))),
        ("rejects its input", lambda layer, x: swap(layer(x))),
        ("Did you forget `return`?", lambda layer, x: ...),
        ("the values differ from the reference", lambda layer, x: apply(layer, x) + 2e-5),
        # right if the length and the number of channels differ, wrong if they're equal
        (
            "passes x to the layer unchanged",
            lambda layer, x: layer(x) if len(x) == 3 else apply(layer, x),
        ),
        ("but not back", lambda layer, x: layer(swap(x)) if len(x) == 3 else apply(layer, x)),
    ],
}

test_answers = verdict_test(ANSWERS)
