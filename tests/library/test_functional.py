"""layer_norm on tensors, checked against PyTorch's own."""

import itertools
import math

import numpy as np
import pytest
import torch
from torch.nn.functional import layer_norm as torch_layer_norm

from lnbook.functional import layer_norm
from tests.helpers.random_tensors import CASES

FLOATING = [torch.float16, torch.bfloat16, torch.float32, torch.float64]


def random_tensors(shape, dims=1, dtype=torch.float64, parameter_dtype=None, seed=0):
    """Return input, weight, bias and upstream gradient: random, and rounded to the dtypes."""
    rng = np.random.default_rng(seed)
    normalized_shape = shape[-dims:]
    x = torch.tensor(3.0 * rng.standard_normal(shape) + 2.0).to(dtype)
    weight = torch.tensor(rng.standard_normal(normalized_shape)).to(parameter_dtype or dtype)
    bias = torch.tensor(rng.standard_normal(normalized_shape)).to(parameter_dtype or dtype)
    return x, weight, bias, torch.tensor(rng.standard_normal(shape)).to(dtype)


def run(function, x, normalized_shape, weight, bias, upstream, eps=1e-5):
    """Return the output and the gradients of x, weight and bias (those that are given)."""
    x, weight, bias = (
        None if t is None else t.detach().clone().requires_grad_() for t in (x, weight, bias)
    )
    y = function(x, normalized_shape, weight, bias, eps)
    inputs = [t for t in (x, weight, bias) if t is not None]
    return y.detach(), *torch.autograd.grad(y, inputs, upstream)


@pytest.mark.parametrize(("shape", "dims"), CASES)
@pytest.mark.parametrize(("has_weight", "has_bias"), [*itertools.product([True, False], repeat=2)])
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-12), (torch.float32, 5e-6)])
def test_outputs_and_gradients_equal_pytorch(shape, dims, has_weight, has_bias, dtype, tolerance):
    x, weight, bias, upstream = random_tensors(shape, dims, dtype)
    weight, bias = weight if has_weight else None, bias if has_bias else None
    ours = run(layer_norm, x, shape[-dims:], weight, bias, upstream)
    theirs = run(torch_layer_norm, x, shape[-dims:], weight, bias, upstream)
    for tensor, expected in zip(ours, theirs, strict=True):
        torch.testing.assert_close(tensor, expected, rtol=tolerance, atol=tolerance)


def test_default_eps_is_that_of_pytorch():
    x = 1e-3 * random_tensors((3, 6))[0]
    assert torch.allclose(layer_norm(x, (6,)), torch_layer_norm(x, (6,)), rtol=1e-12, atol=0.0)


# Precision


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("full_parameters", [True, False])
def test_half_precision_rounds_once(dtype, full_parameters):
    tensors = random_tensors((64, 96), 1, dtype, torch.float32 if full_parameters else dtype)
    x, weight, bias, upstream = tensors
    y, *grads = run(layer_norm, x, (96,), weight, bias, upstream)
    exact_y, *exact_grads = run(torch_layer_norm, *_in_float64(x, (96,), weight, bias, upstream))
    assert [y.dtype, *(grad.dtype for grad in grads)] == [x.dtype, x.dtype, *2 * [weight.dtype]]
    unit = torch.finfo(dtype).eps
    # Rounding to nearest is off by half a unit at most; the rest is float32 arithmetic.
    assert bool(((y - exact_y).abs() <= 0.5 * unit * exact_y.abs() + 4e-6).all())
    for grad, exact in zip(grads, exact_grads, strict=True):
        unit = max(torch.finfo(grad.dtype).eps, 2e-6)
        assert float((grad - exact).abs().max()) <= unit * float(exact.abs().max())


def _in_float64(x, normalized_shape, *tensors):
    weight, bias, upstream = (t.double() for t in tensors)
    return x.double(), normalized_shape, weight, bias, upstream


