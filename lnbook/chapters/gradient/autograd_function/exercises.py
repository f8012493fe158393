"""Checkers of the chapter on the autograd function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from lnbook import reference
from lnbook.chapters.shared.backward_mistakes import TOLERANCE
from lnbook.chapters.shared.checker import Verdict, as_array

__all__ = ["check_blind_gradient", "check_rms_norm_function"]


BLIND_ROW = (1.0, 2.0, 3.0, 6.0)


def check_blind_gradient(g: Any = None) -> Verdict:
    r"""Check an upstream gradient that overlooks one mistake and catches another.

    For the row [1, 2, 3, 6] with :math:`\gamma = 1`, it must give the right
    :math:`\partial \mathcal{L} / \partial x` without the term :math:`\overline{g}`, but not
    without the term with :math:`\hat{x}`.

    Args:
        g: four numbers.

    Returns:
        The verdict, with what the given numbers do.

    Example:
        >>> check_blind_gradient([1.0, 1.0, 1.0, 1.0])
        Not yet. The mean of your g is 1, so a missing mean term is noticed. Make it 0.
    """
    answer = as_array(g, (4,), "Your g")
    if isinstance(answer, Verdict):
        return answer
    if not answer.any():
        return Verdict(False, "With g = 0 every gradient is 0, and no mistake is noticed.")
    size = np.abs(answer).max()
    mean = answer.mean()
    if abs(mean) > 1e-9 * size:
        told = f"The mean of your g is {mean:.4g}, so a missing mean term is noticed. Make it 0."
        return Verdict(False, told)
    xhat = reference.layer_norm(BLIND_ROW, 4)
    if abs((answer * xhat).mean()) < 1e-9 * size:
        told = "The mean of g * xhat is 0 as well, so a missing xhat term is overlooked too."
        return Verdict(False, told)
    told = "The mean of g is 0, that of g * xhat is not: one term may be missing, the other not."
    return Verdict(True, told)


Apply = Callable[[Tensor, tuple[int, ...], Tensor | None, float], Tensor]


def check_rms_norm_function(function: Apply) -> Verdict:
    r"""Check RMSNorm as a custom autograd function of any `normalized_shape`.

    Calls `function(x, normalized_shape, weight, eps)` in float64, with and without a weight, and
    runs PyTorch's `gradcheck` and `gradgradcheck`.

    Args:
        function: returns :math:`\gamma x / \sqrt{\operatorname{mean}(x^2) + \epsilon}`.

    Returns:
        The verdict, with the first thing that is wrong.

    Example:
        >>> check_rms_norm_function(lambda x, shape, weight, eps: None)
        Not yet. Your function returns no tensor. Did you forget `return`?
    """
    rng = np.random.default_rng(1910)
    cases = [
        ((3, 4), (4,), True),
        ((4,), (4,), True),
        ((2, 3, 2), (3, 2), True),
        ((2, 2, 3), (3,), True),
        ((3, 4), (4,), False),
    ]
    for shape, normalized_shape, affine in cases:
        x = torch.tensor(rng.normal(0.5, 1.0, shape), requires_grad=True)
        weight = torch.tensor(rng.normal(1.0, 0.5, normalized_shape), requires_grad=True)
        dy = torch.tensor(rng.normal(size=shape))
        where = (
            f"For x of shape {shape}, normalized_shape={normalized_shape} and "
            f"{'a' if affine else 'no'} weight"
        )
        try:
            verdict = _check_case(function, x, normalized_shape, weight if affine else None, dy)
        except Exception as error:
            told = str(error).splitlines()[0] if str(error) else type(error).__name__
            hint = ""
            if "invalid gradient" in told or "incorrect number of gradients" in told:
                hint = (
                    " Return one gradient for each argument of forward, of its shape, and None for"
                    " what is no tensor. That of the weight is summed over the leading axes, never"
                    " over the features."
                )
            return Verdict(False, f"{where}, it raised {type(error).__name__}: {told}{hint}")
        if verdict is not None:
            name = f"{where}: {verdict.message}" if verdict.message[0].islower() else None
            return Verdict(False, name) if name else verdict
    return Verdict(True, "It passes gradcheck and gradgradcheck, for every shape that was tried.")


def _check_case(
    function: Apply, x: Tensor, shape: tuple[int, ...], weight: Tensor | None, dy: Tensor
) -> Verdict | None:
    eps = 0.25
    y = function(x, shape, weight, eps)
    if not isinstance(y, Tensor):
        return Verdict(False, "Your function returns no tensor. Did you forget `return`?")
    right = _rms_norm(x, shape, weight, eps)
    if not _same(y, right):
        if y.shape == x.shape and _same(y, _rms_norm(x, shape[-1:], weight, eps)):
            return Verdict(
                False,
                "It normalizes the last dimension only. normalized_shape may have several: "
                "take the mean over as many.",
            )
        centered = x - x.mean(tuple(range(-len(shape), 0)), keepdim=True)
        if _same(y, _rms_norm(centered, shape, weight, eps)):
            return Verdict(False, "It subtracts the mean. RMSNorm does not.")
        return Verdict(False, "the output differs from RMSNorm.")
    if not _has_custom_node(y.grad_fn):
        return Verdict(
            False,
            "The output does not come from a torch.autograd.Function. "
            "Return YourFunction.apply(...).",
        )
    inputs = (x,) if weight is None else (x, weight)
    given = torch.autograd.grad(y, inputs, dy, allow_unused=True)
    expected = torch.autograd.grad(right, inputs, dy)
    for name, one, other in zip(("x", "weight"), given, expected, strict=False):
        if one is None:
            return Verdict(False, f"backward returns None for {name}.")
        if not _same(one, other):
            return Verdict(False, f"the gradient for {name} is wrong.")

    def of_tensors(*tensors: Tensor) -> Tensor:
        return function(tensors[0], shape, tensors[1] if len(tensors) > 1 else None, eps)

    # atol and rtol are gradcheck's own; nondeterminism is no topic here.
    if not torch.autograd.gradcheck(of_tensors, inputs, raise_exception=False):
        return Verdict(False, "gradcheck fails.")
    if not torch.autograd.gradgradcheck(of_tensors, inputs, raise_exception=False):
        return Verdict(
            False,
            "It passes gradcheck, but not gradgradcheck. Save inputs only, and compute in backward "
            "what you need: autograd takes any other saved tensor for a constant.",
        )
    return None


def _rms_norm(x: Tensor, shape: tuple[int, ...], weight: Tensor | None, eps: float) -> Tensor:
    features = tuple(range(-len(shape), 0))
    xhat = x / torch.sqrt(x.square().mean(features, keepdim=True) + eps)
    return xhat if weight is None else xhat * weight


def _same(one: Tensor, other: Tensor) -> bool:
    return one.shape == other.shape and torch.allclose(one, other, rtol=0.0, atol=TOLERANCE)


def _has_custom_node(node: Any) -> bool:
    """Whether a graph holds a custom autograd function."""
    waiting, seen = [node], set()
    while waiting:
        node = waiting.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        if isinstance(node, torch.autograd.function.BackwardCFunction):
            return True
        waiting.extend(parent for parent, _ in node.next_functions)
    return False
