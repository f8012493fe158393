"""The checkers of the part on the gradient."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from lnbook import reference
from lnbook.exercises import Verdict, as_array, called, judge

__all__ = [
    "check_apply_jacobian",
    "check_blind_gradient",
    "check_by_hand",
    "check_eigenvalues",
    "check_removed",
    "check_rms_norm_backward",
    "check_rms_norm_function",
]

Array = NDArray[np.float64]

BY_HAND_ROW = (0.0, 0.0, 4.0, 4.0)
BY_HAND_EPS = 12.0
BY_HAND_WEIGHT = (1.0, 2.0, 1.0, 1.0)
BY_HAND_UPSTREAM = (4.0, 1.0, 0.0, -2.0)
TOLERANCE = 1e-9


def _mean(values: Array) -> Array:
    mean: Array = values.mean(-1, keepdims=True)
    return mean


def _dx(
    g: Array,
    x: Array,
    eps: float,
    *,
    mean_term: float = 1.0,
    xhat_term: float = 1.0,
    power: float = 1.0,
    rms: bool = False,
) -> Array:
    """The gradient for x, with a weight for each of its terms and a power for r."""
    centered = x if rms else x - _mean(x)
    r = (_mean(centered**2) + eps) ** -0.5
    xhat = centered * r
    mean_part = 0.0 if rms else mean_term * _mean(g)
    gradient: Array = r**power * (g - mean_part - xhat_term * xhat * _mean(g * xhat))
    return gradient


def _r_without_eps(g: Array, x: Array, eps: float, *, rms: bool = False) -> Array:
    """The right xhat, but an r that forgot eps."""
    right = _dx(g, x, eps, rms=rms)
    variance = _mean((x if rms else x - _mean(x)) ** 2)
    wrong: Array = right * np.sqrt((variance + eps) / variance)
    return wrong


def check_by_hand(dx: Any = None, dgamma: Any = None) -> Verdict:
    r"""Check the gradients of the row [0, 0, 4, 4], worked out by hand.

    The row has :math:`\epsilon = 12`, :math:`\gamma = [1, 2, 1, 1]` and the upstream gradient
    :math:`\partial \mathcal{L} / \partial y = [4, 1, 0, -2]`.

    Args:
        dx: :math:`\partial \mathcal{L} / \partial x`, four numbers.
        dgamma: :math:`\partial \mathcal{L} / \partial \gamma`, four numbers.

    Returns:
        The verdict; a known mistake is called by its name. Two decimals are enough.

    Example:
        >>> check_by_hand(dx=[0.75, 0.25, -0.25, -0.75])
        Not yet. Your dL/dx lacks the term with xhat: subtract xhat times the mean of g times xhat.
    """
    x, eps = np.array(BY_HAND_ROW), BY_HAND_EPS
    weight, dy = np.array(BY_HAND_WEIGHT), np.array(BY_HAND_UPSTREAM)
    right_dx, right_dgamma, _ = reference.layer_norm_backward(dy, x, 4, weight, eps=eps)
    g, xhat = weight * dy, reference.layer_norm(x, 4, eps=eps)
    r = 0.25
    tolerance = 0.006
    mistakes = {
        "Your dL/dx leaves gamma out. Start from g = gamma * dL/dy.": _dx(dy, x, eps),
        "Your dL/dx lacks the mean of g: subtract it from g.": _dx(g, x, eps, mean_term=0.0),
        "Your dL/dx lacks the term with xhat: subtract xhat times the mean of g times xhat.": _dx(
            g, x, eps, xhat_term=0.0
        ),
        "Your dL/dx has sums where the formula has means. Divide them by H = 4.": _dx(
            g, x, eps, mean_term=4.0, xhat_term=4.0
        ),
        "Your dL/dx adds the term with xhat. It is subtracted.": _dx(g, x, eps, xhat_term=-1.0),
        "Your dL/dx takes r without eps. Here r = (4 + 12) ** -0.5.": _r_without_eps(g, x, eps),
        "Your dL/dx leaves eps out, in r and in xhat. Here eps = 12.": _dx(g, x, 0.0),
        "Your dL/dx lacks the factor r in front.": _dx(g, x, eps, power=0.0),
        "Your dL/dx has the factor r twice, or divides by the variance. Multiply by r once.": _dx(
            g, x, eps, power=2.0
        ),
        "Your signs are the wrong way around.": -right_dx,
        "This is r * g. The mean and the variance also depend on x: two terms are missing.": r * g,
    }
    answer = as_array(dx, (4,), "Your dL/dx")
    if isinstance(answer, Verdict):
        return answer
    verdict = judge(
        answer,
        right_dx,
        mistakes,
        otherwise="Your dL/dx is off. Find r, xhat, g, and the two means first.",
        tolerance=tolerance,
    )
    if verdict is not None:
        return verdict
    answer = as_array(dgamma, (4,), "Your dL/dgamma")
    if isinstance(answer, Verdict):
        return answer
    verdict = judge(
        answer,
        right_dgamma,
        {
            "This is g * xhat. For dL/dgamma take dL/dy itself, without gamma.": g * xhat,
            "This is dL/dbeta. For gamma, multiply each number by its xhat.": dy,
            "You took x in place of xhat.": dy * x,
            "Your xhat leaves eps out. Here eps = 12.": dy * np.sign(x - 2.0),
            "You took x - mean in place of xhat.": dy * (x - 2.0),
            "Your signs are the wrong way around.": -right_dgamma,
        },
        otherwise="Your dL/dgamma is off: with one row, it is dL/dy times xhat, one by one.",
        tolerance=tolerance,
    )
    return verdict or Verdict(True, "Both gradients are right.")


def _called(
    function: Callable[..., Any], arrays: Sequence[Array | None], eps: float
) -> Any | Verdict:
    """What the reader's function returns for copies of some arrays, or what went wrong."""
    shapes = ", ".join(str(array.shape) for array in arrays if array is not None)
    return called(function, *arrays, eps, told=f"for shapes {shapes}")