def test_float16_statistics_do_not_overflow():
    x = torch.tensor([[60000.0, -60000.0, 1000.0, 500.0]], dtype=torch.float16)
    expected = torch_layer_norm(x.double(), (4,))
    assert torch.allclose(layer_norm(x, (4,)).double(), expected, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("mean", [1e2, 1e4, 1e6])
def test_a_large_mean_costs_no_digits(mean):
    rng = np.random.default_rng(2)
    x = torch.tensor(rng.standard_normal((32, 768)) + mean).float()
    weight, bias = torch.tensor(rng.standard_normal((2, 768))).float()
    exact = torch_layer_norm(x.double(), (768,), weight.double(), bias.double())
    error = (layer_norm(x, (768,), weight, bias) - exact).abs().max()
    assert float(error) < 5e-6  # PyTorch itself is off by 1e-3 at a mean of 1e4


@pytest.mark.parametrize("scale", [1e-6, 1e-3, 1e3, 1e10, 1e15, 1e18])
def test_gradients_hold_at_every_scale(scale):
    x, weight, bias, upstream = random_tensors((8, 16), 1, torch.float32)
    arguments = (scale * x, (16,), weight, bias, upstream)
    grads = run(layer_norm, *arguments)[1:]
    exact = run(torch_layer_norm, *_in_float64(*arguments))[1:]
    for ours, expected in zip(grads, exact, strict=True):
        assert float((ours - expected).abs().max()) <= 1e-5 * float(expected.abs().max())


def test_eps_is_added_to_the_variance_inside_the_root():
    y = layer_norm(torch.tensor([-1.0, 1.0]), (2,), eps=3.0)
    assert y.tolist() == [-0.5, 0.5]


# Special values


@pytest.mark.parametrize(
    "row",
    [
        [1.0, 2.0, math.inf, 3.0],
        [1.0, -math.inf, math.inf, 3.0],
        [1.0, 2.0, math.nan, 3.0],
        [1e30, 2e30, -1e30, 0.0],
        [3e38, 3e38, 3e38, 1e38],
        [3e38, -3e38, 0.0, 0.0],
    ],
)
def test_infinite_and_overflowing_rows_are_nan_and_stay_alone(row):
    x = torch.tensor([row, [1.0, 2.0, 4.0, 8.0]])
    upstream = torch.tensor([1.0, 2.0, 3.0, 5.0]).expand(2, 4)
    weight = torch.tensor([0.5, 2.0, -1.0, 3.0])
    for ours, theirs in zip(
        run(layer_norm, x, (4,), None, weight, upstream),
        run(torch_layer_norm, x, (4,), None, weight, upstream),
        strict=True,
    ):
        torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-6, equal_nan=True)
    assert layer_norm(x, (4,), weight)[0].isnan().all()


@pytest.mark.parametrize(
    ("shape", "normalized_shape"),
    [((0, 4), (4,)), ((3, 0, 4), (4,)), ((2, 0), (0,)), ((2, 0, 3), (0, 3)), ((0,), (0,))],
)
def test_empty_tensors(shape, normalized_shape):
    weight, bias = torch.full(normalized_shape, 2.0), torch.full(normalized_shape, 3.0)
    arguments = (torch.ones(shape), normalized_shape, weight, bias, torch.ones(shape))
    for ours, theirs in zip(
        run(layer_norm, *arguments), run(torch_layer_norm, *arguments), strict=True
    ):
        assert ours.shape == theirs.shape
        assert torch.equal(ours, theirs)


# Layout, devices and independence


def test_rows_do_not_depend_on_the_batch_bit_for_bit():
    for dtype, features in itertools.product([torch.float32, torch.float64], [1, 3, 33, 64, 768]):
        x, weight, bias, _ = random_tensors((17, features), 1, dtype)
        y = layer_norm(x, (features,), weight, bias)
        for i in (0, 7, 16):
            assert torch.equal(layer_norm(x[i : i + 1], (features,), weight, bias)[0], y[i])
            assert torch.equal(layer_norm(x[i], (features,), weight, bias), y[i])
        assert torch.equal(layer_norm(x.flip(0), (features,), weight, bias), y.flip(0))


@pytest.mark.parametrize("dtype", FLOATING)
def test_memory_layout_changes_nothing(dtype):
    x = random_tensors((2, 3, 4, 5), 3, dtype)[0]
    expected = layer_norm(x, (3, 4, 5))
    layouts = [
        x.to(memory_format=torch.channels_last),
        x.transpose(1, 3).contiguous().transpose(1, 3),
        torch.stack([x, x], dim=-1)[..., 0],
    ]
    for layout in layouts:
        y = layer_norm(layout, (3, 4, 5))
        assert torch.equal(y, expected)
        assert y.is_contiguous()
        assert not layout.is_contiguous()


