"""How far each norm may be from the same norm in float64, forward and backward.

Every norm here is the reference applied to its own groups of values: a row, a group of channels,
a channel of a sample, or a channel of the batch. That's the oracle, and the bounds are based on
it: with n values in a group, r its reciprocal deviation, and u half a unit in the last place,

    y       K u |gamma| max|xhat|                 and a last rounding
    dx      K u r max|g| (1 + max|xhat|)^2        g = gamma dy; the formula has three terms in g,
                                                  two of which are multiplied by xhat
    dgamma  K u sum |dy| max|xhat|                the sum runs over all entries with this gain
    dbeta   K u sum |dy|

A sum of n values has an error of at most n u times the sum of their magnitudes; K covers that, the
rounding errors of about ten operations, and the factor 8 by which a mean may exceed the deviation
before it's subtracted twice (`lnbook.functional.layer_norm_function`). Float16 and bfloat16 are
computed in float32 and rounded once, so their u enters only the last rounding.

PyTorch's kernel, which is LayerNorm's implementation "native", subtracts the mean once: there
max|xhat| becomes max|xhat| + r max|x|. So does the reference, which is the limit if the norm itself
is in float64.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch
from hypothesis import assume, given
from hypothesis import strategies as st
from torch.func import functional_call

from lnbook import functional as f
from lnbook import reference
from lnbook.layers import BatchNorm1d, BatchNorm2d, LayerNorm, LayerNorm2d, RMSNorm
from tests.helpers.blocks import KERNEL, blocks_of
from tests.helpers.searches import search

repeatable = search(400)

FULL = (torch.float32, torch.float64)
DTYPES = (torch.float16, torch.bfloat16, *FULL)
EPSILONS = (1e-12, 1e-6, 1e-5, 1e-3, 0.5, 4.0)
BLOCKS = (1, 5, 16, 2**19, KERNEL)


def constant_of(n: int) -> float:
    """K in this module's docstring."""
    return 8.0 * (4.0 + n)


class Norm(NamedTuple):
    """A norm for tensors of shape `(N, C, *)`.

    Attributes:
        call: a function of input, weight, bias (None for a root mean square) and eps.
        groups: maps the input's shape to a permutation of its dimensions and, after that, the shape
            in which each row is a group.
        by_feature: whether weight and bias have the shape `(C, *)` rather than `(C,)`.
        centered: whether a mean is subtracted.
        least: the fewest values that a group may have.
        dimensions: how many dimensions the input may have.
        kernel: whether it's PyTorch's kernel.
    """

    call: Callable[..., torch.Tensor]
    groups: Callable[[tuple[int, ...]], tuple[tuple[int, ...], tuple[int, ...]]]
    by_feature: bool = False
    centered: bool = True
    least: int = 1
    dimensions: tuple[int, ...] = (2, 3, 4)
    kernel: bool = False