DX_MISTAKES: dict[str, Callable[[Array, Array, Array, float], Array]] = {
    "Its dx has the mean term of LayerNorm. RMSNorm does not center.": lambda dy, x, w, eps: (
        _dx(dy * w, x, eps, rms=True) - (_mean(x**2) + eps) ** -0.5 * _mean(dy * w)
    ),
    "Its dx is that of LayerNorm. RMSNorm does not center x.": lambda dy, x, w, eps: _dx(
        dy * w, x, eps
    ),
    "Its dx lacks the term with xhat: the root also depends on x.": lambda dy, x, w, eps: _dx(
        dy * w, x, eps, xhat_term=0.0, rms=True
    ),
    "Its dx leaves the weight out. Start from g = weight * dy.": lambda dy, x, _w, eps: _dx(
        dy, x, eps, rms=True
    ),
    "Its dx sums g * xhat. Divide the sum by H.": lambda dy, x, w, eps: _dx(
        dy * w, x, eps, xhat_term=float(x.shape[-1]), rms=True
    ),
    "Its dx adds the term with xhat. Subtract it.": lambda dy, x, w, eps: _dx(
        dy * w, x, eps, xhat_term=-1.0, rms=True
    ),
    "Its dx takes r without eps.": lambda dy, x, w, eps: _r_without_eps(dy * w, x, eps, rms=True),
    "Its dx leaves eps out, in r and in xhat.": lambda dy, x, w, _eps: _dx(
        dy * w, x, 0.0, rms=True
    ),
    "Its dx lacks the factor r in front.": lambda dy, x, w, eps: _dx(
        dy * w, x, eps, power=0.0, rms=True
    ),
    "Its dx has the factor r twice. Once is enough.": lambda dy, x, w, eps: _dx(
        dy * w, x, eps, power=2.0, rms=True
    ),
    "Its mean of g * xhat is taken over the whole array. Every row has its own.": (
        lambda dy, x, w, eps: (
            (_mean(x**2) + eps) ** -0.5
            * (dy * w - _rms_xhat(x, eps) * (dy * w * _rms_xhat(x, eps)).mean())
        )
    ),
}
"""Wrong gradients of RMSNorm for x, by the message that each must get."""


def _rms_xhat(x: Array, eps: float) -> Array:
    xhat: Array = x * (_mean(x**2) + eps) ** -0.5
    return xhat


def _leading(array: Array) -> tuple[int, ...]:
    return tuple(range(array.ndim - 1))


