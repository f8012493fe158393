"""The checkers: right answers pass, and each known mistake is called by its name."""

import pytest
import torch

from lnbook.chapters.gradient.autograd_function import exercises


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