def straight(shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(range(len(shape)))


def of_rows(shape: tuple[int, ...]) -> Any:
    return straight(shape), (shape[0], math.prod(shape[1:]))


def of_channel_groups(shape: tuple[int, ...]) -> Any:
    return straight(shape), (shape[0] * 2, math.prod(shape[1:]) // 2)


def of_samples(shape: tuple[int, ...]) -> Any:
    return straight(shape), (shape[0] * shape[1], math.prod(shape[2:]))


def of_batch(shape: tuple[int, ...]) -> Any:
    return (1, 0, *range(2, len(shape))), (shape[1], shape[0] * math.prod(shape[2:]))


def of_positions(shape: tuple[int, ...]) -> Any:
    return (0, 2, 3, 1), (shape[0] * shape[2] * shape[3], shape[1])


def layer(kind: Any, **options: Any) -> Callable[..., torch.Tensor]:
    """A module as a function."""

    def call(x: Any, weight: Any, bias: Any, eps: float) -> torch.Tensor:
        sizes = tuple(weight.shape) if kind in (LayerNorm, RMSNorm) else len(weight)
        module = kind(sizes, eps, dtype=weight.dtype, **options)
        given = {"weight": weight, "bias": bias}
        return functional_call(module, {k: v for k, v in given.items() if v is not None}, (x,))

    return call


def rms(function: Any) -> Callable[..., torch.Tensor]:
    return lambda x, w, _, eps: function(x, tuple(w.shape), w, eps)


def rows(function: Any) -> Callable[..., torch.Tensor]:
    return lambda x, w, b, eps: function(x, tuple(w.shape), w, b, eps)


NORMS = {
    "layer_norm": Norm(rows(f.layer_norm), of_rows, True),
    "LayerNormFunction": Norm(rows(f.LayerNormFunction.apply), of_rows, True),
    "LayerNorm-auto": Norm(layer(LayerNorm), of_rows, True, kernel=True),
    "LayerNorm-native": Norm(layer(LayerNorm, implementation="native"), of_rows, True, kernel=True),
    "LayerNorm-fused": Norm(layer(LayerNorm, implementation="fused"), of_rows, True),
    "LayerNorm-plain": Norm(layer(LayerNorm, implementation="plain"), of_rows, True),
    "rms_norm": Norm(rms(f.rms_norm), of_rows, True, False),
    "RMSNormFunction": Norm(rms(f.RMSNormFunction.apply), of_rows, True, False),
    "RMSNorm-auto": Norm(layer(RMSNorm), of_rows, True, False),
    "RMSNorm-native": Norm(
        layer(RMSNorm, implementation="native"), of_rows, True, False, kernel=True
    ),
    "RMSNorm-fused": Norm(layer(RMSNorm, implementation="fused"), of_rows, True, False),
    "RMSNorm-plain": Norm(layer(RMSNorm, implementation="plain"), of_rows, True, False),
    "LayerNorm2d-plain": Norm(
        layer(LayerNorm2d, implementation="plain"), of_positions, dimensions=(4,)
    ),
    "LayerNorm2d-fused": Norm(
        layer(LayerNorm2d, implementation="fused"), of_positions, dimensions=(4,)
    ),
    "group_norm": Norm(
        lambda x, w, b, eps: f.group_norm(x, 2, w, b, eps), of_channel_groups, least=2
    ),
    "instance_norm": Norm(
        lambda x, w, b, eps: f.instance_norm(x, None, None, w, b, eps=eps),
        of_samples,
        least=2,
        dimensions=(3, 4),
    ),
    "batch_norm": Norm(
        lambda x, w, b, eps: f.batch_norm(x, None, None, w, b, True, eps=eps), of_batch, least=2
    ),
    "BatchNorm1d": Norm(layer(BatchNorm1d), of_batch, least=2, dimensions=(2, 3)),
    "BatchNorm2d": Norm(layer(BatchNorm2d), of_batch, least=2, dimensions=(4,)),
}


# A training batch needs an eps above 0, as in PyTorch.
REFUSE_ZERO = {"batch_norm", "BatchNorm1d", "BatchNorm2d", "instance_norm"}


@st.composite
def shapes(draw: Any, norm: Norm, least_batch: int = 0, widest: int = 6) -> tuple[int, ...]:
    """Draw an input shape, including empty batches and groups of one value."""
    channels = 2 * draw(st.integers(1, 3)) if norm.groups is of_channel_groups else None
    sizes = [draw(st.integers(least_batch, 4)), channels or draw(st.integers(1, widest))]
    sizes += [draw(st.integers(1, 4)) for _ in range(draw(st.sampled_from(norm.dimensions)) - 2)]
    shape = tuple(sizes)
    if norm.groups(shape)[1][1] < norm.least:  # too few values: add one
        if norm.groups is of_channel_groups:
            sizes[1] = 4
        else:
            sizes[0 if norm.groups is of_batch else -1] = 2
    return tuple(sizes)


@st.composite
def leading(draw: Any, norm: Norm, rows: int) -> tuple[int, ...]:
    """Draw the dimensions before the normalized ones, which hold this many rows."""
    possible = [(rows,)]
    if norm.by_feature:
        possible += [(1, rows), (rows, 1), *[(2, rows // 2)] * (rows % 2 == 0), *[()] * (rows == 1)]
    return draw(st.sampled_from(possible))


def as_input(norm: Norm, shape: tuple[int, ...], groups: Any) -> Any:
    """Write each group's values (or its only value) to their places in the input."""
    order, flat = norm.groups(shape)
    permuted = tuple(shape[i] for i in order)
    return np.broadcast_to(groups, flat).reshape(permuted).transpose(np.argsort(order))


def drawn(shape: tuple[int, ...], rng: np.random.Generator, far: float) -> np.ndarray:
    """Values whose scale differs by group, and whose offset reaches `far` times the scale."""
    lengths = (*shape[:1], *[1] * (len(shape) - 1))
    scale = 10.0 ** rng.uniform(-1.5, 1.5, lengths)
    return scale * (rng.standard_normal(shape) + far * rng.standard_normal(lengths))


def strided(x: torch.Tensor, way: str) -> torch.Tensor:
    """The same values, laid out differently in memory."""
    if way == "reversed":
        order = tuple(reversed(range(x.ndim)))
        return x.permute(order).contiguous().permute(order)
    if way == "gaps":
        memory = torch.full((*x.shape, 2), torch.nan, dtype=x.dtype)
        memory[..., 0] = x
        return memory[..., 0]
    return x


class Exact(NamedTuple):
    """Results in float64, each with the magnitude that its error is measured against."""

    y: Any
    grads: list[Any]
    y_size: Any
    grad_sizes: list[Any]


def exactly(norm: Norm, tensors: list[torch.Tensor], eps: float, once: bool = False) -> Exact:
    """Apply the reference to each group, and add up everything that shares a gain.

    `once` says that the mean is subtracted once, in the norm or in the reference to compare with.
    """
    x, weight, bias, upstream = (tensor.double().numpy() for tensor in tensors)
    order, flat = norm.groups(x.shape)
    column = weight.shape if norm.by_feature else (-1, *[1] * (x.ndim - 2))

    def as_groups(array: Any) -> Any:
        return np.broadcast_to(array, x.shape).transpose(order).reshape(flat)

    g = as_groups(upstream * weight.reshape(column))
    groups, count = as_groups(x), flat[1]
    if norm.centered:
        forward = reference.layer_norm_forward(groups, count, eps=eps)
        xhat, r = forward.normalized, forward.rstd
        grad_x = reference.layer_norm_backward(g, groups, count, eps=eps)[0]
    else:
        xhat = reference.rms_norm(groups, count, eps=eps)
        r = 1.0 / np.sqrt((groups**2).mean(axis=1, keepdims=True) + eps)
        grad_x = reference.rms_norm_backward(g, groups, count, eps=eps)[0]
    largest = np.abs(xhat).max(axis=1, keepdims=True, initial=0.0)
    if once:
        largest = largest + r * np.abs(groups).max(axis=1, keepdims=True, initial=0.0)
    shared = (0,) if norm.by_feature else (0, *range(2, x.ndim))
    normalized, top = (as_input(norm, x.shape, array) for array in (xhat, largest))
    y = normalized * weight.reshape(column)
    y_size = np.abs(weight.reshape(column)) * top
    grads = [as_input(norm, x.shape, grad_x), (upstream * normalized).sum(axis=shared)]
    g_top = np.abs(g).max(axis=1, keepdims=True, initial=0.0)
    x_size = as_input(norm, x.shape, r * g_top * (1.0 + largest) ** 2)
    sizes = [x_size, (np.abs(upstream) * top).sum(axis=shared)]
    if norm.centered:
        y = y + bias.reshape(column)
        y_size = y_size + np.abs(bias.reshape(column))
        grads.append(upstream.sum(axis=shared))
        sizes.append(np.abs(upstream).sum(axis=shared))
    return Exact(y, grads, y_size, sizes)


def tensors_for(
    norm: Norm, shape: tuple[int, ...], dtype: torch.dtype, seed: int, far: float
) -> list[torch.Tensor]:
    rng = np.random.default_rng(seed)
    features = shape[1:] if norm.by_feature else shape[1:2]
    arrays = (
        drawn(shape, rng, far),
        *rng.standard_normal((2, *features)),
        rng.standard_normal(shape),
    )
    return [torch.tensor(array).to(dtype) for array in arrays]


def assert_within(ours: torch.Tensor, exact: Any, size: Any, factor: float) -> None:
    """Compare with the bound in this module's docstring; NaN fails."""
    dtype = ours.dtype
    last = torch.finfo(dtype).eps / 2
    inner = min(last, 2.0**-24)
    # Below the smallest normal number there are fewer digits.
    floor = torch.finfo(dtype).smallest_normal * last * 2
    found = ours.detach().double().numpy()
    bound = factor * inner * size + 2 * last * np.abs(exact) + floor
    worst = np.abs(found - exact) - bound
    assert bool((worst <= 0.0).all()), f"beyond the bound by {worst.max()}"


@repeatable
@given(
    st.data(),
    st.sampled_from(sorted(NORMS)),
    st.sampled_from(DTYPES),
    st.sampled_from(EPSILONS),
    st.sampled_from([0.0, 3.0, 300.0, 1e5]),
    st.sampled_from(["dense", "reversed", "gaps"]),
    st.sampled_from(BLOCKS),
    st.integers(0, 2**32 - 1),
)
def test_forward_and_backward_are_within_the_bounds(
    data: Any,
    name: str,
    dtype: torch.dtype,
    eps: float,
    far: float,
    way: str,
    block: int | None,
    seed: int,
) -> None:
    norm = NORMS[name]
    shape = data.draw(shapes(norm))
    outer = (*data.draw(leading(norm, shape[0])), *shape[1:])
    far = min(far, 30.0) if dtype == torch.float16 else far
    given_tensors = tensors_for(norm, shape, dtype, seed, far)
    exact = exactly(norm, given_tensors, eps, norm.kernel or dtype == torch.float64)
    x, weight, bias, upstream = given_tensors
    x = strided(x, way).requires_grad_()
    inputs = [x, weight.requires_grad_()]
    if norm.centered:
        inputs.append(bias.requires_grad_())
    with blocks_of(block):
        y = norm.call(x.reshape(outer), weight, bias if norm.centered else None, eps)
        grads = torch.autograd.grad(y, inputs, strided(upstream, way).reshape(outer))
    assert y.shape == outer
    assert y.dtype == dtype
    factor = constant_of(norm.groups(shape)[1][1])
    assert_within(y.reshape(shape), exact.y, exact.y_size, factor)
    if norm.kernel and dtype not in FULL:
        return  # we don't promise how PyTorch's kernel rounds the gradients
    shared = x.numel() // max(1, weight.numel())
    for grad, expected, size in zip(grads, exact.grads, exact.grad_sizes, strict=True):
        assert_within(grad, expected, size, factor + shared)


@repeatable
@given(
    st.data(),
    st.sampled_from(sorted(NORMS)),
    st.sampled_from(FULL),
    st.sampled_from([math.inf, -math.inf, math.nan, 1e30, -3e38]),
    st.integers(0, 2**32 - 1),
)
def test_what_is_not_finite_or_overflows_makes_its_own_group_nan_and_no_other(
    data: Any, name: str, dtype: torch.dtype, bad: float, seed: int
) -> None:
    norm = NORMS[name]
    shape = data.draw(shapes(norm, least_batch=1))
    x, weight, bias, _ = tensors_for(norm, shape, dtype, seed, 1.0)
    order, flat = norm.groups(shape)
    place = data.draw(st.integers(0, x.numel() - 1))
    spoiled = x.clone()
    spoiled.view(-1)[place] = bad
    hit = torch.zeros(shape, dtype=torch.bool)
    hit.view(-1)[place] = True
    groups = hit.permute(order).reshape(flat).any(1, keepdim=True)
    touched = torch.tensor(as_input(norm, shape, groups.numpy()).copy())
    ours, clean = (
        norm.call(t, weight, bias if norm.centered else None, 1e-5) for t in (spoiled, x)
    )
    # The square of 1e30 overflows only in float32. A centered group of one value is 0.
    overflows = math.isfinite(bad) and dtype == torch.float32
    if not math.isfinite(bad) or (overflows and (flat[1] > 1 or not norm.centered)):
        # PyTorch's LayerNorm kernel may give 0 where something overflows.
        assert bool(ours[touched].isnan().all()) or (norm.kernel and math.isfinite(bad))
    elif not overflows:
        assert bool(ours.isfinite().all())
    assert torch.equal(ours[~touched], clean[~touched])


@repeatable
@given(
    st.data(),
    st.sampled_from(sorted(name for name, norm in NORMS.items() if norm.centered)),
    st.sampled_from(DTYPES),
    st.sampled_from(EPSILONS),
    st.sampled_from(BLOCKS),
)
def test_constant_groups_give_exactly_the_bias(
    data: Any, name: str, dtype: torch.dtype, eps: float, block: int | None
) -> None:
    norm, some = NORMS[name], st.sampled_from([0.0, -0.0, 1e-40, 0.1, -7.7, 4096.3, 5e4])
    dtype = torch.float32 if norm.kernel and dtype not in FULL else dtype
    shape = data.draw(shapes(norm, widest=6 if norm.kernel else 1200))
    any_number = some if norm.kernel else some | st.floats(-1e6, 1e6)
    values = data.draw(st.lists(any_number, min_size=1, max_size=5))
    groups = np.resize(values, (norm.groups(shape)[1][0], 1))
    x = torch.tensor(as_input(norm, shape, groups).copy()).to(dtype)
    assume(bool(x.isfinite().all()))
    _, weight, bias, _ = tensors_for(norm, shape, dtype, 1, 1.0)
    with blocks_of(block):
        y = norm.call(x, weight, bias, eps)
    column = tuple(bias.shape) if norm.by_feature else (-1, *[1] * (len(shape) - 2))
    assert torch.equal(y, bias.reshape(column).expand(shape))


@repeatable
@given(st.data(), st.sampled_from(sorted(NORMS)), st.sampled_from(DTYPES), st.integers(0, 99))
def test_subnormal_numbers_are_numbers(data: Any, name: str, dtype: torch.dtype, seed: int) -> None:
    norm = NORMS[name]
    shape = data.draw(shapes(norm, least_batch=1))
    x, weight, bias, upstream = tensors_for(norm, shape, torch.float64, seed, 1.0)
    tiny = torch.finfo(dtype).smallest_normal
    tensors = [t.to(dtype) for t in (x * (tiny / 64), weight, bias, upstream)]
    exact = exactly(norm, tensors, 1e-5, norm.kernel or dtype == torch.float64)
    y = norm.call(*tensors[:2], tensors[2] if norm.centered else None, 1e-5)
    factor = constant_of(norm.groups(shape)[1][1])
    # The differences may themselves be below the smallest number in the dtype used for computing.
    least = torch.finfo(torch.float32).smallest_normal * 1e-5**-0.5
    assert_within(y, exact.y, exact.y_size + least / 2.0**-24, factor)


@repeatable
@given(
    st.data(),
    st.sampled_from(sorted(set(NORMS) - REFUSE_ZERO)),
    st.sampled_from(FULL),
    st.integers(0, 2**32 - 1),
)
def test_a_zero_eps_makes_nan_of_constant_groups_alone(
    data: Any, name: str, dtype: torch.dtype, seed: int
) -> None:
    norm = NORMS[name]
    shape = data.draw(shapes(norm, least_batch=1))
    tensors = tensors_for(norm, shape, dtype, seed, 1.0)
    bias = tensors[2] if norm.centered else None
    constant = torch.full(shape, 0.1 if norm.centered else 0.0, dtype=dtype)
    assert bool(norm.call(constant, tensors[1], bias, 0.0).isnan().all())
    count = norm.groups(shape)[1][1]
    if count >= 3 or not norm.centered:  # two values may be nearly equal; one is constant
        exact = exactly(norm, tensors, 0.0, norm.kernel or dtype == torch.float64)
        y = norm.call(*tensors[:2], bias, 0.0)
        assert_within(y, exact.y, exact.y_size, constant_of(count))
