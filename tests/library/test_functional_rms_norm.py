"""rms_norm and dynamic_tanh, checked against PyTorch and NumPy."""

import itertools
import math

import numpy as np
import pytest
import torch
from torch.nn import functional as native

from lnbook.functional import dynamic_tanh, rms_norm

FLOATING = [torch.float16, torch.bfloat16, torch.float32, torch.float64]
CASES = [((5,), 1), ((4, 6), 1), ((4, 6), 2), ((2, 3, 5), 2), ((2, 3, 2, 4), 3)]


def random_tensors(shape, dims=1, dtype=torch.float64, parameter_dtype=None, seed=0):
    """Return input, weight, bias and upstream gradient: random, and rounded to the dtypes."""
    rng = np.random.default_rng(seed)
    x = torch.tensor(3.0 * rng.standard_normal(shape) + 2.0).to(dtype)
    weight, bias = torch.tensor(rng.standard_normal((2, *shape[-dims:])))
    parameter_dtype = parameter_dtype or dtype
    upstream = torch.tensor(rng.standard_normal(shape)).to(dtype)
    return x, weight.to(parameter_dtype), bias.to(parameter_dtype), upstream


@pytest.mark.parametrize(("shape", "dims"), CASES)
@pytest.mark.parametrize("has_weight", [True, False])
@pytest.mark.parametrize("eps", [None, 0.0, 0.7])
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-12), (torch.float32, 5e-6)])
def test_outputs_and_gradients_equal_pytorch(shape, dims, has_weight, eps, dtype, tolerance):
    x, weight, _, upstream = random_tensors(shape, dims, dtype)
    results = []
    for function in (rms_norm, native.rms_norm):
        inputs = [x.clone().requires_grad_()]
        inputs += [weight.clone().requires_grad_()] if has_weight else []
        y = function(inputs[0], shape[-dims:], inputs[1] if has_weight else None, eps)
        results.append([y.detach(), *torch.autograd.grad(y, inputs, upstream)])
    for tensor, expected in zip(*results, strict=True):
        torch.testing.assert_close(tensor, expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("dtype", FLOATING)
def test_without_eps_it_is_that_of_the_statistics(dtype):
    x = torch.full((1, 4), 1e-4).to(dtype)
    expected = torch.finfo(torch.float64 if dtype == torch.float64 else torch.float32).eps
    assert torch.equal(rms_norm(x, (4,)), rms_norm(x, (4,), eps=expected))
    torch.testing.assert_close(rms_norm(x, (4,)), native.rms_norm(x, (4,)))


@pytest.mark.parametrize("dtype", FLOATING[:2])
@pytest.mark.parametrize("full_parameters", [True, False])
def test_half_precision_rounds_once(dtype, full_parameters):
    x, weight, *_ = random_tensors((64, 96), 1, dtype, torch.float32 if full_parameters else dtype)
    exact = native.rms_norm(x.double(), (96,), weight.double(), 1e-6)
    y = rms_norm(x, (96,), weight, 1e-6)
    assert y.dtype == dtype
    unit = torch.finfo(dtype).eps
    assert bool(((y - exact).abs() <= 0.5 * unit * exact.abs() + 4e-6).all())


def test_special_values():
    x = torch.tensor([[1.0, math.inf], [math.nan, 1.0], [1e30, 1.0], [0.0, 0.0], [3.0, 4.0]])
    assert rms_norm(x, (2,)).isnan().any(1).tolist() == [True, True, True, False, False]
    assert not rms_norm(x, (2,))[3].any()
    assert rms_norm(x, (2,), eps=0.0)[3].isnan().all()


# Dynamic tanh


@pytest.mark.parametrize(("shape", "dims"), CASES)
@pytest.mark.parametrize(("has_weight", "has_bias"), [*itertools.product([True, False], repeat=2)])
def test_dynamic_tanh_and_its_derivatives(shape, dims, has_weight, has_bias):
    x, weight, bias, upstream = random_tensors(shape, dims)
    alpha = torch.tensor([0.7], dtype=torch.float64)
    given = [t.requires_grad_() for t in (x, alpha, weight, bias)]
    y = dynamic_tanh(x, alpha, weight if has_weight else None, bias if has_bias else None)
    scale = weight.detach().numpy() if has_weight else 1.0
    tanh = np.tanh(0.7 * x.detach().numpy())
    expected = scale * tanh + (bias.detach().numpy() if has_bias else 0.0)
    np.testing.assert_allclose(y.detach().numpy(), expected, rtol=1e-12)
    grad_x, grad_alpha = torch.autograd.grad(y, given[:2], upstream)
    slope = scale * (1.0 - tanh**2) * upstream.numpy()
    np.testing.assert_allclose(grad_x.numpy(), 0.7 * slope, rtol=1e-10)
    np.testing.assert_allclose(grad_alpha.item(), (slope * x.detach().numpy()).sum(), rtol=1e-10)


@pytest.mark.parametrize("dtype", FLOATING[:2])
def test_dynamic_tanh_rounds_once(dtype):
    x, weight, bias, _ = random_tensors((64, 16), 1, dtype)
    alpha = torch.tensor([0.3]).to(dtype)
    y = dynamic_tanh(x, alpha, weight, bias)
    exact = weight.double() * torch.tanh(alpha.double() * x.double()) + bias.double()
    unit = torch.finfo(dtype).eps
    assert y.dtype == dtype
    assert bool(((y - exact).abs() <= 0.5 * unit * exact.abs() + 1e-6).all())