DWEIGHT_MISTAKES: dict[str, Callable[[Array, Array, Array, float], Array]] = {
    "Its dweight is not summed. All rows share the weight: "
    "sum over every axis but the last.": lambda dy, x, _w, eps: dy * _rms_xhat(x, eps),
    "Its dweight is summed over the features. "
    "Sum over the other axes, all but the last.": lambda dy, x, _w, eps: (
        dy * _rms_xhat(x, eps)
    ).sum(-1),
    "Its dweight is summed over the first axis only. "
    "Sum over every axis but the last.": lambda dy, x, _w, eps: (dy * _rms_xhat(x, eps)).sum(0),
    "Its dweight is a mean over the rows. The gradient is their sum.": lambda dy, x, _w, eps: (
        dy * _rms_xhat(x, eps)
    ).mean(_leading(x)),
    "Its dweight holds the weight. Multiply dy by xhat alone.": lambda dy, x, w, eps: (
        dy * w * _rms_xhat(x, eps)
    ).sum(_leading(x)),
    "Its dweight takes x in place of xhat.": lambda dy, x, _w, _eps: (dy * x).sum(_leading(x)),
    "Its dweight is the gradient of a bias. Multiply dy by xhat.": lambda dy, _x, _w, _eps: dy.sum(
        _leading(dy)
    ),
}
"""Wrong gradients of RMSNorm for the weight, by the message that each must get."""


def check_rms_norm_backward(
    function: Callable[[Array, Array, Array, float], tuple[ArrayLike, ArrayLike]],
) -> Verdict:
    r"""Check a backward pass of RMSNorm, :math:`y = \gamma x / \sqrt{\frac1H \sum x^2 + \epsilon}`.

    Calls `function(dy, x, weight, eps)` in float64 with a square batch, with two leading axes,
    and with one row without any, with an `eps` that cannot be overlooked.

    Args:
        function: returns `(dx, dweight)`, of the shapes of `x` and of `weight`.

    Returns:
        The verdict; a known mistake is called by its name.

    Example:
        >>> check_rms_norm_backward(lambda dy, x, weight, eps: dy)
        Not yet. Your function should return the pair (dx, dweight).
    """
    rng = np.random.default_rng(1607)
    for shape, eps in (((5, 5), 0.25), ((2, 3, 4), 0.5), ((6,), 0.25)):
        dy, x = rng.normal(size=shape), rng.normal(1.0, 1.0, shape)
        weight = rng.normal(1.0, 0.5, shape[-1:])
        answer = _called(function, (dy, x, weight), eps)
        if isinstance(answer, Verdict):
            return answer
        if not isinstance(answer, (tuple, list)) or len(answer) != 2:
            return Verdict(False, "Your function should return the pair (dx, dweight).")
        dx = as_array(answer[0], shape, "Your dx")
        if isinstance(dx, Verdict):
            return dx
        verdict = judge(
            dx,
            _dx(dy * weight, x, eps, rms=True),
            {text: wrong(dy, x, weight, eps) for text, wrong in DX_MISTAKES.items()},
            otherwise=f"For x of shape {shape} and eps={eps} dx differs from the right gradient.",
            tolerance=TOLERANCE,
        )
        if verdict is not None:
            return verdict
        right = (dy * _rms_xhat(x, eps)).sum(_leading(x))
        known = {text: wrong(dy, x, weight, eps) for text, wrong in DWEIGHT_MISTAKES.items()}
        verdict = _check_dweight(answer[1], right, known, shape)
        if verdict is not None:
            return verdict
    return Verdict(True, "Both gradients are right, for any number of leading axes.")


def _check_dweight(
    answer: Any, right: Array, known: dict[str, Array], shape: tuple[int, ...]
) -> Verdict | None:
    """Tell known mistakes first, since some of them have the wrong shape."""
    try:
        given = np.asarray(answer, dtype=np.float64)
    except (TypeError, ValueError):
        given = np.empty(0)
    if given.shape != right.shape:
        for text, wrong in known.items():
            if wrong.shape == given.shape and np.allclose(given, wrong, rtol=0.0, atol=TOLERANCE):
                return Verdict(False, text)
    dweight = as_array(answer, right.shape, "Your dweight")
    if isinstance(dweight, Verdict):
        return dweight
    return judge(
        dweight,
        right,
        known,
        otherwise=f"For x of shape {shape} dweight differs from the right gradient.",
        tolerance=TOLERANCE,
    )


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


