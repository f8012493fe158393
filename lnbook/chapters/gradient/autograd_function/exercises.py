"""Checkers for the chapter on the autograd function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from lnbook import reference
from lnbook.chapters.shared.checker import NotYet, as_array, checker, judge, run_answer

__all__ = ["check_blind_gradient", "check_gradient_of_squares", "check_rms_norm_function"]

BLIND_ROW = (1.0, 2.0, 3.0, 6.0)


@checker
def check_blind_gradient(g: Any = None) -> str:
    r"""Check an upstream gradient that hides one mistake and reveals another.

    For the row [1, 2, 3, 6] with :math:`\gamma = 1`, it must give the right
    :math:`\partial \mathcal{L} / \partial x` without the term :math:`\overline{g}`, but not
    without the term with :math:`\hat{x}`.

    Args:
        g: four numbers.

    Example:
        >>> check_blind_gradient([1.0, 1.0, 1.0, 1.0])
        Not yet. The mean of your g is 1, so a missing mean term shows. Make it 0.
    """
    answer = as_array(g, (4,), "Your g")
    if not answer.any():
        raise NotYet("With g = 0 every gradient is 0, and no mistake shows.")
    size, mean = np.abs(answer).max(), answer.mean()
    if abs(mean) > 1e-6 * size:  # the numbers may be rounded to float32
        told = f"The mean of your g is {mean:.4g}, so a missing mean term shows."
        raise NotYet(f"{told} Make it 0.")
    xhat = reference.layer_norm(BLIND_ROW, 4)
    if abs((answer * xhat).mean()) < 1e-6 * size:
        told = "The mean of g * xhat is 0 as well, so a missing xhat term goes unnoticed too."
        raise NotYet(told)
    return "The mean of g is 0, but the mean of g * xhat isn't, so only a missing xhat term shows."


@checker
def check_gradient_of_squares(function: Callable[..., Any]) -> str:
    r"""Check a formula for the gradient of the sum of squares of a LayerNorm.

    Args:
        function: takes :math:`\hat{x}` (an array), the variance and epsilon; returns an array.

    Example:
        >>> check_gradient_of_squares(lambda xhat, variance, eps: 0 * xhat)
        Not yet. It's 0 only if eps is 0: the mean of xhat ** 2 is less than 1.
    """
    for row, eps in (((1.0, 2.0, 3.0, 6.0), 0.5), ((0.0, 0.0, 4.0, 4.0), 12.0)):
        v, xhat = float(np.var(row)), reference.layer_norm(row, 4, eps=eps)
        context = f"for variance={v}, eps={eps}"
        r = (v + eps) ** -0.5
        right = 2 * r * eps / (v + eps) * xhat
        judge(
            as_array(
                run_answer(function, xhat, v, eps, context=context), (4,), "What your formula gives"
            ),
            right,
            {
                "It's 0 only if eps is 0: the mean of xhat ** 2 is less than 1.": 0 * xhat,
                "The derivative of a square has a factor of 2.": right / 2,
                "The factor r is missing.": right / r,
                "That's r * g. Subtract xhat times the mean of g * xhat.": 2 * r * xhat,
                "That's the part that is subtracted. What's left?": 2 * r * v / (v + eps) * xhat,
                "The sign is flipped.": -right,
            },
            otherwise=f"The formula gives the wrong numbers {context}. Start from g = 2 * xhat.",
        )
    return "If eps is small, so is this gradient, and a test with this loss can't see much."


Apply = Callable[[Tensor, tuple[int, ...], Tensor | None, float], Tensor]

EPS = 0.25
CASES = (
    ((3, 4), (4,), True),
    ((4,), (4,), True),
    ((2, 3, 2), (3, 2), True),
    ((2, 2, 3), (3,), True),
    ((3, 4), (4,), False),
)


@checker
def check_rms_norm_function(function: Apply) -> str:
    r"""Check RMSNorm as a custom autograd function for any `normalized_shape`.

    Calls `function(x, normalized_shape, weight, eps)` in float64, with and without a weight, and
    runs PyTorch's `gradcheck` and `gradgradcheck`.

    Args:
        function: returns :math:`\gamma x / \sqrt{\operatorname{mean}(x^2) + \epsilon}`.

    Example:
        >>> check_rms_norm_function(lambda x, shape, weight, eps: None)
        Not yet. Your function doesn't return a tensor. Did you forget `return`?
    """
    rng = np.random.default_rng(1910)
    for shape, normalized_shape, affine in CASES:
        x = torch.tensor(rng.normal(0.5, 1.0, shape), requires_grad=True)
        weight = torch.tensor(rng.normal(1.0, 0.5, normalized_shape), requires_grad=True)
        dy = torch.tensor(rng.normal(size=shape))
        where = (
            f"For x of shape {shape}, normalized_shape={normalized_shape} and "
            f"{'a' if affine else 'no'} weight"
        )
        try:
            _check_case(function, x, normalized_shape, weight if affine else None, dy, where)
        except NotYet:
            raise
        except Exception as error:
            raise NotYet(f"{where}, it raised {_described(error)}") from error
    return "It passes gradcheck and gradgradcheck for every shape we tried."


def _described(error: Exception) -> str:
    """Shorten an error message: PyTorch's have many lines."""
    told = str(error).splitlines()[0] if str(error) else type(error).__name__
    hint = ""
    if "invalid gradient" in told or "incorrect number of gradients" in told:
        hint = (
            " Return one gradient for each argument of forward, with the shape of that argument, "
            "and None for arguments that aren't tensors. The gradient for the weight is summed "
            "over the leading axes, never over the features."
        )
    return f"{type(error).__name__}: {told}{hint}"


