"""The checkers on geometry: right answers pass, known mistakes are named."""

import numpy as np
import pytest
import torch

from lnbook import reference
from lnbook.chapters.formula.geometry import exercises
from lnbook.chapters.shared.checker import Verdict

ROW = np.array([4.0, 2.0, 8.0])
CENTERED = ROW - ROW.mean()
XHAT = CENTERED / ROW.std()


@pytest.mark.parametrize(
    "row",
    [10 + 2 * XHAT, [9.47, 7.86, 12.67], (9.46, 7.86, 12.67), torch.tensor(10 + 2 * XHAT)],
)
def test_same_output_right(row: object) -> None:
    assert exercises.check_same_output(row).correct


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ([1.0, 2.0], "Your row should be numbers of shape (3,), but has the shape (2,)"),
        ([5.0, 5.0, 5.0], "This row is constant"),
        (10 + 2 * CENTERED, "Divide them by their own deviation first"),
        (2 * XHAT, "the mean is not: add 10"),
        (10 + XHAT, "multiply by 2 before you add 10"),
        (10 * XHAT + 2, "You swapped the two"),
        (10 + 4 * XHAT, "That scale is the variance"),
        (10 - 2 * XHAT, "upside down"),
        (10 + CENTERED, "with its old deviation"),
        (ROW, "Your row has mean 4.67, standard deviation 2.49"),
        ([8.0, 10.0, 12.0], "asked for: 10, 2 and [-0.27 -1.07  1.34]"),
    ],
)
def test_same_output_wrong(row: object, expected: str) -> None:
    verdict = exercises.check_same_output(row)
    assert not verdict.correct
    assert expected in verdict.message


@pytest.mark.parametrize(
    "row", [[1, 0, 0, 0, 0], [7.0, -2, -2, -2, -2], 1e6 * np.eye(5)[0], torch.eye(5)[0]]
)
def test_stands_out_right(row: object) -> None:
    assert exercises.check_stands_out(row).correct


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ([1.0, 0.0], "Your row should be numbers of shape (5,)"),
        (np.ones(5), "This row is constant"),
        ([-1, 0, 0, 0, 0], "as far down as possible"),
        ([0, 1, 0, 0, 0], "is -0.500. Make the first feature the largest one."),
        ([5, 4, 3, 2, 1], "is 1.414. A larger one is possible."),
        ([0.01, 0, 0, 0, 0], "small next to the root of eps"),
        ([1.0, 0.2, 0, 0, 0], "A larger one is possible."),
    ],
)
def test_stands_out_wrong(row: object, expected: str) -> None:
    verdict = exercises.check_stands_out(row)
    assert not verdict.correct
    assert expected in verdict.message


def right(weight, bias):
    return weight - weight.mean(axis=0, keepdims=True), bias - bias.mean()


def by_projection(weight, bias):
    n = len(bias)
    project = np.eye(n) - np.ones((n, n)) / n
    return [project @ weight, project @ bias]


def by_torch(weight, bias):
    weight, bias = torch.tensor(weight), torch.tensor(bias)
    return weight - weight.mean(0), bias - bias.mean()


@pytest.mark.parametrize("function", [right, by_projection, by_torch])
def test_center_weights_right(function) -> None:
    assert exercises.check_center_weights(function).correct


def test_what_is_right_turns_layer_norm_into_rms_norm() -> None:
    rng = np.random.default_rng(5)
    weight, bias, x = rng.normal(size=(6, 4)), rng.normal(size=6), rng.normal(size=(9, 4))
    new_weight, new_bias = right(weight, bias)
    a = x @ new_weight.T + new_bias
    rms = a / np.sqrt((a**2).mean(axis=-1, keepdims=True) + 1e-5)
    np.testing.assert_allclose(rms, reference.layer_norm(x @ weight.T + bias, 6), atol=1e-12)


@pytest.mark.parametrize("message", exercises._mistakes(np.eye(2), np.arange(2.0)))
def test_center_weights_names_each_mistake(message: str) -> None:
    verdict = exercises.check_center_weights(lambda w, b: exercises._mistakes(w, b)[message])
    assert verdict == Verdict(False, message)


def changes_its_input(weight, bias):
    weight -= weight.mean(axis=0)
    return weight, bias - bias.mean()


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda _w, _b: None, "returns nothing"),
        (lambda w, _b: w, "should return two things"),
        (lambda w, b: (w, b, b), "should return two things"),
        (lambda w, b: (b, w), "Your weight should be numbers of shape (4, 6)"),
        (lambda w, b: (w - w.mean(axis=1), b), "Your function raised ValueError"),
        (
            lambda w, b: (2 * right(w, b)[0], b - b.mean()),
            "outputs of RMSNorm and LayerNorm differ",
        ),
        (changes_its_input, "changes its input"),
    ],
)
def test_center_weights_wrong(function, expected: str) -> None:
    verdict = exercises.check_center_weights(function)
    assert not verdict.correct
    assert expected in verdict.message
