"""The checkers for the labs accept correct answers and recognize common mistakes."""

import sys
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn import functional

from lnbook.chapters.shared.checker import Verdict
from lnbook.labs import formula_and_axes as one
from lnbook.labs import gradient as two
from lnbook.labs import transformer as three
from lnbook.labs.points import award


def layer_norm(change: str = "") -> Callable[..., Any]:
    """LayerNorm in NumPy, with the given mistake, if any."""

    def function(x: Any, gamma: Any, beta: Any, eps: float) -> Any:
        mean, variance = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
        if change == "unbiased":
            variance = x.var(-1, ddof=1, keepdims=True)
        if change == "columns":
            mean, variance = x.mean(0), x.var(0)
        if change == "whole":
            mean, variance = x.mean(), x.var()
        if change in ("no keepdims", "no keepdims in mean"):
            mean = x.mean(-1)
        if change in ("no keepdims", "no keepdims in variance"):
            variance = x.var(-1)
        if change.startswith("no keepdims in square"):
            mean = x.mean(-1)
            variance = ((x - mean) ** 2).mean(-1, keepdims=change.endswith("only"))
        xhat = (x - mean) / np.sqrt(variance + eps)
        if change == "outside":
            xhat = (x - mean) / (np.sqrt(variance) + eps)
        if change == "bare":
            return xhat
        return gamma * (xhat + beta) if change == "beta" else gamma * xhat + beta

    return function


def backward(change: str = "") -> Callable[..., Any]:
    """The backward pass in NumPy, with the given mistake, if any."""

    def function(dy: Any, x: Any, gamma: Any, eps: float) -> Any:
        centered = x - x.mean(-1, keepdims=True)
        r = (centered**2).mean(-1, keepdims=True) + eps
        if change == "unbiased":
            r = x.var(-1, ddof=1, keepdims=True) + eps
        r = r**-0.5
        xhat, g = centered * r, dy if change == "gamma" else gamma * dy
        mean_g = 0 if change == "mean" else g.mean(-1, keepdims=True)
        mean_gx = (g * xhat).mean(-1, keepdims=True)
        if change in ("sum", "sums"):
            mean_gx = (g * xhat).sum(-1, keepdims=True)
        if change in ("sum of g", "sums"):
            mean_g = g.sum(-1, keepdims=True)
        if change == "plus g":
            mean_g = -mean_g
        if change == "plus":
            mean_gx = -mean_gx
        if change == "rows":
            mean_g, mean_gx = g.mean(0), (g * xhat).mean(0)
        dx = r * (g - mean_g - xhat * mean_gx)
        if change == "all rows":
            dx = backward()(dy.T, x.T, gamma[:, None], eps)[0].T
        axis = 1 if change == "features" else 0
        return dx, (dy * xhat).sum(axis), dy.mean(0) if change == "average" else dy.sum(axis)

    return function


def slopes(f: Any, x: Any, h: float, *, down: float = 1.0) -> Any:
    found = np.zeros_like(x)
    for place in np.ndindex(x.shape):
        step = np.zeros_like(x)
        step[place] = h
        found[place] = (f(x + step) - f(x - down * step)) / (h + down * h)
    return found


