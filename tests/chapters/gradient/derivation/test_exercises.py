"""The checkers: right answers pass, and each known mistake is called by its name."""

import numpy as np
import pytest
import torch

from lnbook import reference
from lnbook.chapters.gradient.derivation import exercises
from lnbook.chapters.shared.checker import Verdict

DX = np.array([0.625, 0.125, -0.125, -0.625])
DGAMMA = np.array([-2.0, -0.5, 0.0, -1.0])


def test_by_hand_right() -> None:
    assert exercises.check_by_hand(DX, DGAMMA).correct
    assert exercises.check_by_hand([5 / 8, 1 / 8, -1 / 8, -5 / 8], [-2, -0.5, 0, -1]).correct
    assert exercises.check_by_hand([0.63, 0.13, -0.13, -0.63], DGAMMA).correct, "rounded"
    assert exercises.check_by_hand([0.62, 0.12, -0.12, -0.62], DGAMMA).correct, "cut off"
    assert exercises.check_by_hand(torch.tensor(DX), torch.tensor(DGAMMA)).correct


G = np.array([4.0, 2.0, 0.0, -2.0])
XHAT = np.array([-0.5, -0.5, 0.5, 0.5])
DY = np.array([4.0, 1.0, 0.0, -2.0])


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ((), "Your dL/dx is still missing"),
        ((DX[:3],), "has the shape (3,)"),
        (((DY - 0.75 - XHAT * -0.875) / 4,), "leaves gamma out"),
        (((G + XHAT) / 4,), "lacks the mean of g"),
        (((G - 1) / 4,), "lacks the term with xhat"),
        (((G - 4 + 4 * XHAT) / 4,), "sums where the formula has means"),
        (((G - 1 - XHAT) / 4,), "adds the term with xhat"),
        ((2 * DX,), "takes r without eps"),
        (((G - 1 - 4 * XHAT * (G * XHAT).mean()) / 2,), "leaves eps out, in r and in xhat"),
        ((4 * DX,), "lacks the factor r"),
        ((DX / 4,), "factor r twice"),
        ((-DX,), "signs are the wrong way around"),
        ((G / 4,), "two terms are missing"),
        ((DX + 0.02,), "Your dL/dx is off"),
        ((DX,), "Your dL/dgamma is still missing"),
        ((DX, G * XHAT), "This is g * xhat"),
        ((DX, DY), "This is dL/dbeta"),
        ((DX, DY * [0, 0, 4, 4]), "x in place of xhat"),
        ((DX, 2 * DGAMMA), "Your xhat leaves eps out"),
        ((DX, 4 * DGAMMA), "x - mean in place of xhat"),
        ((DX, -DGAMMA), "signs are the wrong way around"),
        ((DX, DGAMMA + 0.02), "Your dL/dgamma is off"),
    ],
)
def test_by_hand_wrong(answer: tuple[object, ...], expected: str) -> None:
    verdict = exercises.check_by_hand(*answer)
    assert not verdict.correct
    assert expected in verdict.message


def rms_xhat(x: np.ndarray, eps: float) -> np.ndarray:
    return x / np.sqrt((x**2).mean(-1, keepdims=True) + eps)


def rms_dx(dy: np.ndarray, x: np.ndarray, w: np.ndarray, eps: float) -> np.ndarray:
    """With the matrix of each row, as no reader would write it."""
    rows = []
    size = x.shape[-1]
    for row, g in zip(x.reshape(-1, size), (dy * w).reshape(-1, size), strict=True):
        r = 1 / np.sqrt((row**2).mean() + eps)
        rows.append(r * (np.eye(size) - r**2 * np.outer(row, row) / size) @ g)
    return np.array(rows).reshape(x.shape)


def rms_dweight(dy: np.ndarray, x: np.ndarray, _w: np.ndarray, eps: float) -> np.ndarray:
    return (dy * rms_xhat(x, eps)).reshape(-1, x.shape[-1]).sum(0)


def test_rms_norm_backward_right() -> None:
    def by_autograd(dy, x, weight, eps):
        inputs = [torch.tensor(a, requires_grad=True) for a in (x, weight)]
        y = torch.nn.functional.rms_norm(inputs[0], weight.shape, inputs[1], eps)
        return torch.autograd.grad(y, inputs, torch.tensor(dy))

    for function in (
        by_autograd,
        lambda *args: (rms_dx(*args), rms_dweight(*args)),
        lambda *args: [rms_dx(*args).tolist(), rms_dweight(*args).tolist()],
    ):
        assert exercises.check_rms_norm_backward(function) == Verdict(
            True, "Both gradients are right, for any number of leading axes."
        )


EXAMPLE = (np.eye(2), np.eye(2), np.ones(2), 1.0)


@pytest.mark.parametrize("message", exercises._dx_mistakes(*EXAMPLE))
def test_rms_norm_backward_names_each_mistake_in_dx(message: str) -> None:
    def wrong(*args):
        return exercises._dx_mistakes(*args)[message], rms_dweight(*args)

    assert exercises.check_rms_norm_backward(wrong) == Verdict(False, message)


@pytest.mark.parametrize("message", exercises._dweight_mistakes(*EXAMPLE))
def test_rms_norm_backward_names_each_mistake_in_dweight(message: str) -> None:
    def wrong(*args):
        return rms_dx(*args), exercises._dweight_mistakes(*args)[message]

    assert exercises.check_rms_norm_backward(wrong) == Verdict(False, message)


def layer_norm_backward(dy, x, weight, eps):
    return reference.layer_norm_backward(dy, x, x.shape[-1], weight, eps=eps)[:2]


def changes_its_input(dy, x, weight, eps):
    answer = rms_dx(dy, x, weight, eps), rms_dweight(dy, x, weight, eps)
    dy *= weight
    return answer


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda *_: None, "returns nothing"),
        (lambda dy, *_: (dy, dy, dy), "should return the pair"),
        (lambda *args: (rms_dx(*args).sum(0), 0.0), "Your dx should be numbers of shape"),
        (lambda *args: (rms_dx(*args), None), "Your dweight is still missing"),
        (lambda *args: (rms_dx(*args), rms_dweight(*args)[:-1]), "but has the shape (4,)"),
        (lambda *args: (rms_dx(*args) + 1e-6, 0.0), "dx differs from the right gradient"),
        (lambda *args: (rms_dx(*args), rms_dweight(*args) + 1), "dweight differs"),
        (layer_norm_backward, "Its dx is that of LayerNorm"),
        (lambda dy, x, w, eps: 1 / 0, "raised ZeroDivisionError"),
        (lambda dy, x, w, eps: x.mean(-1) * np.zeros((7, 8)), "keepdims=True"),
        (changes_its_input, "changes its input"),
    ],
)
def test_rms_norm_backward_wrong(function: object, expected: str) -> None:
    verdict = exercises.check_rms_norm_backward(function)  # type: ignore[arg-type]
    assert not verdict.correct
    assert expected in verdict.message
