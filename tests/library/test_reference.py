"""The NumPy reference, checked against hand-computed values, finite differences and PyTorch."""

import math
import subprocess
import sys

import numpy as np
import pytest
import torch
from torch.nn.functional import layer_norm as torch_layer_norm

from lnbook import reference
from tests.helpers.differences import central_difference
from tests.helpers.random_tensors import CASES


def random_case(shape, dims, seed=0):
    """Return input, normalized shape, weight, bias and upstream gradient, all random."""
    rng = np.random.default_rng(seed)
    normalized_shape = shape[-dims:]
    x = 3.0 * rng.standard_normal(shape) + 2.0
    weight = rng.standard_normal(normalized_shape)
    bias = rng.standard_normal(normalized_shape)
    return x, normalized_shape, weight, bias, rng.standard_normal(shape)


def test_forward_by_hand():
    result = reference.layer_norm_forward(
        [2.0, 4.0, 6.0, 8.0], 4, [1.0, 2.0, 3.0, 4.0], [0.0, 1.0, 0.0, -1.0], eps=4.0
    )
    # Mean 5, biased variance (9 + 1 + 1 + 9) / 4 = 5, so that v + eps = 9 and r = 1/3.
    np.testing.assert_allclose(result.mean, [5.0])
    np.testing.assert_allclose(result.variance, [5.0])
    np.testing.assert_allclose(result.rstd, [1.0 / 3.0])
    np.testing.assert_allclose(result.normalized, [-1.0, -1.0 / 3.0, 1.0 / 3.0, 1.0])
    np.testing.assert_allclose(result.y, [-1.0, 1.0 / 3.0, 1.0, 3.0])