class OnlyFirstOrder(torch.autograd.Function):
    """Saves the normalized rows, so its second derivatives are wrong."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor, eps: float) -> Tensor:
        centered = x - x.mean(-1, keepdim=True)
        r = (centered.square().mean(-1, keepdim=True) + eps).rsqrt()
        xhat = centered * r
        ctx.save_for_backward(xhat, r, weight)
        return weight * xhat + bias

    @staticmethod
    def backward(ctx: Any, dy: Tensor) -> tuple[Tensor, Tensor, Tensor, None]:
        xhat, r, weight = ctx.saved_tensors
        g = weight * dy
        dx = r * (g - g.mean(-1, keepdim=True) - xhat * (g * xhat).mean(-1, keepdim=True))
        size = xhat.shape[-1]
        return dx, (dy * xhat).reshape(-1, size).sum(0), dy.reshape(-1, size).sum(0), None


def native(x: Tensor, weight: Tensor, bias: Tensor, eps: float) -> Tensor:
    return functional.layer_norm(x, x.shape[-1:], weight, bias, eps)


def pre(x: Any, branches: Any, norms: Any, final: Any) -> Any:
    for branch, norm in zip(branches, norms, strict=True):
        x = x + branch(norm(x))
    return final(x)


def post(x: Any, branches: Any, norms: Any) -> Any:
    for branch, norm in zip(branches, norms, strict=True):
        x = norm(x + branch(x))
    return x


def final_inside(x: Any, branches: Any, norms: Any, final: Any) -> Any:
    for branch, norm in zip(branches, norms, strict=True):
        x = final(x + branch(norm(x)))
    return x


def no_residual(x: Any, branches: Any, norms: Any, final: Any) -> Any:
    for branch, norm in zip(branches, norms, strict=True):
        x = branch(norm(x))
    return final(x)


def post_without_residual(x: Any, branches: Any, norms: Any) -> Any:
    for branch, norm in zip(branches, norms, strict=True):
        x = norm(branch(x))
    return x


def norm_before_sum(x: Any, branches: Any, norms: Any) -> Any:
    for branch, norm in zip(branches, norms, strict=True):
        x = norm(x) + branch(norm(x))
    return x


def average(y: Tensor, mask: Tensor) -> Tensor:
    total = torch.where(mask[..., None], y, 0.0).sum(1)
    return total / mask.sum(1, keepdim=True).clamp(min=1)


def masked_by_product(y: Tensor, mask: Tensor) -> Tensor:
    return (y * mask[..., None]).sum(1) / mask.sum(1, keepdim=True).clamp(min=1)


def in_half(x: Tensor, weight: Tensor, bias: Tensor, eps: float) -> Tensor:
    centered = x - x.mean(-1, keepdim=True)
    return (
        weight * centered * torch.rsqrt((centered * centered).mean(-1, keepdim=True) + eps) + bias
    )


def half_squares(x: Tensor, weight: Tensor, bias: Tensor, eps: float) -> Tensor:
    centered = x.float() - x.float().mean(-1, keepdim=True)
    variance = centered.half().square().float().mean(-1, keepdim=True)
    return (weight.float() * centered * torch.rsqrt(variance + eps) + bias.float()).half()


def in_float32(change: str) -> Callable[..., Tensor]:
    """LayerNorm for float16, computed in float32, with the given mistake, if any."""

    def function(x: Tensor, weight: Tensor, bias: Tensor, eps: float) -> Tensor:
        x, weight, bias = x.float(), weight.float(), bias.float()
        centered = x - x.mean(-1, keepdim=True)
        variance = x.var(-1, correction=change == "unbiased", keepdim=True)
        root = torch.sqrt(variance + eps)
        if change == "no epsilon":
            root = torch.sqrt(variance)
        if change == "outside":
            root = torch.sqrt(variance) + eps
        if change == "larger":
            root = torch.sqrt(torch.clamp(variance, min=eps))
        if change == "tiny":
            root = torch.sqrt(variance + 1e-30)
        if change == "variance":
            root = root.square() + 1.0
        if change == "one pass":
            squares = x.square().mean(-1, keepdim=True)
            root = torch.sqrt(squares - x.mean(-1, keepdim=True).square() + eps)
        xhat = centered / root
        if change == "scaled bias":
            return (weight * (xhat + bias)).half()
        return (weight * xhat + (0.0 if change == "no bias" else bias)).half()

    return function


def changed(layer: Any, x: Any, place: Any) -> Any:
    other = x.copy()
    other[place] += 1.0
    return layer(other) != layer(x)


def own_place(_layer: Any, x: Any, place: Any) -> Any:
    marked = np.zeros(x.shape, dtype=bool)
    marked[place] = True
    return marked


def depends(layer: Any, example: Any, others: Any) -> bool:
    first, second = (layer(torch.cat([example[None], rest]))[0] for rest in others)
    return not torch.allclose(first, second)


RUNS = {"pre": [2.8, 2.9, 3.0], "post": [3.4, 3.5, 3.6]}

RIGHT = [
    one.check_mean(5),
    one.check_variance(9),
    one.check_normalized([-1, -0.333, -0.333, 1.667]),
    one.check_normalized([-0.6, -0.2, -0.2, 1.0], eps=16),
    one.check_layer_norm(layer_norm()),
    one.check_leading_axes(layer_norm()),
    one.check_changed(changed),
    *(one.check_axes(layer, axes) for layer, axes in (("P", "LN"), ("Q", "d"), ("R", "L, D"))),
    one.check_counts("tokens", 512, 512),
    one.check_counts("groups", 80, 128),
    one.check_counts("batch", 256, 512),
    one.check_depends_on_batch(depends),
    one.check_batch_letters("c, a"),
    one.check_axes("R", ("L", "D")),
    two.check_means(1.25, -0.75),
    two.check_dx([0.66, -0.28, -0.28, -0.1]),
    two.check_dgamma([-3, 0, 0, 0]),
    two.check_backward_dx(backward()),
    two.check_backward_parameters(backward()),
    two.check_numeric_gradient(slopes),
    two.check_function(OnlyFirstOrder.apply),
    two.check_removed([12, 14, 14, 20]),
    two.check_removed([1002, 1004, 1004, 1010]),
    two.check_removed([-1, -0.333, -0.333, 1.667]),
    two.check_removed([0.333, 1, 1, 3]),
    two.check_ranks(8, 9),
    two.check_length(6),
    three.check_pre_stack(pre),
    three.check_post_stack(post),
    three.check_growth(25, 1),
    three.check_runs(RUNS),
    three.check_conclusion(RUNS, "pre", 0.6),
    three.check_average(average),
    three.check_padding(["c", "b"]),
    three.check_overflow(256),
    three.check_underflow(8),
    three.check_half(lambda *given: native(*(v.float() for v in given[:3]), given[3]).half()),
    three.check_half(in_float32("")),
    three.check_half(lambda x, *given: functional.layer_norm(x, (32,), *given)),
]


@pytest.mark.parametrize("verdict", RIGHT, ids=lambda verdict: verdict.message[:40])
def test_a_right_answer_passes(verdict: Verdict) -> None:
    assert verdict.correct, verdict.message


WRONG = [
    (one.check_mean(6), "midpoint between"),
    (one.check_variance(34), "mean of the squares"),
    (one.check_normalized(None), "still missing"),
    (one.check_normalized([-3 / 19, -1 / 19, -1 / 19, 5 / 19], eps=16), "outside the square root"),
    (one.check_normalized([-1, -1 / 3, -1 / 3, 5 / 3], eps=16), "left out epsilon"),
    (one.check_layer_norm(layer_norm("unbiased")), "H - 1"),
    (one.check_layer_norm(layer_norm("columns")), "each column"),
    (one.check_layer_norm(layer_norm("whole")), "one mean of the whole array"),
    (one.check_leading_axes(layer_norm("whole")), "one mean of the whole array"),
    (one.check_layer_norm(layer_norm("no keepdims")), "line up with the columns"),
    (one.check_layer_norm(layer_norm("no keepdims in mean")), "line up with the columns"),
    (one.check_layer_norm(layer_norm("no keepdims in variance")), "line up with the columns"),
    (one.check_layer_norm(layer_norm("no keepdims in squares")), "line up with the columns"),
    (one.check_layer_norm(layer_norm("no keepdims in squares of mean only")), "keepdims=True."),
    (one.check_layer_norm(layer_norm("bare")), "leaves out gamma and beta"),
    (one.check_layer_norm(layer_norm("outside")), "outside the square root"),
    (one.check_layer_norm(layer_norm("beta")), "multiplies beta by gamma"),
    (one.check_changed(own_place), "miss some outputs"),
    (one.check_axes("P", "N"), "along L change"),
    (one.check_axes("P", "X"), "name axes by the letters"),
    (one.check_axes("P", 3), "name axes by the letters"),
    (one.check_axes("Q", "LD"), "along L changes"),
    (one.check_counts("groups", 80, 64), "Count gamma and beta"),
    (one.check_depends_on_batch(lambda *_: False), "in training mode, the answer is True"),
    (one.check_depends_on_batch(lambda *_: 1.5), "True or False"),
    (one.check_batch_letters("abc"), "(b) is false"),
    (one.check_batch_letters("c"), "(a) is true: in evaluation mode, it uses the running"),
    (one.check_batch_letters("a"), "(c) is true: each feature minus its own mean would be 0"),
    (two.check_means(1.25, 0.75), "sign is flipped"),
    (two.check_dx([1, 0, 0, 0]), "leaves out both means"),
    (two.check_dgamma([5, 0, 0, 0]), "gradient for beta"),
    (two.check_backward_dx(backward("gamma")), "doesn't use gamma"),
    (two.check_backward_dx(backward("mean")), "mean of g is missing"),
    (two.check_backward_dx(backward("unbiased")), "dx divides the squares by H - 1"),
    (two.check_backward_dx(backward("sum")), "the sum of g * xhat, not its mean"),
    (two.check_backward_dx(backward("sum of g")), "the sum of g, not its mean"),
    (two.check_backward_dx(backward("plus g")), "the mean of g has the wrong sign"),
    (two.check_backward_dx(backward("sums")), "two sums instead of two means"),
    (two.check_backward_dx(backward("plus")), "normalized row has the wrong sign"),
    (two.check_backward_dx(backward("rows")), "the means with g are taken over the rows"),
    (two.check_backward_dx(backward("all rows")), "all means over the rows"),
    (two.check_backward_parameters(backward("unbiased")), "dgamma divides the squares by H - 1"),
    (two.check_backward_parameters(backward("features")), "summed over the features"),
    (two.check_backward_parameters(backward("average")), "dbeta is a mean"),
    (two.check_numeric_gradient(lambda f, x, h: slopes(f, x, h, down=0.0)), "one direction only"),
    (two.check_function(native), "doesn't come from an autograd function"),
    (two.check_second_order(OnlyFirstOrder.apply), "second derivatives are wrong"),
    (two.check_removed([1, 0, 0, 0]), "Something is left"),
    (two.check_removed([2, 4, 4, 9]), "Something is left"),
    (two.check_removed([1002, 1004, 1004, 1009]), "Something is left"),
    (two.check_removed([1, 1, 1, 1.001]), "Something is left"),
    (two.check_removed([0, 0, 0, 0]), "constant gradient"),
    (two.check_ranks(), "Your rank without epsilon is still missing."),
    (two.check_ranks(8), "Your rank with epsilon is still missing."),
    (two.check_ranks(8, 10), "one direction is lost"),
    (two.check_length(48**0.5), "epsilon 0"),
    (three.check_pre_stack(lambda x, b, n, final: pre(x, b, n, lambda y: y)), "final norm is"),
    (three.check_pre_stack(lambda x, b, n, final: post(x, b, n)), "That's Post-LN"),
    (three.check_post_stack(lambda x, b, n: pre(x, b, n, lambda y: y)), "That's Pre-LN"),
    (three.check_pre_stack(no_residual), "The residual is missing."),
    (three.check_pre_stack(final_inside), "The final norm comes once"),
    (three.check_post_stack(post_without_residual), "The residual is missing."),
    (three.check_post_stack(norm_before_sum), "Normalize the sum itself."),
    (three.check_post_stack(lambda x, *_: x), "Check the residual sum"),
    (three.check_growth(25, 25), "post: the last step"),
    (three.check_runs({"pre": [1, 1, 2], "post": [1, 2, 3]}), "same loss"),
    (three.check_runs({"pre": RUNS["pre"], "post": RUNS["pre"]}), "use one block for both?"),
    (three.check_runs({"pre": [1, 2], "post": [1, 2, 3]}), "3 runs"),
    (three.check_conclusion(RUNS, "post", 0.6), '"pre" is lower'),
    (three.check_conclusion(RUNS, "pre", 0.7), "isn't the difference"),
    (three.check_average(lambda y, mask: y.mean(1)), "padding included"),
    (three.check_average(masked_by_product), "NaN times 0"),
    (three.check_average(lambda y, mask: average(y, ~mask)), "mask is True for real tokens"),
    (three.check_padding("abc"), "(a) is false"),
    (three.check_overflow(100), "100 squared is 10000, which isn't too large for float16."),
    (three.check_overflow(512), "smaller number overflows"),
    (three.check_underflow(7), "still positive"),
    (three.check_underflow(-8), "without its sign"),
    (three.check_half(half_squares), "entries around 300, the output is far off"),
    (three.check_half(in_half), "last digits"),
    (three.check_half(in_float32("unbiased")), "H - 1"),
    (three.check_half(in_float32("no bias")), "leaves out the bias"),
    (three.check_half(in_float32("scaled bias")), "multiplies the bias by the weight"),
    (three.check_half(in_float32("variance")), "ordinary rows, the output is far off. Check"),
    (three.check_half(in_float32("no epsilon")), "constant row, the variance is 0"),
    (three.check_half(in_float32("outside")), "epsilon outside the square root"),
    (three.check_half(in_float32("tiny")), "leaves out epsilon"),
    (three.check_half(in_float32("one pass")), "Subtract the mean before you square"),
    (three.check_half(in_float32("larger")), "Where do you add epsilon?"),
    (three.check_half(lambda x, *_: x.float()), "should be float16"),
]  # fmt: skip


@pytest.mark.parametrize(("verdict", "told"), WRONG, ids=[told for _, told in WRONG])
def test_a_mistake_is_recognized(verdict: Verdict, told: str) -> None:
    assert not verdict.correct
    assert told in verdict.message


# Correct answers that give a warning, which would cost the student all the points in a check cell.


def half_with_a_warning(x: Tensor, weight: Tensor, bias: Tensor, eps: float) -> Tensor:
    x, weight, bias = (torch.tensor(one, dtype=torch.float32) for one in (x, weight, bias))
    return native(x, weight, bias, eps).half()


def average_with_a_warning(y: Tensor, mask: Tensor) -> Any:
    real = np.where(mask[..., None], y, np.nan)
    return np.nan_to_num(np.nanmean(real, axis=1))


class WithAWarning(torch.autograd.Function):
    """Saves only inputs, and warns in both passes."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor, eps: float) -> Tensor:
        warnings.warn("forward", stacklevel=1)
        ctx.save_for_backward(x, weight, bias)
        ctx.eps = eps
        return native(x, weight, bias, eps)

    @staticmethod
    def backward(ctx: Any, dy: Tensor) -> Any:
        warnings.warn("backward", stacklevel=1)
        with torch.enable_grad():
            y = native(*ctx.saved_tensors, ctx.eps)
            given = torch.autograd.grad(y, ctx.saved_tensors, dy, create_graph=True)
        return *given, None


@pytest.mark.parametrize(
    ("check", "answer"),
    [
        (three.check_half, half_with_a_warning),
        (three.check_average, average_with_a_warning),
        (two.check_second_order, WithAWarning.apply),
    ],
)
def test_a_warning_of_a_right_answer_is_dropped(
    check: Callable[..., Verdict], answer: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = lambda message, *_: print(message, file=sys.stderr)
        assert check(answer).correct
    assert capsys.readouterr().err == ""


def test_a_gap_within_the_spread_is_no_reason_to_decide() -> None:
    noisy = {"pre": [2.0, 3.0, 4.0], "post": [2.1, 3.1, 4.1]}
    verdict = three.check_conclusion(noisy, "pre", 0.1)
    assert verdict.correct
    assert "more seeds" in verdict.message


def test_no_points_for_nothing() -> None:
    with pytest.raises(ValueError, match="positive"):
        award(0, Verdict(True, ""))
