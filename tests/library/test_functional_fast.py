"""The fast Functions, checked against plain forms, PyTorch, float64 and numerical derivatives.

Every case runs with the kernels and with the torch operations that replace them; the latter run
both on the whole input and on small blocks of it.
"""

import itertools

import numpy as np
import pytest
import torch
from torch.nn import functional as native

from lnbook.functional import (
    LayerNormFunction,
    RMSNormFunction,
    _blocks,
    layer_norm,
    layer_norm_backward,
    rms_norm,
    rms_norm_backward,
)
from lnbook.kernels import operators
from tests.helpers.random_tensors import CASES as SHAPES

CASES = [*SHAPES, ((37, 8), 1)]
BLOCK = _blocks.BLOCK
FLOATING = [torch.float16, torch.bfloat16, torch.float32, torch.float64]
HALF = FLOATING[:2]


@pytest.fixture(params=["kernel", BLOCK, 24], ids=["kernel", "one block", "blocks of 24 elements"])
def block(request, monkeypatch):
    if request.param != "kernel":
        without_kernels(monkeypatch)
        monkeypatch.setattr(_blocks, "BLOCK", request.param)
    return request.param


def without_kernels(monkeypatch):
    monkeypatch.setattr(operators, "DEVICES", set())
    monkeypatch.setattr(operators, "_WITHOUT", {"cpu"})


def random_tensors(shape, dims=1, dtype=torch.float64, parameter_dtype=None, seed=0):
    """Return input, weight, bias and upstream gradient. The rows differ in scale and mean."""
    rng = np.random.default_rng(seed)
    normalized_shape = shape[-dims:]
    rows = (*shape[:-dims], *[1] * dims)
    scale, offset = 10.0 ** rng.uniform(-1, 1, rows), 10.0 * rng.standard_normal(rows)
    x = torch.tensor(scale * (rng.standard_normal(shape) + offset)).to(dtype)
    weight = torch.tensor(rng.standard_normal(normalized_shape)).to(parameter_dtype or dtype)
    bias = torch.tensor(rng.standard_normal(normalized_shape)).to(parameter_dtype or dtype)
    return x, weight, bias, torch.tensor(rng.standard_normal(shape)).to(dtype)


def run(function, inputs, shape, upstream, *eps):
    """Return the output and the gradients of the inputs that are not None."""
    inputs = [None if t is None else t.detach().clone().requires_grad_() for t in inputs]
    y = function(inputs[0], shape, *inputs[1:], *eps)
    return y.detach(), *torch.autograd.grad(y, [t for t in inputs if t is not None], upstream)


def close(ours, theirs, rtol, atol=None, **options):
    for tensor, expected in zip(ours, theirs, strict=True):
        torch.testing.assert_close(tensor, expected, rtol=rtol, atol=atol or rtol, **options)


def exact(function, inputs, shape, upstream, *eps):
    return run(function, [None if t is None else t.double() for t in inputs], shape, upstream, *eps)


# Values and first derivatives


@pytest.mark.parametrize(("shape", "dims"), CASES)
@pytest.mark.parametrize(("has_weight", "has_bias"), [*itertools.product([True, False], repeat=2)])
@pytest.mark.parametrize("eps", [1e-5, 0.7])
def test_layer_norm_equals_pytorch(shape, dims, has_weight, has_bias, eps, block):
    x, weight, bias, upstream = random_tensors(shape, dims)
    inputs = (x, weight if has_weight else None, bias if has_bias else None)
    arguments = (inputs, shape[-dims:], upstream, eps)
    close(run(LayerNormFunction.apply, *arguments), run(native.layer_norm, *arguments), 1e-10)


@pytest.mark.parametrize(("shape", "dims"), CASES)
@pytest.mark.parametrize("has_weight", [True, False])
@pytest.mark.parametrize("eps", [None, 0.7])
def test_rms_norm_equals_pytorch(shape, dims, has_weight, eps, block):
    x, weight, _, upstream = random_tensors(shape, dims)
    arguments = ((x, weight if has_weight else None), shape[-dims:], upstream, eps)
    close(run(RMSNormFunction.apply, *arguments), run(native.rms_norm, *arguments), 1e-10)


@pytest.mark.parametrize(("shape", "dims"), [((3,), 1), ((5, 3), 1), ((2, 2, 2), 2)])
@pytest.mark.parametrize("affine", [(True, True), (True, False), (False, True), (False, False)])
@pytest.mark.parametrize("kernel", [True, False])
def test_first_and_second_derivatives(shape, dims, affine, kernel, monkeypatch):
    if not kernel:
        without_kernels(monkeypatch)
    monkeypatch.setattr(_blocks, "BLOCK", 6)
    x, weight, bias, _ = random_tensors(shape, dims)
    inputs = [x, weight if affine[0] else None, bias if affine[1] else None]
    inputs = [None if t is None else t.requires_grad_() for t in inputs]

    def ln(*given):
        return LayerNormFunction.apply(given[0], shape[-dims:], *given[1:], 0.5)

    def rms(*given):
        return RMSNormFunction.apply(given[0], shape[-dims:], given[1], 0.5)

    for function, arguments in ((ln, inputs), (rms, inputs[:2])):
        assert torch.autograd.gradcheck(function, arguments)
        assert torch.autograd.gradgradcheck(function, arguments)


