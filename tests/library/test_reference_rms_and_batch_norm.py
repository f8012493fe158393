"""The NumPy references for RMS, batch, group and instance norm, and the spectra of Jacobians."""

import numpy as np
import pytest
import torch
from torch.nn import functional as native

from lnbook import reference
from tests.helpers.differences import central_difference


def random_case(shape, parameter_shape, seed=0):
    rng = np.random.default_rng(seed)
    x = 3.0 * rng.standard_normal(shape) + 2.0
    return x, *rng.standard_normal((2, *parameter_shape)), rng.standard_normal(shape)


RMS_CASES = [((5,), 1), ((4, 6), 1), ((4, 6), 2), ((2, 3, 5), 2), ((2, 3, 2, 4), 3)]
BATCH_SHAPES = [(6, 4), (3, 4, 5), (2, 4, 3, 2)]


def test_rms_norm_by_hand():
    # Mean square (4 + 16 + 36 + 64) / 4 = 30, and 30 + 6 = 6 ** 2.
    y = reference.rms_norm([2.0, 4.0, 6.0, 8.0], 4, [1.0, 2.0, 3.0, 6.0], eps=6.0)
    np.testing.assert_allclose(y, [1 / 3, 4 / 3, 3.0, 8.0])


@pytest.mark.parametrize(("shape", "dims"), RMS_CASES)
@pytest.mark.parametrize("eps", [0.0, 1e-5, 0.7])
@pytest.mark.parametrize("scaled", [True, False])
def test_rms_norm_equals_pytorch(shape, dims, eps, scaled):
    x, weight, _, upstream = random_case(shape, shape[-dims:])
    inputs = [torch.tensor(x, requires_grad=True)]
    inputs += [torch.tensor(weight, requires_grad=True)] if scaled else []
    y = native.rms_norm(inputs[0], shape[-dims:], inputs[1] if scaled else None, eps)
    ours = reference.rms_norm(x, shape[-dims:], weight if scaled else None, eps)
    np.testing.assert_allclose(ours, y.detach().numpy(), rtol=1e-12)
    grads = torch.autograd.grad(y, inputs, torch.tensor(upstream))
    ours = reference.rms_norm_backward(upstream, x, shape[-dims:], weight if scaled else None, eps)
    for array, grad in zip(ours, grads, strict=False):
        np.testing.assert_allclose(array, grad.numpy(), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(("shape", "dims"), RMS_CASES)
def test_rms_norm_backward_equals_finite_differences(shape, dims):
    x, weight, _, upstream = random_case(shape, shape[-dims:])

    def loss(x, weight):
        return float((reference.rms_norm(x, shape[-dims:], weight, 0.1) * upstream).sum())

    grads = reference.rms_norm_backward(upstream, x, shape[-dims:], weight, 0.1)
    expected = central_difference(lambda x: loss(x, weight), x)
    np.testing.assert_allclose(grads[0], expected, rtol=1e-6, atol=1e-7)
    expected = central_difference(lambda weight: loss(x, weight), weight)
    np.testing.assert_allclose(grads[1], expected, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("shape", BATCH_SHAPES)
@pytest.mark.parametrize("momentum", [0.1, 0.7])
def test_batch_norm_equals_pytorch(shape, momentum):
    x, weight, bias, upstream = random_case(shape, (4,))
    mean, var = np.random.default_rng(5).uniform(0.5, 2.0, (2, 4))
    moved = torch.tensor(mean), torch.tensor(var)
    inputs = [torch.tensor(array, requires_grad=True) for array in (x, weight, bias)]
    y = native.batch_norm(inputs[0], *moved, inputs[1], inputs[2], True, momentum, 0.01)
    result = reference.batch_norm_forward(x, mean, var, weight, bias, momentum=momentum, eps=0.01)
    np.testing.assert_allclose(result.y, y.detach().numpy(), rtol=1e-11, atol=1e-12)
    training = reference.batch_norm(x, mean, var, weight, bias, True, momentum, 0.01)
    np.testing.assert_array_equal(training, result.y)
    np.testing.assert_allclose(result.running_mean, moved[0].numpy(), rtol=1e-12)
    np.testing.assert_allclose(result.running_var, moved[1].numpy(), rtol=1e-12)
    grads = torch.autograd.grad(y, inputs, torch.tensor(upstream))
    ours = reference.batch_norm_backward(upstream, x, weight, 0.01)
    for array, grad in zip(ours, grads, strict=True):
        np.testing.assert_allclose(array, grad.numpy(), rtol=1e-9, atol=1e-11)
    y = native.batch_norm(inputs[0], *moved, inputs[1], inputs[2], eps=0.01)
    ours = reference.batch_norm(x, moved[0].numpy(), moved[1].numpy(), weight, bias, eps=0.01)
    np.testing.assert_allclose(ours, y.detach().numpy(), rtol=1e-11, atol=1e-12)


def test_batch_norm_backward_equals_finite_differences():
    x, weight, bias, upstream = random_case((3, 2, 2), (2,))

    def loss(x, weight, bias):
        return float(
            (reference.batch_norm_forward(x, None, None, weight, bias, eps=0.1).y * upstream).sum()
        )

    grads = reference.batch_norm_backward(upstream, x, weight, 0.1)
    expected = (
        central_difference(lambda changed: loss(changed, weight, bias), x),
        central_difference(lambda changed: loss(x, changed, bias), weight),
        central_difference(lambda changed: loss(x, weight, changed), bias),
    )
    for grad, difference in zip(grads, expected, strict=True):
        np.testing.assert_allclose(grad, difference, rtol=1e-6, atol=1e-7)


def test_the_statistics_of_a_batch():
    x = np.array([[1.0, 10.0], [3.0, 30.0], [5.0, 80.0]])
    result = reference.batch_norm_forward(x, momentum=1.0)
    np.testing.assert_allclose(result.mean, x.mean(0))
    np.testing.assert_allclose(result.variance, x.var(0))
    np.testing.assert_allclose(result.running_var, x.var(0, ddof=1))
    np.testing.assert_allclose(result.y, result.normalized)


@pytest.mark.parametrize("shape", BATCH_SHAPES)
@pytest.mark.parametrize("groups", [1, 2, 4])
def test_group_norm_equals_pytorch(shape, groups):
    x, weight, bias, _ = random_case(shape, (4,))
    given = [torch.tensor(array) for array in (x, weight, bias)]
    expected = native.group_norm(given[0], groups, *given[1:], 0.01)
    ours = reference.group_norm(x, groups, weight, bias, 0.01)
    np.testing.assert_allclose(ours, expected.numpy(), rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("shape", BATCH_SHAPES[1:])
def test_instance_norm_equals_pytorch(shape):
    x, weight, bias, _ = random_case(shape, (4,))
    given = [torch.tensor(array) for array in (x, weight, bias)]
    expected = native.instance_norm(given[0], weight=given[1], bias=given[2], eps=0.01)
    ours = reference.instance_norm(x, weight, bias, 0.01)
    np.testing.assert_allclose(ours, expected.numpy(), rtol=1e-11, atol=1e-12)