def _check_case(
    function: Apply,
    x: Tensor,
    shape: tuple[int, ...],
    weight: Tensor | None,
    dy: Tensor,
    where: str,
) -> None:
    y = function(x, shape, weight, EPS)
    _check_output(y, x, shape, weight, where)
    inputs = (x,) if weight is None else (x, weight)
    given = torch.autograd.grad(y, inputs, dy, allow_unused=True)
    expected = torch.autograd.grad(_rms_norm(x, shape, weight), inputs, dy)
    for name, one, other in zip(("x", "weight"), given, expected, strict=False):
        if one is None:
            raise NotYet(f"{where}: backward returns None for {name}.")
        if not _same(one, other):
            raise NotYet(f"{where}: the gradient for {name} is wrong.")

    def of_tensors(x: Tensor, weight: Tensor | None = None) -> Tensor:
        return function(x, shape, weight, EPS)

    if not torch.autograd.gradcheck(of_tensors, inputs, raise_exception=False):
        raise NotYet(f"{where}: gradcheck fails.")
    if not torch.autograd.gradgradcheck(of_tensors, inputs, raise_exception=False):
        raise NotYet(
            "It passes gradcheck, but not gradgradcheck. Save inputs only, and recompute the rest "
            "in backward: if a saved tensor is neither an input nor an output, autograd treats it "
            "as a constant."
        )


def _check_output(
    y: Any, x: Tensor, shape: tuple[int, ...], weight: Tensor | None, where: str
) -> None:
    if not isinstance(y, Tensor):
        raise NotYet("Your function doesn't return a tensor. Did you forget `return`?")
    if not _same(y, _rms_norm(x, shape, weight)):
        if _same(y, _rms_norm(x, shape[-1:], weight)):
            raise NotYet(
                "It normalizes the last dimension only. If normalized_shape has several, take the "
                "mean over all of them."
            )
        centered = x - x.mean(tuple(range(-len(shape), 0)), keepdim=True)
        if _same(y, _rms_norm(centered, shape, weight)):
            raise NotYet("It subtracts the mean. RMSNorm doesn't.")
        raise NotYet(f"{where}: the output isn't what RMSNorm returns.")
    if not _has_custom_node(y.grad_fn):
        told = "The output doesn't come from a torch.autograd.Function."
        raise NotYet(f"{told} Return YourFunction.apply(...).")


def _rms_norm(x: Tensor, shape: tuple[int, ...], weight: Tensor | None) -> Tensor:
    xhat = torch.nn.functional.rms_norm(x, shape, eps=EPS)
    return xhat if weight is None else xhat * weight


def _same(one: Tensor, other: Tensor) -> bool:
    return one.shape == other.shape and torch.allclose(one, other, rtol=0.0, atol=1e-9)


def _has_custom_node(node: Any) -> bool:
    """Tell whether a graph contains a custom autograd function."""
    if isinstance(node, torch.autograd.function.BackwardCFunction):
        return True
    return any(_has_custom_node(parent) for parent, _ in getattr(node, "next_functions", ()))