def test_second_derivatives_equal_pytorch():
    # Gradients that are differentiated in turn come from a formula of their own. gradgradcheck only
    # checks that formula's derivatives, not the formula.
    x, weight, bias, upstream = random_tensors((4, 5))

    def second(function, *given):
        inputs = [t.clone().requires_grad_() for t in given]
        y = function(inputs[0], (5,), *inputs[1:])
        grads = torch.autograd.grad(y, inputs[:2], upstream, create_graph=True)
        loss = (grads[0] * upstream.roll(1)).sum() + (grads[1] * upstream[0]).sum()
        return torch.autograd.grad(loss, inputs[:2])

    ours = second(LayerNormFunction.apply, x, weight, bias)
    close(ours, second(native.layer_norm, x, weight, bias), 1e-9)
    ours = second(RMSNormFunction.apply, x, weight)
    close(ours, second(native.rms_norm, x, weight), 1e-9)


@pytest.mark.parametrize("has_weight", [True, False])
@pytest.mark.parametrize(("shape", "dims"), CASES)
def test_plain_backward_formulas_equal_autograd(shape, dims, has_weight):
    x, weight, bias, upstream = random_tensors(shape, dims)
    grads = run(layer_norm, (x, weight if has_weight else None, bias), shape[-dims:], upstream)[1:]
    given = (upstream, x, shape[-dims:], weight if has_weight else None)
    formula = layer_norm_backward(*given)
    close(formula[:2] + formula[2:] if has_weight else formula[::2], grads, 1e-10)
    grads = run(rms_norm, (x, weight if has_weight else None), shape[-dims:], upstream)[1:]
    close(rms_norm_backward(*given)[: len(grads)], grads, 1e-10)


def test_only_the_wanted_gradients_are_computed(block):
    tensors = random_tensors((7, 8))[:3]
    upstream = random_tensors((7, 8), seed=4)[3]
    expected = run(layer_norm, tensors, (8,), upstream)[1:]
    for wanted in itertools.product([True, False], repeat=3):
        if any(wanted):
            inputs = [t.clone().requires_grad_(w) for t, w in zip(tensors, wanted, strict=True)]
            y = LayerNormFunction.apply(inputs[0], (8,), inputs[1], inputs[2])
            y.backward(upstream)
            for tensor, grad, w in zip(inputs, expected, wanted, strict=True):
                assert (tensor.grad is not None) == w
                if w:
                    torch.testing.assert_close(tensor.grad, grad, rtol=1e-10, atol=1e-10)


# Precision


@pytest.mark.parametrize("function", [LayerNormFunction.apply, RMSNormFunction.apply])
@pytest.mark.parametrize("dtype", HALF)
@pytest.mark.parametrize("full_parameters", [True, False])
def test_half_precision_rounds_once(function, dtype, full_parameters, block):
    tensors = random_tensors((64, 96), 1, dtype, torch.float32 if full_parameters else dtype)
    upstream = tensors[3]
    layer = function == LayerNormFunction.apply
    inputs = tensors[:3] if layer else tensors[:2]
    y, *grads = run(function, inputs, (96,), upstream)
    plain = layer_norm if layer else rms_norm
    eps = 1e-5 if layer else torch.finfo(torch.float32).eps
    exact_y, *exact_grads = exact(plain, inputs, (96,), upstream.double(), eps)
    assert [t.dtype for t in (y, *grads)] == [dtype, *(t.dtype for t in inputs)]
    unit = torch.finfo(dtype).eps
    assert bool(((y - exact_y).abs() <= 0.5 * unit * exact_y.abs() + 4e-6).all())
    for grad, expected in zip(grads, exact_grads, strict=True):
        unit = max(torch.finfo(grad.dtype).eps, 2e-6)
        assert float((grad - expected).abs().max()) <= unit * float(expected.abs().max())


@pytest.mark.parametrize("mean", [1e2, 1e4, 1e6])
def test_a_large_mean_costs_no_digits_nor_do_gradients_suffer(mean, block):
    rng = np.random.default_rng(2)
    x = torch.tensor(rng.standard_normal((32, 768)) + mean).float()
    x[::2] -= mean  # every other row is near 0
    weight, bias = torch.tensor(rng.standard_normal((2, 768))).float()
    upstream = torch.tensor(rng.standard_normal((32, 768))).float()
    ours = run(LayerNormFunction.apply, (x, weight, bias), (768,), upstream)
    theirs = exact(native.layer_norm, (x, weight, bias), (768,), upstream.double())
    for tensor, expected in zip(ours, theirs, strict=True):
        assert float((tensor - expected).abs().max()) <= 2e-6 * float(expected.abs().max())