def test_requires_grad_follows_the_inputs():
    x, weight, bias, _ = random_tensors((3, 4))
    assert not layer_norm(x, (4,), weight, bias).requires_grad
    assert layer_norm(x, (4,), weight, bias.clone().requires_grad_()).requires_grad
    with torch.no_grad():
        assert not layer_norm(x.clone().requires_grad_(), (4,)).requires_grad


def test_cpu_autocast_keeps_the_dtype_as_in_pytorch():
    for dtype in FLOATING:
        x = random_tensors((3, 4), 1, dtype)[0]
        with torch.autocast("cpu", dtype=torch.bfloat16):
            ours, theirs = layer_norm(x, (4,)), torch_layer_norm(x, (4,))
        assert ours.dtype == theirs.dtype == dtype


@pytest.mark.parametrize(
    "normalized_shape",
    [(4,), [4], torch.Size([4]), (np.int64(4),), (torch.tensor(4),)],
    ids=["tuple", "list", "Size", "NumPy integer", "tensor integer"],
)
def test_ways_to_write_the_shape(normalized_shape):
    x = random_tensors((3, 4))[0]
    torch_layer_norm(x, normalized_shape)
    assert torch.equal(layer_norm(x, normalized_shape), layer_norm(x, (4,)))


@pytest.mark.parametrize("eps", [0, 1, 1e-5, np.float32(1e-5), np.float64(1e-5), 1e-50])
def test_ways_to_write_eps(eps):
    x = random_tensors((3, 4))[0]
    ours, theirs = layer_norm(x, (4,), eps=eps), torch_layer_norm(x, (4,), eps=eps)
    torch.testing.assert_close(ours, theirs, rtol=1e-12, atol=1e-12)


# Rejected input


@pytest.mark.parametrize("input_dtype", FLOATING)
def test_the_same_mixtures_of_dtypes_as_pytorch(input_dtype):
    x = torch.ones(2, 4).to(input_dtype)
    accepted = 0
    for weight_dtype, bias_dtype in itertools.product([*FLOATING, None], repeat=2):
        weight, bias = (
            None if dtype is None else torch.ones(4).to(dtype)
            for dtype in (weight_dtype, bias_dtype)
        )
        try:
            expected = torch_layer_norm(x, (4,), weight, bias)
        except RuntimeError:
            with pytest.raises(RuntimeError, match=rf"expected (weight|bias) to be .*{x.dtype}"):
                layer_norm(x, (4,), weight, bias)
        else:
            accepted += 1
            assert layer_norm(x, (4,), weight, bias).dtype == expected.dtype == input_dtype
    assert accepted == (7 if input_dtype in (torch.float16, torch.bfloat16) else 4)


