"""The checkers: right answers pass, and each known mistake is called by its name."""

import numpy as np
import pytest
import torch

from lnbook import reference
from lnbook.exercises import Verdict
from lnbook.exercises import gradient as exercises

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
        ((..., ...), "Your dL/dx is still missing"),
        (([0.6, ..., 0.1, 0.2],), "still has a '...' in it"),
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
        ((DX, DGAMMA.sum()), "but is one number"),
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


@pytest.mark.parametrize("message", exercises.DX_MISTAKES)
def test_rms_norm_backward_names_each_mistake_in_dx(message: str) -> None:
    wrong = exercises.DX_MISTAKES[message]
    verdict = exercises.check_rms_norm_backward(lambda *args: (wrong(*args), rms_dweight(*args)))
    assert verdict == Verdict(False, message)


@pytest.mark.parametrize("message", exercises.DWEIGHT_MISTAKES)
def test_rms_norm_backward_names_each_mistake_in_dweight(message: str) -> None:
    wrong = exercises.DWEIGHT_MISTAKES[message]
    verdict = exercises.check_rms_norm_backward(lambda *args: (rms_dx(*args), wrong(*args)))
    assert verdict == Verdict(False, message)


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
        (lambda *_: ..., "should return the pair"),
        (lambda dy, *_: (dy, dy, dy), "should return the pair"),
        (lambda *args: (rms_dx(*args),), "should return the pair"),
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


@pytest.mark.parametrize("g", [[1, -1, 0, 0], [0.1, 0.2, -0.3, 0.0], [-200.0, 100.0, 100.0, 0.0]])
def test_blind_gradient_right(g: object) -> None:
    assert exercises.check_blind_gradient(g).correct


@pytest.mark.parametrize(
    ("g", "expected"),
    [
        (..., "Your g is still missing"),
        ([0, 0, 0, 0], "With g = 0"),
        ([1, 1, 1, 1], "The mean of your g is 1"),
        ([1, 2, 3, 6], "The mean of your g is 3"),
        ([1, -2, 1, 0], "a missing xhat term is overlooked too"),
        ([1, -1, 0], "has the shape (3,)"),
    ],
)
def test_blind_gradient_wrong(g: object, expected: str) -> None:
    verdict = exercises.check_blind_gradient(g)
    assert not verdict.correct
    assert expected in verdict.message


def features(shape):
    return tuple(range(-len(shape), 0))


class Right(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, shape, weight, eps):
        ctx.save_for_backward(x, weight)
        ctx.shape, ctx.eps = shape, eps
        xhat = x * (x.square().mean(features(shape), keepdim=True) + eps).rsqrt()
        return xhat if weight is None else xhat * weight

    @staticmethod
    def backward(ctx, dy):
        x, weight = ctx.saved_tensors
        dims = features(ctx.shape)
        r = (x.square().mean(dims, keepdim=True) + ctx.eps).rsqrt()
        xhat = x * r
        g = dy if weight is None else dy * weight
        dx = r * (g - xhat * (g * xhat).mean(dims, keepdim=True))
        dw = None if weight is None else (dy * xhat).sum_to_size(weight.shape)
        return dx, None, dw, None


class SavesXhat(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, shape, weight, eps):
        r = (x.square().mean(features(shape), keepdim=True) + eps).rsqrt()
        ctx.save_for_backward(x * r, r, weight)
        ctx.shape = shape
        return x * r if weight is None else x * r * weight

    @staticmethod
    def backward(ctx, dy):
        xhat, r, weight = ctx.saved_tensors
        g = dy if weight is None else dy * weight
        dx = r * (g - xhat * (g * xhat).mean(features(ctx.shape), keepdim=True))
        dw = None if weight is None else (dy * xhat).sum_to_size(weight.shape)
        return dx, None, dw, None


def variant(change):
    class Changed(torch.autograd.Function):
        forward = staticmethod(Right.forward)

        @staticmethod
        def backward(ctx, dy):
            return change(Right.backward(ctx, dy), dy)

    return Changed.apply


class LastDimension(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, shape, weight, eps):
        y = x * (x.square().mean(-1, keepdim=True) + eps).rsqrt()
        return y if weight is None else y * weight

    @staticmethod
    def backward(ctx, dy):
        raise AssertionError


def last_dimension_only(x, shape, weight, eps):
    if len(shape) == 1:
        return Right.apply(x, shape, weight, eps)
    return LastDimension.apply(x, shape, weight, eps)


class FailsOnOneRow(torch.autograd.Function):
    """Without leading axes, `sum` over no axis is a sum over all."""

    forward = staticmethod(Right.forward)

    @staticmethod
    def backward(ctx, dy):
        dx, _, dw, _ = Right.backward(ctx, dy)
        leading = tuple(range(dy.dim() - len(ctx.shape)))
        return dx, None, dw if leading or dw is None else dw.sum(dim=leading), None


def wrapped(x, shape, weight, eps):
    xhat = Right.apply(x, shape, None, eps)
    return xhat if weight is None else xhat * weight