@pytest.mark.parametrize("scale", [1e-6, 1e-3, 1e3, 1e10, 1e15, 1e18])
def test_gradients_hold_at_every_scale(scale, block):
    rng = np.random.default_rng(6)
    x, upstream = torch.tensor(rng.standard_normal((2, 8, 16))).float()
    weight, bias = torch.tensor(rng.standard_normal((2, 16))).float()
    for function, plain, inputs, *eps in (
        (LayerNormFunction.apply, native.layer_norm, (scale * x, weight, bias)),
        (RMSNormFunction.apply, native.rms_norm, (scale * x, weight), 1e-7),
    ):
        ours = run(function, inputs, (16,), upstream, *eps)[1:]
        theirs = exact(plain, inputs, (16,), upstream.double(), *eps)[1:]
        for grad, expected in zip(ours, theirs, strict=True):
            assert float((grad - expected).abs().max()) <= 1e-5 * float(expected.abs().max())


def test_long_sums_are_accurate():
    rng = np.random.default_rng(5)
    x, upstream = torch.tensor(rng.standard_normal((2, 20000, 32))).float()
    weight, bias = torch.tensor(rng.standard_normal((2, 32))).float()
    ours = run(LayerNormFunction.apply, (x, weight, bias), (32,), upstream)
    theirs = exact(native.layer_norm, (x, weight, bias), (32,), upstream.double())
    for tensor, expected in zip(ours, theirs, strict=True):  # PyTorch's errors: 2e-6 and 3e-6
        assert float((tensor - expected).abs().max()) <= 4e-6 * float(expected.abs().max())


# Special values and shapes


@pytest.mark.parametrize("bad", [torch.nan, torch.inf, -torch.inf, 1e30, 3e38])
@pytest.mark.parametrize("dtype", FLOATING[:3])
def test_rows_that_are_not_finite_are_nan_and_stay_alone(bad, dtype, block):
    x = random_tensors((6, 8), 1, dtype)[0]
    clean = [LayerNormFunction.apply(x, (8,)), RMSNormFunction.apply(x, (8,))]
    x[2, 3] = bad  # in float16, 1e30 is infinite
    for function, before in zip((LayerNormFunction, RMSNormFunction), clean, strict=True):
        y = function.apply(x, (8,))
        assert y[2].isnan().all()
        assert torch.equal(y[[0, 1, 3, 4, 5]], before[[0, 1, 3, 4, 5]])


@pytest.mark.parametrize(
    ("shape", "normalized_shape"),
    [((0, 4), (4,)), ((3, 0, 4), (4,)), ((2, 0), (0,)), ((2, 0, 3), (0, 3)), ((0,), (0,))],
)
def test_empty_tensors(shape, normalized_shape, block):
    weight, bias = torch.full(normalized_shape, 2.0), torch.full(normalized_shape, 3.0)
    given = (torch.ones(shape), weight, bias)
    ours = run(LayerNormFunction.apply, given, normalized_shape, torch.ones(shape))
    close(ours, run(native.layer_norm, given, normalized_shape, torch.ones(shape)), 0.0)
    ours = run(RMSNormFunction.apply, given[:2], normalized_shape, torch.ones(shape))
    close(ours, run(rms_norm, given[:2], normalized_shape, torch.ones(shape)), 0.0)


def test_one_feature(block):
    x, weight, bias, upstream = random_tensors((50, 1), 1)
    ours = run(LayerNormFunction.apply, (x, weight, bias), (1,), upstream, 0.01)
    close(ours, run(native.layer_norm, (x, weight, bias), (1,), upstream, 0.01), 1e-11)
    ours = run(RMSNormFunction.apply, (x, weight), (1,), upstream, 0.01)
    close(ours, run(native.rms_norm, (x, weight), (1,), upstream, 0.01), 1e-11)