@pytest.mark.parametrize(("shape", "dims"), CASES)
@pytest.mark.parametrize("eps", [0.0, 1e-5, 0.7])
def test_forward_equals_pytorch(shape, dims, eps):
    x, normalized_shape, weight, bias, _ = random_case(shape, dims)
    expected = torch_layer_norm(
        torch.tensor(x), normalized_shape, torch.tensor(weight), torch.tensor(bias), eps
    )
    y = reference.layer_norm(x, normalized_shape, weight, bias, eps)
    assert y.dtype == np.float64
    np.testing.assert_allclose(y, expected.numpy(), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(("shape", "dims"), CASES)
def test_intermediate_results(shape, dims):
    x, normalized_shape, weight, bias, _ = random_case(shape, dims)
    result = reference.layer_norm_forward(x, normalized_shape, weight, bias, eps=0.3)
    features = tuple(range(-dims, 0))
    kept = shape[:-dims] + (1,) * dims
    assert result.mean.shape == result.variance.shape == result.rstd.shape == kept
    variance, mean = torch.var_mean(torch.tensor(x), features, correction=0, keepdim=True)
    np.testing.assert_allclose(result.mean, mean.numpy(), rtol=1e-12)
    np.testing.assert_allclose(result.variance, variance.numpy(), rtol=1e-12)
    np.testing.assert_allclose(result.rstd**-2, result.variance + 0.3, rtol=1e-12)
    np.testing.assert_allclose(result.y, weight * result.normalized + bias, rtol=1e-12)


def test_an_integer_stands_for_one_dimension():
    x, *_ = random_case((2, 3, 4), 1)
    np.testing.assert_array_equal(reference.layer_norm(x, 4), reference.layer_norm(x, (4,)))


def test_inputs_become_float64():
    x = np.array([[1, 2, 4], [7, 1, 1]])
    expected = reference.layer_norm(x.astype(np.float64), 3)
    for converted in (x, x.tolist(), x.astype(np.float16)):
        y = reference.layer_norm(converted, 3)
        assert y.dtype == np.float64
        np.testing.assert_array_equal(y, expected)


def test_a_large_mean_cancels_nothing():
    # Integers, so that adding 2**30 is exact; a one-pass variance would lose every digit.
    x = np.random.default_rng(2).integers(-9, 10, (3, 8)).astype(np.float64)
    expected = reference.layer_norm_forward(x, 8)
    shifted = reference.layer_norm_forward(x + 2.0**30, 8)
    np.testing.assert_allclose(shifted.variance, expected.variance, rtol=1e-12)
    np.testing.assert_allclose(shifted.y, expected.y, rtol=1e-12, atol=1e-12)


def test_a_zero_eps_has_no_answer_for_a_constant_row():
    y = reference.layer_norm([[5.0, 5.0], [1.0, 3.0]], 2, eps=0.0)  # warnings are errors here
    assert np.isnan(y[0]).all()
    np.testing.assert_array_equal(y[1], [-1.0, 1.0])


@pytest.mark.parametrize(("shape", "dims"), CASES)
@pytest.mark.parametrize("eps", [1e-5, 0.7])
def test_backward_equals_finite_differences(shape, dims, eps):
    x, normalized_shape, weight, bias, upstream = random_case(shape, dims)

    def loss(x, weight, bias):
        return float(
            (reference.layer_norm(x, normalized_shape, weight, bias, eps) * upstream).sum()
        )

    grads = reference.layer_norm_backward(upstream, x, normalized_shape, weight, eps=eps)
    expected = (
        central_difference(lambda changed: loss(changed, weight, bias), x),
        central_difference(lambda changed: loss(x, changed, bias), weight),
        central_difference(lambda changed: loss(x, weight, changed), bias),
    )
    for grad, difference in zip(grads, expected, strict=True):
        assert grad.shape == difference.shape
        np.testing.assert_allclose(grad, difference, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize(("shape", "dims"), CASES)
@pytest.mark.parametrize("affine", [True, False])
def test_backward_equals_autograd_through_pytorch(shape, dims, affine):
    x, normalized_shape, weight, bias, upstream = random_case(shape, dims, seed=1)
    if not affine:
        weight, bias = np.ones_like(weight), np.zeros_like(bias)
    inputs = [torch.tensor(array, requires_grad=True) for array in (x, weight, bias)]
    y = torch_layer_norm(inputs[0], normalized_shape, inputs[1], inputs[2], 0.01)
    expected = torch.autograd.grad(y, inputs, torch.tensor(upstream))
    grads = reference.layer_norm_backward(
        upstream, x, normalized_shape, weight if affine else None, eps=0.01
    )
    for grad, autograd in zip(grads, expected, strict=True):
        np.testing.assert_allclose(grad, autograd.numpy(), rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("features", [1, 2, 3, 8])
@pytest.mark.parametrize("scaled", [True, False])
def test_jacobian_equals_finite_differences(features, scaled):
    x, _, weight, _, _ = random_case((features,), 1)
    weight = weight if scaled else None
    jacobian = reference.layer_norm_jacobian(x, weight, 0.1)
    rows = [
        central_difference(lambda x, i=i: reference.layer_norm(x, x.shape, weight, eps=0.1)[i], x)
        for i in range(features)
    ]
    np.testing.assert_allclose(jacobian, np.array(rows), atol=1e-8)


def test_jacobian_eigenvalues():
    x, *_ = random_case((7,), 1)
    forward = reference.layer_norm_forward(x, 7, eps=0.2)
    jacobian = reference.layer_norm_jacobian(x, eps=0.2)
    np.testing.assert_allclose(jacobian, jacobian.T, atol=1e-15)
    np.testing.assert_allclose(jacobian @ np.ones(7), 0.0, atol=1e-14)
    along = forward.rstd * 0.2 / (forward.variance + 0.2)
    np.testing.assert_allclose(jacobian @ forward.normalized, along * forward.normalized)
    assert np.linalg.matrix_rank(reference.layer_norm_jacobian(x, eps=0.0), tol=1e-10) == 5
    assert np.linalg.matrix_rank(jacobian, tol=1e-10) == 6
    constant = reference.layer_norm_jacobian(np.full(7, 3.0), eps=1e-5)
    assert math.isclose(np.linalg.norm(constant, 2), 1e-5**-0.5, rel_tol=1e-9)


def test_the_reference_does_without_torch():
    code = "import lnbook.reference, sys; sys.exit('torch' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
