"""What holds for the fused norms and the others on any input: a search for counterexamples."""

import math
from contextlib import contextmanager
from unittest.mock import patch

import numpy as np
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from torch.nn import functional as native

from lnbook import reference
from lnbook.functional import (
    LayerNormFunction,
    RMSNormFunction,
    _blocks,
    batch_norm,
    group_norm,
    instance_norm,
    layer_norm,
    rms_norm,
)
from lnbook.kernels import operators
from lnbook.layers import LayerNorm, RMSNorm
from tests.property.cases import IMPLEMENTATIONS

settings.register_profile("fast_norms", derandomize=True, deadline=None, database=None)
repeatable = settings(settings.get_profile("fast_norms"), max_examples=60)

KERNEL = None  # the compiled kernel, which has no blocks
DTYPES = [torch.float16, torch.bfloat16, torch.float32, torch.float64]
seeds = st.integers(0, 2**32 - 1)
epsilons = st.sampled_from([1e-12, 1e-6, 1e-5, 1e-3, 0.5, 4.0])
block_sizes = st.sampled_from([1, 5, 16, 2**19, KERNEL])
special = st.sampled_from([0.0, -0.0, math.inf, -math.inf, math.nan, 1e30, 3e38, 1e-40, 7.0])


@contextmanager
def blocks_of(size):
    """Inside the `with`, cut into blocks of `size` elements, or use the compiled kernel."""
    without = {"cpu"} if size else set()
    with (
        patch.object(operators, "DEVICES", set()),
        patch.object(operators, "_WITHOUT", without),
        patch.object(_blocks, "BLOCK", size or _blocks.BLOCK),
    ):
        yield


@st.composite
def problems(draw):
    """Draw an input of 1 to 5 dimensions, weight, bias and upstream gradient, all float64.

    Rows differ in scale and in offset, which reaches 1e5 times the scale.
    """
    leading = draw(st.lists(st.integers(1, 4), max_size=2))
    normalized = draw(st.lists(st.integers(1, 6), min_size=1, max_size=3))
    rng = np.random.default_rng(draw(seeds))
    rows = (*leading, *[1] * len(normalized))
    scale = 10.0 ** rng.uniform(-2, 2, rows)
    offset = scale * 10.0 ** rng.uniform(-2, draw(st.sampled_from([1, 5])), rows)
    x = offset + scale * rng.standard_normal((*leading, *normalized))
    weight, bias = rng.standard_normal((2, *normalized))
    return tuple(torch.tensor(a) for a in (x, weight, bias, rng.standard_normal(x.shape)))


def gradients(function, inputs, shape, upstream, eps):
    inputs = [t.clone().requires_grad_() for t in inputs]
    y = function(inputs[0], shape, *inputs[1:], eps)
    return y.detach(), *torch.autograd.grad(y, inputs, upstream)


@repeatable
@given(problems(), epsilons, block_sizes, st.sampled_from([torch.float32, torch.float64]))
def test_outputs_agree_with_the_reference(problem, eps, size, dtype):
    x, weight, bias, _ = (t.to(dtype) for t in problem)
    shape, arrays = tuple(weight.shape), [t.double().numpy() for t in (x, weight, bias)]
    with blocks_of(size):
        ours = LayerNormFunction.apply(x, shape, weight, bias, eps)
        root = RMSNormFunction.apply(x, shape, weight, eps)
    tolerance = 1e-5 if dtype == torch.float32 else 1e-9
    exact = reference.layer_norm(arrays[0], shape, *arrays[1:], eps)
    np.testing.assert_allclose(ours.double().numpy(), exact, rtol=tolerance, atol=tolerance)
    exact = reference.rms_norm(arrays[0], shape, arrays[1], eps)
    np.testing.assert_allclose(root.double().numpy(), exact, rtol=tolerance, atol=tolerance)


@repeatable
@given(problems(), epsilons, block_sizes)
def test_gradients_agree_with_the_reference(problem, eps, size):
    x, weight, bias, upstream = problem
    shape, arrays = tuple(weight.shape), (upstream.numpy(), x.numpy(), tuple(weight.shape))
    with blocks_of(size):
        ours = gradients(LayerNormFunction.apply, (x, weight, bias), shape, upstream, eps)[1:]
        root = gradients(RMSNormFunction.apply, (x, weight), shape, upstream, eps)[1:]
    expected = reference.layer_norm_backward(*arrays, weight.numpy(), eps=eps)
    for grad, array in zip(ours, expected, strict=True):
        scale = max(1.0, float(np.abs(array).max()))
        np.testing.assert_allclose(grad.numpy(), array, rtol=1e-6, atol=1e-8 * scale)
    expected = reference.rms_norm_backward(*arrays, weight.numpy(), eps)
    for grad, array in zip(root, expected, strict=True):
        scale = max(1.0, float(np.abs(array).max()))
        np.testing.assert_allclose(grad.numpy(), array, rtol=1e-6, atol=1e-8 * scale)