def check_eigenvalues(values: Any = None) -> Verdict:
    r"""Check the four eigenvalues of the Jacobian at the row [0, 0, 4, 4] with epsilon 12.

    Args:
        values: four numbers, in any order.

    Returns:
        The verdict; a known mistake is called by its name.

    Example:
        >>> check_eigenvalues([0, 0, 0.25, 0.25])
        Not yet. Along xhat the eigenvalue is 0 only if eps is. Here it is r * eps / (v + eps).
    """
    answer = as_array(values, (4,), "Your list of eigenvalues")
    if isinstance(answer, Verdict):
        return answer
    right = np.array([0.0, 0.1875, 0.25, 0.25])
    mistakes = {
        "Along xhat the eigenvalue is 0 only if eps is. Here it is r * eps / (v + eps).": np.array(
            [0.0, 0.0, 0.25, 0.25]
        ),
        "These are the eigenvalues for eps = 0. Here eps = 12.": np.array([0.0, 0.0, 0.5, 0.5]),
        "These are the eigenvalues without the factor r.": right / 0.25,
        "These have r * v / (v + eps) along xhat. "
        "That is the part that is removed; the rest stays.": np.array([0.0, 0.0625, 0.25, 0.25]),
        "Along xhat the eigenvalue is smaller than r: eps keeps only a part of r.": np.array(
            [0.0, 0.25, 0.25, 0.25]
        ),
        "One eigenvalue is 0: that of the row of ones.": np.array([0.1875, 0.25, 0.25, 0.25]),
        "r is the root of 1 / (v + eps). You left the root out.": right / 4.0,
    }
    mistakes = {text: np.sort(wrong) for text, wrong in mistakes.items()}
    verdict = judge(
        np.sort(answer),
        right,
        mistakes,
        otherwise="Find v and r first. One eigenvalue belongs to 1, one to xhat, two to the rest.",
        tolerance=0.0026,
    )
    return verdict or Verdict(True, "One 0, one that eps keeps above 0, and H - 2 = 2 times r.")


def _whole(u: Array, x: Array, eps: float) -> Array:
    centered = x - x.mean()
    r = (np.mean(centered**2) + eps) ** -0.5
    wrong: Array = r * (u - u.mean() - centered * r * (u * centered * r).mean())
    return wrong


def _raw(u: Array, x: Array, eps: float, inner: Array) -> Array:
    r = (_mean((x - _mean(x)) ** 2) + eps) ** -0.5
    wrong: Array = r * (u - _mean(u) - inner * _mean(u * inner))
    return wrong


JACOBIAN_MISTAKES: dict[str, Callable[[Array, Array, float], Array]] = {
    "It takes means over the whole array. Every row has its own Jacobian.": _whole,
    "It works along the columns. A row is one example: use axis=-1.": lambda u, x, eps: (
        _dx(u.T, x.T, eps).T
    ),
    "It lacks the mean of u: subtract it.": lambda u, x, eps: _dx(u, x, eps, mean_term=0.0),
    "It lacks the term with xhat: subtract xhat times the mean of u * xhat.": lambda u, x, eps: _dx(
        u, x, eps, xhat_term=0.0
    ),
    "It sums where it should average. Divide both sums by H.": lambda u, x, eps: _dx(
        u, x, eps, mean_term=float(x.shape[-1]), xhat_term=float(x.shape[-1])
    ),
    "It sums u * xhat where it should average. Divide by H.": lambda u, x, eps: _dx(
        u, x, eps, xhat_term=float(x.shape[-1])
    ),
    "It adds the term with xhat. Subtract it.": lambda u, x, eps: _dx(u, x, eps, xhat_term=-1.0),
    "It lacks the factor r in front.": lambda u, x, eps: _dx(u, x, eps, power=0.0),
    "It has the factor r twice. Once is enough.": lambda u, x, eps: _dx(u, x, eps, power=2.0),
    "It leaves eps out, in r and in xhat.": lambda u, x, _eps: _dx(u, x, 0.0),
    "It takes r without eps.": _r_without_eps,
    "It takes x - mean in place of xhat.": lambda u, x, eps: _raw(u, x, eps, x - _mean(x)),
    "It takes x in place of xhat.": lambda u, x, eps: _raw(u, x, eps, x),
    "It leaves the mean of x in: that is the Jacobian of RMSNorm, less the mean.": (
        lambda u, x, eps: (
            (_mean(x**2) + eps) ** -0.5
            * (u - _mean(u) - _rms_xhat(x, eps) * _mean(u * _rms_xhat(x, eps)))
        )
    ),
    "It returns the LayerNorm of x. What is asked for is J u.": lambda _u, x, eps: (
        reference.layer_norm(x, x.shape[-1:], eps=eps)
    ),
}
"""Wrong products with the Jacobian, by the message that each must get."""