@pytest.mark.parametrize("function", [Right.apply, wrapped, lambda *args: Right.apply(*args) * 1.0])
def test_rms_norm_function_right(function: object) -> None:
    assert exercises.check_rms_norm_function(function).correct  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda *_: None, "returns no tensor"),
        (torch.nn.functional.rms_norm, "does not come from a torch.autograd.Function"),
        (
            lambda x, s, w, e: Right.apply(x - x.mean(features(s), keepdim=True), s, w, e),
            "It subtracts the mean",
        ),
        (lambda x, s, w, e: 2 * Right.apply(x, s, w, e), "the output differs from RMSNorm"),
        (last_dimension_only, "normalizes the last dimension only"),
        (FailsOnOneRow.apply, "For x of shape (4,), normalized_shape=(4,) and a weight, it raised"),
        (SavesXhat.apply, "passes gradcheck, but not gradgradcheck"),
        (variant(lambda a, dy: (dy, *a[1:])), "the gradient for x is wrong"),
        (variant(lambda a, _: (*a[:2], a[2] * 2, None)), "the gradient for weight is wrong"),
        (variant(lambda a, _: (*a[:2], None, None)), "backward returns None for weight"),
        (variant(lambda a, dy: (*a[:2], dy.sum(-1), None)), "never over the features"),
        (variant(lambda a, _: (a[0], a[2])), "Return one gradient for each argument"),
        (lambda x, s, w, e: 1 / 0, "raised ZeroDivisionError: division by zero"),
    ],
)
def test_rms_norm_function_wrong(function: object, expected: str) -> None:
    verdict = exercises.check_rms_norm_function(function)  # type: ignore[arg-type]
    assert not verdict.correct
    assert expected in verdict.message


@pytest.mark.parametrize(
    "values",
    [
        [0, 0.1875, 0.25, 0.25],
        [0.25, 0.19, 0.25, 0.0],
        np.linalg.eigvalsh(reference.layer_norm_jacobian([0, 0, 4, 4], eps=12.0)),
    ],
)
def test_eigenvalues_right(values: object) -> None:
    assert exercises.check_eigenvalues(values).correct


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (..., "still missing"),
        ([0, 0.25, 0.25], "has the shape (3,)"),
        ([0, 0, 0.25, 0.25], "Along xhat the eigenvalue is 0 only if eps is"),
        ([0.5, 0, 0.5, 0], "for eps = 0"),
        ([0, 0.75, 1, 1], "without the factor r"),
        ([0, 0.0625, 0.25, 0.25], "part that is removed"),
        ([0.25, 0.1875, 0.25, 0.25], "One eigenvalue is 0"),
        ([0, 0.25, 0.25, 0.25], "smaller than r"),
        ([0, 0.046875, 0.0625, 0.0625], "You left the root out"),
        ([0, 1, 2, 3], "Find v and r first"),
    ],
)
def test_eigenvalues_wrong(values: object, expected: str) -> None:
    verdict = exercises.check_eigenvalues(values)
    assert not verdict.correct
    assert expected in verdict.message


def apply_jacobian(u: np.ndarray, x: np.ndarray, eps: float) -> np.ndarray:
    return reference.layer_norm_backward(u, x, x.shape[-1], eps=eps)[0]


def test_apply_jacobian_right() -> None:
    def by_autograd(u, x, eps):
        t = torch.tensor(x, requires_grad=True)
        y = torch.nn.functional.layer_norm(t, t.shape[-1:], eps=eps)
        return torch.autograd.grad(y, t, torch.tensor(u))[0]

    for function in (apply_jacobian, by_autograd):
        assert exercises.check_apply_jacobian(function).correct


@pytest.mark.parametrize("message", exercises.JACOBIAN_MISTAKES)
def test_apply_jacobian_names_each_mistake(message: str) -> None:
    def wrong(u, x, eps):
        return exercises.JACOBIAN_MISTAKES[message](u, x, eps)

    assert exercises.check_apply_jacobian(wrong) == Verdict(False, message)


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda *_: None, "returns nothing"),
        (lambda u, x, eps: apply_jacobian(u, x, eps) + 1e-6, "differ from J u"),
        (lambda u, x, eps: apply_jacobian(u, x, eps)[0], "should be numbers of shape (3, 5)"),
        (lambda u, x, eps: u - u.mean(-1), "keepdims=True"),
        (lambda u, x, eps: apply_jacobian(u, x, max(eps, 1e-3)), "differ from J u"),
    ],
)
def test_apply_jacobian_wrong(function: object, expected: str) -> None:
    verdict = exercises.check_apply_jacobian(function)  # type: ignore[arg-type]
    assert not verdict.correct
    assert expected in verdict.message


def test_apply_jacobian_notices_a_matrix() -> None:
    def with_a_matrix(u, x, eps):
        return np.stack(
            [reference.layer_norm_jacobian(row, eps) @ g for row, g in zip(x, u, strict=True)]
        )

    verdict = exercises.check_apply_jacobian(with_a_matrix)
    assert not verdict.correct
    assert "it builds the matrix" in verdict.message


@pytest.mark.parametrize("g", [[1, 2, 3, 6], [-2, -1, 0, 3], [3.5, 4.5, 5.5, 8.5], [0, 2, 4, 10]])
def test_removed_right(g: object) -> None:
    assert exercises.check_removed(g).correct


@pytest.mark.parametrize(
    ("g", "expected"),
    [
        (..., "still missing"),
        ([5, 5, 5, 5], "A constant gradient is removed"),
        ([0, 0, 0, 0], "A constant gradient is removed"),
        ([1, -1, 1, -1], "Of a length of 2.000, 0.904 is left"),
        ([-1.07, -0.53, 0, 1.6], "That is close: give exact numbers"),
    ],
)
def test_removed_wrong(g: object, expected: str) -> None:
    verdict = exercises.check_removed(g)
    assert not verdict.correct
    assert expected in verdict.message
