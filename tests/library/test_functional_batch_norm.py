"""Batch, instance and group norm, checked against PyTorch."""

import inspect
import itertools
import math

import numpy as np
import pytest
import torch
from torch.nn import functional as native

from lnbook.functional import batch_norm, group_norm, instance_norm

FLOATING = [torch.float16, torch.bfloat16, torch.float32, torch.float64]
SHAPES = [(6, 4), (3, 4, 5), (2, 4, 3, 2), (1, 4, 5)]
WITH_POSITIONS = SHAPES[1:]
AFFINE = [*itertools.product([True, False], repeat=2)]


def random_tensors(shape, dtype=torch.float64, parameter_dtype=None, seed=0):
    """Return input, weight, bias, upstream gradient, running mean and variance: all random."""
    rng = np.random.default_rng(seed)
    channel = (shape[1], *[1] * (len(shape) - 2))
    x = rng.uniform(0.5, 3.0, channel) * rng.standard_normal(shape) + rng.standard_normal(channel)
    parameters = rng.standard_normal((4, shape[1]))
    parameters[3] = np.abs(parameters[3]) + 0.1
    weight, bias, mean, var = torch.tensor(parameters).to(parameter_dtype or dtype)
    upstream = torch.tensor(rng.standard_normal(shape)).to(dtype)
    return torch.tensor(x).to(dtype), weight, bias, upstream, mean, var


def run(call, x, weight, bias, upstream):
    """Return the output and the gradients of x, weight and bias (those that are given)."""
    x, weight, bias = (
        None if t is None else t.detach().clone().requires_grad_() for t in (x, weight, bias)
    )
    y = call(x, weight, bias)
    return y.detach(), *torch.autograd.grad(
        y, [t for t in (x, weight, bias) if t is not None], upstream
    )


def close(ours, theirs, tolerance):
    for tensor, expected in zip(ours, theirs, strict=True):
        torch.testing.assert_close(tensor, expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("affine", AFFINE)
@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-11), (torch.float32, 1e-5)])
def test_batch_norm_equals_pytorch(shape, affine, training, dtype, tolerance):
    x, weight, bias, upstream, mean, var = random_tensors(shape, dtype)
    weight, bias = weight if affine[0] else None, bias if affine[1] else None
    results = []
    for function in (batch_norm, native.batch_norm):
        moved = mean.clone(), var.clone()

        def call(x, weight, bias, function=function, moved=moved):
            return function(x, *moved, weight, bias, training, 0.3, 0.01)

        results.append([*run(call, x, weight, bias, upstream), *moved])
    close(*results, tolerance)
    assert torch.equal(results[0][-1], var) != training


@pytest.mark.parametrize("shape", WITH_POSITIONS)
@pytest.mark.parametrize(
    ("use_input_stats", "running"), [(True, True), (True, False), (False, True)]
)
def test_instance_norm_equals_pytorch(shape, use_input_stats, running):
    x, weight, bias, upstream, mean, var = random_tensors(shape)
    results = []
    for function in (instance_norm, native.instance_norm):
        moved = (mean.clone(), var.clone()) if running else (None, None)

        def call(x, weight, bias, function=function, moved=moved):
            return function(x, *moved, weight, bias, use_input_stats, 0.3, 0.01)

        results.append([*run(call, x, weight, bias, upstream), *(moved if running else ())])
    close(*results, 1e-10)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("groups", [1, 2, 4])
@pytest.mark.parametrize("affine", AFFINE)
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-11), (torch.float32, 1e-5)])
def test_group_norm_equals_pytorch(shape, groups, affine, dtype, tolerance):
    x, weight, bias, upstream, *_ = random_tensors(shape, dtype)
    weight, bias = weight if affine[0] else None, bias if affine[1] else None
    results = []
    for function in (group_norm, native.group_norm):

        def call(x, weight, bias, function=function):
            if weight is None and function is native.group_norm:
                weight = torch.ones(4, dtype=dtype)  # PyTorch needs it to differentiate the bias
            return function(x, groups, weight, bias, 0.01)

        results.append(run(call, x, weight, bias, upstream))
    close(*results, tolerance)


