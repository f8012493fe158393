r"""Checkers for lab 2: the gradient by hand, in NumPy, as an autograd function, and its geometry.

The formula is the one from the chapter on the gradient, with :math:`g = \gamma \, \partial
\mathcal{L} / \partial y` and :math:`r = 1 / \sqrt{\sigma^2 + \epsilon}`:

.. math::
    \frac{\partial \mathcal{L}}{\partial x} =
    r \left( g - \overline{g} - \hat{x} \, \overline{g \hat{x}} \right)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor
from torch.nn import functional

from lnbook import reference
from lnbook.chapters.shared.backward_mistakes import dx_of, dx_with_r_without_eps
from lnbook.chapters.shared.checker import (
    NotYet,
    as_array,
    as_count,
    checker,
    judge,
    run_answer,
    running,
)

__all__ = [
    "check_backward_dx",
    "check_backward_parameters",
    "check_dgamma",
    "check_dx",
    "check_function",
    "check_length",
    "check_means",
    "check_numeric_gradient",
    "check_ranks",
    "check_removed",
    "check_second_order",
]

Array = NDArray[np.float64]
Backward = Callable[[Array, Array, Array, float], tuple[ArrayLike, ArrayLike, ArrayLike]]
Apply = Callable[[Tensor, Tensor, Tensor, float], Tensor]

ROW, EPS = np.array([[2.0, 4.0, 4.0, 10.0]]), 16.0
DY = np.array([[5.0, 0.0, 0.0, 0.0]])
XHAT = (ROW - 5.0) / 5.0


@checker
def check_means(mean_g: Any = None, mean_gx: Any = None) -> str:
    r"""Check the two means in the gradient for the row (2, 4, 4, 10).

    Epsilon is 16, gamma is 1, and :math:`\partial \mathcal{L} / \partial y` is (5, 0, 0, 0).

    Args:
        mean_g: the mean of g.
        mean_gx: the mean of g times the normalized row.

    Example:
        >>> check_means(5, -0.75)
        Not yet. Your mean of g is its sum. Divide by 4.
    """
    mistakes: dict[str, ArrayLike] = {"Your mean of g is its sum. Divide by 4.": 5.0}
    judge(
        as_array(mean_g, (), "Your mean of g"),
        1.25,
        mistakes,
        otherwise="Your mean of g is wrong. Since gamma is 1, g is the upstream gradient.",
    )
    judge(
        as_array(mean_gx, (), "Your mean of g times the normalized row"),
        -0.75,
        {
            "Your second mean is a sum. Divide by 4.": -3.0,
            "In your second mean, the sign is flipped.": 0.75,
            "In your second mean, epsilon is missing from the normalized row.": -1.25,
        },
        otherwise="Multiply g by the normalized row, feature by feature, and take the mean.",
    )
    return "The means are 5/4 and -3/4."


@checker
def check_dx(dx: Any = None) -> str:
    r"""Check :math:`\partial \mathcal{L} / \partial x` for the row and gradient of `check_means`.

    Args:
        dx: four numbers.

    Example:
        >>> check_dx([3.3, -1.4, -1.4, -0.5])
        Not yet. The factor r = 1/5 is missing.
    """
    right = dx_of(DY, ROW, EPS)[0]
    judge(
        as_array(dx, (4,), "Your gradient"),
        right,
        {
            "The factor r = 1/5 is missing.": 5 * right,
            "That's r times g. It leaves out both means.": DY[0] / 5,
            "The mean of g is missing.": dx_of(DY, ROW, EPS, mean_term=0.0)[0],
            "The term with the normalized row is missing.": dx_of(DY, ROW, EPS, xhat_term=0.0)[0],
            "The term with the normalized row has the wrong sign.": dx_of(
                DY, ROW, EPS, xhat_term=-1.0
            )[0],
            "You multiplied instead of dividing: r is 1/5.": 25 * right,
            "Epsilon is missing.": dx_of(DY, ROW, 0.0)[0],
        },
        otherwise="Subtract both terms from g, and multiply by r. The result sums to 0.",
        tolerance=6e-4,
    )
    return "The entries sum to 0, as they always do."


@checker
def check_dgamma(dgamma: Any = None) -> str:
    r"""Check :math:`\partial \mathcal{L} / \partial \gamma` for the row of `check_means`.

    Args:
        dgamma: four numbers.

    Example:
        >>> check_dgamma([5, 0, 0, 0])
        Not yet. That's the gradient for beta. For gamma, multiply by the normalized row.
    """
    judge(
        as_array(dgamma, (4,), "Your gradient with respect to gamma"),
        (DY * XHAT)[0],
        {
            "That's the gradient for beta. For gamma, multiply by the normalized row.": (DY[0]),
            "Use the normalized row, not the row itself.": (DY * ROW)[0],
            "Epsilon is missing from the normalized row.": (DY * (ROW - 5.0) / 3.0)[0],
            "Use the normalized row, divided by 5, not only centered.": (DY * (ROW - 5.0))[0],
        },
        otherwise="Multiply the upstream gradient by the normalized row, feature by feature.",
        tolerance=6e-4,
    )
    return "With one row, there's nothing to sum."


def _backward_case(function: Backward) -> tuple[list[Array], Array, Array, Array]:
    """What a backward pass returns for random rows, and the rows it was given."""
    rng = np.random.default_rng(1986)
    dy, x = rng.normal(size=(4, 6)), rng.normal(1.0, 2.0, (4, 6))
    gamma = rng.normal(1.0, 0.5, 6)
    given = run_answer(function, dy, x, gamma, 0.3, context="x had the shape (4, 6)")
    if not isinstance(given, tuple | list) or len(given) != 3:
        raise NotYet("Your function should return three arrays: dx, dgamma and dbeta.")
    return list(given), dy, x, gamma


def _dx_with_means_over_rows(g: Array, x: Array, eps: float) -> Array:
    r = (x.var(-1, keepdims=True) + eps) ** -0.5
    xhat = (x - x.mean(-1, keepdims=True)) * r
    dx: Array = r * (g - g.mean(0) - xhat * (g * xhat).mean(0))
    return dx


def _dx_unbiased(g: Array, x: Array, eps: float) -> Array:
    r = (x.var(-1, ddof=1, keepdims=True) + eps) ** -0.5
    xhat = (x - x.mean(-1, keepdims=True)) * r
    mean_g, mean_gx = g.mean(-1, keepdims=True), (g * xhat).mean(-1, keepdims=True)
    dx: Array = r * (g - mean_g - xhat * mean_gx)
    return dx


@checker
def check_backward_dx(function: Backward) -> str:
    r"""Check the first result of a backward pass, :math:`\partial \mathcal{L} / \partial x`.

    Args:
        function: takes dy and x of shape `(N, H)`, gamma of shape `(H,)` and epsilon; returns dx,
            dgamma and dbeta.

    Example:
        >>> check_backward_dx(lambda dy, x, gamma, eps: (dy * gamma, None, None))
        Not yet. dx is wrong. From g = gamma * dy, subtract its mean and xhat * mean(g * xhat).
    """
    (dx, *_), dy, x, gamma = _backward_case(function)
    g, count = dy * gamma, float(x.shape[-1])
    judge(
        as_array(dx, x.shape, "Your dx"),
        dx_of(g, x, 0.3),
        {
            "dx doesn't use gamma.": dx_of(dy, x, 0.3),
            "In dx, the mean of g is missing.": dx_of(g, x, 0.3, mean_term=0.0),
            "In dx, the term with the normalized row is missing.": dx_of(g, x, 0.3, xhat_term=0.0),
            "Your dx uses the sum of g, not its mean. Divide by H.": dx_of(
                g, x, 0.3, mean_term=count
            ),
            "Your dx uses the sum of g * xhat, not its mean. Divide by H.": dx_of(
                g, x, 0.3, xhat_term=count
            ),
            "Your dx uses two sums instead of two means. Divide by H.": dx_of(
                g, x, 0.3, mean_term=count, xhat_term=count
            ),
            "In dx, the mean of g has the wrong sign.": dx_of(g, x, 0.3, mean_term=-1.0),
            "In dx, the term with the normalized row has the wrong sign.": dx_of(
                g, x, 0.3, xhat_term=-1.0
            ),
            "In dx, the means with g are taken over the rows. Take them over the features.": (
                _dx_with_means_over_rows(g, x, 0.3)
            ),
            "dx takes all means over the rows. Take them over the features.": dx_of(
                g.T, x.T, 0.3
            ).T,
            "dx divides the squares by H - 1. LayerNorm divides by H.": _dx_unbiased(g, x, 0.3),
            "In dx, both means are missing.": dx_of(g, x, 0.3, mean_term=0.0, xhat_term=0.0),
            "In dx, the factor r is missing.": dx_of(g, x, 0.3, power=0.0),
            "In dx, r leaves out epsilon.": dx_with_r_without_eps(g, x, 0.3),
            "dx leaves out epsilon.": dx_of(g, x, 0.0),
            "You multiplied dx by gamma at the end. Multiply dy by gamma first.": gamma
            * dx_of(dy, x, 0.3),
        },
        otherwise="dx is wrong. From g = gamma * dy, subtract its mean and xhat * mean(g * xhat).",
    )
    return "dx is right for random rows, gradients and gamma."


@checker
def check_backward_parameters(function: Backward) -> str:
    """Check the second and third results of a backward pass, dgamma and dbeta.

    Args:
        function: as for `check_backward_dx`.

    Example:
        >>> check_backward_parameters(lambda dy, x, gamma, eps: (None, dy.sum(0), dy.sum(1)))
        Not yet. dbeta is summed over the features. Sum over the rows.
    """
    (_, dgamma, dbeta), dy, x, gamma = _backward_case(function)
    xhat = reference.layer_norm(x, 6, eps=0.3)
    centered = x - x.mean(-1, keepdims=True)
    _, count = x.shape
    for name, given in (("dgamma", dgamma), ("dbeta", dbeta)):
        if np.shape(given) == (len(x),):
            raise NotYet(f"{name} is summed over the features. Sum over the rows.")
        if np.shape(given) == x.shape:
            raise NotYet(f"{name} isn't summed over the rows.")
    judge(
        as_array(dgamma, (count,), "Your dgamma"),
        (dy * xhat).sum(0),
        {
            "dgamma is a mean. Sum over the rows.": (dy * xhat).mean(0),
            "dgamma uses g = gamma * dy. Use dy.": (gamma * dy * xhat).sum(0),
            "dgamma uses x. Use the normalized rows.": (dy * x).sum(0),
            "dgamma divides the squares by H - 1. LayerNorm divides by H.": (
                dy * centered / np.sqrt(x.var(-1, ddof=1, keepdims=True) + 0.3)
            ).sum(0),
        },
        otherwise="dgamma is the sum of dy times the normalized row, over the rows.",
    )
    judge(
        as_array(dbeta, (count,), "Your dbeta"),
        dy.sum(0),
        {
            "dbeta is a mean. Sum over the rows.": dy.mean(0),
            "dbeta uses g = gamma * dy. Use dy.": (gamma * dy).sum(0),
        },
        otherwise="dbeta is the sum of dy over the rows.",
    )
    return "dgamma and dbeta have one entry per feature, summed over the rows."


@checker
def check_numeric_gradient(
    function: Callable[[Callable[[Array], float], Array, float], ArrayLike],
) -> str:
    """Check a function that computes a gradient with central differences.

    Args:
        function: takes a function of an array that returns a number, the array, and the step h;
            returns the array of slopes.

    Example:
        >>> check_numeric_gradient(lambda f, x, h: 0 * x)
        Not yet. The slopes are wrong. Change one entry at a time, up by h and down by h.
    """
    rng = np.random.default_rng(11)
    x, weights = rng.normal(size=(2, 3)), rng.normal(size=(2, 3))

    def cubes(values: Array) -> float:
        return float((weights * np.asarray(values) ** 3).sum())

    h = 0.125
    context = "x had the shape (2, 3)"
    given = run_answer(lambda x: function(cubes, x, h), x, context=context)
    ups = weights * ((x + h) ** 3 - x**3) / h
    downs = weights * (x**3 - (x - h) ** 3) / h
    central = (ups + downs) / 2
    judge(
        as_array(given, x.shape, "What your function returns"),
        central,
        {
            "That's a difference in one direction only. Go h up and h down.": ups,
            "That's a difference downward only. Go h up and h down.": downs,
            "You go h up and h down, so divide by 2h.": 2 * central,
            "Divide the difference by 2h.": 2 * h * central,
            "The sign is flipped.": -central,
        },
        otherwise="The slopes are wrong. Change one entry at a time, up by h and down by h.",
    )
    return "The error of a central difference shrinks with h squared."


def _tensors(shape: tuple[int, ...]) -> tuple[Tensor, Tensor, Tensor]:
    rng = np.random.default_rng(2017)
    values = (
        rng.normal(1.0, 2.0, shape),
        rng.normal(1.0, 0.5, shape[-1]),
        rng.normal(size=shape[-1]),
    )
    x, weight, bias = (torch.tensor(one, requires_grad=True) for one in values)
    return x, weight, bias


def _is_custom(node: Any) -> bool:
    if isinstance(node, torch.autograd.function.BackwardCFunction):
        return True
    return any(_is_custom(parent) for parent, _ in getattr(node, "next_functions", ()))


@checker
def check_function(apply: Apply) -> str:
    """Check LayerNorm as an autograd function: its output, and its gradients with gradcheck.

    Args:
        apply: takes x with any number of leading axes, weight, bias and epsilon.

    Example:
        >>> check_function(lambda x, weight, bias, eps: x)
        Not yet. For x of shape (3, 5), the output isn't LayerNorm of the last axis.
    """
    for shape in ((3, 5), (2, 3, 4), (6,)):
        x, weight, bias = _tensors(shape)
        where = f"For x of shape {shape}"
        with running(context=f"x had the shape {shape}"):
            y = apply(x, weight, bias, 0.25)
        if not isinstance(y, Tensor) or y.shape != x.shape:
            raise NotYet(f"{where}, the function should return a tensor of that shape.")
        if not torch.allclose(y, functional.layer_norm(x, shape[-1:], weight, bias, 0.25)):
            raise NotYet(f"{where}, the output isn't LayerNorm of the last axis.")
        if not _is_custom(y.grad_fn):
            raise NotYet("The output doesn't come from an autograd function. Return it by apply.")
        dy = torch.tensor(np.random.default_rng(1).normal(size=shape))
        wanted = torch.autograd.grad(
            functional.layer_norm(x, shape[-1:], weight, bias, 0.25), (x, weight, bias), dy
        )
        with running(what="Your backward pass", context=f"x had the shape {shape}"):
            given = torch.autograd.grad(y, (x, weight, bias), dy, allow_unused=True)
        for name, one, other in zip(("x", "weight", "bias"), given, wanted, strict=True):
            if one is None or one.shape != other.shape or not torch.allclose(one, other):
                raise NotYet(f"{where}, the gradient with respect to {name} is wrong.")
        with running(what="Your backward pass", context=f"in gradcheck, x had the shape {shape}"):
            torch.autograd.gradcheck(
                lambda x, weight, bias: apply(x, weight, bias, 0.25), (x, weight, bias)
            )
    return "It passes gradcheck for vectors, matrices and sequences."


@checker
def check_second_order(apply: Apply) -> str:
    """Check an autograd function of LayerNorm with gradgradcheck.

    Args:
        apply: as for `check_function`.

    Example:
        >>> check_second_order(lambda x, weight, bias, eps: x)
        Not yet. The output doesn't come from an autograd function. Return it by apply.
    """
    x, weight, bias = _tensors((2, 4))
    with running():
        y = apply(x, weight, bias, 0.25)
    if not isinstance(y, Tensor) or not _is_custom(y.grad_fn):
        raise NotYet("The output doesn't come from an autograd function. Return it by apply.")
    try:
        with running():
            torch.autograd.gradgradcheck(
                lambda x, weight, bias: apply(x, weight, bias, 0.25), (x, weight, bias)
            )
    except NotYet as error:
        told = "The second derivatives are wrong, or there are none."
        hint = "Save only inputs for backward, and recompute everything else there with tensors."
        raise NotYet(f"{told} {hint}") from error
    return "It passes gradgradcheck, too."


@checker
def check_removed(g: Any = None) -> str:
    r"""Check a gradient that LayerNorm of (2, 4, 4, 10) removes, with epsilon 0 and gamma 1.

    It must have different entries: a constant gradient is removed for every row.

    Args:
        g: four numbers; three correct decimal places are enough.

    Example:
        >>> check_removed([1, 1, 1, 1])
        Not yet. A constant gradient disappears for every row. Find one that depends on this row.
    """
    answer = as_array(g, (4,), "Your gradient")
    spread = float(np.ptp(answer))
    if spread <= 1e-6 * np.abs(answer).max():
        told = "A constant gradient disappears for every row. Find one that depends on this row."
        raise NotYet(told)
    left = dx_of((answer - answer.mean())[None] / spread, ROW, 0.0)[0]
    if np.abs(left).max() > 6e-4:
        raise NotYet(
            "Something is left of it. LayerNorm removes two directions: the constant rows, and one "
            "that depends on x."
        )
    return "It's a sum of a constant and a multiple of the row."


@checker
def check_ranks(without: Any = None, with_eps: Any = None) -> str:
    """Check the rank of LayerNorm's Jacobian for a row of 10 different features, with gamma 1.

    Args:
        without: the rank with epsilon 0.
        with_eps: the rank with a positive epsilon.

    Example:
        >>> check_ranks(9, 9)
        Not yet. With epsilon 0, two directions are lost, not one.
    """
    zero = as_count(without, "Your rank without epsilon")
    positive = as_count(with_eps, "Your rank with epsilon")
    if zero != 8:
        hints = {9: "two directions are lost, not one.", 10: "some directions are lost."}
        raise NotYet(f"With epsilon 0, {hints.get(zero, 'count the directions that are lost.')}")
    if positive != 9:
        hint = "one direction is lost. The other is only shrunk."
        raise NotYet(f"With a positive epsilon, {hint}")
    return "Epsilon brings back the direction of the normalized row, scaled down."


@checker
def check_length(length: Any = None) -> str:
    """Check the length of a normalized row of 48 features with variance 3 and epsilon 1.

    Args:
        length: one number.

    Example:
        >>> check_length(6.928)
        Not yet. That's the square root of 48, the length with epsilon 0.
    """
    judge(
        as_array(length, (), "Your length"),
        6.0,
        {
            "That's the square root of 48, the length with epsilon 0.": 48**0.5,
            "That's the square of the length.": 36.0,
            "That's the standard deviation of the normalized row.": 0.75**0.5,
        },
        otherwise="The squares of the normalized row have the mean 3 / (3 + 1).",
        tolerance=6e-4,
    )
    return "Every normalized row is on or inside a sphere of radius root H."