X = torch.arange(8.0).reshape(2, 4)
ONES = torch.ones(4)
# The call's arguments, the error type (PyTorch raises it, too), and what the message must contain.
REFUSED_BY_BOTH = [
    ((X.numpy(), (4,)), TypeError, "expected input to be a tensor, but got ndarray"),
    ((None, (4,)), TypeError, "expected input to be a tensor, but got NoneType"),
    ((X, (4,), [1.0] * 4), TypeError, "expected weight to be a tensor, but got list"),
    ((X, (4,), None, 1.0), TypeError, "expected bias to be a tensor, but got float"),
    ((X, 4), TypeError, r"tuple or list of integers, but got 4 of type int; write \(4,\)"),
    ((X, "4"), TypeError, "tuple or list of integers, but got '4' of type str"),
    ((X, None), TypeError, "tuple or list of integers, but got None of type NoneType"),
    ((X, {4}), TypeError, r"tuple or list of integers, but got \{4\} of type set"),
    ((X, range(4, 5)), TypeError, r"tuple or list of integers, but got range\(4, 5\)"),
    ((X, torch.tensor([4])), TypeError, "tuple or list of integers, .* of type Tensor"),
    ((X, (4.0,)), TypeError, "to contain integers, but got 4.0 of type float"),
    ((X, ("4",)), TypeError, "to contain integers, but got '4' of type str"),
    ((X, (True,)), TypeError, "to contain integers, but got True of type bool"),
    ((X, ()), RuntimeError, r"at least one dimension .* but got normalized_shape=\(\)"),
    ((torch.tensor(1.0), ()), RuntimeError, "at least one dimension"),
    ((torch.tensor(1.0), (1,)), RuntimeError, r"normalized_shape=\(1,\), .* of shape \(\)"),
    ((X, (-4,)), RuntimeError, r"no negative sizes, but got normalized_shape=\(-4,\)"),
    ((X, (5,)), RuntimeError, r"normalized_shape=\(5,\), but got input of shape \(2, 4\)"),
    ((X, (0,)), RuntimeError, r"normalized_shape=\(0,\), but got input of shape \(2, 4\)"),
    ((X, (1,)), RuntimeError, r"normalized_shape=\(1,\), but got input of shape \(2, 4\)"),
    ((X, (2,)), RuntimeError, r"normalized_shape=\(2,\), but got input of shape \(2, 4\)"),
    ((X, (1, 2, 4)), RuntimeError, r"normalized_shape=\(1, 2, 4\), .* of shape \(2, 4\)"),
    ((X, (4,), torch.ones(3)), RuntimeError, r"weight .*=\(4,\), but got weight of shape \(3,\)"),
    ((X, (4,), torch.ones(1)), RuntimeError, r"weight .*=\(4,\), but got weight of shape \(1,\)"),
    ((X, (4,), torch.tensor(1.0)), RuntimeError, r"=\(4,\), but got weight of shape \(\)"),
    ((X, (4,), X), RuntimeError, r"weight .*=\(4,\), but got weight of shape \(2, 4\)"),
    ((X, (2, 4), torch.ones(8)), RuntimeError, r"=\(2, 4\), but got weight of shape \(8,\)"),
    ((X, (4,), ONES, torch.ones(3)), RuntimeError, r"bias .*=\(4,\), but got bias of shape \(3,\)"),
    ((X.long(), (4,)), NotImplementedError, "expected input .* but got torch.int64"),
    ((X.bool(), (4,)), NotImplementedError, "expected input .* but got torch.bool"),
    ((X.cfloat(), (4,)), NotImplementedError, "expected input .* but got torch.complex64"),
    ((X.to(torch.float8_e4m3fn), (4,)), NotImplementedError, "but got torch.float8_e4m3fn"),
    ((X, (4,), ONES.long()), RuntimeError, "weight to be torch.float32 .* but got torch.int64"),
    ((X, (4,), ONES.cfloat()), RuntimeError, "weight to be torch.float32 .* torch.complex64"),
    ((X, (4,), None, ONES.bool()), RuntimeError, "bias to be torch.float32 .* but got torch.bool"),
    ((X.to("meta"), (4,), ONES), RuntimeError, "of input, meta, but got weight on cpu"),
    ((X, (4,), ONES.to("meta")), RuntimeError, "of input, cpu, but got weight on meta"),
    ((X, (4,), None, ONES.to("meta")), RuntimeError, "of input, cpu, but got bias on meta"),
    ((X.to_sparse(), (4,)), RuntimeError, "input to be a dense tensor, .* torch.sparse_coo"),
    (
        (X, (4,), None, None, "1e-5"),
        TypeError,
        "eps to be a real number, but got '1e-5' of type str",
    ),
    ((X, (4,), None, None, None), TypeError, "eps to be a real number, but got None"),
    ((X, (4,), None, None, 1j), TypeError, "eps to be a real number, but got 1j of type complex"),
    ((X, (4,), None, None, torch.ones(1)), TypeError, "eps to be a real number, .*Tensor"),
]


@pytest.mark.parametrize(("arguments", "error", "message"), REFUSED_BY_BOTH)
def test_refusals_are_those_of_pytorch_and_clear(arguments, error, message):
    with pytest.raises(error, match=message) as ours:
        layer_norm(*arguments)
    with pytest.raises(error) as theirs:
        torch_layer_norm(*arguments)
    assert ours.type is theirs.type
