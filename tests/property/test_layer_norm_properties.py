"""What holds for layer normalization on any input: a search for counterexamples."""

import math

import numpy as np
import torch
from hypothesis import assume, given
from hypothesis import strategies as st
from torch.nn.functional import layer_norm as torch_layer_norm

from lnbook import reference
from lnbook.functional import layer_norm
from tests.helpers.searches import search

repeatable = search(60)

DTYPES = [torch.float16, torch.bfloat16, torch.float32, torch.float64]
seeds = st.integers(0, 2**32 - 1)
epsilons = st.sampled_from([1e-12, 1e-6, 1e-5, 1e-3, 0.5, 4.0])
full_dtypes = st.sampled_from([torch.float32, torch.float64])


@st.composite
def problems(draw, least_size=1):
    """Draw an input with 1 to 5 dimensions, weight, bias and upstream gradient, all float64.

    Rows differ in scale and in offset; the numbers themselves come from a drawn seed.
    """
    leading = draw(st.lists(st.integers(1, 3), max_size=2))
    normalized = draw(st.lists(st.integers(1, 6), min_size=1, max_size=3))
    assume(math.prod(normalized) >= least_size)
    rng = np.random.default_rng(draw(seeds))
    rows = (*leading, *[1] * len(normalized))
    scale = 10.0 ** rng.uniform(-2, 2, rows)
    offset = scale * 10.0 ** rng.uniform(-2, 1, rows)
    x = offset + scale * rng.standard_normal((*leading, *normalized))
    weight, bias = rng.standard_normal((2, *normalized))
    upstream = rng.standard_normal(x.shape)
    return x, tuple(normalized), weight, bias, upstream


def tensors(*arrays, dtype=torch.float64):
    return tuple(torch.tensor(array).to(dtype) for array in arrays)


@repeatable
@given(problems(), epsilons)
def test_normalized_rows_have_mean_zero_and_variance_v_over_v_plus_eps(problem, eps):
    x, shape, *_ = problem
    features = tuple(range(-len(shape), 0))
    normalized = layer_norm(torch.tensor(x), shape, eps=eps).numpy()
    variance = np.var(x, axis=features)
    np.testing.assert_allclose(normalized.mean(axis=features), 0.0, atol=1e-10)
    np.testing.assert_allclose(
        np.mean(normalized**2, axis=features), variance / (variance + eps), atol=1e-10
    )
    # No element can be larger; it reaches this bound when all the others are equal.
    assert np.abs(normalized).max() <= math.sqrt(math.prod(shape) - 1) + 1e-9


@repeatable
@given(problems(), epsilons, st.floats(-1e5, 1e5), st.sampled_from([0.25, 3.0, 40.0]))
def test_shift_changes_nothing_and_scale_only_the_share_of_eps(problem, eps, shift, scale):
    x, shape, weight, bias, _ = problem
    arguments = tensors(weight, bias)
    y = layer_norm(torch.tensor(x), shape, *arguments, eps)
    moved = layer_norm(torch.tensor(scale * x + shift), shape, *arguments, scale**2 * eps)
    torch.testing.assert_close(moved, y, rtol=1e-6, atol=1e-6)
    moved = reference.layer_norm(scale * x + shift, shape, weight, bias, scale**2 * eps)
    np.testing.assert_allclose(moved, y.numpy(), rtol=1e-6, atol=1e-6)


@repeatable
@given(problems(), epsilons, full_dtypes)
def test_a_change_of_sign_passes_through_bit_for_bit(problem, eps, dtype):
    x, shape, *_ = problem
    (rounded,) = tensors(x, dtype=dtype)
    assert torch.equal(layer_norm(-rounded, shape, eps=eps), -layer_norm(rounded, shape, eps=eps))


@repeatable
@given(problems(), full_dtypes, st.randoms(use_true_random=False))
def test_rows_do_not_see_each_other_bit_for_bit(problem, dtype, random):
    x, shape, weight, bias, _ = problem
    rows = torch.tensor(x).to(dtype).reshape(-1, *shape)
    parameters = tensors(weight, bias, dtype=dtype)
    y = layer_norm(rows, shape, *parameters)
    order = list(range(len(rows)))
    random.shuffle(order)
    assert torch.equal(layer_norm(rows[order], shape, *parameters), y[order])
    for i in order:
        assert torch.equal(layer_norm(rows[i], shape, *parameters), y[i])
        spoiled = rows.clone()
        spoiled[[j for j in order if j != i]] = math.nan
        assert torch.equal(layer_norm(spoiled, shape, *parameters)[i], y[i])


@repeatable
@given(problems(least_size=2), epsilons)
def test_the_gradient_of_the_input_sums_to_zero_and_never_grows(problem, eps):
    x, shape, weight, _, upstream = problem
    features = tuple(range(-len(shape), 0))
    grad_x, _, _ = reference.layer_norm_backward(upstream, x, shape, weight, eps=eps)
    rstd = reference.layer_norm_forward(x, shape, eps=eps).rstd
    np.testing.assert_allclose((grad_x / rstd).sum(axis=features), 0.0, atol=1e-9)
    grown = np.linalg.norm((grad_x / rstd).reshape(-1, math.prod(shape)), axis=1)
    given_norm = np.linalg.norm((upstream * weight).reshape(-1, math.prod(shape)), axis=1)
    assert bool((grown <= given_norm * (1.0 + 1e-9)).all())


@repeatable
@given(problems(), epsilons)
def test_the_jacobian_carries_the_gradient_back(problem, eps):
    x, shape, weight, _, upstream = problem
    x, upstream = (array.reshape(-1, math.prod(shape)) for array in (x, upstream))
    weight = weight.ravel()
    grad_x, _, _ = reference.layer_norm_backward(upstream, x, weight.shape, weight, eps=eps)
    for row, row_upstream, row_grad in zip(x, upstream, grad_x, strict=True):
        jacobian = reference.layer_norm_jacobian(row, weight, eps)
        scale = max(1.0, float(np.abs(jacobian).max()))
        np.testing.assert_allclose(jacobian.T @ row_upstream, row_grad, atol=1e-9 * scale)


sizes = st.lists(st.integers(-1, 3), max_size=3)
optional_dtypes = st.sampled_from([*DTYPES, torch.int64, torch.complex64, None])


@search(300)
@given(sizes, sizes, st.booleans(), st.booleans(), optional_dtypes, optional_dtypes)
def test_refuses_what_pytorch_refuses(shape, normalized, fits, same, dtype, parameter_dtype):
    shape = [abs(size) for size in shape]
    normalized = shape[-len(normalized) :] if fits and normalized else normalized
    affine_shape = normalized if same else shape
    x = torch.ones(shape).to(dtype or torch.float32)
    weight = None
    if parameter_dtype is not None and min(affine_shape, default=0) >= 0:
        weight = torch.ones(affine_shape).to(parameter_dtype)

    def outcome(function):
        try:
            return function(x, normalized, weight).dtype
        except (RuntimeError, TypeError) as error:
            return type(error)

    ours, theirs = outcome(layer_norm), outcome(torch_layer_norm)
    # If a call has two mistakes, the two functions may complain about different ones.
    refused = [
        isinstance(result, type) and issubclass(result, RuntimeError) for result in (ours, theirs)
    ]
    assert all(refused) or ours == theirs