@pytest.mark.parametrize(
    ("rows", "columns", "heights"),
    [(10, BLOCK // 4, [4, 4, 2]), (3, 2 * BLOCK, [1, 1, 1]), (2, BLOCK, [1, 1])],
)
def test_the_rows_are_cut_into_blocks_that_fit(rows, columns, heights):
    matrix = torch.empty(rows, columns, device="meta")
    cut = [matrix[block] for block in _blocks.blocks(matrix)]
    assert [len(block) for block in cut] == heights
    assert [block.storage_offset() for block in cut] == [
        columns * sum(heights[:number]) for number in range(len(heights))
    ]


def test_what_fits_one_block_is_not_cut():
    assert _blocks.fits_one_block(torch.empty(1, BLOCK))
    assert not _blocks.fits_one_block(torch.empty(1, BLOCK + 1))
    assert _blocks.fits_one_block(torch.empty(1, BLOCK + 1, device="meta"))


@pytest.mark.parametrize("dtype", HALF)
@pytest.mark.parametrize("function", [LayerNormFunction.apply, RMSNormFunction.apply])
def test_each_element_of_a_gradient_rounds_once(function, dtype, block):
    x, weight, _, upstream = random_tensors((64, 96), 1, dtype, torch.float32)
    plain = layer_norm if function == LayerNormFunction.apply else rms_norm
    eps = 1e-5 if plain is layer_norm else torch.finfo(torch.float32).eps
    inputs = (x, weight, None) if plain is layer_norm else (x, weight)
    _, grad, _ = run(function, inputs, (96,), upstream)
    _, expected, _ = exact(plain, inputs, (96,), upstream.double(), eps)
    error, row = (grad - expected).abs(), expected.abs().amax(1, keepdim=True)
    assert bool((error <= 0.501 * torch.finfo(dtype).eps * expected.abs() + 1e-5 * row).all())


@pytest.mark.parametrize("dtype", HALF)
@pytest.mark.parametrize("function", [layer_norm_backward, rms_norm_backward])
def test_the_plain_backward_formulas_round_once(function, dtype):
    x, _, _, upstream = random_tensors((64, 96), 1, dtype)
    grads = function(upstream, x, (96,), eps=0.01)
    exact_grads = function(upstream.double(), x.double(), (96,), eps=0.01)
    for grad, expected in zip(grads, exact_grads, strict=True):
        assert grad.dtype == dtype
        error = (grad - expected).abs()
        assert bool((error <= 0.501 * torch.finfo(dtype).eps * expected.abs() + 1e-5).all())


def test_plain_results_are_contiguous():
    x = random_tensors((4, 6))[0].t()
    assert layer_norm(x, (4,)).is_contiguous()
    assert rms_norm(x, (4,)).is_contiguous()


@pytest.mark.parametrize("dtype", FLOATING)
def test_memory_layout_changes_nothing(dtype, block):
    x, weight, bias, upstream = random_tensors((2, 3, 4, 5), 3, dtype)
    layouts = [
        x.to(memory_format=torch.channels_last),
        x.transpose(1, 3).contiguous().transpose(1, 3),
        torch.stack([x, x], dim=-1)[..., 0],
    ]
    for function, inputs in ((LayerNormFunction, (weight, bias)), (RMSNormFunction, (weight,))):
        expected = run(function.apply, (x, *inputs), (3, 4, 5), upstream)
        for layout in layouts:
            ours = run(function.apply, (layout, *inputs), (3, 4, 5), layout * 0 + upstream)
            assert all(map(torch.equal, ours, expected))
            assert ours[0].is_contiguous()


def test_a_transposed_matrix(block):
    x, weight, bias, upstream = random_tensors((6, 8))
    for function, inputs in ((LayerNormFunction, (weight, bias)), (RMSNormFunction, (weight,))):
        expected = run(function.apply, (x, *inputs), (8,), upstream)
        given = (x.t().contiguous().t(), *inputs)
        ours = run(function.apply, given, (8,), upstream.t().contiguous().t())
        assert all(map(torch.equal, ours, expected))
        assert ours[0].is_contiguous()


def test_an_expanded_upstream_gradient(block):
    x, weight, bias, _ = random_tensors((6, 8))
    upstream = torch.tensor(2.0, dtype=torch.float64).expand(6, 8)
    ours = run(LayerNormFunction.apply, (x, weight, bias), (8,), upstream)
    close(ours, run(native.layer_norm, (x, weight, bias), (8,), upstream), 1e-10)


def test_an_input_changed_before_backward_is_noticed():
    x = random_tensors((6, 8))[0].requires_grad_()
    for function in (LayerNormFunction, RMSNormFunction):
        middle = x * 2
        y = function.apply(middle, (8,))
        middle.zero_()
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            y.sum().backward()


# Saved tensors


def test_little_is_kept_for_backward():
    x = torch.randn(64, 128, requires_grad=True)
    weight, kept = torch.ones(128, requires_grad=True), []

    def note(tensor):
        kept.append(tensor)
        return tensor

    for function, columns in ((LayerNormFunction, 3), (RMSNormFunction, 1)):
        kept.clear()
        with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
            function.apply(x, (128,), weight)
        own = [t for t in kept if t.data_ptr() not in (x.data_ptr(), weight.data_ptr())]
        assert sum(t.numel() for t in own) <= 64 * columns
