"""The checkers of the chapter on the columns and rows of one matrix."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from lnbook.chapters.batch_norm.two_axes import exercises

Applied = Callable[[nn.BatchNorm1d, Tensor], Tensor]


def in_torch(rows: object) -> Tensor:
    x = torch.tensor(rows, dtype=torch.float64)
    return nn.BatchNorm1d(x.shape[1], affine=False, dtype=torch.float64)(x)


def test_batch_of_two_right() -> None:
    right = [[-1, 1, 0], [1, -1, 0]]
    assert exercises.check_batch_of_two(right).correct
    assert exercises.check_batch_of_two(in_torch(exercises.PAIR)).correct


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (None, "still missing"),
        ([[-1, 1, ...], [1, -1, 0]], "Your output still has a '...' in it"),
        ([..., ...], "Your output still has a '...' in it"),
        ([-1, 1, 0], "has the shape (3,)"),
        ([[1, -1, 0], [-1, 1, 0]], "signs are the wrong way around"),
        ([[-0.707, 0.707, 0], [0.707, -0.707, 0]], "unbiased variance"),
        ([[-1, 0.4, 0], [1, -0.4, 0]], "You divided by the variance"),
        ([[-1, 2.5, 0], [1, -2.5, 0]], "These are the deviations"),
        ([[-1, 1, 1], [1, -1, 1]], "The third feature is constant"),
        ([[-1, 1, 3], [1, -1, 3]], "one column at a time"),
    ],
)
def test_batch_of_two_wrong(answer: object, expected: str) -> None:
    verdict = exercises.check_batch_of_two(answer)
    assert not verdict.correct
    assert expected in verdict.message


def test_batch_of_two_knows_the_other_axis_and_the_whole_array() -> None:
    x = torch.tensor(exercises.PAIR, dtype=torch.float64)
    rows = nn.LayerNorm(3, elementwise_affine=False, dtype=torch.float64)(x)
    assert "along the rows" in exercises.check_batch_of_two(rows).message
    whole = nn.LayerNorm((2, 3), elementwise_affine=False, dtype=torch.float64)(x)
    assert "the whole array" in exercises.check_batch_of_two(whole).message


RIGHT = {
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
    assert RIGHT["bn_means"] == bn.running_mean.numel()
    assert RIGHT["bn_parameters"] == sum(p.numel() for p in bn.parameters())
    assert RIGHT["ln_parameters"] == sum(p.numel() for p in ln.parameters())
    entries = 8 * 64 * 28 * 28
    for layer in ("bn", "ln"):
        assert RIGHT[f"{layer}_means"] * RIGHT[f"{layer}_values"] == entries
    assert exercises.check_numbers(**RIGHT).correct
    assert exercises.check_numbers(*(float(value) for value in RIGHT.values())).correct


@pytest.mark.parametrize("name", RIGHT)
def test_numbers_wrong(name: str) -> None:
    _, right, mistakes = exercises.COUNTS[name]
    assert right == RIGHT[name]
    assert right not in mistakes
    for number, told in mistakes.items():
        verdict = exercises.check_numbers(**{**RIGHT, name: number})
        assert not verdict.correct
        assert verdict.message == f"{name}: {told}"
    for odd, told in (
        (None, f"{name} is still missing"),
        (77, f"{name}: Count again"),
        (right + 0.5, f"{name}: "),
        ("many", f"{name} should be one number"),
        ((8, 64), f"{name} should be one number"),
    ):
        verdict = exercises.check_numbers(**{**RIGHT, name: odd})
        assert not verdict.correct
        assert told in verdict.message


@pytest.mark.parametrize(
    ("name", "number", "expected"),
    [
        ("bn_means", 8, "one per image"),
        ("bn_values", 28 * 28, "All images count"),
        ("bn_values", 8, "All pixels of a channel"),
        ("bn_parameters", 256, "not learned"),
        ("ln_means", 64, "as in BatchNorm"),
        ("ln_values", 64, "height and width as well"),
        ("ln_parameters", 128, "one pair per entry"),
    ],
)
def test_numbers_name_the_usual_mistakes(name: str, number: int, expected: str) -> None:
    assert expected in exercises.check_numbers(**{**RIGHT, name: number}).message


def test_the_claimed_table_breaks_the_rules_that_it_is_said_to_break() -> None:
    for column, (values, fault) in enumerate(exercises.CLAIMED):
        z = np.array(values)
        sums_to_zero = abs(z.sum()) < 0.005 * len(z)
        square = np.mean(z**2)
        if fault is None:
            assert sums_to_zero
            assert not z.any() or abs(square - 1) < 0.02
            assert np.abs(z).max() <= np.sqrt(len(z) - 1)
            # it is its own normalization, up to the two decimals
            again = in_torch(z[:, None].tolist())[:, 0].numpy()
            np.testing.assert_allclose(again, z, atol=0.01)
        elif "sum" in fault:
            assert not sums_to_zero
        else:
            assert sums_to_zero
            assert ("above" in fault) == (square > 1.05)
            assert ("below" in fault) == (square < 0.95)
        assert np.array_equal(exercises.claimed()[:, column], z)
    assert {1, 3, 5} == exercises.IMPOSSIBLE


@pytest.mark.parametrize("answer", [[1, 3, 5], (5, 3, 1), {1, 3, 5}, np.array([1, 3, 5])])
def test_impossible_right(answer: object) -> None:
    assert exercises.check_impossible(answer).correct


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (None, "still missing"),
        (..., "still missing"),
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
)
def test_impossible_wrong(answer: object, expected: str) -> None:
    verdict = exercises.check_impossible(answer)
    assert not verdict.correct
    assert expected in verdict.message


@pytest.mark.parametrize(
    "function",
    [
        lambda layer, x: layer(x.transpose(1, 2)).transpose(1, 2),
        lambda layer, x: layer(x.reshape(-1, x.shape[-1])).reshape(x.shape),
        lambda layer, x: layer(x.flatten(0, 1)).detach().numpy().reshape(x.shape),
    ],
)
def test_channels_last_right(function: Applied) -> None:
    assert exercises.check_channels_last(function).correct


def swap(x: Tensor) -> Tensor:
    return x.transpose(1, 2)


def mixed(x: Tensor) -> Tensor:
    return x.reshape(x.shape[0], x.shape[2], x.shape[1])


def in_place(layer: nn.BatchNorm1d, x: Tensor) -> Tensor:
    y = swap(layer(swap(x)))
    x -= 1.0
    return y


def in_evaluation(layer: nn.BatchNorm1d, x: Tensor) -> Tensor:
    return swap(layer.eval()(swap(x)))


def refuses(layer: nn.BatchNorm1d, x: Tensor) -> Tensor:
    raise ValueError("no such axis")


def only_if_refused(right: Applied) -> Applied:
    """Trust the layer to complain, as one may in a hurry."""

    def apply(layer: nn.BatchNorm1d, x: Tensor) -> Tensor:
        try:
            return layer(x)
        except RuntimeError:
            return right(layer, x)

    return apply


def guess_the_way_back(layer: nn.BatchNorm1d, x: Tensor) -> Tensor:
    y = layer(swap(x))
    return y if y.shape == x.shape else swap(y)


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (
            lambda layer, x: layer(x),
            "refuses x of shape (2, 5, 3). It gives x to the layer as it is",
        ),
        (lambda layer, x: layer(mixed(x)).reshape(x.shape), "`reshape` does not move an axis"),
        (lambda layer, x: layer(swap(x)).reshape(x.shape), "comes back with `reshape`"),
        (lambda layer, x: swap(layer(mixed(x))), "moves the channels with `reshape`"),
        (lambda layer, x: layer(swap(x)), "but not back"),
        (lambda layer, x: swap(layer(x)), "Axis 1 of x is the position"),
        (
            lambda layer, x: nn.functional.layer_norm(x, x.shape[-1:], layer.weight, layer.bias),
            "That is LayerNorm",
        ),
        (
            lambda layer, x: swap(nn.functional.batch_norm(swap(x), None, None, training=True)),
            "without gamma and beta",
        ),
        (lambda layer, x: x[0], "has the shape (5, 3)"),
        (lambda layer, x: None, "Did you forget `return`?"),
        (lambda layer, x: ..., "Did you forget `return`?"),
        (in_place, "changes its input"),
        (in_evaluation, "uses the running statistics"),
        (lambda layer, x: swap(layer(swap(x))) + 1e-6, "the values differ from the reference"),
        (refuses, "raised ValueError: no such axis (x had the shape (2, 5, 3))"),
        # right where length and channels differ, wrong where they are equal
        (only_if_refused(lambda layer, x: swap(layer(swap(x)))), "It gives x to the layer"),
        (lambda layer, x: guess_the_way_back(layer, x), "but not back"),
    ],
)
def test_channels_last_wrong(function: Applied, expected: str) -> None:
    verdict = exercises.check_channels_last(function)
    assert not verdict.correct
    assert expected in verdict.message


def test_channels_last_mistakes_are_told_apart() -> None:
    rng = np.random.default_rng(3)
    for mistakes, shape in (
        (exercises.MISTAKES, (2, 5, 3)),
        (exercises.MISTAKES_ON_SQUARES, (3, 4, 4)),
    ):
        x = torch.from_numpy(rng.normal(size=shape))
        answers = []
        for wrong in mistakes.values():
            layer = nn.BatchNorm1d(shape[2], dtype=torch.float64)
            nn.init.constant_(layer.weight, 2.0)
            answers.append(wrong(layer, x).detach())
        answers.append(swap(layer.train()(swap(x))).detach())
        for i, first in enumerate(answers):
            assert not any(
                first.shape == other.shape and torch.allclose(first, other)
                for other in answers[i + 1 :]
            )