@pytest.mark.parametrize("dtype", FLOATING[:2])
@pytest.mark.parametrize("full_parameters", [True, False])
def test_half_precision_rounds_once(dtype, full_parameters):
    tensors = random_tensors((64, 8, 3), dtype, torch.float32 if full_parameters else dtype)
    x, weight, bias, _, mean, var = tensors
    unit = torch.finfo(dtype).eps
    d = [t.double() for t in (x, weight, bias, mean, var)]
    for y, exact in (
        (batch_norm(x, mean, var, weight, bias), native.batch_norm(d[0], *d[3:], *d[1:3])),
        (
            batch_norm(x, None, None, weight, bias, True),
            native.batch_norm(d[0], None, None, *d[1:3], True),
        ),
        (group_norm(x, 2, weight, bias), native.group_norm(d[0], 2, *d[1:3])),
        (
            instance_norm(x, None, None, weight, bias),
            native.instance_norm(d[0], None, None, *d[1:3]),
        ),
    ):
        assert y.dtype == dtype
        assert bool(((y - exact).abs() <= 0.5 * unit * exact.abs() + 2e-5).all())


@pytest.mark.parametrize("mean", [1e2, 1e4, 1e6])
def test_a_large_mean_costs_no_digits(mean):
    x = torch.tensor(np.random.default_rng(2).standard_normal((64, 4, 9)) + mean).float()
    for y, exact in (
        (
            batch_norm(x, None, None, training=True),
            native.batch_norm(x.double(), None, None, None, None, True),
        ),
        (instance_norm(x), native.instance_norm(x.double())),
        (group_norm(x, 2), native.group_norm(x.double(), 2)),
    ):
        assert float((y - exact).abs().max()) < 5e-6


def test_in_evaluation_no_sample_sees_another():
    x, weight, bias, _, mean, var = random_tensors((6, 4))
    y = batch_norm(x, mean, var, weight, bias)
    assert torch.equal(batch_norm(x[2:3], mean, var, weight, bias), y[2:3])
    assert not torch.equal(
        batch_norm(x[:2], None, None, training=True), batch_norm(x, None, None, training=True)[:2]
    )


@pytest.mark.parametrize(("count", "channels"), [(2, 3), (5, 1)])
def test_the_running_statistics_of_few_values_equal_pytorchs(count, channels):
    x, *_ = random_tensors((count, channels))
    results = []
    for function in (batch_norm, native.batch_norm):
        mean, var = torch.zeros(channels).double(), torch.ones(channels).double()
        function(x, mean, var, training=True)
        results.append((mean, var))
    close(*results, 1e-12)


def test_the_running_mean_is_exact_far_from_zero():
    x = 1e6 + random_tensors((9, 4), torch.float32)[0]
    mean, var = torch.zeros(4), torch.ones(4)
    batch_norm(x, mean, var, training=True, momentum=1.0)
    assert torch.equal(mean, x.double().mean(0).float())


def test_a_channel_that_overflows_gives_nan():
    x = torch.tensor([[1e30, 1.0], [-1e30, 2.0]])
    y = batch_norm(x, None, None, training=True)
    assert y.isnan().any(0).tolist() == [True, False]


def test_the_output_is_contiguous():
    x = random_tensors((3, 5, 4))[0].transpose(1, 2)
    assert batch_norm(x, None, None, training=True).is_contiguous()


@pytest.mark.parametrize("function", [batch_norm, instance_norm, group_norm])
def test_the_defaults_are_pytorchs(function):
    ours, theirs = (
        {name: p.default for name, p in inspect.signature(f).parameters.items()}
        for f in (function, getattr(native, function.__name__))
    )
    assert ours == theirs


def test_a_group_with_one_value_is_refused_in_a_lone_sample_only():
    with pytest.raises(ValueError, match="more than one value per group"):
        group_norm(torch.ones(1, 2, 1), 2)
    x = random_tensors((2, 2, 1))[0]
    for groups in (1, 2):
        torch.testing.assert_close(group_norm(x, groups), native.group_norm(x, groups))


def test_an_empty_batch_moves_nothing():
    mean, var = torch.ones(3), torch.full((3,), 2.0)
    assert batch_norm(torch.ones(0, 3), mean, var, training=True).shape == (0, 3)
    assert instance_norm(torch.ones(0, 3, 2), mean, var).shape == (0, 3, 2)
    assert mean.tolist() == [1.0] * 3
    assert var.tolist() == [2.0] * 3