LONG_ROW = 3_000


def _watched(
    function: Callable[..., Any], arrays: Sequence[Array], eps: float
) -> tuple[Any | Verdict, int]:
    """What `_called` says, and how many bytes were in use at most while it ran."""
    tracing = tracemalloc.is_tracing()
    if not tracing:
        tracemalloc.start()
    tracemalloc.reset_peak()
    before, _ = tracemalloc.get_traced_memory()
    answer = _called(function, arrays, eps)
    _, peak = tracemalloc.get_traced_memory()
    if not tracing:
        tracemalloc.stop()
    return answer, peak - before


def check_apply_jacobian(function: Callable[[Array, Array, float], ArrayLike]) -> Verdict:
    r"""Check a function that multiplies each row by the Jacobian of its own LayerNorm.

    Calls `function(u, x, eps)` with random batches in float64, and once with a long row, while
    the memory of NumPy's arrays is watched: the matrix of that row would stand out.

    Args:
        function: takes `u` and `x` of shape `(N, H)`, returns :math:`J(x_n) u_n` for each row.

    Returns:
        The verdict; a known mistake is called by its name.

    Example:
        >>> check_apply_jacobian(lambda u, x, eps: u - u.mean(axis=-1, keepdims=True))
        Not yet. For u of shape (3, 5) and eps=0.25 the values differ from J u.
    """
    rng = np.random.default_rng(2019)
    for shape, eps in (((3, 5), 0.25), ((4, 4), 1e-5), ((1, LONG_ROW), 1e-5)):
        u, x = rng.normal(0.5, 1.0, shape), rng.normal(1.0, 1.5, shape)
        answer, peak = _watched(function, (u, x), eps)
        if isinstance(answer, Verdict):
            return answer
        if shape[-1] == LONG_ROW and peak > LONG_ROW**2:  # bytes: an eighth of the matrix
            told = f"For a row of {LONG_ROW:,} features it needs {peak / 2**20:.0f} MiB at once"
            return Verdict(False, f"{told}: it builds the matrix. Write both products as means.")
        given = as_array(answer, shape, "What your function returns")
        if isinstance(given, Verdict):
            return given
        verdict = judge(
            given,
            _dx(u, x, eps),
            {text: wrong(u, x, eps) for text, wrong in JACOBIAN_MISTAKES.items()},
            otherwise=f"For u of shape {shape} and eps={eps} the values differ from J u.",
            tolerance=TOLERANCE,
        )
        if verdict is not None:
            return verdict
    return Verdict(True, "Each row is multiplied by its Jacobian, and no matrix was built.")


REMOVED_ROW = (1.0, 2.0, 3.0, 6.0)


def check_removed(g: Any = None) -> Verdict:
    r"""Check a gradient that LayerNorm of [1, 2, 3, 6] removes, with epsilon 0.

    Args:
        g: four numbers, not all equal.

    Returns:
        The verdict, with the length of what is left.

    Example:
        >>> check_removed([1.0, -1.0, 1.0, -1.0])
        Not yet. Of a length of 2.000, 0.904 is left. Which two directions does J send to 0?
    """
    answer = as_array(g, (4,), "Your g")
    if isinstance(answer, Verdict):
        return answer
    if np.ptp(answer) <= 1e-9 * np.abs(answer).max():
        return Verdict(False, "A constant gradient is removed, that is true. Find another kind.")
    jacobian = reference.layer_norm_jacobian(REMOVED_ROW, eps=0.0)
    length, left = np.linalg.norm(answer), np.linalg.norm(jacobian @ answer)
    if left <= 1e-6 * length:
        return Verdict(True, "Nothing of it is left.")
    told = f"Of a length of {length:.3f}, {left:.3f} is left."
    hint = " Which two directions does J send to 0?"
    if left <= 0.02 * length:
        hint = " That is close: give exact numbers, without rounding."
    return Verdict(False, told + hint)