@repeatable
@given(
    st.lists(st.lists(special, min_size=3, max_size=3), min_size=1, max_size=6),
    st.sampled_from([1, 2**19, KERNEL]),
    st.sampled_from(DTYPES),
)
def test_special_values_give_what_the_plain_function_gives(rows, size, dtype):
    x = torch.tensor(rows, dtype=torch.float64).to(dtype)
    weight, bias = torch.tensor([[0.5, -2.0, 3.0], [1.0, 0.0, -1.0]]).to(dtype)
    with blocks_of(size):
        ours = LayerNormFunction.apply(x, (3,), weight, bias)
        root = RMSNormFunction.apply(x, (3,), weight)
    unit = max(torch.finfo(dtype).eps, 4e-6 if dtype == torch.float32 else 0.0)
    options = {"rtol": 4 * unit, "atol": 4 * unit, "equal_nan": True}
    torch.testing.assert_close(ours, layer_norm(x, (3,), weight, bias), **options)
    torch.testing.assert_close(root, rms_norm(x, (3,), weight), **options)


@repeatable
@given(
    st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=5),
    st.integers(1, 900),
    epsilons,
    st.sampled_from(DTYPES),
    block_sizes,
)
def test_constant_rows_give_exactly_the_bias(values, features, eps, dtype, size):
    x = torch.tensor(values, dtype=torch.float64).to(dtype)
    assume(bool(x.isfinite().all()))
    weight, bias = torch.tensor(np.random.default_rng(1).standard_normal((2, features))).to(dtype)
    with blocks_of(size):
        y = LayerNormFunction.apply(x[:, None].repeat(1, features), (features,), weight, bias, eps)
    assert torch.equal(y, bias.expand(len(values), features))


@repeatable
@given(problems(), st.sampled_from(DTYPES), st.sampled_from(IMPLEMENTATIONS))
def test_the_implementations_of_a_layer_agree(problem, dtype, implementation):
    x, weight, bias, _ = (t.to(dtype) for t in problem)
    assume(bool(x.isfinite().all()))
    shape, unit = tuple(weight.shape), max(torch.finfo(dtype).eps, 2e-7)
    state = {"weight": weight, "bias": bias}
    layer = LayerNorm(shape, dtype=dtype, implementation=implementation)
    layer.load_state_dict(state)
    exact = native.layer_norm(x.double(), shape, weight.double(), bias.double())
    x64 = x.double().reshape(-1, weight.numel())
    # PyTorch's kernel loses precision in proportion to a row's mean over its deviation.
    ratio = x64.abs().amax(1) / (x64.var(1, correction=0) + 1e-5).sqrt()
    far = ratio if implementation in ("auto", "native") else 8.0
    bound = 4 * unit * exact.abs() + 2e-6 + 2e-7 * (far * torch.ones(len(x64))).amax()
    assert bool(((layer(x).double() - exact).abs() <= bound * weight.abs().amax().clamp(1)).all())
    layer = RMSNorm(shape, eps=1e-5, dtype=dtype, implementation=implementation)
    layer.load_state_dict({"weight": weight})
    exact = native.rms_norm(x.double(), shape, weight.double(), 1e-5)
    assert bool(((layer(x).double() - exact).abs() <= 4 * unit * exact.abs() + 2e-6).all())


@repeatable
@given(st.integers(1, 4), st.integers(1, 3), st.integers(1, 3), st.integers(2, 5), epsilons, seeds)
def test_the_other_norms_agree_with_pytorch(samples, groups, per_group, positions, eps, seed):
    channels = groups * per_group
    rng = np.random.default_rng(seed)
    x = torch.tensor(
        10.0 ** rng.uniform(-1, 1) * rng.standard_normal((samples, channels, positions))
    )
    weight, bias = torch.tensor(rng.standard_normal((2, channels)))
    mean, var = torch.tensor(rng.uniform(0.1, 2.0, (2, channels)))
    options = {"rtol": 1e-8, "atol": 1e-8}
    ours, theirs = (f(x, groups, weight, bias, eps) for f in (group_norm, native.group_norm))
    torch.testing.assert_close(ours, theirs, **options)
    for ours, theirs in ((batch_norm, native.batch_norm), (instance_norm, native.instance_norm)):
        for training in (True, False):
            moved = [(mean.clone(), var.clone()) for _ in range(2)]
            results = [
                f(x, *running, weight, bias, training, 0.4, eps)
                for f, running in zip((ours, theirs), moved, strict=True)
            ]
            torch.testing.assert_close(*results, **options)
            torch.testing.assert_close(*moved, **options)