def test_the_running_statistics_follow_a_batch_that_is_not_finite():
    x, *_ = random_tensors((5, 2))
    x[0, 0] = math.nan
    mean, var = torch.zeros(2).double(), torch.ones(2).double()
    batch_norm(x, mean, var, training=True)
    assert mean.isnan().tolist() == var.isnan().tolist() == [True, False]


X = torch.arange(24.0).reshape(4, 3, 2)
C = torch.ones(3)
REFUSED = [
    (batch_norm, (None, None, None), TypeError, "input to be a tensor, but got NoneType"),
    (batch_norm, (X, None, None), RuntimeError, "running_mean to be a tensor .* None"),
    (batch_norm, (X, C, None), RuntimeError, "running_var to be a tensor .* None"),
    (batch_norm, (X, C, None, None, None, True), ValueError, "both be tensors or both None"),
    (
        batch_norm,
        (X, torch.ones(4), torch.ones(4)),
        RuntimeError,
        r"running_mean .*=\(3,\).*\(4,\)",
    ),
    (
        batch_norm,
        (X, C, C, torch.ones(2)),
        RuntimeError,
        r"weight .*\(C,\)=\(3,\), .*\(2,\)",
    ),
    (batch_norm, (X, C, C, None, X), RuntimeError, r"bias .*\(3,\), but got .*\(4, 3, 2\)"),
    (
        batch_norm,
        (X, C, C, C.double()),
        RuntimeError,
        "weight to be torch.float32 .*float64",
    ),
    (batch_norm, (X.long(), C, C), NotImplementedError, "but got torch.int64"),
    (batch_norm, (X[:1, :, :1], None, None, None, None, True), ValueError, r"more than one value"),
    (batch_norm, (X, C, C, None, None, True, None), TypeError, "momentum .* None of type NoneType"),
    (batch_norm, (X, C, C, None, None, False, 0.1, -1.0), ValueError, "eps .* but got -1.0"),
    (batch_norm, (X, C, C, None, None, True, 0.1, 0.0), ValueError, "eps to be above 0"),
    (batch_norm, (X, C, torch.ones(4)), RuntimeError, r"running_var .*\(3,\), but got .*\(4,\)"),
    (group_norm, (X, -1), ValueError, "num_groups to be at least 1, but got -1"),
    (group_norm, (X, 2), RuntimeError, r"divisible by num_groups=2, but got .*\(4, 3, 2\)"),
    (group_norm, (X[0, 0], 1), RuntimeError, r"\(N, C, \*\) .* but got input of shape \(2,\)"),
    (group_norm, (X, 1.0), TypeError, "num_groups to be an integer, but got 1.0 of type float"),
    (group_norm, (X[:1, :1, :1], 1), ValueError, "more than one value per group"),
    (group_norm, (X, 1, torch.ones(4)), RuntimeError, r"weight .*\(3,\), but got .*\(4,\)"),
    (group_norm, (X.long(), 1), NotImplementedError, "but got torch.int64"),
    (instance_norm, (X[:, :, 0],), ValueError, r"more than one position .*\(4, 3\)"),
    (
        instance_norm,
        (X, None, None, None, None, False),
        RuntimeError,
        "running_mean to be a tensor",
    ),
    (instance_norm, (X, None, None, torch.ones(4)), RuntimeError, r"weight .*\(3,\).*\(4,\)"),
    (instance_norm, (X, None, None, C, torch.ones(4)), RuntimeError, r"bias .*\(3,\).*\(4,\)"),
    (instance_norm, (X, torch.ones(4), C), RuntimeError, r"running_mean .*\(3,\).*\(4,\)"),
    (instance_norm, (X, C, torch.ones(4)), RuntimeError, r"running_var .*\(3,\).*\(4,\)"),
]


@pytest.mark.parametrize(("function", "arguments", "error", "message"), REFUSED)
def test_refusals_name_what_was_given_and_expected(function, arguments, error, message):
    with pytest.raises(error, match=f"{function.__name__}: .*{message}"):
        function(*arguments)
    other = getattr(native, function.__name__)
    with pytest.raises((TypeError, RuntimeError, ValueError)):
        other(*arguments)
